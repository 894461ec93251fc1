"""Errors that the command line reports in one sentence: what was expected, what was found and what to do."""

from collections.abc import Sequence

from transduce.errors import InputError as InputError


class InterruptedFitError(Exception):
    """A fit that Ctrl-C stopped, after its partial results were written; the command line exits with 1."""

    def __init__(self, written: Sequence[str]) -> None:
        super().__init__(f"interrupted. The labels found so far are in {output_list(written)}.")


def output_list(written: Sequence[str]) -> str:
    """List the files that were written; "-" is standard output."""
    return ", ".join("standard output" if name == "-" else name for name in written)
