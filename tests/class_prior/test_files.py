"""Class priors in files: the same content in every format, and files that cannot be read."""

import json

import pytest

from transduce.class_prior.files import parse_prior
from transduce.class_prior.spec import UNKNOWN, parse_size
from transduce.errors import PriorError, PriorErrorKind

FILES = {
    "top.toml": 'tea = 0.3\ncoffee = [0.2, 0.5]\ncocoa = "?"\n',
    "table.toml": '[prior]\ntea = "30%"\ncoffee = "0.2:0.5"\ncocoa = "?"\n',
    "plain.json": json.dumps({"tea": 0.3, "coffee": [0.2, 0.5], "cocoa": "?"}),
    "header.csv": "class,size\ntea,0.3\ncoffee,20%:50%\ncocoa,?\n",
    "decimal-comma.csv": "Klasse;Anteil\ntea;0,3\ncoffee;20%:50%\ncocoa;?\n",
    "ranges.csv": "tea;0,3\r\ncoffee;0,2;0,5\r\ncocoa;?\r\n",
    "three.csv": "tea,3/10\n\ncoffee,20%,50%\ncocoa,?\n",
}


@pytest.mark.parametrize("name", FILES)
def test_every_format_says_the_same(name):
    prior = parse_prior(FILES[name], name.rpartition(".")[2], name)
    assert prior == {"tea": parse_size(0.3, ""), "coffee": parse_size("20%-50%", ""), "cocoa": UNKNOWN}


BAD_FILES = {
    "empty.toml": ("", "NOT_A_MAPPING"),
    "list.json": ("[1, 2]", "NOT_A_MAPPING"),
    "broken.json": ('{"a": 1', "BAD_FILE"),
    "broken.toml": ("a = = 1", "BAD_FILE"),
    "twice.json": ('{"a": 1, "a": 2}', "BAD_FILE"),
    "deep.json": ("[" * 100_000, "BAD_FILE"),
    "twice.csv": ("a,1\na,2\n", "TWICE"),
    "wide.csv": ("a,1,2,3\n", "CSV_LINE"),
    "empty.csv": ("\n", "EMPTY_FILE"),
    "text.csv": ("a,much\n", "SYNTAX"),
    "second.csv": ("a,1\nb,much\n", "SYNTAX"),
    "swapped.csv": ("b,1\na,0.5,0.1\n", "REVERSED"),
    "nested.toml": ("[prior]\na = {b = 1}", "SYNTAX"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files_are_named(name):
    text, kind = BAD_FILES[name]
    with pytest.raises(PriorError, match=f"^{name}") as caught:
        parse_prior(text, name.rpartition(".")[2], name)
    assert caught.value.kind is PriorErrorKind[kind]
    assert "\n" not in str(caught.value)
