"""Small encoders for tests: a model2vec model with random vectors of words, and a function that counts its calls."""

import zlib
from pathlib import Path

import numpy as np

from transduce.datasets import load_clinc150

DIMENSION = 32


def save_static_model(folder: Path, *, seed: int = 0, normalize: bool = True) -> Path:
    """Save a model2vec model of the words of the built-in corpus to a folder, and return it."""
    from model2vec import StaticModel
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.normalizers import Lowercase
    from tokenizers.pre_tokenizers import Whitespace

    words = ["[UNK]", *sorted({word for text in load_clinc150().texts[::5] for word in text.split()})]
    tokenizer = Tokenizer(WordLevel({word: place for place, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = Lowercase(), Whitespace()
    vectors = np.random.default_rng(seed).normal(size=(len(words), DIMENSION)).astype(np.float32)
    StaticModel(vectors, tokenizer, normalize=normalize).save_pretrained(folder)
    return folder


class CountingEncoder:
    """Vectors by the checksum of a text, and a list of the batches that it was asked for.

    After `fail_after` batches it raises KeyboardInterrupt, as Ctrl-C does.
    """

    name = "counting"
    dimension = 6
    max_characters = 1000

    def __init__(self, revision: str = "1", fail_after: int | None = None) -> None:
        self.revision = revision
        self.fail_after = fail_after
        self.batches: list[list[str]] = []

    @property
    def texts(self) -> list[str]:
        """All texts that were encoded, in order."""
        return [text for batch in self.batches for text in batch]

    def encode(self, texts):
        if self.fail_after is not None and len(self.batches) >= self.fail_after:
            raise KeyboardInterrupt
        self.batches.append(list(texts))
        seeds = [zlib.crc32(text.encode()) for text in texts]
        return np.array([np.random.default_rng(seed).normal(size=self.dimension) for seed in seeds], np.float32)
