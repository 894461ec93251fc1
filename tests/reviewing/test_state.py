"""The state of a review: any events, undone and redone, give the state that their definition says."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transduce.errors import InputError
from transduce.reviewing.state import NO_CLASS, RANDOM, ReviewState, replay

GIVEN = ["tea", None, "coffee", None, None, None]
NAMES = ["tea", "coffee", "milk", "drinks/milk", "drinks/juice"]
names = st.sampled_from(NAMES)
rows = st.lists(st.integers(0, 5), min_size=1, max_size=4)
events = st.one_of(
    st.builds(lambda r, label: {"op": "decide", "rows": r, "label": label}, rows, st.none() | names),
    st.builds(lambda r: {"op": "clear", "rows": r}, rows),
    st.builds(lambda r: {"op": "skip", "rows": r}, rows),
    st.builds(lambda r, text: {"op": "note", "row": r, "text": text}, st.integers(0, 5), st.sampled_from(["", "why?"])),
    st.builds(lambda name: {"op": "add_class", "name": name}, names),
    st.builds(lambda name, to: {"op": "rename_class", "name": name, "to": to}, names, names),
    st.builds(lambda name, into: {"op": "merge_class", "name": name, "into": into}, names, names),
    st.builds(lambda name: {"op": "sizes", "sizes": {name: "20%"}}, names),
)


def snapshot(state):
    arrays = {name: getattr(state, name).tolist() for name in ("decided", "how", "skipped")}
    return {**arrays, "names": state.names, "labels": state.labels(), "notes": state.notes, "sizes": state.sizes}


def apply_possible(state, events):
    """Apply the events that are possible, and return them with the states that they led to."""
    done, states = [], [json.dumps(snapshot(state))]
    for event in events:
        try:
            state.check(event)
        except InputError:
            assert json.dumps(snapshot(state)) == states[-1]
            continue
        state.apply(event)
        done.append(event)
        states.append(json.dumps(snapshot(state)))
    return done, states


@settings(max_examples=100, deadline=None)
@given(st.lists(events, max_size=12))
def test_undo_and_redo_walk_through_all_states(events):
    state = ReviewState(6, GIVEN)
    done, states = apply_possible(state, events)
    for expected in states[-2::-1]:
        state.apply({"op": "undo"})
        assert json.dumps(snapshot(state)) == expected
    with pytest.raises(InputError, match="nothing to undo"):
        state.check({"op": "undo"})
    for expected in states[1:]:
        state.apply({"op": "redo"})
        assert json.dumps(snapshot(state)) == expected
    log = [*done, *[{"op": "undo"}] * len(done), *[{"op": "redo"}] * len(done)]
    assert snapshot(replay(6, GIVEN, json.loads(json.dumps(log)))) == snapshot(state)


@settings(max_examples=100, deadline=None)
@given(st.lists(events, max_size=12))
def test_labels_are_those_of_the_last_decision(events):
    state, labels = ReviewState(6, GIVEN), list(GIVEN)
    known = {"tea", "coffee"}
    done, _ = apply_possible(state, events)
    for event in done:
        if event["op"] == "decide":
            for row in event["rows"]:
                labels[row] = event["label"]
        if event["op"] == "add_class":
            known.add(event["name"])
        if event["op"] in ("rename_class", "merge_class"):
            old, new = event["name"], event.get("to", event.get("into"))
            known = {new if name == old else name for name in known}
            labels = [new if label == old else label for label in labels]
        if event["op"] == "clear":
            return  # what the file says may have another name by now; the other tests cover it
    assert state.labels() == labels
    assert state.classes == sorted(known)


def test_a_new_decision_ends_redo():
    state = ReviewState(3, ["tea", None, None])
    for event in ({"op": "decide", "rows": [1], "label": "tea"}, {"op": "undo"}, {"op": "skip", "rows": [2]}):
        state.apply(event)
    with pytest.raises(InputError, match="nothing to redo"):
        state.check({"op": "redo"})


def test_renaming_a_branch_renames_what_is_below():
    state = ReviewState(3, ["rec/hockey", "rec/chess", "recipes"])
    state.apply({"op": "rename_class", "name": "rec", "to": "leisure"})
    assert state.labels() == ["leisure/hockey", "leisure/chess", "recipes"]
    with pytest.raises(InputError, match="Merge them"):
        state.check({"op": "rename_class", "name": "leisure/hockey", "to": "leisure/chess"})


def test_classes_that_were_merged_twice_keep_their_decisions():
    state = ReviewState(3, ["a", "b", "c"])
    state.apply({"op": "merge_class", "name": "a", "into": "b"})
    state.apply({"op": "merge_class", "name": "b", "into": "c"})
    assert state.labels() == ["c", "c", "c"]
    state.apply({"op": "undo"})
    assert state.labels() == ["b", "b", "c"]


def test_decisions_survive_when_the_file_loses_its_labels():
    events = [{"op": "decide", "rows": [1], "label": "tea"}, {"op": "rename_class", "name": "tea", "to": "teas"}]
    events += [{"op": "merge_class", "name": "coffee", "into": "teas"}, {"op": "add_class", "name": "milk"}]
    assert replay(3, ["tea", None, "coffee"], events).labels() == ["teas", "teas", "teas"]
    assert replay(3, [None, None, None], events).labels() == [None, "teas", None]
    branch = [{"op": "rename_class", "name": "rec", "to": "fun"}]
    assert replay(1, ["rec/chess"], branch).classes == ["fun/chess"]


@pytest.mark.parametrize(
    ("now", "event", "labels"),
    [
        (["tea", "milk", None], {"op": "add_class", "name": "milk"}, ["tea", "milk", "milk"]),
        (["milk", None, None], {"op": "rename_class", "name": "tea", "to": "milk"}, ["milk", None, "milk"]),
        (["tea", "milk", None], {"op": "rename_class", "name": "tea", "to": "milk"}, ["milk", "milk", "milk"]),
    ],
)
def test_names_that_the_file_took_over_are_those_of_the_review(now, event, labels):
    log = [event, {"op": "decide", "rows": [2], "label": "milk"}]
    replay(3, ["tea", None, None], log)  # as it was when the log was written
    state = replay(3, now, log)
    assert state.labels() == labels
    assert state.classes == sorted(set(labels) - {None})
    undo = [{"op": "undo"}, {"op": "undo"}]
    assert replay(3, now, [*log, *undo]).labels() == now
    redone = replay(3, now, [*log, *undo, {"op": "redo"}, {"op": "redo"}])
    assert snapshot(redone) == snapshot(state)
    with pytest.raises(InputError, match="already"):  # for new events the rule is as it was
        state.check({"op": "add_class", "name": "milk"})


def test_branches_and_sizes_survive_a_file_that_took_over_their_names():
    log = [{"op": "decide", "rows": [1], "label": "rec/chess"}, {"op": "sizes", "sizes": {"rec/go": "20%"}}]
    log.append({"op": "rename_class", "name": "rec", "to": "fun"})
    for now in (["rec/chess", None, "rec/go"], ["fun/chess", None, "fun/go"], ["fun/chess", None, "rec/go"]):
        state = replay(3, now, log)
        assert state.labels() == ["fun/chess", "fun/chess", "fun/go"]
        assert state.classes == ["fun/chess", "fun/go"]
        assert state.sizes == {"fun/go": "20%"}


def test_an_undo_that_means_another_event_is_refused():
    state = ReviewState(3, ["tea", None, None])
    for row, name in ((1, "a"), (2, "b")):
        state.apply({"op": "decide", "rows": [row], "label": "tea", "id": name})
    with pytest.raises(InputError, match="Another tab has decided since"):
        state.check({"op": "undo", "event": "a"})
    assert state.apply({"op": "undo", "event": "b"}) == "1 document as tea"
    assert state.apply({"op": "undo"}) == "1 document as tea"
    with pytest.raises(InputError, match="Another tab"):
        state.check({"op": "redo", "event": "b"})
    state.apply({"op": "redo", "event": "a"})
    assert state.labels() == ["tea", "tea", None]


def test_a_copy_does_not_change():
    state = ReviewState(3, ["tea", None, None])
    before = state.copy()
    state.apply({"op": "decide", "rows": [1], "label": "tea"})
    state.apply({"op": "rename_class", "name": "tea", "to": "teas"})
    assert before.labels() == ["tea", None, None]
    assert before.decided.tolist() == [-1, -1, -1]


def test_random_documents_are_marked():
    state = ReviewState(4, ["tea", None, None, None])
    state.apply({"op": "decide", "rows": [1], "label": "tea", "how": "random"})
    state.apply({"op": "decide", "rows": [2], "label": None, "how": "random"})
    assert np.flatnonzero(state.how == RANDOM).tolist() == [1, 2]
    assert state.codes().tolist() == [0, 0, NO_CLASS, -1]


@pytest.mark.parametrize(
    ("event", "problem"),
    [
        ({}, "must be one of"),
        ({"op": "__init__"}, "must be one of"),
        ({"op": "decide", "rows": [9], "label": "tea"}, "from 0 to 5"),
        ({"op": "decide", "rows": [-1], "label": "tea"}, "from 0 to 5"),
        ({"op": "decide", "rows": [True], "label": "tea"}, "whole numbers"),
        ({"op": "decide", "rows": [], "label": "tea"}, "whole numbers"),
        ({"op": "decide", "rows": [1], "label": "teas"}, "Did you mean 'tea'"),
        ({"op": "decide", "rows": [1], "label": "tea", "how": "luck"}, "`how`"),
        ({"op": "decide", "rows": [1], "label": 3}, "name of a class"),
        ({"op": "add_class", "name": " tea "}, "already"),
        ({"op": "add_class", "name": "a//b"}, "empty part"),
        ({"op": "add_class", "name": "x" * 201}, "letters"),
        ({"op": "merge_class", "name": "tea", "into": "tea"}, "itself"),
        ({"op": "sizes", "sizes": {"tea": 3}}, "20%"),
        ({"op": "note", "row": 0, "text": 3}, "letters"),
    ],
)
def test_impossible_events_are_refused(event, problem):
    with pytest.raises(InputError, match=problem):
        ReviewState(6, GIVEN).check(event)
