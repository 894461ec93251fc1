"""TransductiveTagger: inputs, partial labels, constraints, counts, and one sentence for each bad input."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from transduce import RuledOut
from transduce.errors import CountWarning, InputError
from transduce.sequences import TransductiveTagger, token_features
from transduce.sequences.automaton import Rules
from transduce.sequences.constraints import Once
from transduce.sequences.label_step import LabelStep

NAMES, NOUNS, JOURNALS = (
    ["smith", "jones", "brown", "miller"],
    ["trees", "lakes", "rivers", "seas"],
    ["nature", "science"],
)


def references(n, seed=0):
    """References of one to three authors, a title, maybe a journal, and a year; some words occur in several fields."""
    rng, X, y = np.random.default_rng(seed), [], []
    for _ in range(n):
        parts = [("author", f"{rng.choice(NAMES)},") for _ in range(rng.integers(1, 4))]
        parts += [("title", str(rng.choice([*NOUNS, *NAMES]))) for _ in range(rng.integers(1, 5))]
        parts += [("journal", str(rng.choice(JOURNALS)))] * int(rng.random() < 0.5)
        parts += [("year", str(rng.integers(1950, 2020)))]
        X.append([word for _, word in parts])
        y.append([label for label, _ in parts])
    return X, y


X, Y = references(60)
PARTLY = [*Y[:6], *[None] * 54]


@pytest.fixture(scope="module")
def fitted():
    return TransductiveTagger(constraints=["author before title"]).fit(X, PARTLY)


def test_unlabelled_sequences_are_labelled_and_new_ones_too(fitted):
    right = [
        a == b for one, other in zip(fitted.transduction_, Y, strict=True) for a, b in zip(one, other, strict=True)
    ]
    assert np.mean(right) > 0.9
    assert fitted.transduction_[:6] == Y[:6]
    assert fitted.score(*references(40, seed=1)) > 0.9


def test_fitted_attributes_are_consistent(fitted):
    K, d = len(fitted.classes_), fitted.n_features_in_
    assert fitted.classes_.tolist() == ["author", "journal", "title", "year"]
    assert fitted.coef_.shape == (d, K)
    assert (len(fitted.feature_names_), fitted.transitions_.shape, fitted.start_.shape) == (d, (K, K), (K,))
    assert fitted.label_counts_.sum() == sum(len(one) for one in X[6:])
    assert [part.shape for part in fitted.marginals_] == [(len(one), K) for one in X]
    np.testing.assert_allclose(np.concatenate(fitted.marginals_).sum(axis=1), 1.0)
    assert fitted.n_iter_ == len(fitted.history_)
    assert 0.0 <= fitted.relative_gap_ < 0.01


def test_every_form_of_input_gives_the_same_labels(fitted):
    strings = [[token_features(one, i) for i in range(len(one))] for one in X]
    dicts = [[dict(name.split("=", 1) for name in token) for token in one] for one in strings]
    bools = [[dict.fromkeys(token, True) for token in one] for one in strings]
    by_function = TransductiveTagger(features=token_features, constraints=fitted.constraints).fit(X, PARTLY)
    for model, given in ((by_function, X), *((clone(fitted), each) for each in (strings, dicts, bools))):
        assert model.fit(given, PARTLY).transduction_ == fitted.transduction_


def test_vectors_of_tokens_are_taken():
    rng = np.random.default_rng(0)
    y = [rng.integers(0, 3, rng.integers(2, 9)).tolist() for _ in range(40)]
    vectors = [np.eye(3)[one] + 0.3 * rng.normal(size=(len(one), 3)) for one in y]
    model = TransductiveTagger().fit(vectors, [*y[:5], *[None] * 35])
    assert model.score(vectors, y) > 0.9
    assert all(isinstance(label, int) for label in model.predict(vectors[:1])[0])


@pytest.mark.parametrize(("factor", "offset"), [(1.0, 100.0), (1e-6, 0.0), (1e6, -1e7)])
def test_labels_do_not_depend_on_the_scale_and_the_offset_of_vectors(factor, offset):
    rng = np.random.default_rng(0)
    y = [rng.integers(0, 3, rng.integers(2, 9)).tolist() for _ in range(40)]
    vectors = [np.eye(3)[one] + 0.3 * rng.normal(size=(len(one), 3)) for one in y]
    labels = [*y[:5], *[None] * 35]
    plain = TransductiveTagger().fit(vectors, labels)
    moved = [factor * one + offset for one in vectors]
    other = TransductiveTagger().fit(moved, labels)
    assert other.transduction_ == plain.transduction_
    assert other.predict(moved[:7]) == plain.predict(vectors[:7])
    np.testing.assert_allclose(other.coef_, plain.coef_, atol=1e-3)
    lengths = (other.encoder_.transform(moved).X ** 2).sum(axis=1)
    assert lengths.mean() == pytest.approx(1.0)


def test_partial_labels_are_kept():
    y = [*Y[:4], *[None] * 56]
    y[10] = [Y[10][0], *[None] * (len(X[10]) - 1)]
    y[11] = [{"author", "title"}, *[None] * (len(X[11]) - 1)]
    y[12] = [*[None] * (len(X[12]) - 1), RuledOut(["author", "title", "journal"])]
    y[13] = ["", float("nan"), *[None] * (len(X[13]) - 2)]
    found = TransductiveTagger().fit(X, y).transduction_
    assert found[10][0] == Y[10][0]
    assert found[11][0] in {"author", "title"}
    assert found[12][-1] == "year"


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.float64])
def test_minus_one_in_an_array_is_unknown(dtype):
    y = [np.array([0, 1], dtype), np.array([1, -1], dtype), np.array([-1, -1], dtype)]
    model = TransductiveTagger(annealing=None).fit([["a", "b"]] * 3, y)
    assert model.classes_.tolist() == [0, 1]
    assert model.label_counts_.sum() == 3


def test_only_partly_labelled_sequences_can_be_fitted():
    y = [[label if i % 2 else None for i, label in enumerate(one)] for one in Y]
    model = TransductiveTagger(annealing=None).fit(X, y)
    assert model.score(*references(40, seed=1)) > 0.85


@pytest.mark.parametrize("parameters", [{"annealing": "paper"}, {"loss": "hinge"}, {"annealing": [0.3, 1.0]}])
def test_other_methods_label_as_well(parameters):
    model = TransductiveTagger(**parameters).fit(X, PARTLY)
    assert model.score(*references(40, seed=1)) > 0.9


def test_constraints_hold_in_training_and_in_prediction():
    constraints = ["title: once", "author: exactly once", "author before title", "journal needs year"]
    model = TransductiveTagger(constraints=constraints).fit(X, PARTLY)
    for found in (model.transduction_[6:], model.predict(references(40, seed=2)[0])):
        codes = np.searchsorted(model.classes_, np.concatenate(found))
        offsets = np.cumsum([0, *map(len, found)])
        assert np.all(model.rules_.check(codes, offsets)[0] == 0.0)


def test_predictions_follow_labels_that_are_known_in_part(fitted):
    new = references(6, seed=3)[0]
    plain = fitted.predict(new)
    y = [None, *[[None] * len(one) for one in new[1:]]]
    y[1][0], y[2][0], y[3][0] = "title", RuledOut("author"), {"journal", "year"}
    y[4] = ["title", *["author"] * (len(new[4]) - 1)]  # breaks the constraint, but nothing is left to predict
    found, marginals = fitted.predict(new, y), fitted.predict_marginals(new, y)
    assert plain[1][0] == plain[2][0] == plain[3][0] == "author"
    assert found[1][0] == "title"
    assert "author" not in found[1], "the other labels follow the given one: authors come before titles"
    assert found[2][0] != "author"
    assert found[3][0] in {"journal", "year"}
    assert (found[0], found[4], found[5]) == (plain[0], y[4], plain[5])
    assert [one.shape for one in marginals] == [(len(one), 4) for one in new]
    np.testing.assert_array_equal(marginals[4].argmax(axis=1), np.searchsorted(fitted.classes_, y[4]))
    assert marginals[2][0, 0] == 0.0
    assert fitted.predict(X[:2], Y[:2]) == Y[:2]
    assert len(fitted.predict_marginals(X[:2], Y[:2])) == 2
    with pytest.raises(InputError, match=r"y has the label 'titel', which the tagger does not know\. Did you mean"):
        fitted.predict([["smith"]], [["titel"]])


def test_patterns_force_and_forbid_labels():
    given = TransductiveTagger(constraints=[r"journal: /^(19|20)\d\d$/", "author: not /,/"]).fit(X, PARTLY)
    labels = {(word, label) for one, other in zip(X[6:], given.transduction_[6:], strict=True)
              for word, label in zip(one, other, strict=True)}  # fmt: skip
    assert all(label == "journal" for word, label in labels if word.isdigit())
    assert not any(label == "author" for word, label in labels if word.endswith(","))
    assert given.transduction_[:6] == Y[:6]
    assert given.predict([["smith,", "1999"]])[0][1] == "journal"


def test_exact_counts_and_ranges_are_met():
    n = sum(len(one) for one in X[6:])
    model = TransductiveTagger(label_prior={"year": 60, "author": (0.1, 0.2)}).fit(X, PARTLY)
    counts = dict(zip(model.classes_, model.label_counts_, strict=True))
    assert counts["year"] == 60
    assert 0.1 * n <= counts["author"] <= 0.2 * n


def test_numbers_of_blocks_change_the_labels():
    few = TransductiveTagger(block_prior={"journal": (0, 5)}).fit(X, PARTLY)
    many = TransductiveTagger(block_prior={"journal": (45, 50)}).fit(X, PARTLY)
    n_few, n_many = (sum("journal" in one for one in model.transduction_[6:]) for model in (few, many))
    assert n_few < n_many - 20
    assert set(few.block_prices_) == {"journal"}


def test_a_scheme_allows_valid_transitions_only():
    y = [[f"{'B' if i == 0 or one[i - 1] != label else 'I'}-{label}" for i, label in enumerate(one)] for one in Y]
    model = TransductiveTagger(scheme="BIO", constraints=["title: once"]).fit(X, [*y[:6], *[None] * 54])
    for one in model.predict(X):
        for before, label in zip(["", *one], one, strict=False):
            assert not label.startswith("I-") or before[2:] == label[2:]


def test_results_do_not_depend_on_the_number_of_threads_and_inputs_stay(fitted):
    before = [list(one) for one in X], [None if one is None else list(one) for one in PARTLY]
    again = clone(fitted).set_params(n_jobs=2).fit(X, PARTLY)
    np.testing.assert_array_equal(again.coef_, fitted.coef_)
    assert ([list(one) for one in X], [None if one is None else list(one) for one in PARTLY]) == before


def test_without_unlabelled_sequences_the_tagger_is_the_supervised_one():
    one, other = (TransductiveTagger(annealing=annealing).fit(X, Y) for annealing in ("soft", None))
    np.testing.assert_allclose(one.coef_, other.coef_, atol=0.05)
    assert one.transduction_ == Y


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": PARTLY[:-1]}, "X has 60 sequences, but y has 59"),
        ({"y": [Y[0][:-1], *PARTLY[1:]]}, r"Sequence 0 has \d+ tokens, but \d+ labels"),
        ({"X": [[], *X[1:]]}, "Sequence 0 is empty"),
        ({"X": []}, "X has no sequences"),
        ({"X": "smith 1999"}, "X must be a list of sequences, but is a str"),
        ({"X": ["smith 1999", *X[1:]]}, "must be a list of tokens"),
        ({"X": [[1.5, 2.5], *X[1:]]}, "must be a string, feature dict"),
        ({"X": [*X[:-1], [1, *X[-1][1:]]]}, "Sequence 59 has the token 1"),
        ({"y": [None] * 60}, "y must have at least two labels, but has no label"),
        ({"y": [[{"a", "b"}] * len(X[0]), *[None] * 59]}, "y has no token with a single label"),
        ({"y": ["author", *PARTLY[1:]]}, "Entry 0 of y is 'author'"),
        ({"y": [*PARTLY[:-1], [RuledOut("titel")] * len(X[-1])]}, "rules out 'titel', which is not a label. Did you"),
        ({"y": [*PARTLY[:-1], [set()] * len(X[-1])]}, "allows no label"),
        ({"constraints": ["titel: once"]}, "names 'titel', which is not a label"),
        ({"constraints": ["author before title", "title before author"]}, "through a cycle"),
        ({"constraints": [f"{each}: at least once" for each in ("author", "title", "journal", "year")]},
         "allow no labels for sequence"),
        ({"label_prior": {"yeer": 0.1}}, "states a size for 'yeer', which y does not have. Did you mean 'year'"),
        ({"label_prior": {"year": 0.9, "author": 0.9}}, "states 90% and 90% of the tokens, 180% together"),
        ({"block_prior": {"yeer": 5}}, "block_prior names 'yeer'"),
        ({"loss": "squared"}, "loss must be"),
        ({"scheme": "BIO"}, "scheme='BIO' needs labels such as 'B-title', 'I-title' and 'O', but one is 'author'"),
        ({"scheme": "BIO", "y": [*[None] * 59, ["I-a", *["B-a"] * (len(X[-1]) - 1)]]},
         "Sequence 59 of y, token 0: 'I-a' starts a block, which BIO does not allow"),
        ({"scheme": "IOB"}, "scheme must be"),
        ({"annealing": "hard"}, "annealing must be"),
        ({"unlabeled_weight": 0}, "unlabeled_weight must be"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_with_one_sentence(change, message):
    data = {"X": X, "y": PARTLY} | {name: value for name, value in change.items() if name in ("X", "y")}
    model = TransductiveTagger(**{name: value for name, value in change.items() if name not in ("X", "y")})
    with pytest.raises((InputError, ValueError), match=message):
        model.fit(data["X"], data["y"])


def test_new_sequences_of_another_kind_are_refused(fitted):
    with pytest.raises(InputError, match="was fitted on tokens, but these sequences are feature dicts"):
        fitted.predict([[{"word": "smith"}]])
    with pytest.raises(InputError, match="Patterns need tokens"):
        TransductiveTagger(constraints=["b: /x/"]).fit([[{"w": "x"}, {"w": "y"}]] * 2, [["a", "b"], None])


def test_of_many_sequences_a_sample_is_annealed_and_all_are_labelled(monkeypatch, fitted):
    monkeypatch.setattr("transduce.sequences.tagger.SAMPLE", 20)
    sampled = TransductiveTagger(constraints=["author before title"], label_prior={"year": 54}).fit(X, PARTLY)
    agree = [a == b for one, other in zip(sampled.transduction_, fitted.transduction_, strict=True)
             for a, b in zip(one, other, strict=True)]  # fmt: skip
    assert np.mean(agree) > 0.9
    assert dict(zip(sampled.classes_, sampled.label_counts_, strict=True))["year"] == 54


def test_a_tagger_can_be_interrupted_after_a_round_and_reports_progress():
    rows = []

    def stop(row):
        rows.append(row)
        if len(rows) == 3:
            raise KeyboardInterrupt

    model = TransductiveTagger(verbose=stop).fit(X, PARTLY)
    assert len(rows) == 3
    assert "interrupted" in model.termination_condition_
    assert len(model.transduction_) == 60


def test_the_automaton_of_a_rule_for_labels_without_constraints_is_empty():
    assert Rules.create(["a", "b"], None).is_empty
    assert not Rules.create(["a", "b"], None, [Once("a")]).is_empty


def test_counts_that_constraints_forbid_are_a_warning_and_do_not_ruin_the_labels():
    stated = ["title: once", "year: exactly once", "author before title"]
    with pytest.warns(CountWarning, match="'year' has [0-9]+ tokens, but at most [0-9]+ are stated") as caught:
        model = TransductiveTagger(label_prior={"year": (0, 0.02)}, constraints=stated).fit(X, PARTLY)
    assert caught[0].message.missed[0].assigned == model.label_counts_[3]
    assert model.gap_ == np.inf
    right = [a == b for one, other in zip(model.transduction_, Y, strict=True) for a, b in zip(one, other, strict=True)]
    assert np.mean(right) > 0.6


def test_a_weight_step_that_does_not_converge_says_so():
    with pytest.warns(ConvergenceWarning, match="Increase max_iter"):
        model = TransductiveTagger(max_iter=1, annealing=None).fit(X, PARTLY)
    assert model.termination_condition_ != "Converged."


@pytest.mark.parametrize("annealing", ["soft", "paper", None])
def test_the_objective_is_that_of_the_weights_and_labels(annealing):
    model = TransductiveTagger(annealing=annealing, label_prior=None).fit(X, PARTLY)
    chains = model._scored(X)[0].chains
    theta = np.vstack((model.coef_, model.transitions_, model.start_, model.end_))
    log_z = chains.marginals(chains.scores(theta), chains.transitions(theta)).log_z
    codes = np.searchsorted(model.classes_, np.concatenate(model.transduction_))
    losses = log_z - chains.score(chains.scores(theta), chains.transitions(theta), codes)
    lengths, n_known = np.array([len(one) for one in X]), sum(len(one) for one in X[:6])
    weight = 0.0 if annealing is None else 1.0
    kappa = np.where(np.arange(60) < 6, 1.0 / n_known, weight / (lengths.sum() - n_known))
    expected = 0.5 * model.alpha_ * np.sum(theta**2) + kappa @ losses
    assert model.objective_ == pytest.approx(expected, rel=1e-6)


def test_ctrl_c_in_the_last_label_step_keeps_the_labels(monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    for name in ("improve", "hard"):
        monkeypatch.setattr(LabelStep, name, interrupted)
        model = TransductiveTagger().fit(X, PARTLY)
        assert "interrupted" in model.termination_condition_
        assert len(model.transduction_) == 60


def test_a_new_sequence_that_cannot_meet_the_constraints_does_not_stop_the_others():
    stated = ["author: exactly once", "title: exactly once", "author before title"]
    model = TransductiveTagger(constraints=stated).fit(X, PARTLY)
    new = [["smith,"], ["jones,", "lakes", "rivers", "1999"], ["trees"]]
    found = model.predict(new)
    assert [len(one) for one in found] == [1, 4, 1]
    assert {"author", "title"} <= set(found[1])
    assert found[1] == model.predict(new[1:2])[0]
    marginals = model.predict_marginals(new)
    np.testing.assert_allclose(np.concatenate(marginals).sum(axis=1), 1.0)
    np.testing.assert_allclose(marginals[1], model.predict_marginals(new[1:2])[0], atol=1e-12)
