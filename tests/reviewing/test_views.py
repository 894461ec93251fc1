"""Views of a session: filters do what their names say, and bulk decisions are about what was shown."""

from types import SimpleNamespace

import numpy as np
import pytest
from helpers.reviews import CLASSES, corpus, open_session
from scipy import sparse

from transduce.errors import InputError
from transduce.reviewing.proposals import explain_words
from transduce.reviewing.views import Views

TEXTS, TRUTH = corpus(60)
GIVEN = [label if row < 16 else None for row, label in enumerate(TRUTH)]


@pytest.fixture(scope="module")
def views(tmp_path_factory):
    with open_session(tmp_path_factory.mktemp("views"), TEXTS, GIVEN) as session:
        session.fit_now()
        yield Views(session)


def rows_of(views, **filter):
    return views.select(filter)[1]


def test_status_and_words(views):
    assert sorted(rows_of(views)) == list(range(16, 60))
    assert sorted(rows_of(views, status="decided")) == list(range(16))
    found = sorted(rows_of(views, status="all", query="Savings account"))
    assert found == [k for k, text in enumerate(TEXTS) if "savings" in text.lower() and "account" in text.lower()]
    phrase = sorted(rows_of(views, status="all", query='"my account"'))
    assert phrase == [k for k, text in enumerate(TEXTS) if "my account" in text.lower()]


def test_classes_and_branches(views):
    p = views.session.proposals
    proposed = np.array(p.classes)[p.label]
    assert sorted(rows_of(views, label=CLASSES[0])) == [k for k in range(16, 60) if proposed[k] == CLASSES[0]]
    of_branch = sorted(rows_of(views, label="travel", status="all"))
    now = [GIVEN[k] or proposed[k] for k in range(60)]
    assert of_branch == [k for k in range(60) if now[k].startswith("travel/")]


def test_confidence_sizes_and_order(views):
    p = views.session.proposals
    found = rows_of(views, low=0.3, high=0.7)
    assert sorted(found) == [k for k in range(16, 60) if 0.3 <= p.confidence[k] <= 0.7]
    assert np.all(np.diff(p.confidence[found]) >= 0)
    assert sorted(rows_of(views, overruled=True)) == [k for k in range(16, 60) if p.overruled[k]]


def test_neighbours_are_the_nearest(views):
    found = rows_of(views, near=20, k=5)
    cosines = views.session.documents.similarity(20)
    assert found[0] == 20
    assert sorted(cosines[found]) == sorted(np.sort(cosines[16:])[-5:])


def test_a_negative_number_of_neighbours_is_none(views):
    assert rows_of(views, near=20, k=-5).size == 0


def test_words_are_sought_while_others_use_the_session(views, monkeypatch):
    taken = []

    def containing(query):
        taken.append(views.session.lock._is_owned())
        return np.ones(60, bool)

    monkeypatch.setattr(views.session.documents, "containing", containing)
    rows_of(views, query="account")
    assert taken == [False]


def test_reasons_are_the_nearest_labelled_documents(views):
    cosines = views.session.documents.similarity(30)
    found = [one["row"] for one in views.card(30)["near"]]
    assert found == np.argsort(-cosines[:16])[:2].tolist()


def test_clusters_cover_all_undecided_documents(views):
    clusters = views.clusters()
    assert sum(one["n"] for one in clusters) == 44
    found = [row for one in clusters for row in rows_of(views, cluster=one["cluster"])]
    assert sorted(found) == list(range(16, 60))


@pytest.mark.parametrize("seed", range(3))
def test_a_lasso_is_the_polygon(views, seed):
    from matplotlib.path import Path

    corners = np.random.default_rng(seed).uniform(-1, 1, (7, 2))
    found = views.points()
    points = np.column_stack((found["x"], found["y"]))
    inside = np.flatnonzero(Path(corners).contains_points(views.session.points))
    assert points.shape == (60, 2)
    assert sorted(rows_of(views, status="all", polygon=corners.tolist())) == inside.tolist()


def test_bulk_decisions_are_about_the_documents_that_were_selected(tmp_path):
    with open_session(tmp_path, TEXTS, GIVEN) as session:
        session.fit_now()
        views = Views(session)
        page = views.page({"query": "balance"}, 0, 5)
        session.submit([{"op": "decide", "rows": [page["documents"][0]["row"]], "label": CLASSES[1]}])
        event = views.bulk_event(page["selection"], CLASSES[0], "keyword")
        assert len(event["rows"]) == page["total"] - 1  # what has a decision keeps it
        session.submit([event])
        with pytest.raises(InputError, match="none of these documents"):
            views.bulk_event(page["selection"], CLASSES[0], "keyword")
        with pytest.raises(InputError, match="too old"):
            views.bulk_event("s77", CLASSES[0], "keyword")


def test_pages_continue_a_selection_while_proposals_change(tmp_path):
    with open_session(tmp_path, TEXTS, GIVEN) as session:
        session.fit_now()
        views = Views(session)
        first = views.page({}, 0, 20)
        session.submit([{"op": "decide", "rows": [50], "label": CLASSES[1]}])
        session.fit_now()
        rest = [views.page({"selection": first["selection"]}, start, 20) for start in (20, 40)]
        rows = [card["row"] for page in (first, *rest) for card in page["documents"]]
        assert sorted(rows) == list(range(16, 60))


def test_sizes_that_are_tried_out_change_nothing_and_move_proposals(views):
    before = views.session.proposals.label.copy()
    found = views.preview_sizes({CLASSES[0]: "=50%"})
    assert found["counts"][CLASSES[0]] == 22
    assert sum(found["counts"].values()) == 44
    assert found["changed"] > 0
    assert views.preview_sizes({})["changed"] <= 4
    assert np.array_equal(views.session.proposals.label, before)


def test_the_map_without_proposals(tmp_path):
    with open_session(tmp_path, TEXTS) as session:
        session.fit_now()
        views = Views(session)
        found = views.points()
        assert len(found["x"]) == 60
        assert all(-1 <= place <= 1 for place in (*found["x"], *found["y"]))
        assert found["label"] == [-1] * 60
        with pytest.raises(InputError, match="two classes"):
            views.preview_sizes({})


def test_words_that_explain_a_proposal_are_no_stop_words_and_no_tiny_ones():
    proposals = SimpleNamespace(coef=(np.array([[3.0, 2.0, 1.0, 0.1], [0.0, 0.0, 0.0, 0.0]]), np.zeros(2)))
    vocabulary, x = ["the", "flight", "ticket", "hello"], sparse.csr_array(np.ones((1, 4)))
    assert explain_words(proposals, x, 0, vocabulary) == ["flight", "ticket"]
    assert explain_words(proposals, sparse.csr_array([[1.0, 0.0, 0.0, 0.0]]), 0, vocabulary) == []
