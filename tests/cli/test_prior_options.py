"""Class sizes as people write them."""

import json

import pytest

from transduce.cli.errors import InputError
from transduce.cli.prior_options import as_ranges, complete_prior, parse_share, read_prior, understood


@pytest.mark.parametrize(
    ("written", "share"),
    [
        ("0.2", 0.2), (" 20% ", 0.2), ("20 %", 0.2), ("120", 120.0), ("0", 0.0), ("0.1:0.3", (0.1, 0.3)),
        ("10%:30%", (0.1, 0.3)), ("5:9", (5.0, 9.0)), ("?", None), ("", None),
        (0.25, 0.25), (3, 3.0), ([1], 1.0), ([1, 2], (1.0, 2.0)),
    ],
)  # fmt: skip
def test_shares(written, share):
    assert parse_share(written, "here") == share


@pytest.mark.parametrize(
    "written", ["a", "1:2:3", "-1", "0.3:0.1", "inf", "nan", "1e400", True, {"a": 1}, [1], [[1], 2], "%", ":"]
)
def test_bad_shares_name_the_place(written):
    if written == [1]:
        assert parse_share(written, "here") == 1.0
        return
    with pytest.raises(InputError, match="here"):
        parse_share(written, "here")


def test_an_option_goes_before_a_file_and_names_may_hold_equals_signs(tmp_path):
    (tmp_path / "sizes.csv").write_text("a,0.1\nd,0.3\n")
    assert read_prior(["a=0.2", "b=c=0.5", str(tmp_path / "sizes.csv")]) == {"a": 0.2, "b=c": 0.5, "d": 0.3}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["a=0.1", "a=0.2"], "size of 'a' twice"),
        (["billing=0.4,outage=0.1"], "one --prior for each class"),
        (["billing=40%; outage=10%"], "one --prior for each class"),
        (["a=1.5"], "1.5 is neither a share nor a whole number of rows"),
        (["a=12.5"], "12.5 is neither a share"),
        (["a=2:3.5"], "3.5 is neither a share"),
        (["a=150%"], "150% is neither a share"),
        (["a=200%"], "200% is neither a share"),
        (["banking="], r"--prior banking= states no size; write banking=\? for a class you know nothing about"),
    ],
)
def test_sizes_that_can_be_read_two_ways_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        read_prior(options)


def test_up_to_one_is_a_share():
    assert read_prior(["a=1", "b=100%", "c=2"]) == {"a": 1.0, "b": 1.0, "c": 2.0}


def test_what_was_understood_is_told_in_one_line():
    names = [f"c{k}" for k in range(20)]
    sizes = dict.fromkeys(names, 3)
    told = understood(dict.fromkeys(names, 0.01), sizes, sizes | {"c1": 5}, 300)
    assert told.startswith("Class sizes: c0: 3 rows (1 %); c1: 3 to 5 rows (1 to 1.67 %); c2")
    assert told.endswith("; and 8 more.")


@pytest.mark.parametrize("option", ["", "sport", "=0.2", "prior.txt", " =1"])
def test_bad_options(option):
    with pytest.raises(InputError, match="--prior must be NAME=SHARE"):
        read_prior([option])


FILES = {
    "top.toml": 'tea = 0.3\ncoffee = [0.2, 0.5]\ncocoa = "?"\n',
    "table.toml": '[prior]\ntea = "30%"\ncoffee = "0.2:0.5"\ncocoa = "?"\n',
    "plain.json": json.dumps({"tea": 0.3, "coffee": [0.2, 0.5], "cocoa": "?"}),
    "header.csv": "class,share\ntea,0.3\ncoffee,20%:50%\ncocoa,?\n",
    "european.csv": "Klasse;Anteil\ntea;0,3\ncoffee;20%:50%\ncocoa;?\n",
    "european-ranges.csv": "\ufefftea;0,3;0,3\r\ncoffee;0,2;0,5\r\ncocoa;0;1\r\n",
    "three.csv": "tea,0.3,0.3\n\ncoffee,0.2,0.5\ncocoa,0,1\n",
}


@pytest.mark.parametrize("name", FILES)
def test_files_of_every_kind_say_the_same(tmp_path, name):
    path = tmp_path / name
    path.write_text(FILES[name])
    ranges = as_ranges(read_prior([str(path)]), 100)
    assert ranges == {"tea": (0.3, 0.3), "coffee": (0.2, 0.5), "cocoa": (0.0, 1.0)}


BAD_FILES = {
    "empty.toml": "",
    "list.json": "[1, 2]",
    "broken.json": '{"a": 1',
    "broken.toml": "a = = 1",
    "twice.json": '{"a": 1, "a": 2}',
    "twice.csv": "a,1\na,2\n",
    "wide.csv": "a,1,2,3\n",
    "empty.csv": "\n",
    "text.csv": "a,much\n",
    "second.csv": "a,1\nb,much\n",
    "swapped.csv": "b,1\na,0.5,0.1\n",
    "deep.json": "[" * 100_000,
    "nested.toml": "[prior]\na = {b = 1}",
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files_are_named(tmp_path, name):
    path = tmp_path / name
    path.write_text(BAD_FILES[name])
    with pytest.raises(InputError, match=name) as caught:
        read_prior([str(path)])
    assert "\n" not in str(caught.value)


def test_missing_binary_and_large_files(tmp_path):
    with pytest.raises(InputError, match=r"none\.toml does not exist"):
        read_prior([str(tmp_path / "none.toml")])
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="UTF-8"):
        read_prior([str(tmp_path / "binary.json")])
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match="cannot be read"):
        read_prior([str(tmp_path / "folder.csv")])


def test_rounded_shares_are_divided_by_their_sum_and_said_so():
    full, said = complete_prior({"a": 0.33, "b": 0.33, "c": 0.33}, ["a", "b", "c"])
    assert sum(full.values()) == pytest.approx(1)
    assert "0.99" in said[0]
    assert complete_prior({"a": 0.5, "b": 0.4}, ["a", "b"]) == ({"a": 0.5, "b": 0.4}, [])


def test_a_misspelt_class_gets_its_neighbour_and_an_inner_node_its_leaves():
    with pytest.raises(InputError, match="did you mean 'sport'"):
        complete_prior({"sprot": 0.5}, ["sport", "science"])
    with pytest.raises(InputError, match="'rec/', which no row is labelled with; did you mean 'rec'"):
        complete_prior({"rec/": 0.5}, ["rec/chess", "rec/hockey", "sci"], tree=True)
    with pytest.raises(InputError, match="did you mean 'sport'"):
        complete_prior({"sport/": 0.5}, ["sport", "sports"])
    with pytest.raises(InputError, match="holds 'rec/chess' and 'rec/hockey'"):
        complete_prior({"rec": 0.5}, ["rec/chess", "rec/hockey"])


def test_classes_below_a_stated_branch_have_a_size():
    full, said = complete_prior({"rec": 0.3, "sci": None}, ["rec/chess", "rec/hockey", "sci", "talk"], tree=True)
    assert full == {"rec/chess": None, "rec/hockey": None, "sci": None, "talk": None, "rec": 0.3}
    assert said == ["classes without a stated size ('talk') get what the texts suggest within what is left"]
