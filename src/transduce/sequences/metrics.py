"""Scores of taggings by block: a block is right if its label, its start and its end are.

Precision, recall and F are those of seqeval in its default mode; a fraction of nothing is 0.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from transduce.sequences.schemes import Block, blocks
from transduce.suggest import short_repr


class BlockScore(NamedTuple):
    """Scores of some blocks.

    Attributes
    ----------
    precision, recall, f : float
        Right blocks as a fraction of predicted and of true ones, and the harmonic mean of both.
    support : int
        Number of true blocks.
    """

    precision: float
    recall: float
    f: float
    support: int


class BlockScores(NamedTuple):
    """Scores of all blocks.

    Attributes
    ----------
    micro : BlockScore
        Over all blocks.
    macro : BlockScore
        Mean over the labels.
    labels : dict
        For each label.
    """

    micro: BlockScore
    macro: BlockScore
    labels: dict[str, BlockScore]


def block_scores(
    y_true: Sequence[Sequence[str]], y_pred: Sequence[Sequence[str]], scheme: str | None = None
) -> BlockScores:
    """Compare predicted blocks with true ones.

    Parameters
    ----------
    y_true, y_pred : sequences of sequences of str
        Labels of the tokens.
    scheme : {None, "BIO", "BIOES"}, default=None
        None: a block is a run of one label.

    Returns
    -------
    BlockScores

    Examples
    --------
    >>> scores = block_scores([["author", "author", "title"]], [["author", "title", "title"]])
    >>> scores.micro
    BlockScore(precision=0.0, recall=0.0, f=0.0, support=2)
    >>> block_scores([["B-a", "I-a", "O"]], [["B-a", "I-a", "B-b"]], "BIO").labels["a"].f
    1.0
    """
    for name, sequences in (("y_true", y_true), ("y_pred", y_pred)):
        if not hasattr(sequences, "__len__") or isinstance(sequences, (str, Mapping)):
            raise TypeError(f"{name} must be a list with the labels of each sequence, but is {short_repr(sequences)}.")
    true, predicted = _numbered(y_true, scheme), _numbered(y_pred, scheme)
    if [len(one) for one in y_true] != [len(one) for one in y_pred]:
        raise ValueError("y_true and y_pred must have sequences of equal lengths. Predict the same sequences.")
    n_true, n_predicted, n_right = (
        Counter(block.label for _, block in some) for some in (true, predicted, true & predicted)
    )
    names = sorted(n_true | n_predicted)
    labels = {name: _score(n_true[name], n_predicted[name], n_right[name]) for name in names}
    precision, recall, f = (sum(score[k] for score in labels.values()) / max(1, len(names)) for k in range(3))
    macro = BlockScore(precision, recall, f, len(true))
    return BlockScores(_score(len(true), len(predicted), len(true & predicted)), macro, labels)


def _numbered(labels: Sequence[Sequence[str]], scheme: str | None) -> set[tuple[int, Block]]:
    return {(i, block) for i, sequence in enumerate(labels) for block in blocks(sequence, scheme)}


def _score(n_true: int, n_predicted: int, n_right: int) -> BlockScore:
    """The score from numbers of true, predicted and right blocks."""
    precision, recall = n_right / max(1, n_predicted), n_right / max(1, n_true)
    return BlockScore(precision, recall, 2 * n_right / max(1, n_true + n_predicted), n_true)
