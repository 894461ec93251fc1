"""Where results may be written."""

import os

import pytest

from transduce.cli import output_paths
from transduce.cli.errors import InputError


def test_output_paths_are_checked(tmp_path):
    source, tables = tmp_path / "in.csv", output_paths.TABLES
    source.write_text("x")
    output_paths.check([(str(tmp_path / "out.csv.gz"), tables), ("-", tables), (None, tables)], {}, str(source))
    (tmp_path / "folder.csv").mkdir()
    for name, message in (
        (str(tmp_path), "must end in"),
        (str(tmp_path / "no" / "out.csv"), "there is no folder"),
        (str(source), "nothing is lost"),
        ("out.xlsx", "must end in .csv, .tsv, .jsonl, .ndjson, .parquet or .pq\\. Rename"),
        (str(tmp_path / "folder.csv"), "is a folder"),
    ):
        with pytest.raises(InputError, match=message):
            output_paths.check([(name, tables)], {}, str(source))
    with pytest.raises(InputError, match="same file"):
        output_paths.check([("a.csv", tables), (None, tables), ("./a.csv", tables)], {})


def test_a_pipe_or_device_is_not_an_output(tmp_path):
    name = str(tmp_path / "model.safetensors")
    os.mkfifo(name)
    with pytest.raises(InputError, match="is a pipe or a device, which would be replaced"):
        output_paths.check([(name, output_paths.MODELS)], {})
