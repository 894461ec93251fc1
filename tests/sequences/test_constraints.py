"""Sentences of constraints, what they break, and their errors."""

import numpy as np
import pytest

from transduce.sequences.automaton import Rules
from transduce.sequences.constraints import Before, Needs, Once, Pattern, parse_constraint, read_constraints
from transduce.sequences.schemes import blocks

LABELS = ["author", "date: issued", "title", "volume"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("title: once", Once("title")),
        ("title: at most once", Once("title")),
        ("title :  at least once", Once("title", False, True)),
        ("title: exactly once (cost 2.5)", Once("title", True, True, 2.5)),
        ("author before title (cost 1)", Before("author", "title", 1.0)),
        ("volume needs title", Needs("volume", "title")),
        (r"date: issued: /^\d{4}$/", Pattern("date: issued", r"^\d{4}$")),
        ("title: not /^[a-z]+:$/ (cost 3)", Pattern("title", "^[a-z]+:$", True, 3.0)),
    ],
)
def test_sentences_are_read(text, expected):
    assert parse_constraint(text, LABELS) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("titel: once", "names 'titel', which is not a label. Did you mean 'title'?"),
        ("title: twice", "is not understood"),
        ("title after author", "is not understood"),
        ("title: once (cost -1)", "has the cost '-1', but it must be a number above 0"),
        ("title: once (cost many)", "has the cost 'many'"),
        ("title: /(/", "has a pattern that cannot be read"),
    ],
)
def test_wrong_sentences_are_refused(text, message):
    with pytest.raises(ValueError, match=message.replace("(", r"\(").replace("?", r"\?")):
        parse_constraint(text, LABELS)


def test_a_cycle_of_before_is_refused_unless_it_has_a_cost():
    cycle = ["author before title", "title before volume", "volume before author"]
    with pytest.raises(ValueError, match="come before itself, through a cycle"):
        read_constraints(cycle, LABELS)
    assert len(read_constraints([*cycle[:2], f"{cycle[2]} (cost 1)"], LABELS)) == 3


def test_a_single_sentence_in_the_place_of_a_list_is_refused():
    with pytest.raises(ValueError, match="constraints must be a list"):
        read_constraints("title: once", LABELS)


def test_costs_of_labels_are_those_of_their_blocks():
    names = ["B-x", "B-y", "I-x", "I-y", "O"]
    constraints = [Once("x", cost=2.0), Before("x", "y", 3.0), Needs("y", "x", 5.0), Once("y", False, True, 7.0)]
    rules, rng = Rules.create(names, "BIO", constraints), np.random.default_rng(0)
    for _ in range(300):
        y = rng.integers(0, 5, rng.integers(1, 8))
        found = [block.label for block in blocks([names[k] for k in y], "BIO")]
        expected = (
            2.0 * max(found.count("x") - 1, 0) + 7.0 * ("y" not in found) + 5.0 * ("y" in found and "x" not in found)
        )
        expected += 3.0 * sum(name == "x" and "y" in found[:i] for i, name in enumerate(found))
        costs, _, n_blocks = rules.check(y, np.array([0, y.size]))
        assert costs[0] == expected
        assert n_blocks[0].tolist() == [found.count("x"), found.count("y")]
