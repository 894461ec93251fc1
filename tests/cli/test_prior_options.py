"""Class sizes in options, and what the command line says about them."""

import string

import numpy as np
import pytest

from transduce.class_prior.spec import read_sizes
from transduce.class_prior.stated_sizes import read_statement
from transduce.cli.errors import InputError
from transduce.cli.fit_messages import _PRIOR_ERRORS
from transduce.cli.prior_options import assumptions, prior_errors, read_prior, stated_counts
from transduce.errors import PriorError, PriorErrorKind
from transduce.taxonomy import Taxonomy


def test_options_override_files_and_names_may_hold_equals_signs(tmp_path):
    (tmp_path / "sizes.csv").write_text("a,0.1\nd,0.3\n")
    found = read_prior(["a=0.2", "b=c=0.5", str(tmp_path / "sizes.csv")])
    assert found == read_sizes({"a": 0.2, "b=c": 0.5, "d": 0.3}, ())
    assert read_prior(["a=1", "b=100%", "c==2", "d = =30%"]) == read_sizes({"a": 1, "b": 1.0, "c": 2, "d": "=30%"}, ())


@pytest.mark.parametrize("keyword", ["equal", "labeled", "estimate"])
def test_keywords_stand_alone(keyword):
    assert read_prior([keyword]) == keyword
    with pytest.raises(InputError, match=f"--prior {keyword} is about all classes, but others are stated too"):
        read_prior([keyword, "tea=0.2"])


@pytest.mark.parametrize(
    "sizes",
    [
        ("30%", "=20%", "?"), ("0,3", "1/5", "?"), ("~30", "5:9", "?"), ("100-200", "10%-30%", "?"),
        ("60", "39.5", "0.5"), ("=120", "~380", "50%"), ("600", "300", "100"), ("603", "302", "101"), ("1", "0", "0"),
        ("0.33", "0.33", "0.33"),
    ],
)  # fmt: skip
def test_options_and_python_give_the_same_statement(sizes):
    names, labels = np.array(["coffee", "milk", "tea"], dtype=object), np.array([0, 0, 0, 1, 1, 2])
    one = read_statement(
        read_prior([f"{name}={size}" for name, size in zip(names, sizes, strict=True)]), names, labels, 1000
    )
    for prior in (list(sizes), np.array(sizes), dict(zip(names, sizes, strict=True))):
        other = read_statement(prior, names, labels, 1000)
        for field in ("low", "high", "is_rough", "is_in_rows", "divided_by"):
            assert np.array_equal(getattr(one, field), getattr(other, field))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["a=0.1", "a=0.2"], "size of 'a' twice"),
        (["billing=0.4,outage=0.1"], "one --prior for each class"),
        (["billing=40%; outage=10%"], "one --prior for each class"),
        (["a==12.5"], "--prior a==12.5 has =12.5, which is neither a fraction nor a whole number of rows"),
        (["banking=="], r"--prior banking== states no size"),
        (["banking="], r"--prior banking= states no size; write banking=\? for a class you know nothing about"),
        ([""], "--prior must be NAME=SIZE"),
        (["sport"], "--prior must be NAME=SIZE"),
        (["=0.2"], "--prior must be NAME=SIZE"),
        (["prior.txt"], "--prior must be NAME=SIZE"),
        ([" =1"], "--prior must be NAME=SIZE"),
    ],
)
def test_options_that_cannot_be_used_are_named(options, message):
    with pytest.raises(InputError, match=message):
        read_prior(options)


def test_files_with_a_byte_order_mark_are_read_and_bad_files_are_named(tmp_path):
    path = tmp_path / "sizes.csv"
    path.write_text("\ufefftea;0,3\r\ncoffee;0,7\r\n")
    assert read_prior([str(path)]) == read_sizes({"tea": 0.3, "coffee": 0.7}, ())
    path.write_text("tea,much\n")
    with pytest.raises(InputError, match=r"sizes\.csv, line 1, must be a fraction"):
        read_prior([str(path)])


def test_missing_binary_and_large_files(tmp_path):
    with pytest.raises(InputError, match=r"none\.toml does not exist"):
        read_prior([str(tmp_path / "none.toml")])
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="UTF-8"):
        read_prior([str(tmp_path / "binary.json")])
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match="cannot be read"):
        read_prior([str(tmp_path / "folder.csv")])


def test_stated_sizes_are_repeated_as_rows():
    names = [f"c{k}" for k in range(20)]
    prior = read_sizes({**dict.fromkeys(names, 3), "c1": (3, 5), "c2": "~4"}, ())
    (sentence,) = stated_counts(prior, read_statement(prior, np.array(names), np.arange(20), 300))
    assert sentence.startswith(
        "Class sizes: c0: 3 rows (1 %); c1: 3 to 5 rows (1 to 1.67 %); c2: about 4 rows (1.33 %);"
    )
    assert sentence.endswith("; and 8 more.")
    tree = Taxonomy.create(["hot/milk", "hot/tea", "cold"])
    prior = read_sizes({"hot/tea": None, "hot/milk": None, "hot": (0.4, 0.6)}, ())
    statement = read_statement(prior, np.array(tree.labels, object), np.arange(3), 100, tree)
    assert stated_counts(prior, statement) == ["Class sizes: hot: 40 to 60 rows (40 to 60 %)."]


@pytest.mark.parametrize(
    ("sizes", "total"),
    [
        ((0.33, 0.33, 0.33), "0.99"),
        ((0.34, 0.34, 0.34), "1.02"),
        ((0.333, 0.333, 0.333), "0.999"),
        ((0.33333, 0.33333, 0.33333), None),
        ((0.3334, 0.3334, 0.3334), None),
        ((0.25, 0.25, 0.5), None),
    ],
)
def test_a_sum_that_rounds_to_1_is_not_reported(sizes, total):
    names = np.array(["cocoa", "coffee", "tea"])
    statement = read_statement(dict(zip(names.tolist(), sizes, strict=True)), names, np.array([0, 1, 2]), 100)
    expected = [] if total is None else [f"stated sizes sum to {total} and were divided by that"]
    assert assumptions([], statement) == expected


@pytest.mark.parametrize("kind", list(_PRIOR_ERRORS))
def test_sentences_of_the_command_line_use_the_fields_of_the_library(kind):
    sentences = (_PRIOR_ERRORS[kind], kind.value)
    used, known = ({name for _, name, _, _ in string.Formatter().parse(each) if name} for each in sentences)
    assert used <= known | {"option"}
    assert "class_prior" not in _PRIOR_ERRORS[kind]


@pytest.mark.parametrize("kind", [kind for kind in PriorErrorKind if "{source}" in kind.value])
def test_errors_in_options_and_files_do_not_speak_of_python(kind):
    assert "class_prior" not in kind.value


def test_errors_about_sizes_speak_of_options():
    with pytest.raises(InputError, match=r"^the class sizes of --prior cannot be used.*1\.2"), prior_errors():
        raise PriorError(PriorErrorKind.SUM, total=1.2, n_rows=100)
    with pytest.raises(InputError, match="The labelled classes are 'milk' and 'tea'"), prior_errors():
        read_statement({"beer": 0.2}, np.array(["milk", "tea"]), np.array([0, 1]), 10)
