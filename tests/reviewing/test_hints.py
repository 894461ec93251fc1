"""Hints: a review begins without labels, by class names or guesses, and hints follow their classes."""

import numpy as np
import pytest
from helpers.reviews import CLASSES, corpus, open_session

from transduce.errors import InputError
from transduce.evidence import NamedScores
from transduce.reviewing.hints import Hints
from transduce.reviewing.views import Views

TEXTS, TRUTH = corpus(60)
WRONG = np.arange(60) % 5 == 0
GUESSES = np.array(
    [CLASSES[(CLASSES.index(name) + wrong) % 4] for name, wrong in zip(TRUTH, WRONG, strict=True)], object
)
SCORES = np.array([[float(name == other) for other in CLASSES] for name in GUESSES])


def by_guesses():
    return Hints(guesses=GUESSES)


def by_names():
    return Hints(NamedScores(list(CLASSES), SCORES + 0.1 * np.random.default_rng(0).random((60, 4))))


def proposed(session):
    session.fit_now()
    assert session.status == "Up to date."
    return np.array(session.proposals.classes)[session.proposals.label]


@pytest.mark.parametrize("hints", [by_guesses, by_names])
def test_a_review_begins_with_proposals_and_no_label(tmp_path, hints):
    with open_session(tmp_path, TEXTS, hints=hints()) as session:
        assert session.state.classes == sorted(CLASSES)
        assert session.state.undoable == []
        assert np.mean(proposed(session) == TRUTH) > 0.7
        session.submit([{"op": "decide", "rows": [0], "label": TRUTH[0]}])
        assert proposed(session)[0] == TRUTH[0]
        assert len(session.queue(10)) == 10


def test_without_hints_about_two_classes_there_is_nothing_to_fit(tmp_path):
    with open_session(tmp_path, TEXTS, hints=Hints(guesses=np.array(["tea"] * 60, object))) as session:
        session.fit_now()
        assert session.proposals is None


@pytest.mark.parametrize("hints", [by_guesses, by_names])
def test_hints_follow_classes_that_are_renamed_and_merged_also_after_a_restart(tmp_path, hints):
    with open_session(tmp_path, TEXTS, hints=hints()) as session:
        session.submit(
            [
                {"op": "rename_class", "name": CLASSES[0], "to": "money"},
                {"op": "merge_class", "name": CLASSES[1], "into": "money"},
            ]
        )
        first = proposed(session)
    with open_session(tmp_path, TEXTS, hints=hints()) as session:
        assert session.state.classes == ["money", *CLASSES[2:]]
        again = proposed(session)
    assert np.array_equal(first, again)
    expected = ["money" if name in CLASSES[:2] else name for name in TRUTH]
    assert np.mean(again == expected) > 0.7


def test_documents_unlike_their_guess_are_found(tmp_path):
    with open_session(tmp_path, TEXTS, hints=by_guesses()) as session:
        views, now = Views(session), proposed(session)
        assert sorted(views.select({"unlike_guess": True})[1]) == np.flatnonzero(now != GUESSES).tolist()
        session.submit([{"op": "decide", "rows": [0], "label": TRUTH[0]}, {"op": "decide", "rows": [5], "label": None}])
        assert set(views.select({"unlike_guess": True, "status": "decided"})[1]) == {0, 5}
        assert views.card(0)["guess"] == GUESSES[0]
        assert session.summary()["has_guesses"]


def test_without_guesses_there_is_nothing_to_compare_with(tmp_path):
    with open_session(tmp_path, TEXTS, TRUTH[:30] + [None] * 30) as session:
        session.fit_now()
        assert not session.summary()["has_guesses"]
        with pytest.raises(InputError, match="--guess"):
            Views(session).select({"unlike_guess": True})
