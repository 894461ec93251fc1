"""The study of sentence vectors: its data, its tables, and what it stores of fine-tuned encoders."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from experiments import contrastive, fine_tuning, study, vectors  # noqa: E402
from experiments.data import Source, Split  # noqa: E402

PEER_NAMES = ("TIM", "nearest class mean")


def rows_of(values, sizes, name="r8_text", each=10, source="data"):
    """Rows of methods, one for each value and seed."""
    blank = dict.fromkeys(vectors.RESULTS, "") | {"source": source}
    return [
        {"set": name, "each": each, "sizes": sizes, "seed": seed, "method": method} | blank | {"macro_f": f}
        for method, found in values.items()
        for seed, f in enumerate(found)
    ]


def write_documents(folder, name, documents):
    (folder / name).mkdir(parents=True)
    with gzip.open(folder / name / "docs.jsonl.gz", "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(document) + "\n" for document in documents)


def test_means_are_over_the_splits_that_all_methods_have():
    rows = rows_of({vectors.OURS: [0.5, 0.7, 0.9], "TIM": [0.4, 0.6]}, vectors.GIVEN)
    found = vectors.means(rows)
    assert found[vectors.OURS] == pytest.approx([0.6])
    assert found["TIM"] == pytest.approx([0.5])


def test_ranks_and_leads_compare_one_of_ours_with_the_peers():
    found = {
        vectors.OURS: np.array([0.9, 0.5]),
        vectors.PAPER: np.array([0.95, 0.3]),
        "TIM": np.array([0.8, 0.6]),
        "LogisticRegression": np.array([0.7, 0.4]),
    }
    assert vectors.ranks(found, vectors.OURS) == {vectors.OURS: 1.5, "TIM": 1.5, "LogisticRegression": 3.0}
    assert vectors.ranks(found, vectors.PAPER)[vectors.PAPER] == 2.0
    assert vectors.lead(found, vectors.PAPER) == pytest.approx([0.15, -0.3])


@pytest.mark.parametrize(
    ("ours", "given", "not_given"),
    [(0.82, study.AGREES, study.AGREES), (0.797, study.AGREES, study.PARTLY), (0.7, study.DIFFERS, study.DIFFERS)],
)
def test_targets_allow_a_small_distance_with_sizes_and_none_without(ours, given, not_given):
    values = {vectors.OURS: [ours], vectors.PAPER: [0.1], "TIM": [0.8], "LogisticRegression": [0.75]}
    rows = rows_of(values, vectors.GIVEN) + rows_of(values, vectors.NOT_GIVEN)
    assert [verdict.word for verdict in vectors.verdicts(rows)] == [given, not_given]
    assert all(verdict.is_own for verdict in vectors.verdicts(rows))


def test_methods_without_a_place_for_sizes_are_shown_with_otter(tmp_path, monkeypatch):
    monkeypatch.setattr(vectors, "TUNED", tmp_path / "none.csv")
    values = {name: [0.5] for name in (*vectors.ANNEALING, *PEER_NAMES)}
    text = vectors.table(rows_of(values, vectors.GIVEN) + rows_of(values, vectors.NOT_GIVEN))
    given, not_given = text.split("class sizes not given")
    assert "| nearest class mean, OTTER | " in given
    assert "| TIM | " in given
    assert "| nearest class mean | " in not_given
    assert "fine-tuning" not in text
    assert "OTTER" in vectors.methods(vectors.NOT_GIVEN)
    assert "OTTER" not in vectors.methods(vectors.GIVEN)


def test_stored_results_of_fine_tuning_are_one_row_without_a_rank(tmp_path, monkeypatch):
    monkeypatch.setattr(vectors, "TUNED", tmp_path / "fine_tuning.csv")
    for seed, f in enumerate((0.25, 0.75, 0.9)):
        row = {"set": "r8_text", "each": 10, "seed": seed, "macro_f": f, "seconds": 1.0}
        fine_tuning.append(vectors.TUNED, row)
    values = {name: [0.5, 0.5] for name in (*vectors.ANNEALING, *PEER_NAMES)}
    rows = rows_of(values, vectors.GIVEN) + rows_of(values, vectors.NOT_GIVEN)
    assert vectors.table(rows).count("| contrastive fine-tuning, LogisticRegression | .500 | .500 |  |") == 1
    smoke = rows_of(values, vectors.NOT_GIVEN, source="smoke")
    assert "fine-tuning" not in vectors.table(smoke)


def test_documents_are_bodies_and_first_names_of_paths(tmp_path):
    write_documents(
        tmp_path, "20ng_raw", [{"text": "From: me\n\nHello\n\nyou", "label": "b"}, {"text": "x", "label": "a"}]
    )
    write_documents(tmp_path, "dmoz4_raw", [{"text": "one", "label": ["B", "C"]}, {"text": "two", "label": ["A", "D"]}])
    texts, y = vectors.documents(str(tmp_path), "20ng_raw")
    assert (texts, y.tolist()) == (["Hello\n\nyou", "x"], [1, 0])
    texts, y = vectors.documents(str(tmp_path), "dmoz4_raw")
    assert (texts, y.tolist()) == (["one", "two"], [1, 0])
    assert len(np.unique(vectors.documents("", "clinc150 domains")[1])) == 10
    assert len(np.unique(vectors.documents("", "clinc150 intents")[1])) == 150


def test_vectors_of_other_texts_are_refused(tmp_path, monkeypatch):
    write_documents(tmp_path, "r8_text", [{"text": "x", "label": "a"}] * 3)
    monkeypatch.setenv(vectors.FOLDER, str(tmp_path))
    cells = [{"set": "r8_text"}]
    assert "This needs the vectors of r8_text" in vectors.unready(Source(str(tmp_path)), cells)
    np.save(tmp_path / "r8_text.npy", np.zeros((2, 4)))
    assert vectors.unready(Source(str(tmp_path)), cells) is None
    assert vectors.unready(Source(None), [{"set": "20ng_raw"}]) is None
    with pytest.raises(ValueError, match="has 2 rows, but r8_text has 3 texts"):
        vectors.load(Source(str(tmp_path)), "r8_text")


def test_without_vectors_the_end_is_clear(tmp_path):
    command = [
        sys.executable,
        "-m",
        "experiments",
        "vectors",
        "--data",
        tmp_path,
        "--vectors",
        tmp_path,
        "--results",
        tmp_path,
    ]
    done = subprocess.run(list(map(str, command)), cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith(
        "This needs the vectors of clinc150, r8_text, 20ng_raw, dmoz4_raw: pass --vectors DIR"
    )


@pytest.mark.parametrize("sizes", [vectors.GIVEN, vectors.NOT_GIVEN])
def test_peers_know_the_classes_that_have_a_label(sizes):
    V, y = vectors.load(Source(None), "r8_text")
    split = Split(V, y, 0, n_labeled=15)
    assert len(np.unique(split.given)) < 12
    rows = split.X_all[split.test]
    cell = {"method": "nearest class mean", "sizes": sizes}
    labels, guesses, setting = vectors.peer(split, split.X, rows, cell)
    assert len(labels) == len(split.unlabeled)
    assert len(guesses) == len(split.test)
    assert set(labels) | set(guesses) <= set(split.given)
    assert setting == ""


def test_pairs_have_the_same_class_or_not():
    y = np.array([0, 0, 0, 1, 1, 2])
    found = contrastive.pairs(y, 0)
    assert len(found) == 2 * len(y) * contrastive.N_ROUNDS
    assert np.array_equal(y[found[:, 0]] == y[found[:, 1]], found[:, 2] == 1)
    same = found[found[:, 2] == 1]
    assert np.array_equal(same[:, 0] == same[:, 1], y[same[:, 0]] == 2)
    assert np.array_equal(contrastive.pairs(y, 0), found)
    parts, factors = zip(*contrastive.batches(found), strict=True)
    assert np.array_equal(np.concatenate(parts), found)
    assert min(factors) > 0
    assert max(factors) <= 1
    assert np.argmax(factors) < 0.2 * len(factors)


def test_without_torch_the_end_is_clear(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(SystemExit, match="torch is not installed: pip install torch sentence-transformers"):
        contrastive.encoder("any")


def test_a_set_that_some_methods_have_not_run_is_left_out_of_the_table():
    both = {vectors.OURS: [0.5], vectors.PAPER: [0.4], "TIM": [0.3]}
    rows = rows_of(both, vectors.GIVEN) + rows_of({vectors.OURS: [0.9]}, vectors.GIVEN, name="dmoz4_raw")
    lines = [line for line in vectors.table(rows).splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in lines}) == 1
    assert "r8_text, 10" in lines[0]
    assert "dmoz4_raw" not in lines[0]


def test_our_own_cells_alone_have_a_table_and_no_verdicts():
    rows = rows_of(dict.fromkeys(vectors.ANNEALING, (0.625,)), vectors.GIVEN)
    assert ".625" in vectors.table(rows)
    assert vectors.verdicts(rows) == []
