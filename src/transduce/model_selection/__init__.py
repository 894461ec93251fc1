"""Model selection with unlabelled rows: some labels are hidden, all rows stay in training, hidden rows are scored.

    TransductiveClassifierCV   choose alpha and the loss by cross-validation; hidden rows stay in training, unlabelled
    HiddenLabelSplit           splitter for GridSearchCV: every unlabelled row is in every training set
    labeled_scorer             make a scorer that ignores unlabelled rows
    hide                       copy y with some rows unlabelled
    learning_curve             score on hidden rows against the number of labels

With scikit-learn's own search, here over a pipeline from texts, use both the splitter and the scorer:

>>> import numpy as np
>>> from sklearn.feature_extraction.text import TfidfVectorizer
>>> from sklearn.model_selection import GridSearchCV
>>> from sklearn.pipeline import make_pipeline
>>> from transduce import TransductiveClassifier
>>> texts = ["green tea", "black tea", "hot tea", "ice tea", "black coffee", "hot coffee", "ice coffee", "coffee bean"]
>>> y = ["tea", "tea", "", "", "coffee", "coffee", "", ""]
>>> search = GridSearchCV(
...     make_pipeline(TfidfVectorizer(), TransductiveClassifier(class_prior=[0.5, 0.5], random_state=0)),
...     {"transductiveclassifier__alpha": [1e-4, 1e-3]},
...     cv=HiddenLabelSplit(2, random_state=0),
...     scoring=labeled_scorer("f1_macro"),
... ).fit(texts, y)
>>> float(search.best_score_), search.best_estimator_[-1].transduction_.tolist()
(1.0, ['tea', 'tea', 'tea', 'tea', 'coffee', 'coffee', 'coffee', 'coffee'])
"""

from transduce.model_selection.hidden_labels import hide
from transduce.model_selection.learning_curves import LearningCurve, learning_curve
from transduce.model_selection.scorers import LabeledScorer, labeled_scorer
from transduce.model_selection.search import TransductiveClassifierCV
from transduce.model_selection.splitters import HiddenLabelSplit
from transduce.model_selection.trials import Trial

__all__ = [
    "HiddenLabelSplit",
    "LabeledScorer",
    "LearningCurve",
    "TransductiveClassifierCV",
    "Trial",
    "hide",
    "labeled_scorer",
    "learning_curve",
]
