"""Features of tokens: the word, its shape and letters, its place in the sequence, and its neighbours.

Each feature is a string such as "word=smith"; a token has ten of them. `token_matrix` computes them for a corpus from
its distinct tokens, so that long corpora cost little more than a pass over their tokens.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from transduce.suggest import short_repr

N_TENTHS = 10
_EDGES = re.compile(r"^[\W_]+|[\W_]+$")
_LETTERS, _DIGITS = re.compile(r"([Xx])\1+"), re.compile("d{5,}")
_OWN = ("word", "shape", "first", "last", "sign")
_START, _END = "<start>", "<end>"


def token_features(tokens: Sequence[str], i: int) -> list[str]:
    """Return the features of one token.

    These are the word (in lower case, without the signs around it), its shape, its first and last three letters, its
    last sign, its position in tenths of the sequence, and the word and shape of both neighbours.

    Parameters
    ----------
    tokens : sequence of str
        The sequence.
    i : int
        Position of the token.

    Returns
    -------
    list of str
        Ten names of features that this token has.

    Examples
    --------
    >>> token_features(["J.", "Smith,", "1994."], 1)  # doctest: +NORMALIZE_WHITESPACE
    ['word=smith', 'shape=Xxx,', 'first=smi', 'last=ith', 'sign=,',
     'before:word=j', 'before:shape=X.', 'after:word=1994', 'after:shape=dddd.', 'tenth=3']
    """
    n_tokens = len(tokens) if hasattr(tokens, "__getitem__") and not isinstance(tokens, (str, Mapping)) else 0
    if not isinstance(i, Integral) or (n_tokens and not 0 <= i < n_tokens):
        raise ValueError(f"i must be the position of a token, from 0 to {n_tokens - 1}, but is {short_repr(i)}.")
    check_tokens([tokens[max(0, i - 1) : i + 2] if n_tokens else tokens])
    if not n_tokens:
        raise ValueError("tokens is empty. Pass at least one token.")
    before = _parts(tokens[i - 1])[:2] if i > 0 else (_START, _START)
    after = _parts(tokens[i + 1])[:2] if i + 1 < len(tokens) else (_END, _END)
    slots = zip(_SLOTS, (*_parts(tokens[i]), *before, *after, str(N_TENTHS * i // len(tokens))), strict=True)
    return [f"{slot}={value}" for slot, value in slots]


_SLOTS = (*_OWN, *(f"{side}:{part}" for side in ("before", "after") for part in _OWN[:2]), "tenth")


def check_tokens(sequences: Any) -> None:
    """Raise TypeError unless sequences are lists of lists of strings."""
    for tokens in sequences if _is_list(sequences) else [sequences]:
        if not (_is_list(sequences) and _is_list(tokens) and all(isinstance(each, str) for each in tokens)):
            raise TypeError(
                f"a sequence must be a list of strings, its tokens, but is {short_repr(tokens)}. Convert it."
            )


def _is_list(values: Any) -> bool:
    return hasattr(values, "__len__") and not isinstance(values, (str, bytes, Mapping))


def shape(token: str) -> str:
    """Replace letters by X and x and digits by d; a run of letters becomes at most two signs, one of digits five.

    >>> shape("Smith,"), shape("J."), shape("IEEE"), shape("pp.11-19"), shape("1994")
    ('Xxx,', 'X.', 'XX', 'xx.dd-dd', 'dddd')
    """
    signs = "".join("d" if c.isdigit() else "X" if c.isupper() else "x" if c.isalpha() else c for c in token)
    return _DIGITS.sub("ddddd", _LETTERS.sub(r"\1\1", signs))


def _parts(token: str) -> tuple[str, str, str, str, str]:
    """Word, shape, first and last letters, and last sign of a token."""
    word = (_EDGES.sub("", token) or token).lower()
    last = token[-1:]
    sign = "a" if last.isalpha() else "d" if last.isdigit() else last
    return word, shape(token), word[:3], word[-3:], sign


def token_matrix(
    sequences: Sequence[Sequence[str]], names: Sequence[str] | None = None
) -> tuple[csr_matrix, tuple[str, ...]]:
    """Return the features of all tokens of a corpus as a matrix of ones, and the names of its columns.

    Parameters
    ----------
    sequences : sequence of sequences of str
        Token lists. Rows of the matrix are their tokens, one sequence after another.
    names : sequence of str, default=None
        Columns of an earlier call. Features that have none are left out. By default every feature gets a column, in
        the order of their names.

    Returns
    -------
    X : csr_matrix of shape (n_tokens, n_columns)
    names : tuple of str

    Examples
    --------
    >>> X, names = token_matrix([["J.", "Smith,"], ["1994."]])
    >>> X.shape == (3, len(names)), int(X[2, names.index("tenth=0")])
    (True, 1)
    """
    check_tokens(sequences)
    slots = [(f"{slot}=", values, codes) for slot, (values, codes) in zip(_SLOTS, _slots(sequences), strict=True)]
    if names is None:
        used = ({prefix + values[code] for code in np.unique(codes)} for prefix, values, codes in slots)
        names = sorted(set().union(*used))
    column = {name: j for j, name in enumerate(names)}
    columns = np.stack([_lookup(prefix, values, column)[codes] for prefix, values, codes in slots], axis=1)
    columns.sort(axis=1)
    known = columns >= 0
    indptr = np.concatenate(([0], np.cumsum(known.sum(axis=1))))
    indices = columns[known]
    return csr_matrix((np.ones(indices.size), indices, indptr), (len(columns), len(names))), tuple(names)


def _lookup(prefix: str, values: Sequence[str], column: Mapping[str, int]) -> NDArray[np.int32]:
    return np.array([column.get(prefix + value, -1) for value in values], dtype=np.int32)


def _slots(sequences: Sequence[Sequence[str]]) -> Iterator[tuple[Sequence[str], NDArray[np.int64]]]:
    """For each kind of feature its values, and for every token the number of its value."""
    number: dict[str, int] = {}
    for token in chain.from_iterable(sequences):
        number.setdefault(token, len(number))
    codes = np.fromiter(map(number.__getitem__, chain.from_iterable(sequences)), dtype=np.int64)
    lengths = np.array([len(one) for one in sequences if len(one)], dtype=np.int64)
    ends = np.cumsum(lengths)
    before, after = np.roll(codes, 1), np.roll(codes, -1)
    before[ends - lengths], after[ends - 1] = len(number), len(number)
    parts = list(zip(*map(_parts, number), strict=True)) or [()] * len(_OWN)
    yield from ((values, codes) for values in parts)
    for side, edge in ((before, _START), (after, _END)):
        yield from (([*values, edge], side) for values in parts[:2])
    place = np.arange(codes.size) - np.repeat(ends - lengths, lengths)
    yield list(map(str, range(N_TENTHS))), N_TENTHS * place // np.repeat(lengths, lengths)
