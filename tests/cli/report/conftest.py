"""Reports that several test modules look at."""

import pytest
from helpers.report_page import ALL_TEA, report
from markupsafe import Markup

from transduce.cli.report import plots


@pytest.fixture
def quick(monkeypatch):
    """Leave out the charts, which take most of the time."""
    monkeypatch.setattr(plots, "make_chart", lambda draw, title: plots.Chart(Markup(""), Markup("")))


@pytest.fixture(scope="module")
def plain():
    """The report of a flat model without true labels."""
    return report()


@pytest.fixture(scope="module")
def full():
    """The report with every section."""
    return report(tree=True, truth=ALL_TEA)
