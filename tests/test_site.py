"""The documentation site: its configuration, its navigation and its link check; `make docs` builds it."""

import re
import runpy
import sys
from pathlib import Path

import click
import pytest

DOCS = Path(__file__).parents[1] / "docs"
sys.path.append(str(DOCS / "tools"))

import command_pages  # noqa: E402
import inventories  # noqa: E402
import links  # noqa: E402

from transduce.cli.main import cli  # noqa: E402


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
    assert sorted(found) == sorted(pages | {"reference/generated/index", "reference/generated/commands/index"})


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


def options_of(page):
    """Names of the options on the page of commands, by the path of the command."""
    found = re.split(r"^\.\. program:: (.*)$", page, flags=re.MULTILINE)
    return {
        path: set(re.findall(r"(?<!\S)--?[\w-]+", " ".join(re.findall(r"^\.\. option:: (.*)$", text, re.MULTILINE))))
        for path, text in zip(found[1::2], found[2::2], strict=True)
    }


def test_the_page_of_commands_has_every_option_that_is_not_hidden():
    expected = {"transduce": {"--version", "-h", "--help"}}
    for name, command in cli.commands.items():
        shown = [option for option in command.params if isinstance(option, click.Option) and not option.hidden]
        expected[f"transduce {name}"] = {n for o in shown for n in (*o.opts, *o.secondary_opts)} | {"-h", "--help"}
    assert options_of(command_pages.page(cli, "transduce")) == expected


def test_the_page_of_commands_follows_the_commands():
    @click.command()
    @click.argument("file")
    @click.option("--tone/--no-tone", help="Play `A` with --volume, not 'a|b' or *loud*.")
    @click.option("--volume", type=click.IntRange(1, 11), default=5, show_default=True)
    @click.option("--secret", hidden=True)
    def play(file, **options):
        """Play FILE.

        \b
        band play song --volume 11
        """

    page = command_pages.page(click.Group("band", commands=[play]), "band")
    assert options_of(page)["band play"] == {"--tone", "--no-tone", "--volume", "--help"}
    assert "   band play [OPTIONS] FILE\n" in page
    assert "::\n\n   band play song --volume 11\n" in page
    assert "Play ``A`` with ``--volume``, not ``'a|b'`` or \\*loud\\*." in page
    assert "default: 5; 1<=x<=11" in page


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
