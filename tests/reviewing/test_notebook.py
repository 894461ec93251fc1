"""`review` from Python: frames of pandas and polars, and decisions that come back."""

import pandas as pd
import polars as pl
import pytest
from helpers.reviews import CLASSES, Client, corpus

import transduce

TEXTS, TRUTH = corpus(40)


@pytest.mark.parametrize("frame_type", [pd.DataFrame, pl.DataFrame])
def test_decisions_come_back_in_the_frame(tmp_path, frame_type):
    frame = frame_type({"body": TEXTS, "topic": [name if k < 12 else None for k, name in enumerate(TRUTH)]})
    options = {"text": "body", "label": "topic", "project": tmp_path / "p", "features": "tfidf", "open_browser": False}
    with transduce.review(frame, **options) as review:
        client = Client(review._server)
        client.post("events", {"events": [{"op": "decide", "rows": [30], "label": CLASSES[0], "how": "queue"}]})
        assert review.labels[30] == CLASSES[0]
        found = review.frame()
        assert list(found.columns) == ["body", "topic", "decision", "proposal"]
        assert list(found["decision"])[30] == CLASSES[0]
        assert list(frame.columns) == ["body", "topic"]
    with transduce.review(frame, **options) as again:
        assert again.labels[30] == CLASSES[0]
