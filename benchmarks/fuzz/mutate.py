"""Mutations of bytes: what disks, transfers, editors and attackers do to files. The same seed gives the same bytes."""

import re
from collections.abc import Callable, Sequence

import numpy as np

PIECES = (
    b'"', b"'", b"\n", b"\r", b"\r\n", b",", b";", b"\t", b"\0", b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"NaN",
    b"inf", b"1e999", b"-1", b"0", b"{", b"}", b"[" * 50, b"]", b":", b"null", b"true", b"\\ud800", b"9" * 30, b"=1+1",
    b"PAR1", b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PK\x03\x04", "ü".encode(), "\u202e".encode(), b" " * 40,
)  # fmt: skip
NUMBERS = (b"0", b"-1", b"1", b"2147483647", b"2147483648", b"-9223372036854775808", b"1e308", b"0.5", b"nan", b"[]")
MAX_MUTATIONS = 4
Mutation = Callable[[bytearray, np.random.Generator], None]


def mutate(seeds: Sequence[bytes], number: int) -> bytes:
    """Return the input with this number: one of the seeds, changed in up to four places, and now and then spliced."""
    rng = np.random.default_rng(number)
    data = bytearray(seeds[rng.integers(len(seeds))])
    for _ in range(rng.integers(0, MAX_MUTATIONS + 1)):
        MUTATIONS[rng.integers(len(MUTATIONS))](data, rng)
    if rng.random() < 0.1:
        other = seeds[rng.integers(len(seeds))]
        data = data[: rng.integers(len(data) + 1)] + other[rng.integers(len(other) + 1) :]
    return bytes(data)


def _place(data: bytearray, rng: np.random.Generator) -> int:
    return int(rng.integers(len(data) + 1))


def _span(data: bytearray, rng: np.random.Generator) -> slice:
    begin = _place(data, rng)
    return slice(begin, begin + int(rng.geometric(0.1)))


def _flip(data: bytearray, rng: np.random.Generator) -> None:
    if data:
        data[rng.integers(len(data))] ^= 1 << int(rng.integers(8))


def _insert(data: bytearray, rng: np.random.Generator) -> None:
    begin = _place(data, rng)
    data[begin:begin] = PIECES[rng.integers(len(PIECES))]


def _overwrite(data: bytearray, rng: np.random.Generator) -> None:
    data[_span(data, rng)] = PIECES[rng.integers(len(PIECES))]


def _random(data: bytearray, rng: np.random.Generator) -> None:
    data[_span(data, rng)] = rng.bytes(int(rng.integers(9)))


def _delete(data: bytearray, rng: np.random.Generator) -> None:
    del data[_span(data, rng)]


def _repeat(data: bytearray, rng: np.random.Generator) -> None:
    span = _span(data, rng)
    data[span] = bytes(data[span]) * int(rng.integers(2, 20))


def _truncate(data: bytearray, rng: np.random.Generator) -> None:
    del data[_place(data, rng) :]


def _number(data: bytearray, rng: np.random.Generator) -> None:
    """Replace a number in the text."""
    found = list(re.finditer(rb"-?[0-9]+(?:\.[0-9]+)?", bytes(data)))
    if found:
        match = found[rng.integers(len(found))]
        data[slice(*match.span())] = NUMBERS[rng.integers(len(NUMBERS))]


MUTATIONS: tuple[Mutation, ...] = (_flip, _insert, _overwrite, _random, _delete, _repeat, _truncate, _number)
