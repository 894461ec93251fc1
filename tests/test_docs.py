"""The examples in README and docs run as they stand."""

import doctest
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_examples_run(page):
    text = page.read_text(encoding="utf-8").replace("```", "")
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner()
    runner.run(parser.get_doctest(text, {}, page.name, str(page), 0))
    assert runner.summarize(verbose=False).failed == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "expected", "file", "n_lines"),
    [
        ("short-texts", ["check", "label", "evaluate", "queue", "label", "predict"], "next-week-labelled.csv", 101),
        ("references", ["tag", "evaluate", "tag", "evaluate", "predict"], "new-tagged.conll", None),
    ],
)
def test_the_commands_of_a_tutorial_run(page, expected, file, n_lines, tmp_path):
    text = (ROOT / "docs" / f"tutorial-{page}.md").read_text(encoding="utf-8").split("## With an encoder")[0]
    script = re.search("```python\n(.*?)```", text, re.S).group(1)
    lines = re.sub(r"\\\n *", "", text)  # a backslash continues a command
    commands = [shlex.split(command) for command in re.findall(r"^ *transduce (.*)$", lines, re.MULTILINE)]
    assert [command[0] for command in commands] == expected
    for arguments in (["-c", script], *(["-m", "transduce", *command] for command in commands)):
        done = subprocess.run([sys.executable, *arguments], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    lines = (tmp_path / file).read_text(encoding="utf-8").splitlines()
    assert n_lines is None or len(lines) == n_lines
    assert not any(line.endswith("\t_") for line in lines)


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
            is_built = target.startswith("reference/generated/")  # `make docs` writes and checks these
            assert is_built or (page.parent / target).exists(), f"{page.name} links to {target}"
