"""The examples in README and docs run as they stand."""

import doctest
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_run(page):
    text = page.read_text(encoding="utf-8").replace("```", "")
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner()
    runner.run(parser.get_doctest(text, {}, page.name, str(page), 0))
    assert runner.summarize(verbose=False).failed == 0


def test_the_pages_with_examples_were_found():
    assert sum(">>>" in page.read_text(encoding="utf-8") for page in PAGES) >= 2
