"""Small files that options name as fuzz targets: settings, class sizes and class names."""

from pathlib import Path

import click

from benchmarks.fuzz.target import Read, target
from transduce.class_prior.files import FORMATS
from transduce.cli.commands.label import label
from transduce.cli.config import use_config
from transduce.cli.main import cli
from transduce.cli.prior_options import read_prior
from transduce.features.class_names import read_class_names

PRIORS = {
    "toml": b'tea = 0.3\nmilk = "10%:30%"\n[prior]\n"c d" = "=5%"\n',
    "json": b'{"prior": {"tea": 0.2, "milk": [0.1, 0.3], "c d": "?"}}',
    "csv": b'tea,0.2\nmilk,10%,30%\n"c, d",?\n',
}


@target("config", [b'[label]\nprior = ["a=0.5"]\nseed = 3\n'])
def _read_config(data: bytes, folder: Path) -> None:
    (folder / "c.toml").write_bytes(data)
    context = click.Context(label, info_name="label", parent=click.Context(cli, info_name="transduce"))
    use_config(context, label.params[0], str(folder / "c.toml"))


def _prior(file_format: str) -> Read:
    def read(data: bytes, folder: Path) -> None:
        path = folder / f"p.{file_format}"
        path.write_bytes(data)
        assert read_prior([str(path)])

    return read


for each in FORMATS:
    target(f"prior.{each}", [PRIORS[each]])(_prior(each))


@target("names", [b"tea\nsport/ice_hockey, puck and stick\n", b"tea\tleaves\nmilk\twhite\n"])
def _read_names(data: bytes, folder: Path) -> None:
    (folder / "names.txt").write_bytes(data)
    names = read_class_names(str(folder / "names.txt"))
    assert len(names) > 1
    assert all(name.strip() and text.strip() for name, text in names.items())
