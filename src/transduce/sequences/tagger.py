"""TransductiveTagger: a linear-chain model that learns from a few labelled sequences, many others and label counts."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from transduce.arrays import Array, FloatArray, IntArray
from transduce.design import Design, mean_squared_length, sum_of_squares
from transduce.errors import CountWarning, CountWarningKind, InputError, MissedCount
from transduce.history import FitStatus, progress_callback
from transduce.parallel import one_blas_thread
from transduce.sequences.automaton import Rules, fields_of, forbidden_transitions
from transduce.sequences.chains import Bias, Chains, Fields
from transduce.sequences.constraints import Pattern, read_constraints
from transduce.sequences.counts import Counts
from transduce.sequences.encode import EncodedLabels, encode_known, encode_labels, with_patterns
from transduce.sequences.hidden_labels import trust_in_counts
from transduce.sequences.inputs import TOKENS, Encoded, Encoder
from transduce.sequences.label_step import LabelStep
from transduce.sequences.problem import ChainProblem
from transduce.sequences.scheme_check import check_known_labels, check_names
from transduce.sequences.schemes import check_scheme
from transduce.sequences.sizes import block_bounds, token_bounds
from transduce.sequences.training import ChainTraining, Stage, cooling
from transduce.solvers.loop import Loop
from transduce.solvers.schedule import stages
from transduce.suggest import short_repr
from transduce.taxonomy import Taxonomy
from transduce.validation import check_alpha, check_iterations, check_positive

DEFAULT_ALPHA = 0.02
"""alpha="auto" is this times the mean squared length of the features of a token, divided by the known labels."""

SAMPLE = 4000
"""Open sequences that are annealed; others only get their labels."""
LEAST_TRUST = 0.15
"""Factor of the strength of the belief in counts that are not trusted."""


@dataclass(kw_only=True, eq=False, repr=False)
class TransductiveTagger(BaseEstimator):  # type: ignore[misc]
    """Linear-chain tagger that learns from a few labelled sequences, many unlabelled ones and label counts.

    Weights and labels are learnt together, as `TransductiveClassifier` does for single rows: weight steps fit a
    conditional random field, or a structured margin, to the present labels; label steps find labels that meet the
    counts and the constraints.

    Parameters
    ----------
    loss : {"maxent", "hinge"}, default="maxent"
        Loss of a sequence: that of a conditional random field, or the structured margin with a smooth maximum.
    alpha : float or "auto", default="auto"
        Weight of the regulariser. "auto" is .02 times the mean squared length of the features of a token, divided by
        the number of tokens with a known label: c2 = .1 of CRFsuite for tokens with ten features.
    unlabeled_weight : float, default=1.0
        Total weight of the tokens without a known label; those with one weigh 1.
    label_prior : "labeled", dict, list or None, default="labeled"
        Sizes of the labels among the tokens without a known label. "labeled": the fractions among the known ones, as a
        belief that is as strong as labels suggest that are hidden in turn (see `trust_`). A dict states some sizes, as
        in `class_prior` of `TransductiveClassifier`: 0.2 is rough, (0.1, 0.3) a range, 120 or "=20%" exact; the labels
        say the rest. None: sizes are free.
    block_prior : dict or None, default=None
        Numbers of blocks of fields in the sequences that are not labelled in full: a number or range of blocks, or a
        fraction of these sequences.
    constraints : list of str or Constraint, default=()
        Such as "title: once", "author before title", "volume needs journal", "year: /^[0-9]{4}$/", each with a cost at
        the end, "(cost 5)", or without exception. They hold for labels that are not known, and in `predict`.
    scheme : {None, "BIO", "BIOES"}, default=None
        Scheme of the labels: only transitions that are valid in it are used, and constraints name fields.
    features : "auto" or callable, default="auto"
        Features of tokens: `token_features`, or a function of the tokens and a position that returns a dict or a list.
    annealing : {"soft", "paper"}, sequence of float or None, default="soft"
        "soft" cools distributions over labels to hard labels while the weight of the unlabelled tokens grows; "paper"
        has hard labels and nine weights, a sequence weights of your own. None: only known labels are used. Of more than
        4000 sequences that are not labelled in full, 4000 are annealed, and the others only get their labels.
    tol : float, default=1e-3
        Weight steps end when the gradient is this fraction of that at weights of 0.
    max_iter : int, default=1000
        Most iterations of a weight step.
    random_state : int, RandomState instance or None, default=None
        Not used: nothing is random. For tools that pass it.
    n_jobs : int or None, default=None
        Number of threads; None or -1 for one per core. The result does not depend on it.
    verbose : bool, int or callable, default=0
        Whether to print a line after each round; a callable is called with each `HistoryRow`.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        Labels, sorted.
    coef_ : ndarray of shape (n_features, K)
        Weights of the features. For token vectors these are the standardised vectors: less the mean of the training
        vectors, `encoder_.mean`, and divided by `encoder_.scale`, so that their mean squared length is 1.
    transitions_ : ndarray of shape (K, K)
        Scores of each label after each other one.
    start_, end_ : ndarray of shape (K,)
        Scores of the first and of the last label.
    transduction_ : list of lists
        Labels of all training sequences.
    marginals_ : list of ndarray of shape (T, K)
        Probabilities of the labels of all training tokens, at the prices; known labels have 1.
    label_counts_ : ndarray of shape (K,)
        Tokens without a known label that got each label.
    prices_ : ndarray of shape (K,)
        Dual variables of the label sizes, added to the scores of tokens.
    block_prices_ : dict
        Dual variables of the fields with a number of blocks.
    gap_ : float
        Total cost of `transduction_` less a lower bound on that of any labels, at these weights; infinite if a stated
        count is not met.
    relative_gap_ : float
        The gap as a fraction of the cost of the labels under the model, log Z less their score; what counts cost is
        left out of it.
    objective_ : float
        J at the end.
    history_ : list of HistoryRow
        One row for each round.
    n_iter_ : int
        Number of rounds.
    trust_ : float
        How far label fractions were believed, 0 to 1; 1 if sizes are stated. Where they are not, prices make hidden
        labels no likelier, the belief is weak, and weights are averaged with the supervised ones.
    alpha_ : float
        Weight of the regulariser that was used.
    feature_names_ : tuple of str
        Names of the features.
    n_features_in_ : int
        Number of features.
    termination_condition_ : str
        How the fit ended.

    Examples
    --------
    >>> from transduce.sequences import TransductiveTagger
    >>> X = [["Smith", "Trees", "1994"], ["Jones", "Lakes", "1996"], ["Brown", "Rivers", "2001"]]
    >>> y = [["author", "title", "year"], None, None]
    >>> tagger = TransductiveTagger(constraints=["author before title"]).fit(X, y)
    >>> tagger.transduction_[2], tagger.predict([["Miller", "Seas", "2005"]])
    (['author', 'title', 'year'], [['author', 'title', 'year']])
    """

    loss: str = "maxent"
    alpha: float | str = "auto"
    unlabeled_weight: float = 1.0
    label_prior: Any = "labeled"
    block_prior: Any = None
    constraints: Sequence[Any] = ()
    scheme: str | None = None
    features: Any = "auto"
    annealing: Any = "soft"
    tol: float = 1e-3
    max_iter: int = 1000
    random_state: Any = None
    n_jobs: int | None = None
    verbose: Any = 0

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from labelled and unlabelled sequences together.

        Parameters
        ----------
        X : list of sequences
            Each a list of tokens, of feature dicts or of lists of feature strings, or an array of token vectors (T, d).
        y : list
            Labels of each sequence, or None. A label may be None, NaN, -1 or "" (unknown), a set of candidates, or
            `RuledOut` labels.

        Returns
        -------
        self : object
        """
        self._check_parameters()
        self.encoder_ = Encoder(self.features)
        encoded = self.encoder_.fit_transform(X)
        labels = encode_labels(y, np.diff(encoded.offsets), self._stated_labels())
        self.classes_ = labels.classes
        self.feature_names_, self.n_features_in_ = self.encoder_.names, len(self.encoder_.names)
        self._read_constraints()
        check_known_labels(labels.codes, encoded.offsets, self.classes_.tolist(), self.scheme)
        problem = self._problem(encoded, self._allowed(X, labels), labels)
        with one_blas_thread():
            training = self._training(problem)
            result = Loop(progress_callback(self.verbose)).run(training)
            self._set_fitted(training, labels, encoded.offsets)
        self.objective_, self.history_, self.n_iter_ = result.objective, result.history, len(result.history)
        self.termination_condition_ = result.status.value
        if result.status in (FitStatus.NOT_CONVERGED, FitStatus.OUT_OF_ROUNDS):
            warnings.warn(result.status.value, ConvergenceWarning, stacklevel=2)
        if training.missed:
            warnings.warn(CountWarning(CountWarningKind.MISSED, missed=self._missed(training)), stacklevel=2)
        return self

    def predict(self, X: Any, y: Any = None) -> list[list[Any]]:
        """Return the best labels of each sequence, under the constraints.

        A sequence that cannot meet all of them, such as one of a single token, is labelled without some of them.

        Parameters
        ----------
        X : list of sequences
            As in `fit`.
        y : list, default=None
            Labels that are known in part, as in `fit`: the others are the best ones beside them. A sequence that is
            labelled in full may break constraints.

        Returns
        -------
        list of lists

        Examples
        --------
        >>> X = [["Smith", "Trees", "1994"], ["Jones", "Lakes", "1996"], ["Brown", "Rivers", "2001"]]
        >>> tagger = TransductiveTagger().fit(X, [["author", "title", "year"], None, None])
        >>> tagger.predict([["Miller", "Seas", "2005"]], [["title", None, None]])
        [['title', 'title', 'year']]
        """
        step, S, known = self._scored(X, y)
        found = step.best(S, step.transitions(self._transitions()))[0]
        codes = _joined(step, found, known)
        return self._named(np.concatenate(codes), np.cumsum([0, *map(len, codes)]))

    def predict_marginals(self, X: Any, y: Any = None) -> list[FloatArray]:
        """Return the probabilities of the labels of each token.

        Constraints count where they are likely to matter: a probability of 2 % that one is broken is allowed.

        Parameters
        ----------
        X : list of sequences
            As in `fit`.
        y : list, default=None
            Labels that are known in part, as in `predict`.

        Returns
        -------
        list of ndarray of shape (T, K)
        """
        step, S, known = self._scored(X, y)
        ones = np.ones(step.chains.n_sequences)
        if ones.size and not self.rules_.is_empty:
            step.best(S, step.transitions(self._transitions()))  # finds sequences that cannot meet the constraints
            step.soft(S.copy(), self._transitions(), 1.0, step.counts.start(), ones)  # finds what to watch
        if ones.size:
            step.soft(S, self._transitions(), 1.0, step.counts.start(), ones)
        one_hot = np.eye(self.classes_.size)
        return _joined(step, S, {s: one_hot[codes] for s, codes in known.items()})

    def score(self, X: Any, y: Any) -> float:
        """Return the fraction of tokens whose label is right.

        Parameters
        ----------
        X : list of sequences
            As in `fit`.
        y : list of lists
            Their labels.

        Returns
        -------
        float
        """
        found = self.predict(X)
        labels = encode_known(y, np.array([len(sequence) for sequence in found]), self.classes_)
        known = np.flatnonzero(labels.codes >= 0)
        if not known.size:
            raise InputError("y has no label to compare with. Pass the labels of a few tokens at least.")
        names, truth = list(chain.from_iterable(found)), self.classes_[labels.codes[known]].tolist()
        return float(np.mean([names[t] == label for t, label in zip(known, truth, strict=True)]))

    def _check_parameters(self) -> None:
        if not isinstance(self.loss, str) or self.loss not in ("maxent", "hinge"):
            raise ValueError(f"loss must be 'maxent' or 'hinge', but is {short_repr(self.loss)}.")
        check_scheme(self.scheme)
        if not callable(self.features) and not (isinstance(self.features, str) and self.features == "auto"):
            found = short_repr(self.features)
            raise ValueError(f"features must be 'auto' or a function of tokens and a position, but is {found}.")
        check_alpha(self.alpha)
        check_positive(self, "unlabeled_weight", "tol")
        check_iterations(self.max_iter, self.n_jobs)

    def _stated_labels(self) -> list[Any]:
        return list(self.label_prior) if isinstance(self.label_prior, dict) else []

    def _stages(self) -> list[Stage]:
        if self.annealing is None:
            return []
        if isinstance(self.annealing, str) and self.annealing == "soft":
            return cooling(self.unlabeled_weight)
        return [Stage(weight, 0.0) for weight in stages(self.annealing, self.unlabeled_weight)]

    def _read_constraints(self) -> None:
        names = self.classes_.tolist()
        check_names(names, self.scheme)
        fields = fields_of(names, self.scheme)
        self.constraints_ = read_constraints(self.constraints, fields)
        self.rules_ = Rules.create(names, self.scheme, self.constraints_)

    def _allowed(self, X: Any, labels: EncodedLabels | None) -> Bias | None:
        """What the patterns among the constraints and the known labels allow."""
        patterns = [each for each in self.constraints_ if isinstance(each, Pattern)]
        allowed = None if labels is None else labels.allowed
        if not patterns:
            return allowed
        if self.encoder_.kind != TOKENS:
            raise InputError(f"Patterns need tokens, but these sequences are {self.encoder_.kind}. Pass token lists.")
        return with_patterns(allowed, X, patterns, self.rules_)

    def _problem(self, encoded: Encoded, allowed: Bias | None, labels: EncodedLabels) -> ChainProblem:
        n_known = int((labels.codes >= 0).sum())
        if n_known == 0:
            raise InputError("y has no token with a single label. Label at least one sequence.")
        length = mean_squared_length(sum_of_squares(encoded.X), encoded.X.shape[0])
        self.alpha_ = DEFAULT_ALPHA * length / n_known if isinstance(self.alpha, str) else float(self.alpha)
        chains = Chains.create(self._design(encoded), encoded.offsets, allowed)
        return ChainProblem(chains, labels.codes, self.alpha_, self.loss == "hinge")

    def _training(self, problem: ChainProblem) -> ChainTraining:
        step, schedule = self._step(problem), self._stages()
        is_soft = bool(schedule) and schedule[0].temperature > 0.0
        believes = isinstance(self.label_prior, str) and self.label_prior == "labeled"
        self.trust_ = trust_in_counts(problem, self.classes_, step.counts) if is_soft and believes else 1.0
        step.counts = step.counts.weaker(LEAST_TRUST + (1.0 - LEAST_TRUST) * self.trust_)
        part, own = self._sample(problem, step)
        return ChainTraining(part, own, step, schedule, self.tol, self.max_iter, 0.5 + 0.5 * self.trust_)

    def _sample(self, problem: ChainProblem, step: LabelStep) -> tuple[ChainProblem, LabelStep]:
        """The problem of the closed and at most SAMPLE open sequences, evenly spaced, and its label step."""
        n = step.positions.size
        if n <= SAMPLE:
            return problem, step
        chosen = step.positions[np.linspace(0, n - 1, SAMPLE).astype(np.int64)]
        part = problem.select(np.sort(np.concatenate((np.flatnonzero(~problem.is_open), chosen))))
        codes = problem.codes[problem.chains.tokens_of(chosen)]
        known = np.bincount(codes[codes >= 0], minlength=self.classes_.size).astype(np.float64)
        free = (codes < 0).sum() / (problem.codes < 0).sum()
        chains, counts = problem.chains.select(chosen), step.counts.scaled(float(free), known)
        return part, LabelStep(chains, step.rules, counts, step.forbidden, chosen)

    def _step(self, problem: ChainProblem) -> LabelStep:
        positions = np.flatnonzero(problem.is_open)
        chains, K = problem.chains.select(positions), self.classes_.size
        codes = problem.codes[problem.chains.tokens_of(positions)]
        known = np.bincount(codes[codes >= 0], minlength=K).astype(np.float64)
        tokens = token_bounds(self.label_prior, self.classes_, problem.codes)
        blocks, stated = block_bounds(self.block_prior, self.rules_.names, positions.size)
        counts = Counts(tokens, known, Fields(self.rules_.field, self.rules_.starts), blocks, stated)
        return LabelStep(chains, self.rules_, counts, self._forbidden(), positions)

    def _forbidden(self) -> Array:
        return forbidden_transitions(self.classes_.tolist(), self.scheme)

    def _design(self, encoded: Encoded) -> Design:
        return Design.create(encoded.X, Taxonomy.flat(self.classes_.tolist()), self.n_jobs)

    def _set_fitted(self, training: ChainTraining, labels: EncodedLabels, offsets: Array) -> None:
        d, K, theta = self.n_features_in_, self.classes_.size, training.theta
        self.coef_, self.transitions_ = theta[:d], theta[d : d + K]
        self.start_, self.end_ = theta[d + K], theta[d + K + 1]
        step, codes = training.final, labels.codes.copy()
        codes[np.isin(np.repeat(np.arange(offsets.size - 1), np.diff(offsets)), step.positions)] = training.y
        self.transduction_ = self._named(codes, offsets)
        parts = np.split(training.marginals(), step.chains.offsets[1:-1]) if step.positions.size else []
        found = dict(zip(step.positions.tolist(), parts, strict=True))
        self.marginals_ = [
            found[s] if s in found else np.eye(K)[codes[slice(*offsets[s : s + 2])]] for s in range(offsets.size - 1)
        ]
        self.label_counts_ = np.bincount(codes[labels.codes < 0], minlength=K)
        self.prices_ = training.prices.tokens
        names = [self.rules_.names[f] for f in training.step.counts.stated]
        self.block_prices_ = dict(zip(names, training.prices.blocks.tolist(), strict=True))
        self.gap_, self.relative_gap_ = training.gap, training.gap / max(training.cost, 1e-12)

    def _missed(self, training: ChainTraining) -> tuple[MissedCount, ...]:
        """Stated counts that the labels do not meet, with their names."""
        names = self.rules_.names, self.classes_.tolist()
        return tuple(
            MissedCount(names[is_tokens][k], ("blocks", "tokens")[is_tokens], *numbers)
            for is_tokens, k, *numbers in training.missed
        )

    def _transitions(self) -> FloatArray:
        return np.vstack((self.transitions_, self.start_, self.end_))

    def _scored(self, X: Any, y: Any = None) -> tuple[LabelStep, FloatArray, dict[int, IntArray]]:
        """The label step of new sequences, their scores, and the labels of those that are labelled in full."""
        check_is_fitted(self, "coef_")
        encoded = self.encoder_.transform(X)
        labels = None if y is None else encode_known(y, np.diff(encoded.offsets), self.classes_)
        codes = [] if labels is None else np.split(labels.codes, encoded.offsets[1:-1])
        known = {s: one for s, one in enumerate(codes) if (one >= 0).all()}
        positions = np.array([s for s in range(len(X)) if s not in known], dtype=np.int64)
        chains = Chains.create(self._design(encoded), encoded.offsets, self._allowed(X, labels))
        chains = chains.select(positions) if known else chains
        fields, none = Fields(self.rules_.field, self.rules_.starts), np.zeros(self.classes_.size)
        step = LabelStep(chains, self.rules_, Counts(None, none, fields), self._forbidden(), positions, is_lenient=True)
        return step, np.asarray(chains.design.scores(self.coef_), dtype=np.float64), known

    def _named(self, codes: Array, offsets: Array) -> list[list[Any]]:
        names, ends = self.classes_[codes].tolist(), offsets.tolist()
        return [names[begin:end] for begin, end in pairwise(ends)]


def _joined(step: LabelStep, found: Array, known: dict[int, Any]) -> list[Array]:
    """What was found for the tokens of a label step, and what is known, by sequence."""
    parts = zip(step.positions.tolist(), np.split(found, step.chains.offsets[1:-1]), strict=False)
    all_parts = known | dict(parts)
    return [all_parts[s] for s in range(len(all_parts))]
