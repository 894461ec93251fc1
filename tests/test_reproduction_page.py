"""The page of the reproduction, written from the stored results: its summary, its figures and its sections."""

import re

import pytest
from helpers.studies import ROOT

from experiments import STUDIES, cells, page, side_by_side, study
from experiments.check import Checked

RESULTS = ROOT / "experiments" / "results"
NAMES = ("table1", "figure1", "annealing", "figure2", "figure3", "figure4", "figure5", "claims", "leaderboard")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Rows of some studies, and the page about them."""
    grids = {name: cells.module(name).grid(False) for name in NAMES}
    shown = {name: cells.shown(name, RESULTS, grid) for name, grid in grids.items()}
    path = page.write(shown, grids, tmp_path_factory.mktemp("docs") / "reproduction.md", RESULTS)
    return shown, path


def verdicts(rows, name):
    return [verdict for verdict in cells.module(name).verdicts(rows[name]) if not verdict.is_own]


def parts(text, level):
    """Sections of the page by their headings."""
    found = re.split(rf"^{level} (.*)$", text, flags=re.MULTILINE)
    return dict(zip(found[1::2], found[2::2], strict=True))


def test_the_summary_is_one_page_and_names_every_claim_that_does_not_agree_or_its_cause(written):
    rows, path = written
    summary = parts(path.read_text(encoding="utf-8"), "##")["Summary"]
    assert len(summary.splitlines()) < 50
    for name in NAMES:
        for verdict in verdicts(rows, name):
            if verdict.word == study.DIFFERS:
                assert verdict.claim in summary
            if verdict.word == study.PARTLY:
                assert (verdict.cause or verdict.claim) in summary


def test_each_figure_of_the_paper_stands_beside_its_claims(written):
    rows, path = written
    section = parts(path.read_text(encoding="utf-8"), "##")["The figures, side by side"]
    blocks = parts(section, "###")
    assert set(blocks) == {"Figure 1", "Figure 2", "Figure 3", "Figure 4", "Figure 5"}
    for name in filter(side_by_side.is_figure, NAMES):
        picture, words = blocks[side_by_side.title(name)].split("</td><td")
        (target,) = re.findall(r"!\[.+\]\((.*)\)", picture)
        assert (path.parent / target).resolve() == RESULTS / f"{name}.svg"
        for verdict in verdicts(rows, name):
            where, is_split, _ = verdict.claim.partition(": ")
            lines = [line for line in words.splitlines() if line.startswith(f"- *{verdict.paper}*")]
            assert any(line.endswith(f"**{verdict.word}**") and (not is_split or where in line) for line in lines)


def test_each_section_has_its_command_and_the_versions_of_its_results(written):
    rows, path = written
    sections = parts(path.read_text(encoding="utf-8"), "##")
    for name in NAMES:
        (text,) = [text for heading, text in sections.items() if heading.startswith(f"{name}: ")]
        assert f"`python -m experiments {name} --data DIR" in text
        assert all(f"`{version}`" in text for version in study.unique(rows[name], "version"))


def test_the_top_says_which_studies_the_present_code_computed(written):
    stamp = page.Stamp
    found = {"one": [stamp("a", 2, True)], "two": [stamp("a", 1, True), stamp("b", 3, False)],
             "three": [stamp("b", 4, False)], "four": [stamp("c", 1, False)]}  # fmt: skip
    checked = {"two": [Checked("two", "{}", "a", "b", 0.0, "")]} | {
        "three": [Checked("three", "{}", "a", "b", 0.0, ""), Checked("three", '{"set": 1}', "a", "b", 0.25, "macro_f")]
    }
    assert page._computed_by(found, checked) == (
        "the present code had computed one; the present code had computed a part of two (1 of 4 cells; 1 of 1 agree "
        "when run again); "
        "earlier code had computed three (1 of 2 agree, largest difference 0.25 in macro_f when run again), four"
    )
    head = written[1].read_text(encoding="utf-8").partition("## Summary")[0]
    assert all(name in head for name in NAMES)


def test_links_within_the_page_lead_to_headings(written):
    text = written[1].read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    fragments = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    assert set(re.findall(r"\]\(#([^)]*)\)", text)) <= fragments


def test_all_figures_of_the_paper_are_studies():
    assert [name for name in STUDIES if side_by_side.is_figure(name)] == [f"figure{n}" for n in range(1, 6)]
