"""Files of sequences and taggers as fuzz targets: tokens and labels of an accepted file are as they were written."""

import tempfile
from pathlib import Path

from benchmarks.fuzz.target import Read, target
from transduce.cli.tagging.corpus import read_corpus, write_corpus
from transduce.sequences import TransductiveTagger
from transduce.sequences.tagger_file import load_tagger, save_tagger

CONLL = [b"# c\na x author\nb y _\n\nc z a|b\n", b"a\tl\r\n\nb\r\n"]
JSON_LINES = [b'{"id": 1, "tokens": ["a", "b"], "labels": ["x", null]}\n\n{"tokens": ["c"]}\n']
XML = [b'<?xml version="1.0"?>\n<d><s k="v"><x>a &amp; b</x> c <!-- c --> d&#33; </s></d>']


def _sequences(format: str) -> Read:
    def read(data: bytes, folder: Path) -> None:
        path, out = folder / f"in.{format}", folder / f"out.{format}"
        path.write_bytes(data)
        corpus = read_corpus(str(path))
        labels = corpus.merged([["x"] * len(tokens) for tokens in corpus.tokens])
        write_corpus(corpus, labels, str(out))
        again = read_corpus(str(out))
        assert (again.tokens, again.given) == (corpus.tokens, labels), "a token or a label was altered"

    return read


target("conll", CONLL)(_sequences("conll"))
target("sequences.jsonl", JSON_LINES)(_sequences("jsonl"))
target("xml", XML)(_sequences("xml"))


def _taggers() -> list[bytes]:
    tagger = TransductiveTagger(annealing=None, constraints=["title: once"])
    tagger.fit([["J.", "Smith"], ["Tea"]], [["author", "author"], ["title"]])
    with tempfile.TemporaryDirectory() as folder:
        save_tagger(tagger, f"{folder}/t.safetensors", {"settings": {"format": "conll"}})
        return [Path(folder, "t.safetensors").read_bytes()]


@target("tagger", _taggers, share=0.2)
def _read_tagger(data: bytes, folder: Path) -> None:
    (folder / "t.safetensors").write_bytes(data)
    tagger, _ = load_tagger(str(folder / "t.safetensors"))
    assert len(tagger.predict([["A.", "Smith"]])[0]) == 2
