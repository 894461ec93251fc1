"""The documentation site: its configuration, its navigation and its link check; `make docs` builds it."""

import re
import runpy
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
sys.path.append(str(DOCS / "tools"))

import inventories  # noqa: E402
import links  # noqa: E402


def in_navigation(page="index"):
    """Pages that the toctrees of a page list, and those of these pages, in turn."""
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```\{toctree\}\n(.*?)```", text, re.DOTALL)
    listed = [line for block in blocks for line in block.splitlines() if line and not line.startswith(":")]
    for name in listed:
        yield name
        if not name.startswith("reference/generated/"):
            yield from in_navigation(name)


def test_every_page_is_in_the_navigation_once():
    pages = {path.relative_to(DOCS).with_suffix("").as_posix() for path in DOCS.rglob("*.md")} - {"index"}
    found = list(in_navigation())
    assert sorted(found) == sorted(pages | {"reference/generated/index"})


def test_every_figure_is_drawn_by_the_script_and_shown():
    text = (DOCS / "tools" / "figures.py").read_text(encoding="utf-8")
    drawn = set(re.findall(r'^    "([\w-]+\.(?:svg|png))": \w+,$', text, re.MULTILINE))
    shown = {
        name for page in DOCS.rglob("*.md") for name in re.findall(r"figures/([\w.-]+)\)", page.read_text("utf-8"))
    }
    assert drawn == shown == {path.name for path in (DOCS / "figures").iterdir()}


def test_the_configuration_loads_and_names_public_modules(monkeypatch, tmp_path):
    monkeypatch.setattr(inventories, "write", lambda folder: {})
    settings = runpy.run_path(str(DOCS / "conf.py"))
    settings["api_pages"].write(settings["MODULES"], tmp_path)
    pages = {path.stem for path in tmp_path.iterdir()}
    assert {"index", "transduce.TextClassifier", "transduce.testing.blobs", *settings["MODULES"]} <= pages
    assert ":members: " in (tmp_path / "transduce.TextClassifier.rst").read_text()


def test_inventories_are_read_by_sphinx(tmp_path):
    inventory = pytest.importorskip("sphinx.util.inventory", reason="the extra docs is not installed")
    site, path = inventories.write(tmp_path)["sklearn"]
    data = inventory.InventoryFile.loads(Path(path).read_bytes(), uri=site).data
    name = "sklearn.semi_supervised.LabelSpreading"
    assert data["py:class"][name].uri == f"https://scikit-learn.org/stable/modules/generated/{name}.html#{name}"


def test_broken_links_are_found(tmp_path):
    (tmp_path / "a.html").write_text(
        '<p id="here"><a href="b.html#there">1</a><a href="#here">2</a><a href="c.html">3</a>'
    )
    (tmp_path / "b.html").write_text('<a href="a.html#gone">1</a><a href="https://elsewhere/x.html">2</a>')
    assert links.broken_links(tmp_path) == ["a.html: b.html#there", "a.html: c.html", "b.html: a.html#gone"]
