"""Texts become the rows that scikit-learn would make, however they are counted, in any script."""

import subprocess
import sys
import unicodedata
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer

from transduce.cli.errors import InputError
from transduce.cli.features import Features, Vectorizer, fit_vectorizer, read_vectors
from transduce.cli.features import tokenize as words
from transduce.cli.features.tokenize import count_words, words_of
from transduce.datasets import load_clinc150

CORPUS = [str(text) for text in load_clinc150().texts[::9]]
LATIN = st.text("abcXYZ éÖß_09.,-'\n\t", max_size=40)
ANYTHING = st.text(max_size=30)
KINDS = [Features(), Features(ngrams=2), Features("hashing", hash_bits=10), Features("hashing", 2, hash_bits=6)]


def table(**columns):
    return SimpleNamespace(name="teas.csv", frame=pl.DataFrame(columns or {"text": ["a", "b", "c"]}))


def same(A, B):
    return A.dtype == B.dtype and A.shape == B.shape and (A != B).nnz == 0 and np.array_equal(A.indices, B.indices)


def sklearn_oracle(texts, features, min_df):
    oracle = TfidfVectorizer(
        sublinear_tf=True, ngram_range=(1, features.ngrams), min_df=min_df, dtype=np.float64, strip_accents=None
    )
    return oracle, oracle.fit_transform(texts)


@pytest.mark.parametrize("ngrams", [1, 2])
@pytest.mark.parametrize("n_texts", [999, 2500])
def test_words_and_values_are_those_of_scikit_learn(ngrams, n_texts):
    texts = CORPUS[:n_texts]
    oracle, expected = sklearn_oracle(texts, Features(ngrams=ngrams), min_df=1 if n_texts < 1000 else 2)
    vectorizer, X = fit_vectorizer(texts, Features(ngrams=ngrams))
    assert vectorizer.vocabulary == tuple(oracle.get_feature_names_out())
    assert X.dtype == np.float32
    assert abs(X - expected).max() < 1e-6
    new = ["A brand-new text about MY account balance", "", "zzzz"]
    assert abs(vectorizer.transform(new) - oracle.transform(new)).max() < 1e-6


@settings(max_examples=60, deadline=None)
@given(st.lists(LATIN, max_size=8), st.sampled_from([1, 2]))
def test_words_of_latin_text_are_those_of_scikit_learn(texts, ngrams):
    analyse = TfidfVectorizer(ngram_range=(1, ngrams)).build_analyzer()
    found, counts = count_words(texts, ngrams)
    expected = [sorted(analyse(text)) for text in texts]
    assert found == sorted({word for text in expected for word in text})
    for row, wanted in zip(counts.toarray().astype(int), expected, strict=True):
        assert [word for word, times in zip(found, row, strict=True) for _ in range(times)] == wanted


@settings(max_examples=60, deadline=None)
@given(st.lists(ANYTHING, min_size=1, max_size=8), st.sampled_from(KINDS))
def test_any_unicode_gives_unit_rows_or_empty_ones(texts, features):
    try:
        vectorizer, X = fit_vectorizer(texts, features)
    except InputError:
        assert count_words(texts)[0] == []
        return
    lengths = np.sqrt(X.multiply(X).sum(axis=1)).A1
    assert np.all((np.abs(lengths - 1) < 1e-5) | ((lengths == 0) & (np.diff(X.indptr) == 0)))
    assert all("\n" not in word and word.encode("utf-8") for word in vectorizer.vocabulary)
    assert same(vectorizer.transform(texts), X)


@pytest.mark.parametrize("features", KINDS)
def test_transform_of_the_pile_is_the_matrix_of_the_fit(features):
    vectorizer, X = fit_vectorizer(CORPUS, features)
    assert same(vectorizer.transform(CORPUS), X)
    assert same(sparse.vstack([vectorizer.transform([text]) for text in CORPUS[:20]], format="csr"), X[:20])


@pytest.mark.parametrize("features", KINDS)
def test_chunks_change_nothing(features, monkeypatch):
    vectorizer, X = fit_vectorizer(CORPUS[:300], features)
    monkeypatch.setattr(words, "CHUNK_CHARACTERS", 150)
    again, Y = fit_vectorizer(CORPUS[:300], features)
    assert same(X, Y)
    assert same(again.transform(CORPUS[:300]), X)
    assert np.array_equal(vectorizer.idf, again.idf)


def test_processes_change_nothing(monkeypatch):
    serial = [fit_vectorizer(CORPUS, features, n_jobs=1) for features in KINDS]
    monkeypatch.setattr(words, "PARALLEL_CHARACTERS", 0)
    monkeypatch.setattr(words, "CHUNK_DOCUMENTS", 400)
    for features, (vectorizer, X) in zip(KINDS, serial, strict=True):
        parallel, Y = fit_vectorizer(CORPUS, features, n_jobs=2)
        assert parallel.vocabulary == vectorizer.vocabulary
        assert np.array_equal(parallel.idf, vectorizer.idf)
        assert same(X, Y)
        assert same(parallel.transform(CORPUS, n_jobs=2), X)


@pytest.mark.parametrize("ngrams", [1, 2])
def test_hashing_counts_like_scikit_learn(ngrams):
    oracle = HashingVectorizer(n_features=64, alternate_sign=False, norm=None, ngram_range=(1, ngrams))
    counts = words.hash_words(CORPUS[:50], ngrams, bits=6)
    assert abs(counts - oracle.transform(CORPUS[:50])).max() == 0


def test_hashing_weighs_columns_by_documents_and_keeps_no_words():
    vectorizer, X = fit_vectorizer(["tea tea", "tea coffee", "milk"], Features("hashing", hash_bits=16))
    tea = vectorizer.transform(["tea"]).indices
    assert vectorizer.vocabulary == ()
    assert vectorizer.idf.shape == (2**16,)
    assert vectorizer.idf[tea] == pytest.approx(1 + np.log(4 / 3))
    assert X.shape == (3, 2**16)


def test_hashing_is_the_same_in_another_process():
    program = "from transduce.cli.features.tokenize import hash_words; print(hash_words(['tea grün 茶'], 1, 20).indices.tolist())"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == str(words.hash_words(["tea grün 茶"], 1, 20).indices.tolist())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = a_b, C3PO!", {"a_b", "c3po"}),
        ("Straße ÉCOLE", {"straße", "école"}),
        ("Привет, МИР", {"привет", "мир"}),
        ("हिन्दी भाषा", {"हिन्दी", "भाषा"}),
        ("한국어 문서", {"한국어", "문서"}),
        ("東京2020大会", {"東", "京", "東京", "2020", "大", "会", "大会"}),
        ("茶", {"茶"}),
        ("コーヒー", {"コ", "ー", "ヒ", "コー", "ーヒ", "ヒー"}),
        ("ชา", {"ช", "า", "ชา"}),
        ("𠮷野", {"𠮷", "野", "𠮷野"}),
        ("tea ☕️ 1️⃣ 👩‍🔬 a é", {"tea"}),
        ("\ud800 tea\ud800cup", {"tea", "cup"}),
        ("", set()),
    ],
)
def test_words_of_many_scripts(text, expected):
    assert set(count_words([text])[0]) == expected


def test_composed_and_decomposed_text_is_the_same():
    text = "école über 한국어 ばら"
    assert words_of(unicodedata.normalize("NFD", text), 2) == words_of(text, 2)


def test_pairs_do_not_reach_over_a_script_without_spaces():
    assert set(words_of("green tea 茶 hot cup", 2)) == {"green", "tea", "green tea", "茶", "hot", "cup", "hot cup"}


def test_rare_words_go_from_a_thousand_documents_on():
    texts = ["tea"] * 999 + ["coffee"]
    assert fit_vectorizer(texts[1:], Features())[0].vocabulary == ("coffee", "tea")
    assert fit_vectorizer(texts, Features())[0].vocabulary == ("tea",)
    assert fit_vectorizer(texts, Features(min_df=1))[0].vocabulary == ("coffee", "tea")


def test_empty_texts_are_empty_rows_and_no_texts_no_rows():
    vectorizer, X = fit_vectorizer(["tea", "", "? !"], Features())
    assert np.diff(X.indptr).tolist() == [1, 0, 0]
    assert vectorizer.transform([]).shape == (0, 1)
    assert vectorizer.transform(np.array(["tea"], dtype=object)).nnz == 1
    assert vectorizer.transform(pl.Series(["tea"])).nnz == 1


@pytest.mark.parametrize("kind", ["tfidf", "hashing"])
@pytest.mark.parametrize("texts", [[], ["", "?", "a b"]])
def test_a_pile_without_words_is_refused(kind, texts):
    with pytest.raises(InputError, match=rf"None of the {len(texts)} texts holds a word"):
        fit_vectorizer(texts, Features(kind))


def test_a_pile_of_rare_words_is_refused():
    with pytest.raises(InputError, match="No word stands in 2 of the 1000 texts"):
        fit_vectorizer([f"word{i}" for i in range(1000)], Features())


@pytest.mark.parametrize(
    "wrong", [{"kind": "bert"}, {"ngrams": 3}, {"ngrams": True}, {"min_df": 0}, {"hash_bits": 25}, {"n_features": 1.0}]
)
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(InputError, match=next(iter(wrong)).removesuffix("_")):
        Features(**wrong)


def test_vectors_have_no_words():
    with pytest.raises(InputError, match="trained on vectors"):
        Vectorizer(Features("vectors", n_features=3)).transform(["tea"])
    with pytest.raises(ValueError, match="no words to learn"):
        fit_vectorizer(["tea"], Features("vectors"))


DENSE = np.array([[3.0, 4.0], [0.0, 0.0], [0.0, -1e300]])
UNIT = [[0.6, 0.8], [0.0, 0.0], [0.0, -1.0]]


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csc_array, sparse.coo_matrix])
def test_vectors_of_files_become_unit_rows(form, tmp_path):
    vectors = form(DENSE)
    path = str(tmp_path / ("v.npz" if sparse.issparse(vectors) else "v.npy"))
    (sparse.save_npz if sparse.issparse(vectors) else np.save)(path, vectors)
    X = read_vectors(path, table())
    assert X.dtype == np.float32
    assert X.toarray().tolist() == np.array(UNIT, np.float32).tolist()


def test_vectors_of_one_array_in_an_archive_and_of_whole_numbers(tmp_path):
    np.savez(tmp_path / "v.npz", np.array([[3, 4], [0, 0], [0, -7]], np.int8))
    assert read_vectors(str(tmp_path / "v.npz"), table()).toarray().tolist() == np.array(UNIT, np.float32).tolist()


@pytest.mark.parametrize("dtype", [pl.List(pl.Float64), pl.Array(pl.Float64, 2)])
def test_vectors_of_a_column(dtype):
    frame = pl.DataFrame({"v": pl.Series(DENSE.tolist(), dtype=dtype)})
    X = read_vectors("v", SimpleNamespace(name="teas", frame=frame))
    assert X.toarray().tolist() == np.array(UNIT, np.float32).tolist()


def test_blocks_of_vectors_change_nothing(tmp_path, monkeypatch):
    V = np.random.default_rng(0).normal(size=(50, 7)).astype(np.float32)
    np.save(tmp_path / "v.npy", V)
    many = table(text=["a"] * 50)
    X = read_vectors(str(tmp_path / "v.npy"), many)
    monkeypatch.setattr("transduce.cli.features.vectors.BLOCK_NUMBERS", 21)
    assert same(read_vectors(str(tmp_path / "v.npy"), many), X)
    assert np.allclose(X.toarray(), V / np.linalg.norm(V, axis=1, keepdims=True), atol=1e-6)


def bad_files():
    finite = np.ones((3, 2))
    yield "one-d.npy", lambda p: np.save(p, np.ones(3)), "must hold a matrix"
    yield "no-columns.npy", lambda p: np.save(p, np.ones((3, 0))), "must hold a matrix"
    yield "rows.npy", lambda p: np.save(p, np.ones((4, 2))), "has 4 rows, but teas.csv has 3"
    yield "nan.npy", lambda p: np.save(p, np.where(np.eye(3)[:, :2] > 0, np.nan, finite)), "row 1 .* nan"
    yield "inf.npz", lambda p: sparse.save_npz(p, sparse.csr_matrix([[0.0], [1], [np.inf]])), "row 3 .* inf"
    yield "objects.npy", lambda p: np.save(p, np.array([[{}]] * 3, dtype=object)), "cannot be read as vectors"
    yield "objects.npz", lambda p: np.savez(p, np.array([[{}]] * 3, dtype=object)), "cannot be read as vectors"
    yield "words.npy", lambda p: np.save(p, np.array([["a"]] * 3)), "must hold numbers"
    yield "complex.npy", lambda p: np.save(p, finite * 1j), "must hold numbers"
    yield "two.npz", lambda p: np.savez(p, a=finite, b=finite), "holds 2 arrays"
    yield "text.npy", lambda p: p.write_text("0.1,0.2\n"), "cannot be read as vectors"
    yield "text.npz", lambda p: p.write_text("0.1,0.2\n"), "cannot be read as vectors"
    yield "empty.npy", lambda p: p.write_bytes(b""), "cannot be read as vectors"
    yield "folder.npy", lambda p: p.mkdir(), "cannot be read as vectors"
    yield "absent.npy", lambda p: None, "does not exist"
    yield "dia.npz", lambda p: sparse.save_npz(p, sparse.eye_array(3, format="dia")), "not csr, csc or coo"
    yield "wild.npz", wild_indices, "cannot be read as vectors"
    yield "lying.npy", lying_header, "cannot be read as vectors"


def wild_indices(path):
    np.savez(path, format=b"csr", shape=[3, 2], data=[1.0], indices=[10**6], indptr=[0, 1, 1, 1])


def lying_header(path):
    np.save(path, np.ones((3, 2)))
    path.write_bytes(path.read_bytes().replace(b"(3, 2)", b"(3,9" + b"9" * 9 + b")")[:128])


@pytest.mark.parametrize(("name", "write", "message"), list(bad_files()), ids=lambda v: v if isinstance(v, str) else "")
def test_bad_vectors_are_refused(name, write, message, tmp_path):
    write(tmp_path / name)
    with pytest.raises(InputError, match=message) as caught:
        read_vectors(str(tmp_path / name), table())
    assert name in str(caught.value)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([[1.0, 2.0], [1.0], [1.0, 2.0]], "row 2 has 1, not 2"),
        ([[1.0, 2.0], [1.0, 2.0], None], "row 3 has 0, not 2"),
        ([[1.0, 2.0], [1.0, None], [1.0, 2.0]], "row 2 .* nan"),
        ([[1.0], [2.0], [float("inf")]], "row 3 .* inf"),
        (pl.Series([[], [], []], dtype=pl.List(pl.Float32)), "holds no vectors"),
        (["[1, 2]", "[1, 2]", "[1, 2]"], "must hold lists of numbers"),
        ([["a"], ["b"], ["c"]], "must hold lists of numbers"),
        ([1.0, 2.0, 3.0], "must hold lists of numbers"),
    ],
)
def test_bad_columns_are_refused(column, message):
    with pytest.raises(InputError, match=message):
        read_vectors("v", table(v=column))


def test_an_unknown_name_is_refused_with_the_columns():
    with pytest.raises(InputError, match=r"'vector' is neither. The columns are text"):
        read_vectors("vector", table())


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 255), st.booleans(), st.sampled_from(["npy", "npz", "sparse"]))
def test_damaged_vectors_are_refused_or_finite(tmp_path_factory, place, change, cut, kind):
    path = tmp_path_factory.getbasetemp() / ("damaged.npy" if kind == "npy" else "damaged.npz")
    write = {"npy": np.save, "npz": np.savez, "sparse": lambda p, a: sparse.save_npz(p, sparse.csr_matrix(a))}[kind]
    write(path, np.arange(6.0).reshape(3, 2))
    content = bytearray(path.read_bytes())
    content[place % len(content)] ^= change
    path.write_bytes(content[: place % len(content)] if cut else content)
    try:
        X = read_vectors(str(path), table())
    except InputError:
        return
    assert X.shape[0] == 3
    assert np.isfinite(X.data).all()
