"""A queue with awkward texts and classes."""

import numpy as np
import polars as pl

from transduce.cli.queue import queue_frame

TEXTS = ["=1+1", "-a\nb", 'say "hi", ok; no', "  spaced ", "É\u0301 ünï", "\ttab", "'quoted", "1.0", "x\r\ny", "@home"]
CLASSES = ["tea & <milk>", 'the "best"', "it's", "a/b", "=sum"]


def example_queue():
    """Documents with awkward texts, and a queue of six of them."""
    table = pl.DataFrame(
        {"id": range(len(TEXTS)), "the text": TEXTS, "body": TEXTS[::-1], "label": [None] * len(TEXTS)}
    )
    rows = np.array([7, 0, 3, 5, 1, 9])
    suggestions = [CLASSES[row % len(CLASSES)] for row in rows]
    return table, queue_frame(table, rows, suggestions, rows / 10, ["the text", "body"])
