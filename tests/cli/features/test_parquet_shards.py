"""Hashed rows of a folder of Parquet files; scikit-learn is the oracle."""

import weakref

import numpy as np
import polars as pl
import pytest
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.preprocessing import normalize

from transduce import TransductiveClassifier
from transduce.cli.errors import InputError
from transduce.cli.features import parquet_shards as shards
from transduce.cli.features.parquet_shards import hash_shards, pack_shards
from transduce.datasets import load_clinc150
from transduce.features.tokenize import words_of

TEXTS = [str(text) for text in load_clinc150().texts[::40]]
BITS = 12


def write(folder, *tables):
    """Shards whose names are not in the order in which they are written."""
    folder.mkdir(exist_ok=True)
    for number in reversed(range(len(tables))):
        pl.DataFrame(tables[number]).write_parquet(folder / f"part-{number:02}.parquet")
    return folder


def in_three(texts):
    a, b = len(texts) // 4, len(texts) // 3
    return [{"text": part} for part in (texts[:a], texts[a:b], texts[b:])]


def same(A, B):
    return A.shape == B.shape and A.dtype == B.dtype and (A != B).nnz == 0


@pytest.mark.parametrize("batch_rows", [7, 100, 50_000])
def test_rows_equal_scikit_learn(batch_rows, tmp_path):
    folder = write(tmp_path / "in", *in_three(TEXTS))
    X, labels = pack_shards(folder, tmp_path / "rows", "text", 1 << BITS, sublinear=False, batch_rows=batch_rows)
    oracle = HashingVectorizer(n_features=1 << BITS, alternate_sign=False, dtype=np.float32)
    assert same(X, oracle.transform(TEXTS))
    assert X.dtype == np.float32
    assert labels == {}


@pytest.mark.parametrize("ngrams", [1, 2])
def test_weights_and_pairs(ngrams, tmp_path):
    texts = [*TEXTS, "tea tea tea and coffee", "我喝茶 daily", "GRÜNE Tees: 2 Sorten"]
    folder = write(tmp_path / "in", *in_three(texts))
    batches = list(hash_shards(folder, "text", 1 << BITS, ngrams=ngrams))

    def words(text):
        return [word for word in words_of(text, ngrams) if len(word) > 1 or not word.isascii()]

    oracle = HashingVectorizer(
        analyzer=words, n_features=1 << BITS, alternate_sign=False, norm=None, dtype=np.float32
    ).transform(texts)
    oracle.data = 1 + np.log(oracle.data)
    expected = normalize(oracle)
    begin = 0
    for batch in batches:
        assert same(batch.rows, expected[begin : begin + batch.rows.shape[0]])
        begin += batch.rows.shape[0]
    assert begin == len(texts)


def test_files_are_read_in_name_order(tmp_path):
    folder = write(tmp_path / "in", *({"text": [word]} for word in ("tea", "coffee", "tea")))
    (folder / "notes.txt").write_text("not a shard")
    X, _ = pack_shards(folder, tmp_path / "rows", "text", 1 << BITS)
    assert X.indices[0] == X.indices[2] != X.indices[1]


def test_a_missing_text_is_an_empty_row(tmp_path):
    folder = write(
        tmp_path / "in", {"text": ["tea", None, "", "tea"]}, {"text": pl.Series([None, None], dtype=pl.Null)}
    )
    X, _ = pack_shards(folder, tmp_path / "rows", "text", 1 << BITS)
    assert np.diff(X.indptr).tolist() == [1, 0, 0, 1, 0, 0]


def test_empty_files_are_skipped(tmp_path):
    folder = write(tmp_path / "in", {"text": pl.Series([], dtype=pl.String)}, {"text": ["tea"]})
    assert pack_shards(folder, tmp_path / "rows", "text", 1 << BITS)[0].shape == (1, 1 << BITS)


def test_labels_follow_the_rows(tmp_path):
    folder = write(
        tmp_path / "in",
        {"text": ["a1", "b1", "c1"], "label": ["x", None, " "], "path": [["r", "s"], None, ["t"]], "extra": [1, 2, 3]},
        {"text": ["d1", "e1"], "label": pl.Series([None, None], dtype=pl.Null), "path": [None, ["r", "u"]]},
    )
    for batch_rows in (1, 2, 10):
        _, labels = pack_shards(
            folder,
            tmp_path / f"{batch_rows}",
            "text",
            1 << BITS,
            label_columns=["label", "path"],
            batch_rows=batch_rows,
        )
        assert labels["label"].tolist() == ["x", None, None, None, None]
        assert labels["path"].tolist() == ["r/s", None, "t", None, "r/u"]


def test_rows_and_labels_can_be_fitted(tmp_path):
    texts, paths, _ = load_clinc150()
    domains = np.array([path.split("/")[0] for path in paths])
    chosen = np.flatnonzero(np.isin(domains, ["banking", "travel"]))[::10]
    names = [domains[row] if place % 10 < 2 else None for place, row in enumerate(chosen)]
    tables = [{"text": [str(texts[row]) for row in chosen[k::3]], "label": names[k::3]} for k in range(3)]
    truth = np.concatenate([domains[chosen[k::3]] for k in range(3)])
    X, labels = pack_shards(
        write(tmp_path / "in", *tables), tmp_path / "rows", "text", 2**14, label_columns=["label"], batch_rows=50
    )
    model = TransductiveClassifier("maxent", annealing="paper", random_state=0).fit(X, labels["label"])
    assert np.mean(model.transduction_ == truth) > 0.85


def test_one_batch_is_in_memory_at_a_time(tmp_path, monkeypatch):
    folder, made = write(tmp_path / "in", *in_three(TEXTS)), []
    own = shards.unit_hashed_rows

    def look(counts, sublinear):
        assert all(each() is None for each in made)
        rows = own(counts, sublinear)
        made.append(weakref.ref(rows))
        return rows

    monkeypatch.setattr(shards, "unit_hashed_rows", look)
    pack_shards(folder, tmp_path / "rows", "text", 1 << BITS, batch_rows=100)
    assert len(made) > 3


def test_numbers_are_read_as_text(tmp_path):
    folder = write(tmp_path / "in", {"text": [12, 34]}, {"text": ["12", "34"]})
    X, _ = pack_shards(folder, tmp_path / "rows", "text", 1 << BITS)
    assert (X[:2] != X[2:]).nnz == 0


def refused(match, folder, tmp_path, *arguments, **options):
    with pytest.raises(InputError, match=match) as caught:
        pack_shards(folder, tmp_path / "rows", *(arguments or ("text",)), **options)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "rows").exists()


def test_a_missing_column_is_reported_before_anything_is_hashed(tmp_path, monkeypatch):
    folder = write(tmp_path / "in", {"text": ["tea"], "label": ["x"]}, {"texts": ["tea"], "label": ["x"]})
    monkeypatch.setattr(shards, "unit_hashed_rows", None)
    refused(
        r'part-01.parquet: there is no column "text". Did you mean "texts"\? The columns are: texts, label.',
        folder,
        tmp_path,
    )
    refused('part-00.parquet: there is no column "class".', folder, tmp_path, "text", label_columns=["class"])


def test_a_damaged_file_is_reported(tmp_path):
    folder = write(tmp_path / "in", *in_three(TEXTS))
    path = folder / "part-01.parquet"
    whole = path.read_bytes()
    for damaged in (whole[: len(whole) // 2], whole[:8] + b"\xff" * 200 + whole[208:]):
        path.write_bytes(damaged)
        refused("part-01.parquet: expected a complete Parquet file, but it is truncated or corrupt", folder, tmp_path)


def test_a_file_damaged_while_reading_is_reported(tmp_path):
    folder = write(tmp_path / "in", *in_three(TEXTS))
    batches = hash_shards(folder, "text")
    next(batches)
    (folder / "part-01.parquet").write_bytes(b"gone")
    with pytest.raises(InputError, match=r"part-01.parquet: expected a complete Parquet file"):
        list(batches)


def test_folders_without_shards_or_rows_are_refused(tmp_path):
    (tmp_path / "in").mkdir()
    refused("in: it has no .parquet files. Name the folder", tmp_path / "in", tmp_path)
    refused("nowhere: it has no .parquet files", tmp_path / "nowhere", tmp_path)
    write(tmp_path / "in", {"text": pl.Series([], dtype=pl.String)})
    refused("its Parquet files have no rows", tmp_path / "in", tmp_path)


@pytest.mark.parametrize("n_features", [0, 1, -4, 1000, 2**31])
def test_n_features_must_be_a_power_of_two(n_features, tmp_path):
    folder = write(tmp_path / "in", {"text": ["tea"]})
    refused(r"n_features must be a power of 2 from 2 to 2\*\*30, but is", folder, tmp_path, "text", n_features)


def test_batch_rows_must_be_positive(tmp_path):
    refused("batch_rows must be at least 1", write(tmp_path / "in", {"text": ["tea"]}), tmp_path, "text", batch_rows=0)
