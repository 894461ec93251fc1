"""Studies run on the built-in corpus, store their cells, and resume after an interruption."""

import csv
import os

import numpy as np
import pytest
from helpers.studies import cell_of, row_of, run

from experiments import STUDIES, cells, page, study
from experiments.__main__ import limited
from experiments.check import check, largest_difference, record, recorded, run_again, table
from experiments.class_sizes import SIZED_PEERS
from experiments.data import Source, Split, dotted


def write(folder, *rows, name="figure2"):
    path = folder / f"{name}.csv"
    cells._write(path, cells.module(name), rows)
    return path


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    return folder, run("all", "--smoke", "--results", folder)


@pytest.mark.slow
def test_every_study_runs_on_the_built_in_corpus(smoke):
    folder, done = smoke
    assert done.returncode == 0, done.stderr
    assert {path.stem for path in folder.glob("*.csv")} == set(STUDIES)
    drawn = {name for name in STUDIES if hasattr(cells.module(name), "plot")}
    assert {path.stem for path in folder.glob("*.svg")} == drawn


@pytest.mark.slow
def test_the_page_has_a_verdict_for_every_claim(smoke):
    text = (smoke[0] / "reproduction.md").read_text(encoding="utf-8")
    for name in STUDIES:
        assert f"## {name}: " in text
        verdicts = cells.module(name).verdicts(cells.read(smoke[0] / f"{name}.csv"))
        assert verdicts
        for verdict in verdicts:
            assert verdict.word in (study.AGREES, study.PARTLY, study.DIFFERS)
            assert verdict.claim in text
    head, own = text.split("## Our own targets and additions")
    assert "## Claims of the paper" in head
    assert "our own target" not in head
    assert "our own target: without the class sizes" in own


@pytest.mark.slow
def test_cells_that_are_there_are_not_run_again(smoke):
    folder, _ = smoke
    before = (folder / "figure2.csv").read_bytes()
    again = run("figure2", "--smoke", "--results", folder)
    assert "figure2: 0 of 4 cells to run" in again.stdout
    assert (folder / "figure2.csv").read_bytes() == before


@pytest.mark.slow
def test_a_cell_is_run_again_when_its_code_has_changed(smoke):
    rows = cells.read(smoke[0] / "figure2.csv")
    grid = cells.module("figure2").grid(True)
    rows[0]["version"] = "of another day"
    assert cells.missing("figure2", grid, rows, any_version=False, source="smoke") == grid[:1]
    assert cells.missing("figure2", grid, rows, any_version=True, source="smoke") == []
    assert cells.missing("figure2", grid, rows[2:], any_version=True, source="smoke") == grid[:2]
    assert cells.missing("figure2", grid, rows, any_version=True, source="data") == grid


@pytest.mark.slow
def test_page_writes_no_results(smoke):
    folder, _ = smoke
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.glob("*.csv")}
    done = run("page", "--smoke", "--results", folder)
    assert done.returncode == 0, done.stderr
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.glob("*.csv")} == before


def test_rows_that_are_not_of_the_grid_are_kept_and_not_shown(tmp_path):
    rows = [row_of(seed=7), row_of(seed=0, source="smoke"), row_of(seed=0), row_of(seed=1)]
    path = write(tmp_path, *rows)
    grid = [cell_of(seed=1), cell_of(seed=0)]
    cells.tidy("figure2", tmp_path, grid, "data")
    assert cells.read(path) == [rows[3], rows[2], rows[0], rows[1]]
    assert cells.shown("figure2", tmp_path, grid, "data") == [rows[3], rows[2]]
    assert cells.shown("figure2", tmp_path, grid, "smoke") == [rows[1]]


def test_rows_without_a_source_are_of_real_data_and_whole(tmp_path):
    columns = ["set", "n_unlabeled", "seed", "method", "macro_f", "seconds", "cell_seconds", "version"]
    with (tmp_path / "figure2.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([columns, ["la1", 60, 0, "paper", 0.5, 0.1, 1.0, "earlier"]])
    rows = cells.read(tmp_path / "figure2.csv")
    assert rows[0]["source"] == "data"
    assert cells.missing("figure2", [cell_of()], rows, any_version=True) == []


def test_digests_are_no_numbers(tmp_path):
    path = write(tmp_path, row_of(version="12345e6789"), row_of(version="0123456789", seed=1))
    assert [row["version"] for row in cells.read(path)] == ["12345e6789", "0123456789"]


def test_a_cell_that_lacks_rows_is_missing(tmp_path):
    whole = [row_of(cell_rows=3, macro_f=f, seed=1) for f in (0.1, 0.2, 0.3)]
    torn = [row_of(cell_rows=3, macro_f=f) for f in (0.1, 0.2)]
    path = write(tmp_path, *torn, *whole)
    grid = [cell_of(seed=0), cell_of(seed=1)]
    assert cells.missing("figure2", grid, cells.read(path), any_version=True) == grid[:1]
    assert cells.shown("figure2", tmp_path, grid) == whole


def test_of_a_cell_that_was_run_twice_the_last_whole_run_counts(tmp_path):
    runs = [[row_of(cell_rows=2, cell_seconds=s, macro_f=f) for f in (s, s / 2)] for s in (0.25, 0.5, 0.75)]
    path = write(tmp_path, *runs[0], *runs[1], runs[2][0])
    cells.tidy("figure2", tmp_path, [cell_of()])
    assert cells.read(path) == runs[1]
    path = write(tmp_path, *runs[1], *runs[1])
    cells.tidy("figure2", tmp_path, [cell_of()])
    assert cells.read(path) == runs[1]


@pytest.mark.parametrize("begin", ["", "set,seed,macro_f,version\nla1,3,0.25,earlier\n", "set,n_unlab"])
def test_a_file_with_another_header_gets_the_right_one(tmp_path, begin):
    path = tmp_path / "figure2.csv"
    path.write_text(begin, encoding="utf-8")
    cells._append("figure2", tmp_path, [row_of()])
    assert path.read_text(encoding="utf-8").splitlines()[0].split(",") == cells._columns(cells.module("figure2"))
    rows = cells.read(path)
    assert rows[-1] == row_of()
    assert [row["macro_f"] for row in rows[:-1]] == ([0.25] if "earlier" in begin else [])


def test_one_run_at_a_time_writes_into_a_folder(tmp_path):
    with cells.locked(tmp_path):
        done = run("table1", "--smoke", "--results", tmp_path)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "Another run is writing its results" in done.stderr


def test_a_cell_that_fails_is_named_and_the_others_go_on(tmp_path, capsys):
    source = Source(None)
    tasks = [("claims", source, {"set": "no such set", "seed": 0}), ("table1", source, {"set": "la1"})]
    assert cells.collect(tasks, tmp_path, 1) == 1
    assert "claims: no such set, 0 failed: KeyError" in capsys.readouterr().err
    assert len(cells.read(tmp_path / "table1.csv")) == 1


def test_a_worker_that_is_killed_ends_the_run(tmp_path, monkeypatch):
    (tmp_path / "deadly.py").write_text(
        "import os, signal\n"
        "class Deadly:\n"
        "    folder = None\n"
        "    def load(self, name):\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)
    import deadly

    threads = os.environ.get("OPENBLAS_NUM_THREADS")
    tasks = [("table1", Source(None), {"set": "la1"}), ("table1", deadly.Deadly(), {"set": "usps"})]
    with pytest.raises(cells.WorkerError):
        cells.collect(tasks, tmp_path, 1)
    assert [row["set"] for row in cells.read(tmp_path / "table1.csv")] == ["la1"]
    assert os.environ.get("OPENBLAS_NUM_THREADS") == threads


def test_a_row_that_was_cut_off_does_not_stop_the_next_run(tmp_path):
    with (tmp_path / "figure2.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(
            [
                ["set", "n_unlabeled", "seed", "method", "macro_f", "seconds", "cell_seconds", "version"],
                ["la1", 60, 0, "pa"],
            ]
        )
        file.truncate(file.tell() - 2)  # fmt: skip
    assert cells.missing("figure2", [cell_of()], cells.read(tmp_path / "figure2.csv"), any_version=True) == [cell_of()]
    assert cells.collect([("figure2", Source(None), cell_of())], tmp_path, 1) == 0
    (row,) = cells.read(tmp_path / "figure2.csv")
    assert {key: row[key] for key in cell_of()} == cell_of()


def test_a_check_compares_cells_with_the_stored_ones_and_keeps_what_it_found(tmp_path, capsys):
    source, cell = Source(None), cell_of()
    cells.collect([("figure2", source, cell)], tmp_path, 1)
    grids = {"figure2": [cell]}
    found, n_failed = check(grids, source, tmp_path, 2, 0, 1)
    assert n_failed == 0
    assert "| figure2 | 1 | 1 | 0 |  |" in table(found)
    record(found, tmp_path)
    assert recorded(tmp_path) == found
    assert found[0].agrees
    assert found[0].is_present
    assert "1 of 1 agree" in page.section("figure2", cells.read(tmp_path / "figure2.csv"), 1, None, found)
    (row,) = cells.read(tmp_path / "figure2.csv")
    assert run_again(tmp_path, {"figure2": [row]}) == {"figure2": found}
    assert run_again(tmp_path, {"figure2": [row | {"version": "newer"}]}) == {}
    write(tmp_path, row | {"macro_f": row["macro_f"] - 0.5, "seconds": 1e6})
    found, _ = check(grids, source, tmp_path, 2, 0, 1)
    assert not found[0].agrees
    assert "| figure2 | 1 | 0 | 0.5 | macro_f |" in table(found)
    record([*found, found[0]._replace(study="figure3", version="earlier")], tmp_path)
    again = recorded(tmp_path)
    assert [one.study for one in again] == ["figure2", "figure3"]  # the first check of the cell is replaced
    assert not again[0].agrees
    assert not again[1].is_present


def test_differences_of_results_see_missing_values_and_rows():
    row = row_of()
    same = [row | {"macro_f": float("nan"), "seconds": 5.0}]
    assert largest_difference("figure2", same, same) == (0.0, "")
    assert largest_difference("figure2", same, [row])[0] == np.inf
    assert largest_difference("figure2", [row], [row, row]) == (np.inf, "number of rows")
    assert largest_difference("figure2", [row | {"macro_f": ""}], [row]) == (np.inf, "macro_f")
    assert largest_difference("figure2", [row | {"macro_f": ""}], [row | {"macro_f": None}]) == (0.0, "")
    large = [row | {"macro_f": 2000.0}], [row | {"macro_f": 2001.0}]
    assert largest_difference("figure2", *large) == (0.0005, "macro_f")  # relative


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
    done = run("figure2", without=("TRANSDUCE_DATA",))
    assert done.returncode == 1
    assert done.stderr.startswith("This needs the paper's data sets: pass --data DIR")
    assert len(done.stderr.splitlines()) == 1


def test_a_table_is_markdown():
    text = page.markdown(["a", "b"], [["1", "2"]])
    assert text.splitlines() == ["| a | b |", "| --- | --- |", "| 1 | 2 |"]


def test_numbers_have_no_zero_before_the_point_and_no_sign_without_a_value():
    values = (0.8531, -0.25, -0.0004, 0.0, 1.5, float("nan"))
    assert [study.number(v) for v in values] == [".853", "-.250", ".000", ".000", "1.500", ""]


def test_a_study_can_be_limited_to_some_cells():
    grid = cells.module("class_sizes").grid(False)
    some = limited("class_sizes", grid, ["set=r8,la1", "seed=0,3", "scenario=none", "n_labeled=80"])
    assert [(cell["set"], cell["seed"]) for cell in some] == [("r8", 0), ("la1", 0), ("r8", 3), ("la1", 3)]
    assert limited("class_sizes", grid, []) == grid
    with pytest.raises(ValueError, match="has no key 'prior'"):
        limited("class_sizes", grid, ["prior=none"])
    with pytest.raises(ValueError, match="scenario has no value 'nobody'"):
        limited("class_sizes", grid, ["scenario=none,nobody"])


@pytest.mark.slow
def test_peers_with_class_sizes_keep_them_on_unlabelled_rows(smoke):
    rows = {row["scenario"]: row for row in cells.read(smoke[0] / "class_sizes.csv")}
    assert rows["exact"]["predicted_l1"] == 0
    assert all(rows[name]["predicted_l1"] < rows["supervised"]["predicted_l1"] for name in SIZED_PEERS)
    assert all(rows[name]["size_l1"] == "" for name in ("supervised", *SIZED_PEERS))
