"""The examples in README and docs run as they stand."""

import doctest
import re
import shlex
import subprocess
import sys
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


@pytest.mark.slow
def test_the_commands_of_the_tutorial_run(tmp_path):
    text = (ROOT / "docs" / "tutorial-short-texts.md").read_text(encoding="utf-8").split("## With an encoder")[0]
    script = re.search("```python\n(.*?)```", text, re.S).group(1)
    commands = [shlex.split(command) for command in re.findall(r"^ *transduce (.*)$", text, re.MULTILINE)]
    assert [command[0] for command in commands] == ["check", "label", "evaluate", "queue", "label", "predict"]
    for arguments in (["-c", script], *(["-m", "transduce", *command] for command in commands)):
        done = subprocess.run([sys.executable, *arguments], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert len((tmp_path / "next-week-labelled.csv").read_text().splitlines()) == 101


def test_the_pages_with_examples_were_found():
    assert sum(">>>" in page.read_text(encoding="utf-8") for page in PAGES) >= 2


def test_the_architecture_names_every_module():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    source = ROOT / "src" / "transduce"
    listed = {}
    for package, modules in re.findall(r"^\| `([\w.]+)` \| (`.*`) \|$", page, re.MULTILINE):
        listed[package] = set(re.findall(r"`(\w+)`", modules))
    found = {}
    for path in source.rglob("*.py"):
        if path.name not in ("__init__.py", "__main__.py"):
            found.setdefault(".".join(path.relative_to(source).parts[:-1]) or "transduce", set()).add(path.stem)
    assert {package: listed.get(package) for package in found} == found


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
