"""Figures of an evaluation against scikit-learn's."""

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix, f1_score

from transduce.cli.commands.evaluate import evaluate
from transduce.cli.errors import InputError


@pytest.mark.parametrize("seed", range(5))
def test_figures_are_those_of_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    names = np.array(["rec/a", "rec/b", "sci/a", "sci/b/c"])
    truth, guess = names[rng.integers(0, 4, 60)], names[rng.integers(0, 3, 60)]
    found = evaluate([*truth, None], [*guess, "rec/a"], "here", tree=True)
    labels = sorted({*truth, *guess})
    assert found.macro_f == pytest.approx(f1_score(truth, guess, average="macro", zero_division=0))
    assert found.micro_f == pytest.approx(f1_score(truth, guess, average="micro"))
    assert np.array_equal(found.confusion, confusion_matrix(truth, guess, labels=labels))
    assert (found.rows, found.left_out, len(found.levels)) == (60, 1, 2)
    top = [[name.split("/")[0] for name in side] for side in (truth, guess)]
    assert found.levels[0].macro_f == pytest.approx(f1_score(*top, average="macro"))
    assert found.confusions()[0][2] == max(c for i, r in enumerate(found.confusion) for j, c in enumerate(r) if i != j)
    assert "macro F" in str(found)


def test_true_labels_that_the_model_cannot_give_are_told():
    found = evaluate(["a", "b", "x"], ["a", "b", "a"], "here")
    assert found.strangers(["a", "b", "x"]) == []
    assert "1 of 3 true labels are not a class of the model ('x', for one)" in found.strangers(["a", "b"])[0]
    assert found.strangers(["c"])[0].startswith("none of the true labels is")


def test_confusions_have_a_heading_only_where_there_are_any():
    assert "most frequent confusions (truth -> model):\n       1  a -> b" in str(
        evaluate(["a", "b"], ["b", "b"], "here")
    )
    assert "confusions" not in str(evaluate(["a", "b"], ["a", "b"], "here"))


def test_nothing_to_compare_with():
    with pytest.raises(InputError, match="no label to compare with"):
        evaluate([None], ["a"], "here")
