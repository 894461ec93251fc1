"""Folders with one subfolder per class."""

import os
from pathlib import Path

import pytest

from transduce.cli.errors import InputError
from transduce.cli.formats import read_table


def make_folder(root, files):
    for file, text in files.items():
        path = root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(root)


def test_one_folder_per_class(tmp_path):
    files = {
        "rec/hockey/b.txt": "puck\r\n", "rec/hockey/a": "\ufeffice", "rec/x.txt": "rec", "sci/é.md": "",
        "unlabelled/1": "u1", "Unlabeled/1": "u2", "unlabelled_more/deep/1": "u3", "unsup/1": "u4", "loose.txt": "u5",
        ".git/config": b"\xff", "rec/.DS_Store": b"\x00", "sci/unlabelled/1": "s",
    }  # fmt: skip
    table = read_table(make_folder(tmp_path, files))
    assert (table.format, table.text, table.label) == ("folder", "text", "label")
    assert table.frame.columns == ["file", "text", "label"]
    rows = {file: (text, label) for file, text, label in table.frame.rows()}
    assert list(rows) == sorted(file for file in files if "/." not in f"/{file}")
    assert rows["rec/hockey/a"] == ("ice", "rec/hockey")
    assert rows["rec/hockey/b.txt"] == ("puck\r\n", "rec/hockey")
    assert rows["rec/x.txt"] == ("rec", "rec")
    assert rows["sci/unlabelled/1"] == ("s", "sci/unlabelled")
    assert [rows[file][1] for file in files if rows.get(file, ("", ""))[0].startswith("u")] == [None] * 5


def test_links_inside_the_folder_are_read_once(tmp_path):
    root = tmp_path / "documents"
    make_folder(root, {"a/1": "one", "b/2": "two"})
    (root / "b" / "link").symlink_to(root / "a" / "1")
    (root / "loop").symlink_to(root)
    assert read_table(str(root)).frame["file"].to_list() == ["a/1", "b/2", "b/link"]


@pytest.mark.parametrize("link", ["file", "folder", "hidden_parent"])
def test_links_out_of_the_folder_are_refused(tmp_path, link):
    make_folder(tmp_path / "secret", {"key": "private"})
    root = tmp_path / "documents"
    make_folder(root, {"a/1": "one"})
    target = {"file": "../secret/key", "folder": "../secret", "hidden_parent": "../../secret/key"}[link]
    (root / ("a/out" if link == "hidden_parent" else "out")).symlink_to(target)
    with pytest.raises(InputError, match=r'"(a/)?out" is a link to a place outside the folder'):
        read_table(str(root))


BAD_FOLDERS = {
    "empty": ({}, "the folder has no files"),
    "hidden only": ({".a/1": "x", ".b": "y"}, "the folder has no files"),
    "not text": ({"x/a": "fine", "x/b": b"\x89PNG\xff"}, "x/b, line 1: expected UTF-8 text"),
    "binary": ({"x/a.bin": b"a\n\x00\x01"}, "x/a.bin, line 2: expected text, but found a NUL"),
}


@pytest.mark.parametrize("case", BAD_FOLDERS)
def test_bad_folders_are_refused(tmp_path, case):
    files, what = BAD_FOLDERS[case]
    with pytest.raises(InputError, match=what) as caught:
        read_table(make_folder(tmp_path, files))
    assert str(caught.value).startswith(str(tmp_path))


def test_a_pipe_in_a_folder_does_not_block(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match='"pipe" is not a regular file'):
        read_table(str(tmp_path))


def test_a_file_name_that_is_not_unicode_is_refused(tmp_path):
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.txt")).write_text("x")
    with pytest.raises(InputError, match="is not UTF-8") as caught:
        read_table(str(tmp_path))
    assert str(caught.value).isprintable()
