"""Studies run on the built-in corpus, store their cells, and resume after an interruption."""

import csv
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from experiments import (  # noqa: E402
    STUDIES,
    cells,
    more_answers,
    none_of_these,
    page,
    quantifiers,
    size_measures,
    study,
    versions,
)
from experiments.__main__ import limited  # noqa: E402
from experiments.class_sizes import NOISE, PARTIAL, SIZED_PEERS, stated  # noqa: E402
from experiments.data import Source, Split, dotted  # noqa: E402


def run(*arguments, without=()):
    command = [sys.executable, "-m", "experiments", *map(str, arguments)]
    env = {name: value for name, value in os.environ.items() if name not in without}
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=env)


def cell_of(seed=0, n_unlabeled=60, method="paper"):
    return {"set": "la1", "n_unlabeled": n_unlabeled, "seed": seed, "method": method}


def row_of(version="0123456789", source="data", cell_rows=1, cell_seconds=1.0, macro_f=0.5, **cell):
    common = {"source": source, "cell_rows": cell_rows, "cell_seconds": cell_seconds, "version": version}
    return cell_of(**cell) | {"macro_f": macro_f, "seconds": 0.1} | common


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


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("A = 1\nB = 2\nC = A + B", "A = 1\nB = 3\nC = A + B", False),  # B is read where C is made
        ("A = 1\nB = A + 1\nC = B", "A = 2\nB = A + 1\nC = B", False),
        ("C: int = 1", "C: int = 2", False),
        ("C = 1\nC = C + 1", "C = 2\nC = C + 1", False),  # all that makes C counts, not only the last
        ("C = {}\nC['a'] = 1", "C = {}\nC['a'] = 2", False),
        ("if True:\n    C = 1", "if True:\n    C = 2", False),
        ("from a import C", "from b import C", False),
        ("from a import B, C", "from a import C, D", True),
        ("C = 1\nD = [x for x in (1, 2)]", "C = 1\nD = [x for x in (3, 4)]", True),  # x is D's own
        ("C = 1\nD = (C, 2)", "C = 1\nD = (C, 3)", True),
    ],
)
def test_versions_see_what_run_reaches(tmp_path, one, other, is_same):
    digests = set()
    for number, text in enumerate((one, other)):
        path = tmp_path / f"{number}.py"
        path.write_text(f"{text}\ndef run(x):\n    return C + x\n", encoding="utf-8")
        digests.add(versions._reached(path, "run"))
    assert (len(digests) == 1) == is_same


def test_versions_of_another_checkout(tmp_path):
    for part in ("experiments", "benchmarks", "src/transduce"):
        ignored = shutil.ignore_patterns("__pycache__", "results", "*.nbc", "*.nbi")
        shutil.copytree(ROOT / part, tmp_path / part, ignore=ignored)
    leaderboard = cells.module("leaderboard")
    ours, peer = {"method": "default"}, {"method": "LinearSVC"}

    def both():
        for cached in (versions._digest, versions._reached, versions._core):
            cached.cache_clear()
        return [versions.version(leaderboard, cell, tmp_path) for cell in (ours, peer)]

    first = both()
    assert first == [versions.version(leaderboard, cell, ROOT) for cell in (ours, peer)]
    for name, changed in (
        ("benchmarks/data.py", (True, True)),
        ("src/transduce/datasets/__init__.py", (True, True)),
        ("src/transduce/datasets/clinc150.txt.gz", (True, True)),
        ("src/transduce/estimators.py", (True, False)),
        ("experiments/peers.py", (False, True)),
        ("experiments/study.py", (False, False)),
    ):
        before = both()
        with (tmp_path / name).open("ab") as file:
            file.write(b"\nMORE = 1\n")
        assert tuple(a != b for a, b in zip(before, both(), strict=True)) == changed, name


def test_versions_see_libraries(monkeypatch):
    leaderboard = cells.module("leaderboard")
    found = {}
    for name in ("", "numpy", "scipy", "scikit-learn", "numba"):
        versions._libraries.cache_clear()
        monkeypatch.setattr(versions, "installed", lambda library, name=name: f"{library == name}")
        found[name] = [versions.version(leaderboard, {"method": m}) for m in ("default", "LinearSVC")]
    versions._libraries.cache_clear()
    assert len({ours for ours, _ in found.values()}) == 5
    assert len({peer for _, peer in found.values()}) == 4


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


def learning_curve(lifts, name="la1"):
    return [
        {"set": name, "n_labeled": n, "seed": 0, "method": method, "macro_f": 0.5 + lift * (method == "paper")}
        for n, lift in lifts.items()
        for method in ("supervised", "paper")
    ]


@pytest.mark.parametrize(
    ("lifts", "word"),
    [
        ({20: 0.2, 40: 0.1, 80: 0.05}, study.AGREES),
        ({20: 0.05, 40: 0.1, 80: 0.2}, study.PARTLY),  # most where labels are many
        ({20: 0.02, 40: 0.01}, study.PARTLY),
        ({20: 0.04, 40: -0.1}, study.DIFFERS),
    ],
)
def test_the_lift_must_be_largest_where_labels_are_sparse(lifts, word):
    assert cells.module("figure4").verdicts(learning_curve(lifts))[0].word == word


@pytest.mark.parametrize(
    ("others", "words"),
    [
        ({20: 0.1, 80: 0.0}, [study.AGREES]),
        ({20: 0.18, 80: 0.0}, [study.PARTLY]),
        ({20: 0.3, 80: 0.2}, [study.DIFFERS]),
        ({40: 0.1}, []),
    ],
)
def test_two_sets_are_compared_at_the_label_numbers_that_both_have(others, words):
    rows = learning_curve({20: 0.1, 80: 0.0}, "usps") + learning_curve(others, "mnist")
    found = cells.module("figure4").verdicts(rows)
    assert [verdict.word for verdict in found if "similarly" in verdict.claim] == words


@pytest.mark.parametrize(
    ("curve", "word"),
    [((0.4, 0.5, 0.6), study.AGREES), ((0.4, 0.6, 0.5), study.PARTLY), ((0.4, 0.5, 0.3), study.DIFFERS)],
)
def test_a_curve_that_ends_below_its_beginning_does_not_rise(curve, word):
    rows = [row_of(seed=seed, n_unlabeled=n, macro_f=f) for seed in (0, 1) for n, f in enumerate(curve)]
    verdict = cells.module("figure2").verdicts(rows)[0]
    assert verdict.word == word
    assert ("on 2 splits" in verdict.reason) == (word != study.AGREES)


def test_a_study_can_be_limited_to_some_cells():
    grid = cells.module("class_sizes").grid(False)
    some = limited("class_sizes", grid, ["set=r8,la1", "seed=0,3", "scenario=none"])
    assert [(cell["set"], cell["seed"]) for cell in some] == [("r8", 0), ("la1", 0), ("r8", 3), ("la1", 3)]
    assert limited("class_sizes", grid, []) == grid
    with pytest.raises(ValueError, match="has no key 'prior'"):
        limited("class_sizes", grid, ["prior=none"])
    with pytest.raises(ValueError, match="scenario has no value 'nobody'"):
        limited("class_sizes", grid, ["scenario=none,nobody"])


def small_split(seed=0):
    return Split(*Source(None).load("r8"), seed, 40)


def test_scenarios_state_the_true_sizes_of_some_classes():
    split = small_split()
    fractions = split.counts / split.counts.sum()
    assert stated(split, "none", 0) == "estimate"
    assert stated(split, "labeled", 0) == "labeled"
    assert stated(split, "exact", 0) == dict(enumerate(split.counts.tolist()))
    assert stated(split, "largest", 0) == {int(fractions.argmax()): fractions.max()}
    assert len(stated(split, "random", 0)) == 1
    assert len(stated(split, "half", 0)) == np.unique(split.given).size // 2
    for scenario in PARTIAL:
        assert all(fractions[k] == size for k, size in stated(split, scenario, 0).items())
        assert all(type(size) is float for size in stated(split, scenario, 0).values())
    assert len({tuple(stated(split, "random", seed)) for seed in range(20)}) > 1


def test_noisy_sizes_are_fractions_near_the_true_ones():
    split = small_split()
    fractions = split.counts / split.counts.sum()
    ratios = np.array([list(stated(split, "noisy", seed).values()) / fractions for seed in range(200)])
    assert np.allclose(ratios @ fractions, 1)
    assert np.abs(ratios.mean() - 1) < 0.02
    assert np.abs(ratios.std() - NOISE) < 0.03
    assert stated(split, "noisy", 0) == stated(split, "noisy", 0)


class Estimate:
    def __init__(self, mean, low, high):
        self.mean, self.low, self.high = mean, low, high


def test_size_estimates_are_measured_over_all_classes():
    truth = np.array([0.5, 0.3, 0.2, 0.0, 0.0])
    estimate = Estimate(np.array([0.6, 0.3, 0.1]), np.array([0.5, 0.29, 0.05]), np.array([0.7, 0.31, 0.15]))
    found = size_measures.size_measures(estimate, np.array([0, 1, 3]), truth)
    assert found["size_l1"] == pytest.approx(0.1 + 0 + 0.2 + 0.1 + 0)
    assert found["size_coverage"] == pytest.approx(3 / 5)  # 2 is unknown to the model, and 3 is estimated above 0
    assert set(size_measures.size_measures(None, np.arange(3), truth).values()) == {None}


@pytest.mark.parametrize(("accuracy", "covered"), [(0.7, 1), (0.8, 1), (0.69, 0), (0.95, 0)])
def test_an_accuracy_interval_covers_or_not(accuracy, covered):
    found = size_measures.accuracy_measures(Estimate(0.8, 0.7, 0.9), accuracy)
    assert found == {"accuracy_estimate": 0.8, "accuracy_covered": covered}
    assert set(size_measures.accuracy_measures(None, accuracy).values()) == {None}


def test_calibration_error_of_right_and_wrong_confidence():
    levels = np.linspace(0.2, 0.9, size_measures.N_BINS)  # one level for each bin, right exactly that often
    order = np.random.default_rng(0).permutation(200 * levels.size)
    confidence = np.repeat(levels, 200)[order]
    is_right = np.concatenate([np.arange(200) < level * 200 - 0.5 for level in levels])[order]
    labeled = np.ones(7)
    error = size_measures.calibration_error
    assert error(np.concatenate((labeled, confidence)), is_right, 7) < 1 / 200
    assert error(np.concatenate((labeled, confidence - 0.1)), is_right, 7) == pytest.approx(0.1, abs=1 / 200)
    assert error(np.ones(107), np.arange(100) < 60, 7) == pytest.approx(0.4)
    assert error(None, is_right, 7) is None


def test_fitted_estimates_are_measured_on_unlabelled_rows_only():
    split = small_split()
    fractions = split.counts / split.counts.sum()

    class Model:
        classes_ = split.names
        transduction_ = split.truth.copy()
        size_estimate_ = Estimate(fractions, fractions, fractions)
        accuracy_estimate_ = Estimate(0.9, 0.8, 1.0)
        label_distributions_ = np.ones((split.truth.size, len(split.names)))

    expected = {"size_l1": 0.0, "size_coverage": 1.0, "accuracy_estimate": 0.9, "accuracy_covered": 1, "ece": 0.0}
    assert size_measures.measures(Model(), split) == expected
    Model.transduction_[: split.n_labeled] = split.names[0]
    assert size_measures.measures(Model(), split) == expected
    del Model.size_estimate_, Model.accuracy_estimate_, Model.label_distributions_
    assert size_measures.measures(Model(), split) == dict.fromkeys(expected)


def scenario_rows(values, name="r8", **results):
    blank = dict.fromkeys(cells.module("class_sizes").RESULTS, "")
    return [
        {"set": name, "n_labeled": 80, "seed": seed, "scenario": scenario} | blank | results | {"macro_f": f}
        for scenario, found in values.items()
        for seed, f in enumerate(found)
    ]


def test_measures_of_scenarios_compare_runs_of_the_same_split():
    class_sizes = cells.module("class_sizes")
    rows = scenario_rows({"supervised": [0.4, 0.6], "exact": [0.6, 0.8], "none": [0.5, 0.58], "half": [0.45, 0.7]})
    assert class_sizes.lift_kept(rows, "none") == pytest.approx(0.2)
    assert class_sizes.hurt(rows, "none") == 0.5
    assert class_sizes.worst(rows, "half") == pytest.approx(-0.05)
    assert np.isnan(class_sizes.lift_kept(rows, "random"))
    claims = {verdict.claim: verdict.word for verdict in class_sizes.verdicts(rows)}
    assert claims["nothing stated keeps 70 % of the lift of exact sizes"] == study.DIFFERS
    assert claims["stating sizes of some classes (half) never costs on average"] == study.AGREES
    assert not any("intervals" in claim for claim in claims)


def test_coverage_and_calibration_appear_where_they_were_measured():
    class_sizes = cells.module("class_sizes")
    values = {"supervised": [0.4], "exact": [0.6], "none": [0.5]}
    assert "covers" not in class_sizes.table(scenario_rows(values))
    rows = scenario_rows(values, size_coverage=0.875, accuracy_covered=1, ece=0.0625)
    text = class_sizes.table(rows)
    assert all(title in text for title in ("size interval covers", "accuracy interval covers", "calibration error"))
    assert "| none | .062 | .062 |" in text
    words = [verdict.word for verdict in class_sizes.verdicts(rows)[-3:]]
    assert words == [study.AGREES, study.AGREES, study.PARTLY]


@pytest.mark.slow
def test_peers_with_class_sizes_keep_them_on_unlabelled_rows(smoke):
    rows = {row["scenario"]: row for row in cells.read(smoke[0] / "class_sizes.csv")}
    assert rows["exact"]["predicted_l1"] == 0
    assert all(rows[name]["predicted_l1"] < rows["supervised"]["predicted_l1"] for name in SIZED_PEERS)
    assert all(rows[name]["size_l1"] == "" for name in ("supervised", *SIZED_PEERS))


@pytest.mark.filterwarnings("ignore:scipy.misc:DeprecationWarning")  # abstention, below QuaPy, imports scipy.misc
def test_quantifiers_find_the_sizes_of_classes_that_are_apart():
    rng = np.random.default_rng(0)
    y = rng.choice(3, 900, p=[0.6, 0.3, 0.1])
    X = np.eye(3)[y] + 0.05 * rng.standard_normal((900, 3))
    p = quantifiers.fit(X[:60], y[:60], X[60:])
    truth = np.bincount(y[60:]) / 840
    for name, quantify in quantifiers.quantifiers().items():
        found = quantify(p)
        assert found.sum() == pytest.approx(1), name
        assert np.abs(found - truth).sum() < (0.25 if name == quantifiers.LABELED else 0.1), name


def test_the_only_row_of_a_class_is_never_hidden():
    y = np.array([0, 0, 2, 1, 1, 1, 1, 1, 1])
    fold = quantifiers.folds(y)
    assert (fold == -1).tolist() == (y == 2).tolist()
    assert len(set(fold[y == 1])) == quantifiers.N_FOLDS
    assert fold[0] != fold[1]
    P = quantifiers.hidden_posteriors(np.eye(9), y, fold, 1.0)
    assert np.allclose(P.sum(axis=1), 1)


def test_versions_of_peers_see_their_files_and_not_our_method(tmp_path):
    for part in ("experiments", "benchmarks", "src/transduce"):
        ignored = shutil.ignore_patterns("__pycache__", "results", "*.nbc", "*.nbi")
        shutil.copytree(ROOT / part, tmp_path / part, ignore=ignored)
    tasks = [
        ("class_sizes", {"scenario": "none"}),
        ("class_sizes", {"scenario": next(iter(SIZED_PEERS))}),
        ("quantification", {"group": "transduce"}),
        ("quantification", {"group": "peers"}),
        ("more_answers", {"first": "random"}),
        ("none_of_these", {"method": none_of_these.OURS}),
        ("none_of_these", {"method": none_of_these.NEIGHBORS}),
    ]

    def digests():
        for cached in (versions._digest, versions._reached, versions._core, versions._named):
            cached.cache_clear()
        return [versions.version(cells.module(name), cell, tmp_path) for name, cell in tasks]

    for name, changed in (
        ("src/transduce/estimators.py", (True, False, True, False, True, True, False)),
        ("src/transduce/label_step/__init__.py", (True, True, True, False, True, True, False)),
        ("experiments/sized_peers.py", (False, True, False, False, False, False, False)),
        ("experiments/quantifiers.py", (False, False, False, True, False, False, False)),
        ("src/transduce/cli/queue/selection.py", (False, False, False, False, True, False, False)),
        ("benchmarks/methods.py", (False, True, False, False, False, False, True)),
    ):
        before = digests()
        with (tmp_path / name).open("a", encoding="utf-8") as file:
            file.write("\nMORE = 1\n")
        assert tuple(a != b for a, b in zip(before, digests(), strict=True)) == changed, name


def answer_rows(values, name="r8", first="random"):
    return [
        {"set": name, "seed": seed, "first": first, "annealing": "paper", "more": more, "macro_f": f}
        for more, found in values.items()
        for seed, f in enumerate(found)
    ]


@pytest.mark.parametrize(
    ("after", "word"), [((0.5, 0.72), study.AGREES), ((0.5, 0.692), study.PARTLY), ((0.4, 0.7), study.DIFFERS)]
)
def test_more_labels_must_not_lower_the_mean_of_any_set(after, word):
    rows = answer_rows({"none": (0.5, 0.7), "random": (0.6, 0.8), "queue": after})
    rows += answer_rows({"none": (0.5, 0.7), "random": (0.6, 0.8), "queue": (0.9, 0.9)}, "la1")
    assert more_answers.gains(rows, "random", set="r8") == pytest.approx([0.1, 0.1])
    random, queue = more_answers.verdicts(rows)
    assert (random.word, queue.word) == (study.AGREES, word)
    assert ("r8" in queue.reason) == (word != study.AGREES)
    assert "| random | la1 | .600 | +0.100 ± .000 | +0.300 ± .100 |" in more_answers.table(rows)


def test_labels_are_added_to_those_that_were_there():
    rows = more_answers.run(Source(None), {"set": "r8", "seed": 0, "first": "by class", "annealing": None})
    assert [row["more"] for row in rows] == ["none", "random", "queue"]
    assert [row["n_labeled"] for row in rows] == [60, 110, 110]
    assert all(0 < row["macro_f"] <= 1 for row in rows)


@pytest.mark.parametrize("seed", range(5))
def test_the_tuned_threshold_has_the_best_f(seed):
    rng = np.random.default_rng(seed)
    positive = rng.random(60) < 0.3
    values = rng.random(60) + 0.5 * ~positive
    best = none_of_these.best_threshold(values, positive)
    thresholds = [*values, np.inf]
    scores = [none_of_these.f1_score(positive, values < one, zero_division=0) for one in thresholds]
    assert none_of_these.f1_score(positive, values < best) == pytest.approx(max(scores))


def test_neighbours_are_those_of_the_definition():
    X = none_of_these.load(None)[0][:1100]
    cosines = (X @ X.T).toarray()
    np.fill_diagonal(cosines, -1)
    expected = np.sort(cosines, axis=1)[:, -none_of_these.N_NEAREST :].mean(axis=1)
    assert np.allclose(none_of_these.nearness(X), expected)


def test_leads_over_tuned_thresholds_are_paired_by_seed():
    leads = {none_of_these.OURS: (0.5, 0.6), "LogisticRegression, tuned threshold": (0.3, 0.4)}
    leads["large margin, tuned threshold"] = (0.39, 0.49)
    rows = [
        {"n_labeled": 80, "seed": seed, "method": method, "none_f": f, "macro_f": f, "n_none": 9, "fraction": 0.1}
        for method, found in leads.items()
        for seed, f in enumerate(found)
    ]
    found = none_of_these.verdicts(rows)
    assert [(verdict.ours, verdict.word) for verdict in found] == [
        ("+0.200", study.AGREES),
        ("+0.110", study.PARTLY),
        ("+0.200", study.AGREES),
    ]
    assert "| transduce | .550 ± .071 | .550 ± .071 | 9 |" in none_of_these.table(rows)
