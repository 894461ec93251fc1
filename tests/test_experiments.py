"""The studies run on the built-in corpus, keep their cells, and go on where they were."""

import csv
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from experiments import STUDIES, cells, page, study, versions  # noqa: E402
from experiments.data import Source, Split, dotted  # noqa: E402


def run(*arguments):
    command = [sys.executable, "-m", "experiments", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    return folder, run("all", "--smoke", "--results", folder)


def test_every_study_runs_on_the_built_in_corpus(smoke):
    folder, done = smoke
    assert done.returncode == 0, done.stderr
    assert {path.stem for path in folder.glob("*.csv")} == set(STUDIES)
    drawn = {name for name in STUDIES if hasattr(cells.module(name), "plot")}
    assert {path.stem for path in folder.glob("*.svg")} == drawn


def test_the_page_has_a_verdict_for_every_claim(smoke):
    text = (smoke[0] / "reproduction.md").read_text(encoding="utf-8")
    for name in STUDIES:
        assert f"## {name}: " in text
        verdicts = cells.module(name).verdicts(cells.read(smoke[0] / f"{name}.csv"))
        assert verdicts
        for verdict in verdicts:
            assert verdict.word in (study.AGREES, study.PARTLY, study.DIFFERS)
            assert verdict.claim in text


def test_cells_that_are_there_are_not_run_again(smoke):
    folder, _ = smoke
    before = (folder / "figure2.csv").read_bytes()
    again = run("figure2", "--smoke", "--results", folder)
    assert "figure2: 0 of 4 cells to run" in again.stdout
    assert (folder / "figure2.csv").read_bytes() == before


def test_a_cell_is_run_again_when_its_code_has_changed(smoke):
    rows = cells.read(smoke[0] / "figure2.csv")
    grid = cells.module("figure2").grid(True)
    rows[0]["version"] = "of another day"
    assert cells.missing("figure2", grid, rows, any_version=False) == grid[:1]
    assert cells.missing("figure2", grid, rows, any_version=True) == []
    assert cells.missing("figure2", grid, rows[2:], any_version=True) == grid[:2]


def test_a_row_that_was_cut_off_does_not_stop_the_next_run(tmp_path):
    with (tmp_path / "figure2.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(
            [
                ["set", "n_unlabeled", "seed", "method", "macro_f", "seconds", "cell_seconds", "version"],
                ["la1", 60, 0, "pa"],
            ]
        )
        file.truncate(file.tell() - 2)  # fmt: skip
    assert run("figure2", "--smoke", "--results", tmp_path).returncode == 0
    assert len(cells.read(tmp_path / "figure2.csv")) == 4


def test_versions_see_code_and_not_its_words(tmp_path):
    texts = (
        "A, B = 1, 2\ndef run(x):\n    return g(x) + A\ndef g(x):\n    return x\ndef plot():\n    pass\n",
        "A, B = 1, 2\ndef run(x):\n    'More.'\n    return g(x) + A  # so\ndef g(x):\n    return x\n",
        "A, B = 1, 2\ndef run(x):\n    return g(x) + A\ndef g(x):\n    return -x\ndef plot():\n    pass\n",
        "A, B = 3, 2\ndef run(x):\n    return g(x) + A\ndef g(x):\n    return x\ndef plot():\n    pass\n",
    )
    digests = []
    for number, text in enumerate(texts):
        path = tmp_path / f"{number}.py"
        path.write_text(text)
        digests.append(versions._reached(path, "run"))
    assert digests[0] == digests[1]
    assert len(set(digests)) == 3


def test_splits_are_apart_and_true():
    X, y = Source(None).load("la1")
    one = Split(X, y, 3, each=2)
    parts = [set(one.labeled), set(one.unlabeled), set(one.test)]
    assert len(set.union(*parts)) == sum(map(len, parts))
    assert np.bincount(one.given).tolist() == [2] * 12
    assert list(one.sizes.values()) == np.bincount(y[one.unlabeled], minlength=12).tolist()
    assert np.all(one.marked[one.n_labeled :] == -1)


def test_newsgroups_have_the_tree_of_the_paper():
    names = ["alt.atheism", "comp.graphics", "comp.os.ms-windows.misc", "comp.sys.ibm.pc.hardware",
             "comp.sys.mac.hardware", "comp.windows.x", "misc.forsale", "rec.autos", "rec.motorcycles",
             "rec.sport.baseball", "rec.sport.hockey", "sci.crypt", "sci.electronics", "sci.med", "sci.space",
             "soc.religion.christian", "talk.politics.guns", "talk.politics.mideast", "talk.politics.misc",
             "talk.religion.misc"]  # fmt: skip
    paths = [path.split("/") for path in dotted(names)]
    inner = {tuple(path[:depth]) for path in paths for depth in range(1, len(path))}
    assert max(map(len, paths)) == 3
    assert len(inner) + 1 == 8  # with the root


def test_without_data_the_end_is_clear():
    done = run("figure2")
    assert done.returncode == 1 or "figure2" in done.stdout
    assert "Traceback" not in done.stderr


def test_a_table_is_markdown():
    text = page.markdown(["a", "b"], [["1", "2"]])
    assert text.splitlines() == ["| a | b |", "| --- | --- |", "| 1 | 2 |"]
