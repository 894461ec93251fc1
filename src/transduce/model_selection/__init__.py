"""Model selection with unlabelled rows: some labels are hidden, all rows stay in training, hidden rows are scored.

TransductiveClassifierCV   choose alpha and the loss by cross-validation; hidden rows stay in training, unlabelled
HiddenLabelSplit           splitter for GridSearchCV: every unlabelled row is in every training set
labeled_scorer             make a scorer that ignores unlabelled rows; goes with the splitter
hide                       copy y with some rows unlabelled
learning_curve             score on hidden rows against the number of labels
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
