"""Public names and the names of their parameters change only on purpose; docs/stability.md says how."""

import inspect
from importlib import import_module

import pytest
from helpers.public_names import MODULES, PATH, public_lines

import transduce


def test_public_names_and_parameters_are_those_of_the_list():
    listed, found = PATH.read_text(encoding="utf-8").splitlines(), public_lines()
    removed, added = sorted(set(listed) - set(found)), sorted(set(found) - set(listed))
    assert not removed, f"a release that lacks these breaks users' code; see docs/stability.md: {removed}"
    assert not added, f"run `PYTHONPATH=src:tests python -m helpers.public_names` to list new names: {added}"
    assert listed == found


def test_every_public_module_is_in_the_list():
    stated = {f"transduce.{name}" for name in transduce._MODULES}
    assert stated <= {".".join(name.split(".")[:2]) for name in MODULES}


@pytest.mark.parametrize("name", transduce.__all__)
def test_public_names_say_where_they_are_and_what_they_do(name):
    value = getattr(transduce, name)
    assert inspect.getdoc(value)
    assert name in dir(transduce)
    assert name in transduce.__doc__


@pytest.mark.parametrize("module", MODULES)
def test_public_modules_list_names_that_they_have(module):
    found = import_module(module)
    assert [name for name in getattr(found, "__all__", ()) if not hasattr(found, name)] == []
