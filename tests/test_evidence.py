"""Scores and guesses in a fit: costs, calibration, first labels, and inputs that are refused."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from transduce import TransductiveClassifier
from transduce.class_prior.bounds import Bounds
from transduce.errors import PriorWarning
from transduce.evidence import Evidence, NamedScores, calibrate, part_not_in_texts
from transduce.label_step import Exact, LabelProblem
from transduce.losses import LargeMargin
from transduce.solvers.first_labels import with_first_labels


@pytest.fixture(scope="module")
def clusters():
    """Three classes of uneven size as directions with noise, and scores that are right for two thirds of the rows."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [120, 60, 30])
    X = np.eye(6)[y] + 0.25 * rng.standard_normal((y.size, 6))
    scores = np.eye(3)[y] + 0.6 * rng.standard_normal((y.size, 3))
    return X / np.linalg.norm(X, axis=1, keepdims=True), y, scores


def fit(X, y, **evidence):
    return TransductiveClassifier(random_state=0, n_jobs=1, class_prior={0: 120, 1: 60, 2: 30}).fit(X, y, **evidence)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_scores_alone_start_a_fit_that_corrects_them(clusters, form):
    X, y, scores = clusters
    model = fit(form(X), np.full(y.size, -1), scores=scores)
    assert np.mean(model.transduction_ == y) > max(0.95, np.mean(scores.argmax(axis=1) == y) + 0.1)
    assert model.class_counts_.tolist() == [120, 60, 30]
    assert np.array_equal(clone(model).fit_predict(form(X), np.full(y.size, -1), scores=scores), model.transduction_)


def test_labels_are_optimal_for_costs_with_evidence(clusters):
    """The certificate: no labels with these counts cost less, loss and evidence together.

    Texts and scores disagree in some rows, so that the best labels by the loss alone cost more.
    """
    X, y, scores = clusters[0], clusters[1], clusters[2].copy()
    X = X + 0.3 * np.random.default_rng(1).standard_normal(X.shape)
    scores[[0, 1, 2, 120, 121, 122]] = 3.0 * np.eye(3)[[0, 0, 0, 1, 1, 1]]
    model = TransductiveClassifier(alpha=1e-3, random_state=0, class_prior={0: 120, 1: 60, 2: 30})
    model.fit(X, np.full(y.size, -1), scores=scores)
    evidence = Evidence.create(scores)
    weight = part_not_in_texts(np.hstack((X, np.ones((y.size, 1)))), evidence.scores, model.transduction_)
    evidence = evidence.calibrated(*calibrate(evidence.scores, model.transduction_))
    losses = LargeMargin().label_costs(X @ model.coef_.T + model.intercept_ - model.price_shift_)
    costs = losses + max(weight, 0.01) * evidence.costs
    best, by_loss = (Exact().solve(LabelProblem(each, *model.bounds_)) for each in (costs, losses))
    own, other = (costs[np.arange(y.size), labels].sum() for labels in (model.transduction_, by_loss.labels))
    assert own == pytest.approx(best.cost, rel=0.02)
    assert other > 1.1 * best.cost
    assert best.gap == pytest.approx(0.0, abs=1e-6)


def test_columns_of_a_data_frame_name_the_classes(clusters):
    import polars as pl

    X, y, scores = clusters
    names = np.array(["milk", "coffee", "tea"])
    frame = pl.DataFrame(scores, schema=names.tolist())
    sizes = {"milk": 120, "coffee": 60, "tea": 30}
    model = TransductiveClassifier(random_state=0, class_prior=sizes).fit(X, np.full(y.size, None), scores=frame)
    assert model.classes_.tolist() == ["coffee", "milk", "tea"]
    assert np.mean(model.transduction_ == names[y]) > 0.95


def test_a_class_may_have_labels_in_place_of_scores(clusters):
    X, y, scores = clusters
    partial, marked = scores.copy(), np.full(y.size, -1)
    partial[:, 2] = np.nan
    marked[np.flatnonzero(y == 2)[:5]] = 2
    model = TransductiveClassifier(random_state=0, class_prior={0: 120, 1: 60, 2: 25}).fit(X, marked, scores=partial)
    assert np.mean(model.transduction_ == y) > 0.9


def test_rows_without_scores_are_labelled_too(clusters):
    X, y, scores = clusters
    partial = scores.copy()
    partial[::2] = np.nan
    assert np.mean(fit(X, np.full(y.size, -1), scores=partial).transduction_ == y) > 0.9


def test_the_result_does_not_depend_on_the_scale_of_scores(clusters):
    X, y, scores = clusters
    found = [fit(X, np.full(y.size, -1), scores=a * scores + b).transduction_ for a, b in ((1.0, 0.0), (64.0, 3.0))]
    assert np.array_equal(*found)


def test_guesses_are_corrected_and_the_wrong_ones_come_first(clusters):
    X, y, _ = clusters
    rng = np.random.default_rng(1)
    guesses = np.where(rng.random(y.size) < 0.3, (y + rng.integers(1, 3, y.size)) % 3, y)
    model = TransductiveClassifier(random_state=0).fit(X, np.full(y.size, -1), guesses=guesses)
    assert np.mean(model.transduction_ == y) > 0.95
    first = np.argsort(-model.suspicion_)[:20]
    assert np.mean(guesses[first] != y[first]) >= 0.9
    assert np.array_equal(model.suspicion_ > 0, model.transduction_ != guesses)


def test_sizes_that_the_scores_contradict_are_warned_of():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2, 3], [170, 10, 10, 10])
    X = np.eye(4)[y] + 0.2 * rng.standard_normal((200, 4))
    scores = np.eye(4)[y] + 0.3 * rng.standard_normal((200, 4))
    with pytest.warns(
        PriorWarning, match=r"scores or guesses disagree: 0 should get 25\.0% .* the scores or guesses give"
    ):
        TransductiveClassifier(class_prior=[50] * 4, random_state=0).fit(X, np.full(200, -1), scores=scores)
    TransductiveClassifier(class_prior=[170, 10, 10, 10], random_state=0).fit(X, np.full(200, -1), scores=scores)


def test_right_guesses_stay(clusters):
    X, y, _ = clusters
    model = TransductiveClassifier(random_state=0).fit(X, np.full(y.size, -1), guesses=y)
    assert np.mean(model.transduction_ == y) > 0.99


def test_rows_without_a_guess_get_a_label_and_labels_stay(clusters):
    X, y, _ = clusters
    guesses, marked = np.where(np.arange(y.size) % 3 == 0, -1, y), np.full(y.size, -1)
    marked[[0, 1]] = [0, 1]  # the second is a label that contradicts text and guess
    model = TransductiveClassifier(random_state=0).fit(X, marked, guesses=guesses)
    assert model.transduction_[1] == 1
    assert model.suspicion_[1] == 0.0  # nobody has to check a label
    assert np.mean(model.transduction_ == y) > 0.9


def test_rows_are_set_aside_with_the_evidence_in_mind(clusters):
    """Where no row is set aside, labels are those of the fit without it."""
    X, y, _ = clusters
    rng = np.random.default_rng(1)
    guesses = np.where(rng.random(y.size) < 0.3, (y + rng.integers(1, 3, y.size)) % 3, y)
    noise = rng.standard_normal(X.shape)  # texts that say little, so that guesses decide
    found = [
        TransductiveClassifier(random_state=0, class_prior=[120, 60, 30], outlier_fraction=fraction)
        .fit(X + 0.5 * noise, np.full(y.size, -1), guesses=guesses)
        .transduction_
        for fraction in (None, (0.0, 0.0))
    ]
    assert np.array_equal(*found)


def test_one_right_label_changes_little(clusters):
    """The regulariser of the weights that judge guesses does not depend on the number of labels."""
    X, y, _ = clusters
    rng = np.random.default_rng(1)
    guesses = np.where(rng.random(y.size) < 0.4, (y + rng.integers(1, 3, y.size)) % 3, y)
    X, one = X + 0.5 * rng.standard_normal(X.shape), np.full(y.size, -1)
    one[0] = y[0]
    without, _, _ = _prepared(TransductiveClassifier(alpha=1e-3), X[1:], np.full(y.size - 1, -1), guesses[1:])
    with_one, _, _ = _prepared(TransductiveClassifier(alpha=1e-3), X, one, guesses)
    changes = np.exp(-with_one.problem.evidence.costs[1:]) - np.exp(-without.problem.evidence.costs)
    assert np.abs(changes).mean() < 0.1


def test_a_guess_that_a_partial_label_rules_out_does_not_count(clusters):
    X, y, _ = clusters
    entries, guesses = np.full(y.size, None), y.copy()
    entries[0], guesses[0] = {0, 1}, 2
    engine, _, _ = _prepared(TransductiveClassifier(random_state=0), X, entries, guesses)
    without = guesses.copy()
    without[0] = -1
    other, _, _ = _prepared(TransductiveClassifier(random_state=0), X, entries, without)
    assert np.allclose(engine.problem.evidence.costs, other.problem.evidence.costs)


def _prepared(model, X, y, guesses):
    model._evidence = None, guesses
    return model._prepare(model._local_data(X, y, None, None))


def test_sizes_are_estimated_where_classes_have_labels_in_place_of_scores(clusters):
    X, y, scores = clusters
    partial, marked = scores.copy(), np.full(y.size, -1)
    partial[:, 2] = np.nan
    marked[np.flatnonzero(y == 2)[:12]] = 2
    model = TransductiveClassifier(random_state=0).fit(X, marked, scores=NamedScores([0, 1, 2], partial))
    assert np.mean(model.transduction_ == y) > 0.8
    assert 0.1 < model.size_estimate_.mean[2] < 0.5


def test_rows_without_weight_are_no_first_labels(clusters):
    """Scores that are surest, and wrong, in rows without weight do no harm."""
    X, y, scores = clusters
    weight, shown = np.ones(y.size), scores.copy()
    weight[::4] = 0.0
    shown[::4] = 20.0 * np.eye(3)[(y[::4] + 1) % 3]
    model = TransductiveClassifier(random_state=0, class_prior=[0.57, 0.29, 0.14])
    model.fit(X, np.full(y.size, -1), weight, scores=shown)
    assert np.mean((model.transduction_ == y)[weight > 0]) > 0.9


def test_exact_sizes_that_partial_labels_rule_out_in_proportion(clusters):
    """Only rows with scores are first labels, and more of these have a partial label than of all rows."""
    X, y, scores = clusters
    entries, partial = np.full(y.size, None), scores.copy()
    partial[60:] = np.nan
    for row in range(60):
        entries[row] = {0, 1}
    model = TransductiveClassifier(random_state=0, class_prior=[120, 60, 30]).fit(X, entries, scores=partial)
    assert model.class_counts_.tolist() == [120, 60, 30]


def test_one_row_at_least_stays_for_the_label_step(clusters):
    X, _, _ = clusters
    rows = [0, 120, 180]
    model = TransductiveClassifier(random_state=0, class_prior=[1, 1, 1])
    engine, _, _ = _prepared(model, X[rows], np.full(3, -1), [0, 1, 2])
    assert with_first_labels(engine, Bounds.exact(np.ones(3, np.int64))).n_unlabeled == 1
    assert model.fit(X[rows], np.full(3, -1), scores=np.eye(3)).transduction_.tolist() == [0, 1, 2]


def test_what_the_texts_say_themselves_has_little_weight(clusters):
    X, y, _ = clusters
    rng = np.random.default_rng(0)
    from_texts, from_elsewhere = X[:, :3] @ rng.standard_normal((3, 3)), rng.standard_normal((y.size, 3))
    assert part_not_in_texts(X, from_texts, y) < 0.05
    assert part_not_in_texts(X, from_elsewhere + np.eye(3)[y], y) > 0.8


def test_calibration_follows_the_accuracy_of_the_scores():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 2000)
    slopes = []
    for accuracy in (0.5, 0.9):
        shown = np.where(rng.random(y.size) < accuracy, y, rng.integers(0, 4, y.size))
        evidence = Evidence.create(np.eye(4)[shown])
        slope, bias = calibrate(evidence.scores, y)
        costs = evidence.calibrated(slope, bias).costs
        slopes.append(slope)
        assert np.exp(-costs).max(axis=1).mean() == pytest.approx(np.mean(shown == y), abs=0.02)
    assert slopes[0] < slopes[1]


def test_a_checkpoint_resumes_a_fit_with_the_same_scores_only(clusters, tmp_path):
    X, y, scores = clusters

    def stop(row):
        if row.stage > 3:
            raise SystemExit

    none, sizes = np.full(y.size, -1), {0: 120, 1: 60, 2: 30}
    model = TransductiveClassifier(random_state=0, class_prior=sizes, checkpoint=tmp_path)
    with pytest.raises(SystemExit):
        clone(model).set_params(verbose=stop).fit(X, none, scores=scores)
    one_hot, guesses = np.eye(3)[y], y
    for other in ({"scores": -scores}, {"scores": one_hot}, {"guesses": guesses}):
        with pytest.raises(ValueError, match="checkpoint"):
            clone(model).fit(X, none, **other)
    rows = []
    again = clone(model).set_params(verbose=rows.append).fit(X, none, scores=scores)
    whole = clone(model).set_params(checkpoint=None).fit(X, none, scores=scores)
    assert len(rows) < whole.n_iter_
    assert np.array_equal(whole.transduction_, again.transduction_)


def test_guesses_and_equal_scores_have_checkpoints_of_their_own(clusters, tmp_path):
    X, y, _ = clusters
    model = TransductiveClassifier(random_state=0, class_prior={0: 120, 1: 60, 2: 30}, checkpoint=tmp_path)
    clone(model).fit(X, np.full(y.size, -1), guesses=y)
    with pytest.raises(ValueError, match="checkpoint"):
        clone(model).fit(X, np.full(y.size, -1), scores=np.eye(3)[y])


WRONG = [
    ({"scores": np.ones((3, 2))}, "must have 210 rows"),
    ({"scores": np.zeros((210, 3))}, "say nothing"),
    ({"scores": np.full((210, 3), np.nan)}, "say nothing"),
    ({"scores": np.full((210, 3), np.inf)}, "must be finite"),
    ({"scores": [["a", "b"]] * 210}, "must be numbers"),
    ({"scores": np.eye(4)[np.arange(210) % 4]}, "a column for each of the 3 classes"),
    ({"guesses": ["tea"] * 3}, "one entry for each of the 210 rows"),
    ({"guesses": ["tea"] * 210}, "two or more classes"),
    ({"guesses": [0, 1, {0, 1}] * 70}, r"one class each, but row 2 has \{0, 1\}"),
    ({"guesses": [0, 1, [0, [1]]] * 70}, "one class each, but row 2 has"),
    ({"guesses": [0, 1, "tea"] * 70}, "int, str"),
    ({"guesses": np.arange(210) % 3, "scores": np.eye(3)[np.arange(210) % 3]}, "cannot be combined"),
]


@pytest.mark.parametrize(("evidence", "message"), WRONG)
def test_unusable_evidence_is_refused_in_one_sentence(clusters, evidence, message):
    X, y, _ = clusters
    with pytest.raises(ValueError, match=message):
        fit(X, np.full(y.size, -1), **evidence)


def test_columns_without_names_are_not_classes_that_start_at_1(clusters):
    X, y, scores = clusters
    marked = np.where(np.arange(y.size) % 60 == 0, np.minimum(y, 1) + 1, -1)
    assert {*marked} == {-1, 1, 2}
    with pytest.raises(ValueError, match="a column for each of the 2 classes"):
        TransductiveClassifier().fit(X, marked, scores=scores)


def test_a_guess_must_not_be_an_inner_node(clusters):
    X, y, _ = clusters
    names = np.array(["hot/tea", "hot/coffee", "hot"])[y]
    model = TransductiveClassifier(taxonomy=["hot/tea", "hot/coffee", "cold/milk"])
    with pytest.raises(ValueError, match="'hot' is an inner node"):
        model.fit(X, np.full(y.size, None), guesses=names)


def test_similar_names_in_labels_and_evidence_are_noted(clusters):
    X, y, _ = clusters
    guesses, marked = np.array(["coffee", "banana", "bananna"])[y], np.full(y.size, "", object)
    marked[:130:10] = np.array(["coffee", "banana", "banana"])[y[:130:10]]
    with pytest.warns(UserWarning, match="'bananna' is in scores or guesses"):
        TransductiveClassifier(random_state=0).fit(X, marked, guesses=guesses)


def test_scores_that_contradict_the_labels_are_refused(clusters):
    X, y, scores = clusters
    marked = np.where(np.arange(y.size) % 3 == 0, y, -1)
    with pytest.raises(ValueError, match="contradict the labels"):
        TransductiveClassifier(random_state=0).fit(X, marked, scores=-scores)


def test_without_evidence_labels_are_still_needed(clusters):
    X, y, _ = clusters
    with pytest.raises(ValueError, match="no label"):
        TransductiveClassifier().fit(X, np.full(y.size, -1))


def test_evidence_is_refused_on_a_cluster(clusters):
    pytest.importorskip("distributed")
    from transduce.dask import TransductiveClassifier as OnCluster

    X, y, scores = clusters
    with pytest.raises(ValueError, match="for rows in memory, but these are on a cluster"):
        OnCluster().fit([X], [y], scores=scores)
