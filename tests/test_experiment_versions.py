"""Versions of experiments: digests of code see what it computes, and not its words."""

import shutil

import pytest
from helpers.studies import ROOT, cell_of, row_of

from experiments import cells, none_of_these, versions
from experiments.class_sizes import SIZED_PEERS


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
        ("def C():\n    raise E(f'no {1}')", "def C():\n    raise E(f'not {1}.')", True),  # words of errors
        ("def C():\n    raise E('no')", "def C():\n    raise F('no')", False),
        ("def C():\n    return 'no'", "def C():\n    return 'not'", False),
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

    found = both()
    assert found == [versions.version(leaderboard, cell, ROOT) for cell in (ours, peer)]
    for name, changed in (
        ("benchmarks/data.py", (True, True)),
        ("src/transduce/datasets/__init__.py", (True, True)),
        ("src/transduce/datasets/clinc150.txt.gz", (True, True)),
        ("src/transduce/estimators.py", (True, False)),
        ("src/transduce/engines/local.py", (True, False)),
        ("src/transduce/engines/dask/engine.py", (False, False)),
        ("experiments/peers.py", (False, True)),
        ("experiments/study.py", (False, False)),
    ):
        with (tmp_path / name).open("ab") as file:
            file.write(b"\nMORE = 1\n")
        before, found = found, both()
        assert tuple(a != b for a, b in zip(before, found, strict=True)) == changed, name


def test_stamps_count_cells_and_tell_the_present_code_from_earlier_code():
    figure2 = cells.module("figure2")
    now = versions.version(figure2, cell_of())
    rows = [row_of(version=now, seed=0), row_of(version="other", seed=1), row_of(version=now, seed=2)]
    rows.append(rows[0] | {"macro_f": 0.25})  # a second row of the same cell
    assert versions.stamps(figure2, rows) == [(now, 2, True), ("other", 1, False)]


def test_versions_see_libraries(monkeypatch):
    leaderboard = cells.module("leaderboard")
    found = {}
    for name in ("", "numpy", "scipy", "scikit-learn", "numba"):
        versions._libraries.cache_clear()
        monkeypatch.setattr(versions, "installed", lambda library, name=name: f"{2 if library == name else 1}.0")
        found[name] = [versions.version(leaderboard, {"method": m}) for m in ("default", "LinearSVC")]
    versions._libraries.cache_clear()
    monkeypatch.setattr(versions, "installed", lambda library: "1.1")  # a minor version
    assert found[""] == [versions.version(leaderboard, {"method": m}) for m in ("default", "LinearSVC")]
    versions._libraries.cache_clear()
    assert len({ours for ours, _ in found.values()}) == 5
    assert len({peer for _, peer in found.values()}) == 4


def test_versions_of_peers_see_their_files_and_not_our_method(tmp_path):
    for part in ("experiments", "benchmarks", "src/transduce"):
        ignored = shutil.ignore_patterns("__pycache__", "results", "*.nbc", "*.nbi")
        shutil.copytree(ROOT / part, tmp_path / part, ignore=ignored)
    tasks = [
        ("class_sizes", {"scenario": "none"}),
        ("class_sizes", {"scenario": next(iter(SIZED_PEERS))}),
        ("quantification", {"group": "transduce"}),
        ("quantification", {"group": "peers"}),
        ("vectors", {"method": "transduce"}),
        ("vectors", {"method": "TIM"}),
        ("more_answers", {"first": "random"}),
        ("none_of_these", {"method": none_of_these.OURS}),
        ("none_of_these", {"method": none_of_these.NEIGHBORS}),
    ]

    def digests():
        for cached in (versions._digest, versions._reached, versions._core, versions._named):
            cached.cache_clear()
        return [versions.version(cells.module(name), cell, tmp_path) for name, cell in tasks]

    found = digests()
    for name, changed in (
        ("src/transduce/estimators.py", (True, False, True, False, True, False, True, True, False)),
        ("src/transduce/label_step/__init__.py", (True, True, True, False, True, True, True, True, False)),
        ("experiments/sized_peers.py", (False, True, *(False,) * 7)),
        ("experiments/quantifiers.py", (False, False, False, True, *(False,) * 5)),
        ("experiments/few_shot/information.py", (*(False,) * 5, True, False, False, False)),
        ("src/transduce/cli/queue/selection.py", (*(False,) * 6, True, False, False)),
        ("benchmarks/methods.py", (False, True, *(False,) * 6, True)),
    ):
        with (tmp_path / name).open("a", encoding="utf-8") as file:
            file.write("\nMORE = 1\n")
        before, found = found, digests()
        assert tuple(a != b for a, b in zip(before, found, strict=True)) == changed, name
