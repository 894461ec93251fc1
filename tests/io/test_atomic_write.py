"""Atomic writes: afterwards the file is the old one or the new one, and nothing else is left."""

import errno
import os
import stat

import pytest

from transduce.io.atomic_write import WriteError, atomic_write


def content_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_file_is_replaced_when_the_block_ends(tmp_path):
    target = tmp_path / "note"
    target.write_bytes(b"old")
    with atomic_write(target) as file:
        file.write(b"new")
        file.flush()
        assert target.read_bytes() == b"old"
    assert content_of(tmp_path) == {"note": b"new"}


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("old", [{}, {"note": b"old"}], ids=["new file", "old file"])
def test_an_error_in_the_block_leaves_what_was_there(tmp_path, error, old):
    for name, content in old.items():
        (tmp_path / name).write_bytes(content)

    def fail(file):
        file.write(b"new")
        raise error

    with pytest.raises(error), atomic_write(tmp_path / "note") as file:
        fail(file)
    assert content_of(tmp_path) == old


def test_a_full_disk_is_reported_and_leaves_what_was_there(tmp_path, monkeypatch):
    (tmp_path / "note").write_bytes(b"old")

    def full(file):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("transduce.io.atomic_write.os.fsync", full)
    with pytest.raises(WriteError) as caught, atomic_write(tmp_path / "note") as file:
        file.write(b"new")
    assert (caught.value.path, caught.value.errno) == (tmp_path / "note", errno.ENOSPC)
    assert caught.value.reason in str(caught.value)
    assert content_of(tmp_path) == {"note": b"old"}


def test_a_folder_that_does_not_exist_is_reported(tmp_path):
    with pytest.raises(WriteError, match="nowhere/note cannot be written"), atomic_write(tmp_path / "nowhere" / "note"):
        pass


def test_links_and_permissions_stay(tmp_path):
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "real").chmod(0o640)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with atomic_write(tmp_path / "link") as file:
        file.write(b"new")
    assert os.readlink(tmp_path / "link") == str(tmp_path / "real")
    assert (tmp_path / "real").read_bytes() == b"new"
    assert (tmp_path / "real").stat().st_mode & 0o777 == 0o640


def test_content_is_on_the_disk_before_the_name_and_the_name_before_the_block_ends(tmp_path, monkeypatch):
    events, replace = [], os.replace

    def sync(handle):
        events.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else os.fstat(handle).st_size)

    monkeypatch.setattr("transduce.io.atomic_write.os.fsync", sync)
    monkeypatch.setattr(
        "transduce.io.atomic_write.os.replace", lambda *names: (events.append("rename"), replace(*names))
    )
    with atomic_write(tmp_path / "note") as file:
        file.write(b"new")
    assert events == [3, "rename", "folder"]


def test_a_pipe_is_never_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(WriteError, match="it is not a plain file"), atomic_write(tmp_path / "pipe") as file:
        file.write(b"new")
    assert stat.S_ISFIFO(os.stat(tmp_path / "pipe").st_mode)
    assert len(list(tmp_path.iterdir())) == 1
