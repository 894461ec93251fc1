"""Where results may be written."""

import pytest

from transduce.cli import output_paths
from transduce.cli.errors import InputError


def test_output_paths_are_checked(tmp_path):
    source = tmp_path / "in.csv"
    source.write_text("x")
    output_paths.check([str(tmp_path / "out.csv.gz"), "-", None], output_paths.TABLES, str(source))
    for name, message in (
        (str(tmp_path), "must end in"),
        (str(tmp_path / "no" / "out.csv"), "there is no folder"),
        (str(source), "nothing is lost"),
        ("out.xlsx", "must end in .csv, .tsv"),
    ):
        with pytest.raises(InputError, match=message):
            output_paths.check([name], output_paths.TABLES, str(source))
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        output_paths.check([str(tmp_path / "folder.csv")], output_paths.TABLES, str(source))
    with pytest.raises(InputError, match="same file"):
        output_paths.check_different("a.csv", None, "./a.csv")
