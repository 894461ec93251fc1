"""Encoding of texts as the command line shows it: progress, notes, and silence with --quiet."""

import contextlib
import io
import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from transduce.features.embeddings import Encoding
from transduce.features.encode import EncodingStatus
from transduce.features.encoders import Encoder

if TYPE_CHECKING:
    from transduce.cli.progress import Progress


@contextlib.contextmanager
def encoding_of(options: Mapping[str, Any], progress: "Progress") -> Iterator[Encoding]:
    """The encoder and the cache of the options; warnings become notes, and with --quiet downloads show no bars."""

    def report(encoder: Encoder, status: EncodingStatus) -> None:
        if status.n_done == 0:
            number = "1 text" if status.n_texts == 1 else f"{status.n_texts} texts"
            progress.say(f"Encoding {number} with {encoder.name}.")
        progress.show_encoding(status)

    cache = True if options["cache"] is None else str(options["cache"])
    silence = contextlib.redirect_stderr(io.StringIO()) if options["quiet"] else contextlib.nullcontext()
    with warnings.catch_warnings(record=True) as caught, silence:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        yield Encoding(options["encoder"], cache, options["jobs"], report)
    progress.say(*dict.fromkeys(f"Note: {warning.message}" for warning in caught))
