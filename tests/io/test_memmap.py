"""Memory-mapped rows: the same rows and the same fits as in memory; incomplete or damaged folders are errors."""

import json
import weakref

import numpy as np
import pytest
from scipy import sparse

from transduce import TransductiveClassifier
from transduce.design import Design
from transduce.io import memmap
from transduce.io.memmap import npz_parts, open_rows, pack_rows


def parts(n_parts=4, dtype=np.float64):
    for seed in range(n_parts):
        yield sparse.random(60, 40, 0.2, format="csr", random_state=seed, dtype=dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_are_read_as_they_were_written(dtype, tmp_path):
    X = pack_rows(parts(dtype=dtype), tmp_path / "rows")
    expected = sparse.vstack(list(parts(dtype=dtype)), format="csr")
    assert X.dtype == dtype
    assert X.shape == expected.shape
    assert (expected != X).nnz == 0
    assert (open_rows(tmp_path / "rows") != expected).nnz == 0


def test_a_fit_on_mapped_rows_equals_one_on_rows_in_memory(tmp_path):
    X = pack_rows(parts(), tmp_path / "rows")
    y = np.full(X.shape[0], -1)
    y[np.random.default_rng(0).choice(X.shape[0], 30, replace=False)] = np.arange(30) % 3
    for parameters in ({"annealing": "paper"}, {"loss": "maxent", "annealing": None}):
        one, other = (
            TransductiveClassifier(random_state=0, **parameters).fit(rows, y)
            for rows in (X, sparse.csr_matrix(X.copy()))
        )
        np.testing.assert_array_equal(one.coef_, other.coef_)
        np.testing.assert_array_equal(one.transduction_, other.transduction_)
    assert (one.predict(X) == other.predict(X)).all()


def test_a_fit_does_not_copy_the_rows(tmp_path, monkeypatch):
    X = pack_rows(parts(), tmp_path / "rows")
    y = np.full(X.shape[0], -1)
    y[[5, 100, 200]] = 0, 1, 2
    create, designs = Design.create, []

    def record(*arguments, **options):
        designs.append(create(*arguments, **options))
        return designs[-1]

    monkeypatch.setattr(Design, "create", record)
    TransductiveClassifier(fit_intercept=False, random_state=0, annealing="paper").fit(X, y)
    assert np.shares_memory(designs[0].data, X.data)


def test_parts_of_scipy_are_packed_in_the_order_of_their_names(tmp_path):
    for number, part in enumerate(parts()):
        sparse.save_npz(tmp_path / f"part-{number}.npz", part)
    X = pack_rows(npz_parts(tmp_path), tmp_path / "rows")
    assert (sparse.vstack(list(parts()), format="csr") != X).nnz == 0


def test_columns_are_sorted_and_repeated_ones_summed(tmp_path):
    twice = sparse.csr_matrix((np.ones(3), np.array([2, 0, 2]), np.array([0, 3])), (1, 3))
    assert pack_rows([twice], tmp_path / "rows").toarray().tolist() == [[1.0, 0.0, 2.0]]


def test_integers_become_floats(tmp_path):
    assert pack_rows([sparse.csr_matrix(np.eye(3, dtype=int))], tmp_path / "rows").dtype == np.float64


def test_mapped_rows_cannot_be_changed(tmp_path):
    X = pack_rows(parts(), tmp_path / "rows")
    with pytest.raises(ValueError, match="read-only"):
        X.data[0] = 1


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "rows.json").unlink(), "has no rows.json"),
        (lambda folder: (folder / "data.bin").write_bytes(b"1234"), "should have .* bytes, but has 4"),
        (lambda folder: (folder / "indptr.bin").unlink(), "but has 0"),
        (lambda folder: (folder / "rows.json").write_text('{"format": 9}'), "in format 9, not 1"),
        (lambda folder: (folder / "rows.json").write_text('{"format": 1, "n_ro'), "rows.json is damaged"),
        (lambda folder: (folder / "rows.json").write_text('{"format": 1}'), "rows.json is damaged"),
        (lambda folder: (folder / "rows.json").write_text("[]"), "rows.json is damaged"),
    ],
)
def test_a_damaged_folder_is_an_error(damage, message, tmp_path):
    pack_rows(parts(), tmp_path / "rows")
    damage(tmp_path / "rows")
    with pytest.raises(ValueError, match=message):
        open_rows(tmp_path / "rows")


def test_wrong_folders_and_parts_are_errors(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(ValueError, match="new or empty folder"):
        pack_rows(parts(), tmp_path)
    with pytest.raises(ValueError, match="part 1 has 3 columns, but the first has 40"):
        pack_rows([*list(parts(1)), sparse.csr_matrix((2, 3))], tmp_path / "a")
    with pytest.raises(ValueError, match="no rows to pack"):
        pack_rows([], tmp_path / "b")
    with pytest.raises(ValueError, match=r"has no \.npz files"):
        pack_rows(npz_parts(tmp_path), tmp_path / "c")


def test_columns_must_fit_into_32_bits(tmp_path):
    with pytest.raises(ValueError, match=r"part 0 has 2147483648 columns, but rows must have fewer than 2\*\*31"):
        pack_rows([sparse.csr_matrix((1, 2**31))], tmp_path / "rows")
    X = pack_rows([sparse.csr_matrix(([1.0], [2**31 - 2], [0, 1]), (1, 2**31 - 1))], tmp_path / "rows")
    assert X.indices.tolist() == [2**31 - 2]


def test_float64_is_not_rounded_to_float32(tmp_path):
    small, large = (sparse.csr_matrix(np.array([[0.1, 0.0]], dtype)) for dtype in (np.float32, np.float64))
    for wide in (large, large.astype(np.int64)):
        with pytest.raises(ValueError, match=f"part 1 is {wide.dtype}, but the first is float32. Convert"):
            pack_rows([small, wide], tmp_path / "rows")
    assert pack_rows([large, small], tmp_path / "rows").data.tolist() == [0.1, np.float32(0.1)]


def test_indptr_has_32_bits_where_they_suffice(tmp_path, monkeypatch):
    X = pack_rows(parts(), tmp_path / "short")
    assert X.indptr.dtype == X.indices.dtype == np.int32
    monkeypatch.setattr(memmap, "INT32_LIMIT", X.nnz)
    long = pack_rows(parts(), tmp_path / "long")
    assert long.indptr.dtype == np.int64
    assert (long != X).nnz == 0
    header = json.loads((tmp_path / "long" / "rows.json").read_text())
    del header["indptr"]  # as in the first version
    (tmp_path / "long" / "rows.json").write_text(json.dumps(header))
    assert (open_rows(tmp_path / "long") != X).nnz == 0


def test_one_part_is_in_memory_at_a_time(tmp_path):
    arrays = []

    def one_by_one():
        for part in range(4):
            assert all(each() is None for each in arrays)
            rows = sparse.random(60, 40, 0.2, format="csr", random_state=part)
            arrays.append(weakref.ref(rows.data))
            yield rows
            del rows

    assert pack_rows(one_by_one(), tmp_path / "rows").shape == (240, 40)


@pytest.mark.parametrize("is_new", [False, True])
def test_a_failed_write_leaves_no_files(is_new, tmp_path):
    def broken():
        yield from parts(2)
        raise OSError("the source is gone")

    place = tmp_path / "rows"
    if not is_new:
        place.mkdir()
    with pytest.raises(OSError, match="the source is gone"):
        pack_rows(broken(), place)
    assert list(tmp_path.iterdir()) == ([] if is_new else [place])
    assert pack_rows(parts(), place).shape == (240, 40)
    assert {path.name for path in place.iterdir()} == {"data.bin", "indices.bin", "indptr.bin", "rows.json"}


def test_changed_files_are_refused(tmp_path):
    pack_rows(parts(), tmp_path / "rows")
    for name in ("data.bin", "indices.bin", "indptr.bin"):
        path = tmp_path / "rows" / name
        content = path.read_bytes()
        path.write_bytes(content[:40] + b"\x07" + content[41:])
        with pytest.raises(ValueError, match="are not those that were packed"):
            open_rows(tmp_path / "rows")
        path.write_bytes(content)
    open_rows(tmp_path / "rows")


def change_header(folder, **changes):
    header = json.loads((folder / "rows.json").read_text())
    header.update(changes)
    (folder / "rows.json").write_text(json.dumps({name: value for name, value in header.items() if value is not None}))


def test_rows_without_a_digest_are_checked_for_indices_outside(tmp_path):
    folder = tmp_path / "rows"
    X = pack_rows(parts(), folder)
    change_header(folder, digest=None)
    assert (open_rows(folder) != X).nnz == 0
    change_header(folder, n_features=10)
    with pytest.raises(ValueError, match="X must have column indices from 0 to 9, but has 39"):
        open_rows(folder)


@pytest.mark.parametrize(
    "changes",
    [{"n_rows": -1}, {"n_rows": 1e3}, {"n_features": True}, {"n_values": 2**70}, {"dtype": "object"}, {"indptr": "f8"}],
)
def test_a_header_with_impossible_sizes_or_types_is_damaged(changes, tmp_path):
    pack_rows(parts(), tmp_path / "rows")
    change_header(tmp_path / "rows", **changes)
    with pytest.raises(ValueError, match=r"rows\.json is damaged"):
        open_rows(tmp_path / "rows")


def test_parts_with_indices_outside_are_not_packed(tmp_path):
    part = next(parts())
    part.indices[3] = 1000
    with pytest.raises(ValueError, match="X must have column indices from 0 to 39, but has 1000"):
        pack_rows([part], tmp_path / "rows")
    assert not (tmp_path / "rows").exists()
