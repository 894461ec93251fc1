"""The cache returns what was stored or nothing: after interruption, damage, a full disk and in several processes."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers.encoders import CountingEncoder
from hypothesis import given, settings
from hypothesis import strategies as st

from transduce.features import encode_texts
from transduce.features.vector_cache import VectorCache, cache_root, text_key

TEXTS = [f"text {place}" for place in range(50)]
LONG = [f"{place} " + 400 * "x" for place in range(400)]
"""Texts that make several batches."""


def encoded(texts, cache, **options):
    encoder = CountingEncoder(**options)
    return encode_texts(texts, encoder, cache=cache), encoder.texts


def test_a_text_is_encoded_once(tmp_path):
    first, _ = encoded(TEXTS, tmp_path)
    again, texts = encoded([*reversed(TEXTS), "one more"], tmp_path)
    assert texts == ["one more"]
    assert np.array_equal(again[:-1], first[::-1])


def test_vectors_of_another_revision_or_of_none_are_not_used(tmp_path):
    encoded(TEXTS, tmp_path)
    assert len(encoded(TEXTS, tmp_path, revision="2")[1]) == 50
    for _ in range(2):
        assert len(encoded(TEXTS, tmp_path, revision="")[1]) == 50


def test_without_a_cache_nothing_is_stored(tmp_path, monkeypatch):
    monkeypatch.setenv("TRANSDUCE_CACHE", str(tmp_path))
    for _ in range(2):
        assert len(encoded(TEXTS, False)[1]) == 50
    assert list(tmp_path.iterdir()) == []
    encoded(TEXTS, True)
    assert encoded(TEXTS, tmp_path)[1] == []


def test_stored_vectors_need_no_loaded_encoder(tmp_path):
    expected, _ = encoded(TEXTS, tmp_path)

    class Unloaded(CountingEncoder):
        @property
        def dimension(self):
            raise AssertionError("the weights are needed to know this")

    assert np.array_equal(encode_texts(TEXTS, Unloaded(), cache=tmp_path), expected)


def test_interrupted_encoding_resumes(tmp_path):
    expected, texts = encoded(LONG, False)
    with pytest.raises(KeyboardInterrupt):
        encoded(LONG, tmp_path, fail_after=2)
    resumed, rest = encoded(LONG, tmp_path)
    assert 0 < len(rest) < len(LONG)
    assert rest == texts[-len(rest) :]
    assert np.array_equal(resumed, expected)


def files_of(folder):
    return sorted(path for path in folder.rglob("*") if path.suffix in (".keys", ".vectors"))


@settings(max_examples=40)
@given(st.data())
def test_damage_is_found_and_repaired(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("cache")
    expected, _ = encoded(TEXTS, folder)
    path = data.draw(st.sampled_from(files_of(folder)))
    content = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        content[place] ^= data.draw(st.integers(1, 255))
    else:
        del content[place:]
    path.write_bytes(content)
    repaired, texts = encoded(TEXTS, folder)
    assert np.array_equal(repaired, expected)
    assert len(texts) >= 1
    again, texts = encoded(TEXTS, folder)
    assert np.array_equal(again, expected)
    assert texts == []


def test_vectors_without_their_records_are_cut_off(tmp_path):
    """As a process leaves them that was killed between its two writes."""
    encoded(TEXTS[:20], tmp_path)
    vectors = files_of(tmp_path)[1]
    with open(vectors, "ab") as file:
        file.write(b"\1" * 100)
    expected, _ = encoded(TEXTS, False)
    for _ in range(2):
        assert np.array_equal(encoded(TEXTS, tmp_path)[0], expected)
    assert vectors.stat().st_size == 50 * 6 * 4


WRITER = """
import sys
from helpers.encoders import CountingEncoder
from transduce.features import encode_texts
cache, start = sys.argv[1], int(sys.argv[2])
for begin in range(start, start + 300, 10):
    encode_texts([f"text {place}" for place in range(begin, begin + 10)], CountingEncoder(), cache=cache)
"""


def test_two_processes_share_a_cache(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    writers = [subprocess.Popen([*command, start], env=environment) for start in ("0", "150")]
    assert [writer.wait() for writer in writers] == [0, 0]
    texts = [f"text {place}" for place in range(450)]
    shared, missing = encoded(texts, tmp_path)
    assert missing == []
    assert np.array_equal(shared, encoded(texts, False)[0])


def test_a_folder_that_cannot_be_written_is_reported_once(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.warns(UserWarning, match="cannot be stored in") as caught:
        X, texts = encoded(LONG, tmp_path / "file" / "cache")
    assert len(caught) == 1
    assert len(texts) == len(LONG)
    assert X.any(axis=1).all()


def test_other_files_in_the_folder_do_no_harm(tmp_path):
    cache = VectorCache.of(CountingEncoder(), tmp_path)
    cache.append([text_key("tea")], np.ones((1, 6), np.float32))
    assert cache.dimension == 6
    (cache.folder / "notes.keys").write_text("mine")
    assert cache.dimension is None
    assert encode_texts(["tea"], CountingEncoder(), cache=tmp_path).tolist() == [[1.0] * 6]


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {}, "home/.cache/transduce"),
        ("linux", {"XDG_CACHE_HOME": "xdg"}, "xdg/transduce"),
        ("darwin", {}, "home/Library/Caches/transduce"),
        ("win32", {}, "home/AppData/Local/transduce/Cache"),
        ("win32", {"LOCALAPPDATA": "local"}, "local/transduce/Cache"),
        ("linux", {"TRANSDUCE_CACHE": "mine"}, "mine"),
        ("linux", {"TRANSDUCE_CACHE": "none"}, None),
    ],
)
def test_the_cache_is_in_the_usual_place(platform, variables, expected, monkeypatch):
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA", "TRANSDUCE_CACHE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.platform", platform)
    monkeypatch.setattr(Path, "home", lambda: Path("home"))
    assert cache_root(True) == (None if expected is None else Path(expected))
    assert cache_root("other") == Path("other")
    assert cache_root(False) is cache_root("none") is None


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such permissions")
def test_others_cannot_read_the_vectors(tmp_path):
    encoded(TEXTS, tmp_path / "new")
    (folder,) = (tmp_path / "new").iterdir()
    assert folder.stat().st_mode & 0o077 == 0
