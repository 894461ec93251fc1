"""A file to review."""

import polars as pl
import pytest
from helpers.reviews import TEXTS, TRUTH

from transduce.cli.formats import write_table


@pytest.fixture
def tickets(tmp_path):
    """Documents of which twelve are labelled."""
    labels = [label if row < 12 else None for row, label in enumerate(TRUTH)]
    write_table(pl.DataFrame({"text": TEXTS, "label": labels}), str(tmp_path / "tickets.csv"))
    return tmp_path / "tickets.csv"
