"""A session: events are saved before they count, fits see all labels, the queue asks about new documents only."""

import threading
import time

import numpy as np
import pytest
from helpers.reviews import CLASSES, corpus, open_session

from transduce.errors import InputError
from transduce.reviewing.log import SaveError, read_events
from transduce.reviewing.state import UNDECIDED

TEXTS, TRUTH = corpus(60)
GIVEN = [label if row < 12 else None for row, label in enumerate(TRUTH)]


def decide(session, rows, how="queue"):
    for row in rows:
        session.submit([{"op": "decide", "rows": [row], "label": TRUTH[row], "how": how}])


def test_a_session_continues_where_the_last_one_ended(tmp_path):
    with open_session(tmp_path, TEXTS, GIVEN) as session:
        decide(session, range(20, 30))
        session.submit([{"op": "undo"}, {"op": "note", "row": 3, "text": "odd"}])
        labels = session.state.labels()
    with open_session(tmp_path, TEXTS, GIVEN) as session:
        assert session.state.labels() == labels
        assert session.state.notes == {3: "odd"}
        assert labels[28] is not None
        assert labels[29] is None


def test_what_cannot_be_saved_changes_nothing(tmp_path, monkeypatch):
    with open_session(tmp_path, TEXTS, GIVEN) as session:

        def fail(event):
            raise SaveError(28, "no space")

        monkeypatch.setattr(session.log, "append", fail)
        with pytest.raises(SaveError):
            decide(session, [20])
        assert session.state.n_events == 0
        with pytest.raises(InputError):
            session.submit([{"op": "decide", "rows": [20], "label": "unknown"}])
    assert read_events(tmp_path, TEXTS) == []


def test_fits_use_decisions_and_leave_out_documents_of_no_class(tmp_path):
    with open_session(tmp_path, TEXTS, GIVEN) as session:
        session.submit([{"op": "decide", "rows": [40, 41], "label": None}])
        decide(session, range(20, 30))
        session.fit_now()
        p = session.proposals
        assert p.classes == CLASSES
        assert p.n_labels == (22, 22)
        assert [p.classes[k] for k in p.label[20:30]] == TRUTH[20:30]
        assert np.allclose(p.probabilities.sum(axis=1), 1, atol=1e-4)
        undecided = session.state.codes() == UNDECIDED
        right = [p.classes[k] == name for k, name in zip(p.label, TRUTH, strict=True)]
        assert np.mean(np.array(right)[undecided]) > 0.7


def test_a_second_fit_continues_the_first_and_a_new_class_starts_anew(tmp_path):
    with open_session(tmp_path, TEXTS, GIVEN) as session:
        session.fit_now()
        decide(session, [20])
        session.fit_now()
        assert session.proposals.n_labels == (13, 12)
        session.submit([{"op": "add_class", "name": "other"}, {"op": "decide", "rows": [21], "label": "other"}])
        session.fit_now()
        assert session.proposals.n_labels == (14, 14)
        assert "other" in session.proposals.classes
        session.submit([{"op": "merge_class", "name": "other", "into": CLASSES[0]}])
        session.fit_now()
        assert session.proposals.classes == CLASSES


def test_class_sizes_that_cannot_be_met_are_reported_and_the_last_proposals_stay(tmp_path):
    with open_session(tmp_path, TEXTS, GIVEN) as session:
        session.fit_now()
        before = session.proposals
        session.submit([{"op": "sizes", "sizes": dict.fromkeys(CLASSES, "=90%")}])
        session.fit_now()
        assert session.proposals is before
        assert session.status.startswith("The last fit failed")


def test_the_queue_never_asks_twice_and_every_fifth_document_is_random(tmp_path):
    with open_session(tmp_path, TEXTS, GIVEN) as session:
        session.fit_now()
        found = session.queue(20)
        rows = [row for row, _ in found]
        assert len(set(rows)) == 20
        assert all(row >= 12 for row in rows)
        assert [random for _, random in found] == [k % 5 == 4 for k in range(20)]
        assert {row for row, _ in session.queue(10, rows)}.isdisjoint(rows)
        session.submit([{"op": "skip", "rows": rows}])
        assert {row for row, _ in session.queue(28)}.isdisjoint(rows)
        decide(session, [row for row in range(12, 60) if row not in rows])
        assert {row for row, _ in session.queue(30)} == set(rows)  # only skipped ones are left
        decide(session, rows)
        assert session.queue(5) == []


def test_without_labels_the_queue_is_diverse_and_some_are_random(tmp_path):
    with open_session(tmp_path, TEXTS) as session:
        session.fit_now()
        assert session.proposals is None
        found = session.queue(20)
        assert [random for _, random in found].count(True) == 4
        assert len({TRUTH[row] for row, _ in found}) == 4


def test_copies_of_a_text_are_decided_together(tmp_path):
    from transduce.reviewing.server import Api

    texts = [*TEXTS, TEXTS[20].upper(), f" {TEXTS[20]} "]
    with open_session(tmp_path, texts, [*GIVEN, None, None]) as session:
        event = {"op": "decide", "rows": [20], "label": TRUTH[20], "how": "queue"}
        Api(session).events({"events": [event]})
        assert [session.state.labels()[row] for row in (20, 60, 61)] == [TRUTH[20]] * 3


def test_accuracy_comes_from_random_documents_only(tmp_path):
    with open_session(tmp_path, TEXTS, GIVEN) as session:
        session.fit_now()
        decide(session, range(12, 30))
        session.fit_now()
        assert session.summary()["accuracy"] is None
        decide(session, range(30, 45), "random")
        session._pending = 0
        session.proposals = None  # the next fit hides labels
        session.fit_now()
        accuracy = session.summary()["accuracy"]
        assert accuracy["n"] <= 15
        assert 0 <= accuracy["low"] < accuracy["mean"] < accuracy["high"] <= 1
        assert session.summary()["gain"] >= 0


def test_fits_run_in_the_background_and_decisions_meanwhile_count(tmp_path):
    with open_session(tmp_path, TEXTS, GIVEN, fits=True) as session:
        threads = [threading.Thread(target=decide, args=(session, range(start, 60, 4))) for start in range(20, 24)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        end = time.monotonic() + 120
        while session.proposals is None or session.proposals.n_labels[0] < 52:
            assert time.monotonic() < end
            time.sleep(0.02)
        assert session.summary()["n_decided"] == 40
    assert len(read_events(tmp_path, TEXTS)) == 40
