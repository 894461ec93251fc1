"""Partial labels and sizes of branches on the command line: what is understood is said, what cannot be is refused."""

import json

import polars as pl
import pytest
from helpers.documents import pile

from transduce.cli.formats import write_table
from transduce.cli.model_file import load_model

QUICK = ("--annealing", "paper")


@pytest.fixture
def label(tell, tmp_path):
    """Label a pile with other labels in some of its rows, and hear what is said."""

    def typed(changes, *options, paths=False, file="pile.csv", command="label"):
        frame = pile(paths=paths)
        labels = [changes.get(row, name) for row, name in enumerate(frame["label"], 1)]
        write_table(frame.with_columns(pl.Series("label", labels)), str(tmp_path / file))
        out = ("-o", tmp_path / "out.csv", *QUICK) if command == "label" else ()
        return tell(command, tmp_path / file, *out, *options)

    return typed


def test_one_unknown_part_makes_no_class(label, tmp_path):
    told = label({60: "bankin|travel"})
    assert (told.code, (tmp_path / "out.csv").exists()) == (2, False)
    assert "row 60 of column 'label'" in told.err
    assert "no row is labelled 'bankin'; did you mean 'banking'?" in told.err
    checked = label({60: "bankin|travel", 61: "|"}, "--strict", command="check")
    assert checked.code == 1
    assert "did you mean 'banking'?" in " ".join(checked.out.split())
    assert "'|', a set of classes with an empty part" in checked.out


def test_a_class_of_partial_labels_alone_can_have_a_size(label, tmp_path):
    never = {row: None for row, name in enumerate(pile()["label"], 1) if name == "travel"}
    told = label(never | {60: "banking|travel", 61: "auto_and_commute|travel"}, "--prior", "travel=30")
    assert told.code == 0, told.err
    assert "Took it that 'travel' is a class known from partial labels alone." in told.err
    assert "Class sizes: travel: 30 rows" in told.err
    labels = pl.read_csv(tmp_path / "out.csv")["label"].to_list()
    assert labels.count("travel") == 30
    assert set(labels) == {"auto_and_commute", "banking", "travel"}


def test_labels_that_simply_hold_the_mark_are_plain_names(label):
    told = label({row: f"x|{name}" for row, name in enumerate(pile()["label"], 1) if name})
    assert told.code == 0, told.err
    assert "is part of a plain name, since no part of such a label is a label by itself" in told.err


@pytest.mark.parametrize(
    ("sizes", "reason"),
    [
        (
            ("banking=2", "travel=3"),
            "40 rows are labelled in part as 'banking' or 'travel', but these may get at most 5",
        ),
        (("auto_and_commute=90",), "'auto_and_commute' must get at least 90 rows, but the labels leave it open for 56"),
    ],
)
def test_sizes_that_partial_labels_rule_out_are_refused_in_words(label, sizes, reason):
    options = [word for size in sizes for word in ("--prior", size)]
    told = label(dict.fromkeys(range(41, 81), "banking|travel"), *options)
    last = told.err.splitlines()[-1]
    assert told.code == 2
    assert f"the class sizes of --prior and the partial labels cannot both be met: {reason}." in last
    assert not any(word in last for word in ("class_prior", "count", "group", "orbid", "class 0"))


def test_what_only_several_sets_suffer_is_refused_in_words_too(label, monkeypatch):
    monkeypatch.setattr("transduce.cli.commands.label.clash_of", lambda *_: None)
    told = label(dict.fromkeys(range(41, 81), "banking|travel"), "--prior", "banking=2", "--prior", "travel=3")
    assert told.code == 2
    assert told.err.splitlines()[-1] == (
        "transduce: the class sizes of --prior and the partial labels cannot both be met. Change these sizes, or "
        "correct the labels."
    )


def test_sizes_of_branches_are_told_and_totalled(label, tell, tmp_path):
    where = ("--model", tmp_path / "m.safetensors", "--report", tmp_path / "r.html")
    told = label({}, "--prior", "banking=0.25", *where, paths=True)
    assert told.code == 0, told.err
    assert "Class sizes: banking: 24 rows (25 %)." in told.err
    note = next(line for line in told.err.splitlines() if "without a stated size" in line)
    assert "auto_and_commute/" in note
    assert "banking/" not in note
    assert "  banking in all" in told.err
    about = load_model(str(tmp_path / "m.safetensors")).about
    (branch,) = about["branches"]
    assert (branch["branch"], branch["asked_low"], branch["asked_high"], branch["assigned"]) == ("banking", 24, 24, 24)
    assert branch["labelled"] == sum(size["labelled"] for size in about["sizes"] if "banking/" in size["class"])
    assert about["prior"] == "Some class sizes were stated."
    assert "<bdi>banking</bdi> in all" in (tmp_path / "r.html").read_text()
    assert "banking in all" in tell("inspect", tmp_path / "m.safetensors").out


def test_sizes_of_all_branches_are_all_sizes(label):
    told = label({}, "--prior", "banking=0.25", "--prior", "auto_and_commute=0.7:0.8", "--json", paths=True)
    assert "without a stated size" not in told.err
    assert "auto_and_commute: 68 to 76 rows" in told.err
    assert json.loads(told.out)["prior"] == "Class sizes were stated."


def test_a_branch_that_may_have_any_size_has_no_total(label):
    told = label({}, "--prior", "banking=?", paths=True)
    assert told.code == 0, told.err
    assert "in all" not in told.err
    assert "Class sizes:" not in told.err


def test_sizes_of_branches_that_cannot_be_are_refused_in_words(label):
    told = label({}, "--prior", "banking=0.3", "--prior", "auto_and_commute=0.3", paths=True)
    assert told.code == 2
    assert not any(word in told.err for word in ("class_prior", "counts", "group"))


@pytest.mark.parametrize("is_list", [True, False])
def test_a_path_of_two_classes_may_have_been_meant_as_a_set(tell, tmp_path, is_list):
    rows = pile().select("text", "label").to_dicts()
    rows[50]["label"] = ["banking", "travel"] if is_list else "banking/travel"
    (tmp_path / "pile.jsonl").write_text("\n".join(map(json.dumps, rows)))
    told = tell("label", tmp_path / "pile.jsonl", "-o", tmp_path / "out.csv", *QUICK)
    name = "['banking', 'travel']" if is_list else "'banking/travel'"
    assert f'Took it that {name} is a path; write "banking|travel" for one of several.' in told.err


def test_unnamed_classes_are_no_warning(label):
    told = label({}, "--prior", "banking=0.33", "--strict", command="check")
    assert told.code == 0, told.out
    assert "note     2 labelled classes without a size" in told.out


def test_an_answer_that_is_a_set_of_classes_is_no_new_one(label, tmp_path):
    (tmp_path / "ask.csv").write_text("row,label\n60,banking|travel\n61,banking|travl\n")
    told = label({}, "--answers", tmp_path / "ask.csv")
    assert "'banking|travel'" not in told.err.split("transduce:")[0]
    assert "the answer 'travl' in" in told.err
    assert told.code == 2
