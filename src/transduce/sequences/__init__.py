"""Sequences: tokens that each have a label, with features, blocks of labels and their scores."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from transduce.sequences.features import token_features, token_matrix
from transduce.sequences.metrics import BlockScore, BlockScores, block_scores
from transduce.sequences.schemes import Block, blocks, find_scheme
from transduce.sequences.tagger import TransductiveTagger

if TYPE_CHECKING:
    from transduce.sequences.tagger_file import load_tagger as load_tagger
    from transduce.sequences.tagger_file import save_tagger as save_tagger

__all__ = [
    "Block",
    "BlockScore",
    "BlockScores",
    "TransductiveTagger",
    "block_scores",
    "blocks",
    "find_scheme",
    "load_tagger",
    "save_tagger",
    "token_features",
    "token_matrix",
]


def __getattr__(name: str) -> Any:
    """Import what needs the extra `app` when it is first used."""
    if name in ("load_tagger", "save_tagger"):
        return getattr(import_module("transduce.sequences.tagger_file"), name)
    raise AttributeError(f"module 'transduce.sequences' has no attribute {name!r}")
