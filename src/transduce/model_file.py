"""A classifier and its vectorizer as one safetensors file, without training text and without code.

docs/model-file.md describes the format. A model is loaded bit for bit as saved; the same model makes the same file.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from transduce.engines.common import Calibration
from transduce.errors import InputError
from transduce.features.identity import EncoderIdentity
from transduce.features.tfidf import ENCODER_KINDS, WORD_KINDS, Features, Vectorizer
from transduce.features.training_rows import read_digests
from transduce.io.safetensors_file import parse_json, read_tensors, write_tensors
from transduce.losses import LargeMargin, Loss, MaxEnt, SquaredLargeMargin
from transduce.provenance import MAX_HISTORY_ROWS, class_weights
from transduce.taxonomy import Taxonomy

Array: TypeAlias = NDArray[Any]

FORMAT, VERSION = "transduce-model", 3
TENSORS = ("coef", "idf", "intercept", "shift", "vocabulary")
"""The tensors of version 1; later ones have "center" too. A file has the lowest version that is not misread: 2 for a
centre, an encoder, a smoothing or a score below which rows have no class, 3 for a mix."""
LARGEST_WEIGHT = 1e30
"""Far above any trained weight; scores of unit rows stay finite below it."""
LARGEST_IDF = 100.0
MAX_WORD_BYTES = 100_000
"""Mean length of words in a vocabulary: a text without spaces is one word."""
LARGEST_COUNT = 2**53
_FIRST_VERSION = {"encoder": 2, "words_share": 3}
"""The version from which on features have these values."""
_LOSSES: Mapping[str, Loss] = {"hinge": LargeMargin(), "squared_hinge": SquaredLargeMargin(), "maxent": MaxEnt()}
_DESCRIPTION = {"version": int, "classes": list, "tree": bool, "loss": str, "features": dict, "about": dict}
_ABOUT: Mapping[str, type] = {
    **dict.fromkeys(("transduce", "created", "source", "prior", "ending"), str),
    **dict.fromkeys(("n_labelled", "n_unlabelled", "n_empty"), int),
    **dict.fromkeys(("sizes", "history", "branches"), list),
    **dict.fromkeys(("seconds", "objective", "smoothing"), float),
    **dict.fromkeys(("settings", "labelled_rows"), dict),
    "interrupted": bool,
}
_OPTIONAL: Mapping[str, Any] = {"branches": [], "objective": 0.0, "labelled_rows": {}, "n_empty": 0, "smoothing": 0.0}
_ACCURACY: Mapping[str, type] = {
    **dict.fromkeys(("mean", "low", "high", "macro_f", "macro_f_low", "macro_f_high"), float),
    "n_labels": int,
}
_NONE = dict.fromkeys(("asked_low", "asked_high", "assigned"), int)
_SIZE_ESTIMATE = dict.fromkeys(("estimated", "estimated_low", "estimated_high", "rough"), float)
"""Numbers of classes and branches that may be missing."""
_COUNTS = dict.fromkeys(("labelled", "asked_low", "asked_high", "assigned", "own"), int)
_ROWS: Mapping[str, Mapping[str, type]] = {
    "sizes": {"class": str, **_COUNTS, **dict.fromkeys(("texts_low", "texts_high", "price"), float)},
    "branches": {"branch": str, **_COUNTS},
    "history": {
        **dict.fromkeys(("way", "stage", "moved"), int),
        **dict.fromkeys(("objective", "seconds", "temperature", "weight"), float),
    },
}


@dataclass(frozen=True, eq=False)
class Model:
    """A classifier with its vectorizer; K classes, d features.

    classes     K names
    coef        (K, d) weights
    intercept   (K,) including the prices of the class sizes
    shift       (K,) the part of the intercept that comes from the prices: scores − shift ignores class sizes
    vectorizer  turns texts into rows of d features
    tree        whether class names are paths separated by "/"
    loss        "hinge", "squared_hinge" or "maxent": how scores become probabilities
    about       provenance as plain JSON values; docs/model-file.md lists them
    """

    classes: tuple[str, ...]
    coef: Array
    intercept: Array
    shift: Array
    vectorizer: Vectorizer
    tree: bool
    loss: str
    about: Mapping[str, Any]

    @property
    def none_score(self) -> float:
        """Rows whose best score is below this fit no class; -inf for a model that gives every row one."""
        return float(self.about.get("none", {}).get("score", -np.inf))

    def scores(self, X: Any) -> Array:
        """Scores (n, K) of rows (n, d), sparse or dense."""
        if X.shape[1] != self.coef.shape[1]:
            raise InputError(
                f"The model needs rows of {self.coef.shape[1]} numbers, but these have {X.shape[1]}. "
                "Make them in the same way as those it was trained on."
            )
        with np.errstate(over="ignore", invalid="ignore"):
            scores = np.asarray(X @ self._columns) + self.intercept
        bad = ~np.isfinite(scores).all(axis=1)
        if bad.any():
            raise InputError(
                f"Row {np.argmax(bad) + 1} has numbers that are too large for the model. Scale it to length 1."
            )
        return scores

    def probabilities(self, scores: Array) -> Array:
        """Probabilities (n, K) of the classes under the model's loss."""
        return Calibration(smoothing=self.about.get("smoothing", 0.0)).probabilities(_LOSSES[self.loss], scores)

    @cached_property
    def _columns(self) -> Array:
        """Weights (d, K) in C order, so that a sparse row reads contiguous weights."""
        return np.ascontiguousarray(self.coef.T)


def make_model(
    clf: Any, classes: Sequence[str], vectorizer: Vectorizer, about: Mapping[str, Any], *, tree: bool
) -> Model:
    """Make a model of a fitted classifier; its scores are divided by the temperature, so that it is calibrated."""
    about = {"smoothing": clf.calibration_.smoothing, **about}
    return Model(tuple(classes), *class_weights(clf), vectorizer, tree, str(clf.loss), about)


def save_model(model: Model, target: str) -> None:
    """Write the model to a file; an existing file is replaced completely or not at all."""
    features, center = asdict(model.vectorizer.features), model.vectorizer.center
    is_plain = not (center.size or features["encoder"] or model.about.get("smoothing") or model.none_score > -np.inf)
    version = 3 if features["kind"] == "mix" else 1 if is_plain else 2
    for name, first in _FIRST_VERSION.items():
        if version < first:
            del features[name]
    description = {
        "format": FORMAT,
        "version": version,
        "classes": model.classes,
        "tree": model.tree,
        "loss": model.loss,
        "features": features,
        "about": _renamed(model.about, "restart", "way"),
    }
    text = json.dumps(description, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    text = text.encode("utf-8", "replace").decode("utf-8")  # a file name may hold bytes that are not text
    vocabulary = np.frombuffer("\n".join(model.vectorizer.vocabulary).encode("utf-8"), np.uint8)
    numbers = {"coef": model.coef, "intercept": model.intercept, "shift": model.shift, "idf": model.vectorizer.idf}
    tensors, metadata = {**numbers, "vocabulary": vocabulary}, {"transduce": text}
    if version > 1:
        tensors["center"] = center
    shapes = {name: array.shape for name, array in tensors.items()}
    _assemble(tensors, _check_description(metadata, shapes))  # so that nothing is saved that could not be loaded
    write_tensors(target, tensors, metadata)


def load_model(source: str) -> Model:
    """Read a model file from any source: it is checked before use, and nothing in it is executed."""
    with unusable_file(source):
        return _assemble(*read_tensors(source, _check_description))


@contextmanager
def unusable_file(source: str) -> Iterator[None]:
    """Turn errors about the content of a model file into one that names the file and says what to do."""
    try:
        yield
    except InputError:
        raise
    except (ValueError, TypeError) as error:
        advice = "Upgrade transduce" if isinstance(error, NewerVersionError) else "Copy it again, or train a new model"
        raise InputError(f"{source} is not a usable model file: {error}. {advice}.") from error


def _renamed(about: Mapping[str, Any], old: str, new: str) -> dict[str, Any]:
    """Rename a key of every history row: the file format calls a restart a "way"."""
    rows = [{new if key == old else key: value for key, value in row.items()} for row in about.get("history", ())]
    return {**about, "history": rows}


class NewerVersionError(ValueError):
    """A file of a later version."""


def read_header(metadata: Mapping[str, str], format: str, version: int) -> Mapping[str, Any]:
    """Read the description in a file of this format, and check that its version is known."""
    if "transduce" not in metadata:
        raise ValueError("it is a safetensors file, but not one of transduce")
    header = typed(parse_json(metadata["transduce"]), {"format": str, "version": int}, "the description")
    if header["format"] != format:
        raise ValueError(f"its format is not {format}")
    if header["version"] > version:
        raise NewerVersionError(f"its version is {header['version']}, and this transduce reads {version}")
    return header


def _check_description(metadata: Mapping[str, str], shapes: Mapping[str, tuple[int, ...]]) -> Mapping[str, Any]:
    """Check and return the description, and that the tensors it needs are there with a row for each class."""
    header = read_header(metadata, FORMAT, VERSION)
    typed(header, _DESCRIPTION, "the description")
    wanted = TENSORS if header["version"] == 1 else (*TENSORS, "center")
    if header["version"] < 1 or set(shapes) != set(wanted):
        raise ValueError(f"it must be of version 1 to {VERSION} and hold the tensors {', '.join(wanted)}")
    check_classes(tuple(header["classes"]), header["tree"])
    if header["loss"] not in _LOSSES:
        raise ValueError(f"its loss is not one of {', '.join(_LOSSES)}")
    _check_shapes(shapes, len(header["classes"]))
    _check_about(header["about"], tuple(header["classes"]))
    return header


def _check_shapes(shapes: Mapping[str, tuple[int, ...]], n_classes: int) -> None:
    """Check what follows from the number of classes, and that no tensor is larger than the others allow."""
    for name, shape in shapes.items():
        wanted = 2 if name == "coef" else 1
        if len(shape) != wanted or (name in ("coef", "intercept", "shift") and shape[0] != n_classes):
            raise ValueError(f"{name} must have the shape of {n_classes} classes and its columns, but has {shape}")
    n_columns, n_words, n_center = shapes["coef"][1], shapes["idf"][0], shapes.get("center", (0,))[0]
    if n_words not in (0, n_columns, n_columns - n_center) or n_center > n_columns:
        raise ValueError(f"coef must have the shape of its columns, but has {n_columns} for {n_words} and {n_center}")
    if shapes["vocabulary"][0] > MAX_WORD_BYTES * n_words:
        raise ValueError(f"its vocabulary has more than {MAX_WORD_BYTES} bytes for each of its {n_words} words")


def _assemble(tensors: Mapping[str, Array], header: Mapping[str, Any]) -> Model:
    """Check that sizes agree and numbers are finite, and make a model of them; the description is checked before."""
    classes = tuple(header["classes"])
    features = _features(header["features"], header["version"])
    center = tensors.get("center", np.empty(0, np.float32))
    vectorizer = _vectorizer(features, tensors["vocabulary"], tensors["idf"], center)
    shapes = {"coef": (len(classes), vectorizer.n_columns), "intercept": (len(classes),), "shift": (len(classes),)}
    for name, shape in shapes.items():
        check_numbers(name, tensors[name], shape, -LARGEST_WEIGHT, LARGEST_WEIGHT, "float32", "float64")
    coef = np.asfortranarray(tensors["coef"])  # so that its transpose is in the order that scores want
    about = _renamed(header["about"], "way", "restart")
    return Model(
        classes, coef, tensors["intercept"], tensors["shift"], vectorizer, header["tree"], header["loss"], about
    )


def check_classes(classes: tuple[Any, ...], tree: bool) -> None:
    """Check that classes are different names, and in a tree if they must be."""
    if not classes or not all(isinstance(name, str) and name for name in classes):
        raise ValueError("its classes are not names")
    if len(set(classes)) != len(classes):
        raise ValueError("it has a class twice")
    "".join(classes).encode("utf-8")  # a lone surrogate raises UnicodeEncodeError, a ValueError
    if tree:
        Taxonomy(classes, tuple(tuple(name.split("/")) for name in classes))


def _features(values: Mapping[str, Any], version: int) -> Features:
    names = {field.name for field in fields(Features) if version >= _FIRST_VERSION.get(field.name, 1)}
    if set(values) != names:
        raise ValueError("its features are not those of this version")
    encoder = values.get("encoder")
    if encoder is not None:
        typed(encoder, {"name": str, "revision": str, "probe": list}, "the encoder")
        if len(encoder) != len(fields(EncoderIdentity)) or not _is_probe(encoder["probe"]):
            raise ValueError("its encoder must have a name, a revision and a probe of numbers")
        encoder = EncoderIdentity(**{**encoder, "probe": tuple(map(tuple, encoder["probe"]))})
    try:
        return Features(**{**values, "encoder": encoder})
    except InputError as error:
        raise ValueError(f"its features are invalid ({error})") from error


def _is_probe(probe: list[Any]) -> bool:
    """Whether a probe is lists of equal length of numbers that are not too large."""
    if not probe or not all(isinstance(row, list) and len(row) == len(probe[0]) for row in probe):
        return False
    return all(type(number) in (int, float) and abs(number) <= LARGEST_WEIGHT for row in probe for number in row)


def _vectorizer(features: Features, vocabulary: Array, idf: Array, center: Array) -> Vectorizer:
    if vocabulary.dtype != np.uint8:
        raise ValueError("its vocabulary is not text")
    try:
        words = tuple(vocabulary.tobytes().decode("utf-8").split("\n")) if vocabulary.size else ()
    except UnicodeError as error:
        raise ValueError("its vocabulary is not Unicode text") from error
    vectorizer = Vectorizer(features, words, idf, center)
    kind, n_columns = vectorizer.features.kind, vectorizer.n_columns
    if n_columns == 0:
        raise ValueError("it has no columns")
    if kind not in ("tfidf", "mix") and words:
        raise ValueError(f"it has words, but {kind} features use none")
    if not all(words) or any(first >= second for first, second in pairwise(words)):
        raise ValueError("its words are not sorted, not distinct, or empty")
    n_words = n_columns if kind in WORD_KINDS else len(words)
    check_numbers("idf", idf, (n_words,), 1.0, LARGEST_IDF, "float32")
    has_center = kind in ENCODER_KINDS or (kind == "vectors" and center.size > 0)
    check_numbers("center", center, (features.n_features if has_center else 0,), -1.0, 1.0, "float32")
    return vectorizer


def check_numbers(name: str, numbers: Array, shape: tuple[int, ...], low: float, high: float, *types: str) -> None:
    """Check the type, the shape and the range of a tensor."""
    if numbers.dtype not in types:
        raise ValueError(f"{name} must be {' or '.join(types)}, but is {numbers.dtype}")
    if numbers.shape != shape:
        raise ValueError(f"{name} must have the shape {shape}, but has {numbers.shape}")
    if numbers.size and not (numbers.min() >= low and numbers.max() <= high):  # false for NaN too
        raise ValueError(f"{name} must hold numbers from {low:g} to {high:g}")


def _check_about(about: Any, classes: tuple[str, ...]) -> None:
    """Check what `report`, `inspect`, `evaluate` and `predict` rely on."""
    about = {**_OPTIONAL, **about} if isinstance(about, dict) else about
    typed(about, _ABOUT, "about")
    if type(about.get("seed", "")) not in (int, type(None)):
        raise ValueError("about must have a whole number or null as its 'seed'")
    if not 0.0 <= about["smoothing"] < 1.0:
        raise ValueError("about must have a 'smoothing' of at least 0 and below 1")
    columns = about["settings"].get("text", [])
    if not isinstance(columns, list) or not all(isinstance(column, str) for column in columns):
        raise ValueError("the settings must name their 'text' as a list of columns")
    if len(about["history"]) > MAX_HISTORY_ROWS:
        raise ValueError(f"about must have at most {MAX_HISTORY_ROWS} rows of history")
    if type(about.get("choice", "")) is not str:
        raise ValueError("about must have a sentence as its 'choice'")
    if about.get("class_type", "int") != "int" or ("class_type" in about and not all(map(_is_integer, classes))):
        raise ValueError("about must have 'int' as its 'class_type', and only if all classes are whole numbers")
    if about["labelled_rows"]:
        read_digests(about["labelled_rows"])
    if "accuracy" in about:
        typed(about["accuracy"], _ACCURACY, "the accuracy")
        typed(
            {"n_answered": 0, "n_single": 0} | about["accuracy"], {"n_answered": int, "n_single": int}, "the accuracy"
        )
    if "none" in about:
        typed(about["none"], {**_NONE, **({"score": float} if "score" in about["none"] else {})}, "none")
    for name, types in _ROWS.items():
        for row in about[name]:
            typed(row, types, f"a row of {name}")
            typed(row, {key: kind for key, kind in _SIZE_ESTIMATE.items() if key in row}, f"a row of {name}")
    if about["sizes"] and sorted(size["class"] for size in about["sizes"]) != sorted(classes):
        raise ValueError("its sizes must be those of its classes")


def _is_integer(name: str) -> bool:
    """Whether a class name is a whole number of 64 bits."""
    return re.fullmatch(r"-?[0-9]{1,19}", name) is not None and -(2**63) <= int(name) < 2**63


def typed(values: Any, types: Mapping[str, type], what: str) -> Mapping[str, Any]:
    """Check that all keys are there with values of their type and within bounds; an int may stand for a float."""
    if not isinstance(values, dict):
        raise ValueError(f"{what} is not an object")
    for key, kind in types.items():
        accepted = (int, float) if kind is float else (kind,)
        if key not in values or type(values[key]) not in accepted:
            raise ValueError(f"{what} must have {key!r} of type {kind.__name__}")
        low = -1 if key == "way" else 0  # restart -1 is a fit that some labels were hidden from
        if kind is int and not low <= values[key] <= LARGEST_COUNT:
            raise ValueError(f"{what} must have {key!r} from {low} to 2^53, but has {values[key]}")
        if kind is float and abs(values[key]) > LARGEST_WEIGHT:
            raise ValueError(f"{what} must have {key!r} of at most {LARGEST_WEIGHT:g}, but has {values[key]:g}")
    return values
