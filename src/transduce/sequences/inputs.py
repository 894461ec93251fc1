"""Sequences as users have them, encoded as one matrix of features with a row for each token.

A sequence is a list of tokens, whose features a function computes; a list of feature dicts or lists of feature strings,
as sklearn-crfsuite takes them; or an array of token vectors. In a dict, a string is an indicator "name:value", and a
number or truth value is the value of the feature "name".
"""

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from transduce.arrays import FloatArray, IntArray
from transduce.errors import InputError
from transduce.sequences.features import token_matrix

TOKENS, DICTS, STRINGS, VECTORS = "tokens", "feature dicts", "feature strings", "token vectors"
LARGEST = 1e100
"""Largest number in features: sums of its squares are finite."""


class Encoded(NamedTuple):
    """Features (N, d) of all tokens, and offsets (n + 1,) where sequences begin and end."""

    X: Any
    offsets: IntArray


@dataclass(eq=False)
class Encoder:
    """Encodes sequences; the columns are those of the first ones.

    features     "auto" for the built-in features of tokens, or a function of the tokens and a position
    kind         what sequences are made of
    names        of the columns
    columns      of features that are not built in
    mean, scale  of token vectors, which are standardised to mean 0 and mean squared length 1: their weights and the
                 transitions share a regulariser, which suits both at this scale
    """

    features: str | Callable[[Sequence[str], int], Any] = "auto"
    kind: str = ""
    names: tuple[str, ...] = ()
    columns: dict[Any, int] = field(default_factory=dict)
    mean: FloatArray = field(default_factory=lambda: np.zeros(1))
    scale: float = 1.0

    def fit_transform(self, sequences: Sequence[Any]) -> Encoded:
        """Encode sequences, with a column for every feature."""
        sequences = _as_lists(sequences)
        self.kind = _kind_of(sequences[0])
        return self._encode(sequences, is_new=True)

    def transform(self, sequences: Sequence[Any]) -> Encoded:
        """Encode sequences; features that have no column are left out."""
        sequences = _as_lists(sequences)
        kind = _kind_of(sequences[0])
        if kind != self.kind:
            raise InputError(f"The tagger was fitted on {self.kind}, but these sequences are {kind}. Pass {self.kind}.")
        return self._encode(sequences, is_new=False)

    def _encode(self, sequences: Sequence[Any], is_new: bool) -> Encoded:
        lengths = [len(sequence) for sequence in sequences]
        offsets = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
        if self.kind == VECTORS:
            return Encoded(self._vectors(sequences, is_new), offsets)
        if self.kind == TOKENS and self.features == "auto":
            _check_tokens(sequences)
            X, self.names = token_matrix(sequences, None if is_new else self.names)
            return Encoded(X, offsets)
        if self.kind == TOKENS:
            sequences = [[self.features(s, i) for i in range(len(s))] for s in sequences]  # type: ignore[operator]
        return Encoded(self._sparse(sequences, int(offsets[-1]), is_new), offsets)

    def _vectors(self, sequences: Sequence[Any], is_new: bool) -> FloatArray:
        matrices = [_matrix(sequence, i) for i, sequence in enumerate(sequences)]
        if is_new:
            self.names = tuple(f"x{j}" for j in range(matrices[0].shape[1]))
        wrong = next((i for i, one in enumerate(matrices) if one.shape[1] != len(self.names)), None)
        if wrong is not None:
            expected = f"{len(self.names)} as in {'sequence 0' if is_new else 'training'}"
            found = f"{matrices[wrong].shape[1]} numbers"
            raise InputError(f"Token vectors of sequence {wrong} have {found}, not {expected}. Make them equal.")
        X = np.ascontiguousarray(np.concatenate(matrices))
        if not (np.abs(X) <= LARGEST).all():
            raise InputError(f"Token vectors must be finite numbers up to {LARGEST:g}, but some are not. Replace them.")
        if is_new:
            self.mean = X.mean(axis=0)
            self.scale = float(np.sqrt(np.mean(((X - self.mean) ** 2).sum(axis=1)))) or 1.0
        return np.asarray((X - self.mean) / self.scale)

    def _sparse(self, sequences: Sequence[Any], n_tokens: int, is_new: bool) -> sparse.csr_matrix:
        """Look up the items of all tokens; an item is a string, or a name and a value."""
        tokens = list(chain.from_iterable(sequences))
        is_dict = isinstance(tokens[0], Mapping)
        _check_features(tokens, is_dict)
        items: list[Any] = list(chain.from_iterable((token.items() for token in tokens) if is_dict else tokens))
        _check_names([name for name, _ in items] if is_dict else items)
        data = np.ones(len(items))
        if is_dict and not all(type(value) is str for _, value in items):
            items, data = _numbers(items)
        if is_new:
            self.columns = {item: j for j, item in enumerate(dict.fromkeys(items))}
            self.names = tuple(key if isinstance(key, str) else ":".join(key) for key in self.columns)
        indices = np.fromiter(map(self.columns.get, items, repeat(-1)), np.int32, len(items))
        known = indices >= 0
        ends = np.concatenate(([0], np.cumsum(np.fromiter(map(len, tokens), np.int64, n_tokens))))
        ends = np.concatenate(([0], np.cumsum(known)))[ends]
        X = sparse.csr_matrix((data[known], indices[known], ends), (n_tokens, len(self.columns)))
        if is_new:
            X.sum_duplicates()
        else:
            X.has_canonical_format = True  # scores need no order, and no sums
        return X


def _numbers(items: list[tuple[str, Any]]) -> tuple[list[Any], FloatArray]:
    """Column keys and values of the items of dicts, some of which are numbers."""
    keys = [item if isinstance(item[1], str) else item[0] for item in items]
    try:
        data = np.array([1.0 if isinstance(value, str) else float(value) for _, value in items])
    except (TypeError, ValueError):
        data = np.full(1, np.nan)
    if not (np.abs(data) <= LARGEST).all():
        problem = f"Values of features must be strings, truth values or finite numbers up to {LARGEST:g}"
        raise InputError(f"{problem}, but some are not. Replace them.")
    return keys, data


def _as_lists(sequences: Any) -> list[Any]:
    """Sequences as lists or arrays, each with a token at least; Series and data frames become arrays."""
    if isinstance(sequences, (str, Mapping)) or sparse.issparse(sequences) or not hasattr(sequences, "__len__"):
        raise InputError(f"X must be a list of sequences, but is a {type(sequences).__name__}. Pass a list.")
    found = [each.to_numpy() if hasattr(each, "to_numpy") else each for each in sequences]
    if not found:
        raise InputError("X has no sequences. Pass at least one.")
    for i, each in enumerate(found):
        if sparse.issparse(each):
            raise InputError(f"Sequence {i} is a sparse matrix. Pass its array, {type(each).__name__}.toarray().")
        if isinstance(each, (str, Mapping, Set)) or not hasattr(each, "__len__"):
            raise InputError(f"Sequence {i} is {each!r}, but must be a list of tokens. Split texts into tokens first.")
        if len(each) == 0:
            raise InputError(f"Sequence {i} is empty. Remove it: a sequence needs a token.")
    return found


def _kind_of(first: Any) -> str:
    """What sequences are made of, by the first one."""
    if getattr(first, "ndim", 1) == 2:
        return VECTORS
    token = first[0]
    if isinstance(token, (str, Mapping)):
        return TOKENS if isinstance(token, str) else DICTS
    if hasattr(token, "__len__") and len(token) and isinstance(next(iter(token)), (int, float, np.number)):
        return VECTORS
    if isinstance(token, Collection):
        return STRINGS
    raise InputError(f"Token 0 of sequence 0 is {token!r}, but must be a string, feature dict, feature list or vector.")


def _matrix(sequence: Any, i: int) -> FloatArray:
    """Token vectors of a sequence."""
    try:
        found = np.asarray(sequence, dtype=np.float64)
    except (TypeError, ValueError):
        found = np.zeros(0)
    if found.ndim != 2:
        raise InputError(f"Sequence {i} must be an array (T, d), a vector of d numbers for each token, but is not one.")
    return found


def _check_tokens(sequences: Sequence[Any]) -> None:
    for i, sequence in enumerate(sequences):
        wrong = [token for token in sequence if not isinstance(token, str)]
        if wrong:
            raise InputError(f"Sequence {i} has the token {wrong[0]!r}, but the others are strings. Convert it.")


def _check_features(tokens: list[Any], is_dict: bool) -> None:
    """Refuse tokens that are not of the kind of the first one."""
    for kind in set(map(type, tokens)):
        is_list = issubclass(kind, Collection) and not issubclass(kind, (str, Mapping))
        if not (issubclass(kind, Mapping) if is_dict else is_list):
            wrong = next(token for token in tokens if type(token) is kind)
            expected = "a feature dict" if is_dict else "a list of feature strings"
            raise InputError(f"A token is {wrong!r}, but must be {expected} as the first one. Convert it.")


def _check_names(names: list[Any]) -> None:
    """Refuse names of features that are not strings."""
    if not all(issubclass(kind, str) for kind in set(map(type, names))):
        wrong = next(name for name in names if not isinstance(name, str))
        raise InputError(f"Names of features must be strings, but one is {wrong!r}. Convert it.")
