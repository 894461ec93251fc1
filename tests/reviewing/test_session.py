"""A session: events are saved before they count, fits see all labels, the queue asks about new documents only."""

import threading
import time

import numpy as np
import pytest
from helpers.reviews import CLASSES, corpus, open_session

from transduce.errors import InputError
from transduce.reviewing import estimates
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
    texts = [*TEXTS, TEXTS[20].upper(), f" {TEXTS[20]} "]
    with open_session(tmp_path, texts, [*GIVEN, None, None]) as session:
        event = {"op": "decide", "rows": [20], "label": TRUTH[20], "how": "queue"}
        session.submit([event, {**event, "label": CLASSES[0], "rows": [60]}])
        assert [session.state.labels()[row] for row in (20, 60, 61)] == [CLASSES[0]] * 3
        session.submit([{**event, "label": CLASSES[1], "rows": [61], "how": "file"}, {**event, "label": CLASSES[2]}])
        assert [session.state.labels()[row] for row in (20, 60, 61)] == [CLASSES[2], CLASSES[2], CLASSES[1]]
        session.submit([{"op": "undo"}] * 4)
        assert {row for row, _ in session.queue(60, [60])}.isdisjoint({20, 60, 61})


def test_random_documents_of_no_class_or_with_the_only_label_count_as_wrong(tmp_path):
    texts = [*TEXTS, *[TEXTS[40]] * 5]
    with open_session(tmp_path, texts, [*GIVEN, *[None] * 5]) as session:
        session.submit([{"op": "add_class", "name": "other"}])
        session.submit([{"op": "decide", "rows": [20], "label": "other", "how": "random"}])
        for row in range(40, 50):
            session.submit([{"op": "decide", "rows": [row], "label": None, "how": "random"}])
        session.fit_now()
        shown = np.flatnonzero(np.isfinite(session.proposals.surprise))
        assert shown.tolist() == [20, *range(40, 50)]  # copies of a text count once
        assert np.all(session.proposals.surprise[shown] < 0)
        assert session.summary()["n_random"] == session.summary()["accuracy"]["n"] == 11
        undecided = session.state.codes() == UNDECIDED
        assert session.proposals.error == pytest.approx(1 - session.proposals.confidence[undecided].mean(), abs=1e-5)
        session.submit([{"op": "decide", "rows": [41], "label": None, "how": "list"}])
        session.fit_now()
        assert np.isnan(session.proposals.surprise[41])


def test_fits_start_anew_when_labels_are_taken_back_or_random_ones_suffice(tmp_path):
    with open_session(tmp_path, TEXTS, GIVEN) as session:
        session.submit([{"op": "decide", "rows": list(range(12, 40)), "label": CLASSES[0], "how": "map"}])
        session.fit_now()
        decide(session, range(40, 49), "random")
        session.fit_now()
        assert session.proposals.n_labels == (49, 40)
        decide(session, [49], "random")
        session.fit_now()
        assert session.proposals.n_labels == (50, 50)
        session.submit([{"op": "clear", "rows": list(range(12, 40))}])
        session.fit_now()
        assert session.proposals.n_labels == (22, 22)


def test_bulk_decisions_do_not_count_as_decisions(tmp_path):
    with open_session(tmp_path, TEXTS, GIVEN) as session:
        session.submit([{"op": "decide", "rows": list(range(12, 50)), "label": CLASSES[0], "how": "map"}])
        session.submit([{"op": "decide", "rows": [50], "label": CLASSES[0], "how": "queue"}])
        session.fit_now()
        assert [n for n, _ in session.curve] == [13]


def test_any_error_of_a_fit_is_reported(tmp_path, monkeypatch):
    with open_session(tmp_path, TEXTS, GIVEN) as session:
        for name in ("_plan", "_place"):
            monkeypatch.setattr(session, name, lambda *_: {}["no such key"])
            session.fit_now()
            assert session.status == "The last fit failed: 'no such key'"
            monkeypatch.undo()
        session.fit_now()
        assert session.status == "Up to date."


def test_proposals_have_the_present_names_before_the_next_fit(tmp_path):
    with open_session(tmp_path, TEXTS, GIVEN) as session:
        session.fit_now()
        before = session.proposals
        session.submit([{"op": "rename_class", "name": CLASSES[0], "to": "money"}])
        assert session.proposals.classes == ("money", *CLASSES[1:])
        session.submit([{"op": "merge_class", "name": CLASSES[1], "into": "money"}])
        p = session.proposals
        assert p.classes == ("money", *CLASSES[2:])
        old = [before.classes[k] for k in before.label]
        assert [p.classes[k] for k in p.label] == ["money" if name in CLASSES[:2] else name for name in old]
        assert np.allclose(p.probabilities.sum(axis=1), 1, atol=1e-4)
        session.submit([{"op": "undo"}, {"op": "undo"}])
        assert session.proposals is before


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


def test_the_summary_says_when_the_accuracy_comes_and_does_not_advise_to_stop_before_it_is_known(tmp_path, monkeypatch):
    with open_session(tmp_path, TEXTS, GIVEN) as session:
        assert session.summary()["n_until_accuracy"] == 50
        decide(session, range(12, 15), "random")
        assert session.summary()["n_until_accuracy"] == 35
        session.fit_now()
        monkeypatch.setattr(estimates, "MIN_DECISIONS", 0)
        monkeypatch.setattr("transduce.reviewing.session.expected_gain", lambda curve: 0.001)
        for low, stop in ((0.75, False), (0.85, True)):
            found = estimates.Accuracy(0.9, low, 0.98, 20)
            monkeypatch.setattr("transduce.reviewing.session.estimate_accuracy", lambda *_, found=found: found)
            monkeypatch.setattr(estimates, "MIN_OF_CLASS", 0)
            assert session.summary()["stop"] == stop
            assert ("you can stop" in session.summary()["advice"]) == stop
            monkeypatch.setattr(estimates, "MIN_OF_CLASS", 100)
            assert not session.summary()["stop"]


def test_new_classes_come_last_in_the_order_of_the_keys(tmp_path):
    with open_session(tmp_path, TEXTS, GIVEN) as session:
        session.submit([{"op": "add_class", "name": "aaa"}])
        places = {one["name"]: one["place"] for one in session.summary()["classes"]}
        assert sorted(places, key=places.get) == [*sorted(CLASSES), "aaa"]


def test_fits_run_in_the_background_and_decisions_meanwhile_count(tmp_path):
    with open_session(tmp_path, TEXTS, GIVEN, fits=True) as session:
        threads = [threading.Thread(target=decide, args=(session, range(start, 60, 4))) for start in range(20, 24)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        while session.proposals is None or session.proposals.n_labels[0] < 52:
            assert session._thread.is_alive()
            assert "failed" not in session.status
            time.sleep(0.02)
        assert session.summary()["n_decided"] == 40
    assert len(read_events(tmp_path, TEXTS)) == 40
