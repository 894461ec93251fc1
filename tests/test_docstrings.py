"""Public names have numpydoc docstrings that describe every parameter."""

import inspect
import re
from enum import Enum
from importlib import import_module

import pytest
from helpers.public_names import MODULES

ESTIMATORS = ("Classifier", "ClassifierCV", "Split")
MAIN = {
    "CenteredNormalizer", "FunctionEncoder", "Groups", "LabelProblem", "RuledOut", "Taxonomy", "counts_from_fractions",
    "encode_texts", "hide", "labeled_scorer", "learning_curve", "load_clinc150", "pack_rows", "plot_learning_curve",
    "solve_labels",
}  # fmt: skip


def public_names(module):
    """Names in `__all__`, or else the classes and functions that the module defines."""
    if hasattr(module, "__all__"):
        return module.__all__
    is_own = {name: getattr(value, "__module__", None) == module.__name__ for name, value in vars(module).items()}
    return [name for name, own in is_own.items() if own and not name.startswith("_")]


def public_methods(cls):
    """Methods that this package defines; those inherited from scikit-learn have scikit-learn's docstrings."""
    for name in dir(cls):
        member = inspect.getattr_static(cls, name)
        function = getattr(member, "__func__", getattr(member, "fn", member))  # of a classmethod, or of available_if
        if not name.startswith("_") and inspect.isfunction(function) and function.__module__.startswith("transduce"):
            yield name, function


def public_objects():
    """Classes, functions and methods by their dotted name."""
    found = {}
    for module in map(import_module, MODULES):
        for name in public_names(module):
            value = getattr(module, name)
            if inspect.isclass(value) or inspect.isfunction(value):
                found[f"{module.__name__}.{name}"] = value
            if inspect.isclass(value):
                found |= {f"{module.__name__}.{name}.{key}": method for key, method in public_methods(value)}
    return found


OBJECTS = public_objects()


def takes_parameters(cls):
    """Whether users make objects of a class by its parameters: not interfaces, enums, or errors like their base."""
    is_made_elsewhere = issubclass(cls, Enum) or (issubclass(cls, BaseException) and "__init__" not in vars(cls))
    makers = (cls.__init__, cls.__new__)
    return not is_made_elsewhere and not getattr(cls, "_is_protocol", False) and any(map(inspect.isfunction, makers))


def parameters(thing):
    if inspect.isclass(thing) and not takes_parameters(thing):
        return []
    names = [name for name in inspect.signature(thing).parameters if not name.startswith("_")]
    return [name for name in names if name not in ("self", "cls")]


def section(doc, *titles):
    """Text of the first of these sections that there is; "" without one."""
    pattern = rf"^(?:{'|'.join(titles)})\n-+\n(.*?)(?=^\w[\w ]*\n-+\n|\Z)"
    found = re.search(pattern, doc, re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


def described(doc):
    """Parameters that a docstring describes, or the attributes of a record."""
    lines = re.findall(r"^(\S.*)$", section(doc, "Parameters", "Attributes"), re.MULTILINE)
    return {name.strip(" *") for line in lines for name in line.partition(" : ")[0].split(",")}


def referenced(doc):
    """Public objects to which a docstring refers, as in "see `Loss.value`"."""
    names = [name.removeprefix("transduce.") for name in re.findall(r"[Ss]ee `([\w.]+)`", doc)]
    return [thing for name in names for key, thing in OBJECTS.items() if key.endswith(f".{name}")]


def undescribed(thing):
    """Parameters that neither the docstring nor one to which it refers describes."""
    doc = inspect.getdoc(thing) or ""
    known = described(doc).union(*(described(inspect.getdoc(other) or "") for other in referenced(doc)))
    return [name for name in parameters(thing) if name not in known]


@pytest.mark.parametrize("name", OBJECTS)
def test_the_first_line_is_a_summary(name):
    summary, *rest = (inspect.getdoc(OBJECTS[name]) or "").split("\n")
    assert summary.endswith(".")
    assert not rest or rest[0] == ""


@pytest.mark.parametrize("name", OBJECTS)
def test_every_parameter_is_described(name):
    assert not undescribed(OBJECTS[name])


@pytest.mark.parametrize("name", OBJECTS)
def test_types_and_defaults_are_those_of_the_signature(name):
    """Only entries that refer to another docstring, "See" or "As in", may leave them out."""
    thing = OBJECTS[name]
    entries = re.findall(r"^(\S.*)\n?( .*)?", section(inspect.getdoc(thing) or "", "Parameters"), re.MULTILINE)
    for entry, description in entries:
        names, _, kind = entry.partition(" : ")
        assert kind or re.match(r" +(See|As in) ", description)
        for key in [key.strip(" *") for key in names.split(",") if kind]:
            default = inspect.signature(thing).parameters[key].default
            stated = kind.partition("default=")[2]
            assert (default is inspect.Parameter.empty) == (not stated)
            assert not stated or eval(stated) == default


@pytest.mark.parametrize("name", [name for name, thing in OBJECTS.items() if inspect.isfunction(thing)])
def test_the_result_is_described(name):
    """By a section, by the summary, or by the docstring of the interface."""
    doc = inspect.getdoc(OBJECTS[name])
    is_void = inspect.signature(OBJECTS[name]).return_annotation in (None, "None")
    assert is_void or section(doc, "Returns", "Yields") or re.match("Return|Yield", doc) or referenced(doc)


def main_names():
    return [key for key in OBJECTS if (name := key.rpartition(".")[2]) in MAIN or name.endswith(ESTIMATORS)]


@pytest.mark.parametrize("name", main_names())
def test_main_names_have_an_example(name):
    assert ">>>" in inspect.getdoc(OBJECTS[name])


def test_a_missing_parameter_is_found():
    def without(one, two):
        """Return one.

        Parameters
        ----------
        one : int
        """

    def by_reference(scores, other):
        """Return the scores; see `Loss.value`."""

    assert undescribed(without) == ["two"]
    assert undescribed(by_reference) == ["other"]
