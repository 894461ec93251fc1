"""Past findings: inputs that once crashed a reader, took too much, or were read as something else.

`corpus/TARGET` has one file for each; those that end in .zst are compressed once more than the reader expects. They are
read again before any new input, and `--save` adds a finding.
"""

from pathlib import Path

import zstandard

FOLDER = Path(__file__).parent / "corpus"


def past_findings(target: str) -> list[tuple[str, bytes]]:
    """Names and contents of the past findings of a target."""
    paths = sorted(FOLDER.glob(f"{target}/*"))
    return [(path.name, _content(path)) for path in paths]


def _content(path: Path) -> bytes:
    data = path.read_bytes()
    return zstandard.decompress(data, max_output_size=1 << 28) if path.suffix == ".zst" else data


def save(target: str, name: str, data: bytes) -> Path:
    """Add an input to the past findings of a target."""
    path = FOLDER / target / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path
