"""A fitted tagger as one safetensors file, without training text and without code; docs/model-file.md describes it."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from transduce.arrays import Array
from transduce.errors import InputError
from transduce.features.training_rows import read_digests
from transduce.io.safetensors_file import parse_json, read_metadata, read_tensors, write_tensors
from transduce.model_file import (
    LARGEST_WEIGHT,
    MAX_WORD_BYTES,
    check_classes,
    check_numbers,
    read_header,
    typed,
    unusable_file,
)
from transduce.sequences.inputs import TOKENS, Encoder
from transduce.sequences.tagger import TransductiveTagger
from transduce.suggest import short_repr
from transduce.validation import check_path

FORMAT, VERSION = "transduce-tagger", 1
_WEIGHTS = ("coef", "transitions", "start", "end")
_DESCRIPTION = {"classes": list, "loss": str, "constraints": list, "about": dict}
_ABOUT = {"settings": dict, "labelled_rows": dict}


def save_tagger(tagger: TransductiveTagger, target: str, about: Mapping[str, Any] | None = None) -> None:
    """Write a tagger to a file, completely or not at all.

    Parameters
    ----------
    tagger : TransductiveTagger
        Fitted on token lists with the built-in features.
    target : str
        Name of the file.
    about : mapping, default=None
        How it was fitted, as JSON values; `transduce tag` writes it.

    Examples
    --------
    >>> import os, tempfile
    >>> tagger = TransductiveTagger().fit([["J.", "Smith"], ["Tea"]], [["author", "author"], ["title"]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "tagger.safetensors")
    ...     save_tagger(tagger, path)
    ...     load_tagger(path)[0].predict([["A.", "Smith"]])
    [['author', 'author']]
    """
    if not isinstance(tagger, TransductiveTagger):
        raise TypeError(f"tagger must be a TransductiveTagger, but is {short_repr(tagger)}. Pass one.")
    check_is_fitted(tagger, "coef_")
    target = check_path("target", target)
    if tagger.features != "auto" or tagger.encoder_.kind != TOKENS:
        raise ValueError("A tagger can be stored if it was fitted on tokens with features='auto'. Fit it so.")
    if not all(isinstance(one, str) for one in tagger.constraints) or any("\n" in one for one in tagger.feature_names_):
        raise ValueError("Constraints must be sentences and tokens have no line break, to be stored. Write them so.")
    names = tagger.classes_.tolist()
    description = {
        "format": FORMAT,
        "version": VERSION,
        "classes": names,
        "loss": tagger.loss,
        "scheme": tagger.scheme,
        "constraints": list(tagger.constraints),
        "about": {} if about is None else about,
    }
    text = json.dumps(description, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    text = text.encode("utf-8", "replace").decode("utf-8")  # a file name may hold bytes that are not text
    vocabulary = np.frombuffer("\n".join(tagger.feature_names_).encode("utf-8"), np.uint8)
    tensors = {name: np.asarray(getattr(tagger, f"{name}_")) for name in _WEIGHTS} | {"vocabulary": vocabulary}
    metadata, shapes = {"transduce": text}, {name: array.shape for name, array in tensors.items()}
    _assemble(tensors, _check(metadata, shapes))  # so that nothing is saved that could not be loaded
    write_tensors(target, tensors, metadata)


def load_tagger(source: str) -> tuple[TransductiveTagger, Mapping[str, Any]]:
    """Read a tagger and how it was fitted; the file is checked before use, and nothing in it is executed.

    Parameters
    ----------
    source : str
        Name of the file.

    Returns
    -------
    tagger : TransductiveTagger
    about : mapping
    """
    with unusable_file(source):
        return _assemble(*read_tensors(source, _check))


def is_tagger(source: str) -> bool:
    """Whether a file says that it holds a tagger; one that cannot be read does not."""
    try:
        header = parse_json(read_metadata(source).get("transduce", "{}"))
    except (ValueError, InputError):  # whoever loads it says what is wrong
        return False
    return isinstance(header, dict) and header.get("format") == FORMAT


def _check(metadata: Mapping[str, str], shapes: Mapping[str, tuple[int, ...]]) -> Mapping[str, Any]:
    """Check and return the description, and that tensors have the shapes that it asks for."""
    header = typed(read_header(metadata, FORMAT, VERSION), _DESCRIPTION, "the description")
    check_classes(tuple(header["classes"]), tree=False)
    if set(shapes) != {*_WEIGHTS, "vocabulary"}:
        raise ValueError(f"it must hold the tensors {', '.join((*_WEIGHTS, 'vocabulary'))}")
    K, coef = len(header["classes"]), shapes["coef"]
    if len(coef) != 2 or len(shapes["vocabulary"]) != 1 or shapes["vocabulary"][0] > MAX_WORD_BYTES * coef[0]:
        raise ValueError("its weights and its vocabulary do not fit together")
    if not all(isinstance(one, str) for one in header["constraints"]) or header.get("scheme") not in (
        None,
        "BIO",
        "BIOES",
    ):
        raise ValueError("its constraints must be texts, and its scheme BIO, BIOES or null")
    if any(shapes[name] != shape for name, shape in _shapes(coef[0], K).items()):
        raise ValueError(f"its tensors do not have the shapes of {K} labels")
    typed({"settings": {}, "labelled_rows": {}, **header["about"]}, _ABOUT, "about")
    if header["about"].get("labelled_rows"):
        read_digests(header["about"]["labelled_rows"])
    return header


def _shapes(d: int, K: int) -> dict[str, tuple[int, ...]]:
    return {"coef": (d, K), "transitions": (K, K), "start": (K,), "end": (K,)}


def _assemble(tensors: Mapping[str, Array], header: Mapping[str, Any]) -> tuple[TransductiveTagger, Mapping[str, Any]]:
    """Check names and numbers, and make a tagger of them."""
    try:
        names = tuple(tensors["vocabulary"].tobytes().decode("utf-8").split("\n"))
    except UnicodeError as error:
        raise ValueError("its vocabulary is not Unicode text") from error
    for name, shape in _shapes(len(names), len(header["classes"])).items():
        check_numbers(name, tensors[name], shape, -LARGEST_WEIGHT, LARGEST_WEIGHT, "float32", "float64")
    if len(set(names)) != len(names):
        raise ValueError("it has a feature twice")
    tagger = TransductiveTagger(
        loss=header["loss"], scheme=header.get("scheme"), constraints=tuple(header["constraints"])
    )
    tagger.classes_ = np.array(header["classes"], dtype=object)
    tagger.encoder_ = Encoder("auto", TOKENS, names)
    tagger.feature_names_, tagger.n_features_in_ = names, len(names)
    for name in _WEIGHTS:
        setattr(tagger, f"{name}_", tensors[name])
    tagger._check_parameters()
    tagger._read_constraints()
    return tagger, header["about"]
