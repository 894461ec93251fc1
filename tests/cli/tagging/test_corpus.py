"""Files of sequences: what is read, what is written back unchanged, and what is refused."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.cli.errors import InputError
from transduce.cli.formats.errors import FileError
from transduce.cli.tagging import conll, json_sequences, tagged_xml
from transduce.cli.tagging.corpus import Corpus, read_corpus, write_corpus
from transduce.labels.partial import RuledOut

CONLL = "# source: a list\n-DOCSTART- x O\n\nJ. NNP author\nSmith, NNP _\n\n\n1994. CD date\n"
JSONL = '{"id": 7, "tokens": ["J.", "Smith,"], "labels": ["author", null]}\n\n{"tokens":["1994."]}'
XML = """<?xml version="1.0" encoding="UTF-8"?>
<!-- a list -->
<dataset>
  <sequence id="1">
    <author lang="en">J. Smith &amp; </author> Tea &#38; <!-- sic --> milk. <date>1994.</date>
  </sequence>
  <sequence>Untagged</sequence>
</dataset>
"""
FILES = {"refs.conll": CONLL, "refs.jsonl": JSONL, "refs.xml": XML}


def read(tmp_path, name, content, **options) -> Corpus:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_corpus(str(path), **options)


def written(tmp_path, corpus, labels) -> str:
    target = tmp_path / f"out.{corpus.format}"
    write_corpus(corpus, labels, str(target))
    return target.read_bytes().decode()


def test_conll_columns(tmp_path):
    corpus = read(tmp_path, "refs.conll", CONLL)
    assert corpus.tokens == [["J.", "Smith,"], ["1994."]]
    assert corpus.given == [["author", None], ["date"]]
    assert corpus.lines == [4, 8]
    assert corpus.is_labeled == [False, True]
    assert written(tmp_path, corpus, [["author", "title"], ["date"]]) == CONLL.replace("_", "title")


def test_conll_sequences_may_leave_out_the_label(tmp_path):
    corpus = read(tmp_path, "a.conll", "a\tX\tl\n\nb\tY\r\nc\tZ\r\n")
    assert corpus.given == [["l"], [None, None]]
    assert written(tmp_path, corpus, [["l"], ["m", "l"]]) == "a\tX\tl\n\nb\tY\tm\r\nc\tZ\tl\r\n"
    first = read(tmp_path, "b.conll", "b\n\na l")
    assert first.given == [[None], ["l"]]
    assert written(tmp_path, first, [["m"], ["l"]]) == "b m\n\na l"


def test_conll_columns_may_be_named(tmp_path):
    corpus = read(tmp_path, "a.conll", "1\tl\ta\n2\t\tb\n", token="3", label="2")
    assert (corpus.tokens, corpus.given) == ([["a", "b"]], [["l", None]])
    assert written(tmp_path, corpus, [["l", "m"]]) == "1\tl\ta\n2\tm\tb\n"
    appended = read(tmp_path, "a.conll", "a X\n", label="3")
    assert written(tmp_path, appended, [["l"]]) == "a X l\n"


def test_a_hash_is_a_token_where_no_comment_can_be(tmp_path):
    assert read(tmp_path, "a.conll", "a l\n# l\n#1 l\n").tokens == [["a", "#", "#1"]]
    assert read(tmp_path, "a.conll", "#\tl\n").tokens == [["#"]]
    assert read(tmp_path, "a.conll", "# note\na\tl\n").tokens == [["a"]]


def test_a_hash_may_be_the_first_token_of_columns_with_spaces(tmp_path):
    corpus = read(tmp_path, "a.conll", "# a note\n# author\na author\n\n# _\nb title\n\n# title\n")
    assert corpus.tokens == [["#", "a"], ["#", "b"], ["#"]]
    assert corpus.given == [["author", "author"], [None, "title"], ["title"]]
    assert read(tmp_path, "a.conll", "# note\na author\n").tokens == [["a"]], "no label of other tokens"
    assert read(tmp_path, "a.conll", "# author x\na author x\n", label="2").tokens == [["#", "a"]]


def test_a_tab_in_a_comment_does_not_separate_columns(tmp_path):
    corpus = read(tmp_path, "a.conll", "# id 7\tdomain=en\nAnn _ _ B-PER\nruns _ _ O\n")
    assert (corpus.tokens, corpus.given) == ([["Ann", "runs"]], [["B-PER", "O"]])


def test_json_lines(tmp_path):
    corpus = read(tmp_path, "refs.jsonl", JSONL)
    assert corpus.tokens == [["J.", "Smith,"], ["1994."]]
    assert corpus.given == [["author", None], [None]]
    expected = JSONL.replace("null", '"author"').replace('["1994."]}', '["1994."], "labels": ["date"]}')
    expected = expected.replace('"tokens":[', '"tokens": [')
    assert written(tmp_path, corpus, [["author", "author"], ["date"]]) == expected


def test_tagged_xml(tmp_path):
    corpus = read(tmp_path, "refs.xml", XML)
    assert corpus.tokens == [["J.", "Smith", "&", "Tea", "&", "milk.", "1994."], ["Untagged"]]
    assert corpus.given == [["author"] * 3 + [None] * 3 + ["date"], [None]]
    assert corpus.lines == [4, 7]
    out = written(tmp_path, corpus, [["author"] * 3 + ["title", "title", "note", "date"], ["title"]])
    expected = XML.replace("Tea &#38;", "<title>Tea &#38;</title>").replace(" milk.", " <note>milk.</note>")
    assert out == expected.replace("Untagged", "<title>Untagged</title>")


@pytest.mark.parametrize("name", FILES)
def test_written_files_hold_the_labels_and_are_stable(name, tmp_path):
    corpus = read(tmp_path, name, FILES[name])
    labels = corpus.merged([["note"] * len(tokens) for tokens in corpus.tokens])
    first = written(tmp_path, corpus, labels)
    again = read(tmp_path, name, first)
    assert (again.tokens, again.given) == (corpus.tokens, labels)
    assert written(tmp_path, again, labels) == first


WORD = st.text(st.characters(exclude_categories=("C", "Z"), exclude_characters="&<>|!_?#"), min_size=1, max_size=5)
CORPORA = st.lists(st.lists(st.tuples(WORD, st.sampled_from(["a", "b", "_"])), min_size=1, max_size=5), min_size=1)


@given(CORPORA, st.sampled_from("\t "))
def test_any_columns_come_back(sequences, separator):
    text = "\n\n".join("\n".join(separator.join((word, "x", label)) for word, label in one) for one in sequences)
    tokens, labels, _, layout = conll.read(text, None, None)
    assert tokens == [[word for word, _ in one] for one in sequences]
    assert labels == [[None if label == "_" else label for _, label in one] for one in sequences]
    assert "".join(layout.filled([[label for _, label in one] for one in sequences])) == text


@given(CORPORA)
def test_any_tagged_text_comes_back(sequences):
    parts = ("".join(word if tag == "_" else f" <{tag}>{word}</{tag}> " for word, tag in one) for one in sequences)
    text = f"<all>{''.join(f'<s>{part}</s>' for part in parts)}</all>"
    tokens, labels, _, layout = tagged_xml.read(text, None, None)
    filled = "".join(layout.filled([[label or "c" for label in one] for one in labels]))
    again = tagged_xml.read(filled, None, None)
    assert again[:2] == (tokens, [[label or "c" for label in one] for one in labels])


@given(CORPORA)
def test_any_objects_come_back(sequences):
    rows = [{"tokens": [word for word, _ in one], "labels": [label for _, label in one]} for one in sequences]
    text = "\n".join(map(json_sequences.dumps, rows))
    tokens, _, _, layout = json_sequences.read(text, None, None)
    assert tokens == [row["tokens"] for row in rows]
    assert "".join(layout.filled([row["labels"] for row in rows])) == text


def test_candidates_and_ruled_out_labels(tmp_path):
    corpus = read(tmp_path, "a.conll", "x author|editor\ny !title\nz !a|b\n")
    assert corpus.given == [[{"author", "editor"}, RuledOut("title"), RuledOut(["a", "b"])]]
    same = read(tmp_path, "a.jsonl", '{"tokens": ["x", "y"], "labels": [["author", "editor"], "!title"]}')
    assert same.given == [[{"author", "editor"}, RuledOut("title")]]


def test_compressed_files(tmp_path):
    path = tmp_path / "refs.conll.gz"
    path.write_bytes(gzip.compress(CONLL.encode()))
    corpus = read_corpus(str(path))
    write_corpus(corpus, [["author", "title"], ["date"]], str(path))
    assert gzip.decompress(path.read_bytes()).decode() == CONLL.replace("_", "title")


@pytest.mark.parametrize("name", FILES)
def test_a_byte_order_mark_is_kept(name, tmp_path):
    plain, marked = (read(tmp_path, name, mark + FILES[name]) for mark in ("", "\ufeff"))
    assert (marked.tokens, marked.given, marked.lines) == (plain.tokens, plain.given, plain.lines)
    labels = plain.merged([["note"] * len(tokens) for tokens in plain.tokens])
    assert written(tmp_path, marked, labels) == "\ufeff" + written(tmp_path, plain, labels)


BOMB = '<!DOCTYPE a [<!ENTITY x "ha"><!ENTITY y "&x;&x;&x;">]><a><s>&y;</s></a>'
BAD = {
    "nul": ("a.conll", "a l\nb \0l\n", "line 2: .*NUL"),
    "latin 1": ("a.conll", b"a l\n\xe9 l\n", "line 2: expected UTF-8"),
    "empty": ("a.conll", "\n\n", "no sequences"),
    "unequal columns": ("a.conll", "a x l\nb l\n", "line 2: expected 3 columns .* found 2"),
    "other columns later": ("a.conll", "a x l\n\nb\n", "line 3: expected 3 columns .* found 1"),
    "three widths": ("a.conll", "a x l\n\nb x\n\nc x l m\n", "line 5: expected 3 columns .* found 4"),
    "empty token": ("a.conll", "\tx\tl\n", 'line 1: the token "" is empty'),
    "empty candidate": ("a.conll", "a x|\n", 'line 1: the label "x\\|" has an empty part'),
    "huge token": ("a.conll", "a" * 100_000 + " l\n", "line 1: a token has 100000 characters"),
    "no tokens key": ("a.jsonl", '{"text": "a"}', "line 1: expected a list of texts under the key 'tokens'"),
    "no tokens": ("a.jsonl", '{"tokens": []}', "line 1: expected a list of texts"),
    "fewer labels": ("a.jsonl", '\n{"tokens": ["a", "b"], "labels": ["l"]}', "line 2: expected 2 labels .* found 1"),
    "labels as text": (
        "a.jsonl",
        '{"tokens": ["a"], "labels": "l"}',
        "line 1: expected 1 label under .* something else",
    ),
    "numbers as labels": ("a.jsonl", '{"tokens": ["a"], "labels": [3]}', "line 1: a label must be a text"),
    "zero as a label": ("a.jsonl", '{"tokens": ["a"], "labels": [0]}', "line 1: a label must be a text"),
    "false as a label": ("a.jsonl", '{"tokens": ["a"], "labels": [false]}', "line 1: a label must be a text"),
    "numbers as tokens": ("a.jsonl", '{"tokens": [3]}', "line 1: expected a list of texts"),
    "line break in a token": ("a.jsonl", '{"tokens": ["a\\nb"]}', "line 1: .* line break"),
    "no object": ("a.jsonl", "[1]", "line 1: expected a JSON object"),
    "no json": ("a.jsonl", '{"tokens": ["a"}', "line 1: expected a JSON object, but the JSON is invalid"),
    "deep json": ("a.jsonl", "[" * 100_000, "line 1: .*nested deeper"),
    "bomb": ("a.xml", BOMB, "line 1: document types"),
    "outside entity": ("a.xml", '<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>', "line 1: document types"),
    "unknown entity": ("a.xml", "<a>\n<s>&x;</s></a>", "line 2: the XML is not valid"),
    "cdata": ("a.xml", "<a><s><![CDATA[x]]></s></a>", "line 1: .*CDATA"),
    "deep xml": ("a.xml", "<a>" * 100_000, "line 1: <a> is nested deeper"),
    "text in the root": ("a.xml", "<a>\nx<s>y</s></a>", 'line 2: the text "x" is in no sequence'),
    "cut off": ("a.xml", "<a><s>x</s>", "line 1: the XML is not valid"),
    "no text": ("a.xml", "<a><s> </s></a>", "line 1: the sequence has no text"),
    "no sequence": ("a.xml", "<a/>", "no sequences"),
    "declared latin 1": ("a.xml", '<?xml version="1.0" encoding="latin1"?><a><s>x</s></a>', 'declares "latin1"'),
    "a tag for no label": ("a.xml", "<a>\n<s><_>x</_> y</s></a>", "line 2: <_> is no label. Remove this tag"),
    "not xml": ("a.xml", "a l\n", "line 1: the XML is not valid"),
    "reference to a tab": ("a.xml", "<a><s>x&#9;y</s></a>", "line 1: .* tab"),
    "bad gzip": ("a.conll.gz", "a l\n", "truncated or corrupt"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files_are_refused_with_their_line(name, tmp_path):
    file, content, expected = BAD[name]
    with pytest.raises(FileError, match=expected) as caught:
        read(tmp_path, file, content)
    assert str(caught.value).count("\n") == 0
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("a.conll", {"label": "x"}, "must be the number of a column"),
        ("a.conll", {"label": "0"}, "must be the number of a column"),
        ("a.conll", {"label": "9"}, "has 3 columns, not a token in column 1 and a label in column 9"),
        ("a.conll", {"token": "3"}, "has 3 columns, not a token in column 3 and a label in column 3"),
        ("a.xml", {"label": "2"}, "labels of XML are elements"),
        ("a.pdf", {}, "cannot tell the format"),
    ],
)
def test_bad_columns_and_names_are_refused(name, options, expected, tmp_path):
    with pytest.raises(InputError, match=expected):
        read(tmp_path, name, XML if name.endswith("xml") else "a x l\n", **options)


def test_labels_that_are_no_xml_names_are_refused(tmp_path):
    corpus = read(tmp_path, "a.xml", "<a><s>x</s></a>")
    with pytest.raises(InputError, match="cannot be the name of an XML element"):
        written(tmp_path, corpus, [["<b>"]])
    assert not (tmp_path / "out.xml").exists()


def test_names_of_elements_may_have_a_prefix(tmp_path):
    text = '<a xmlns:dc="x"><s><dc:author>x</dc:author> y</s></a>'
    corpus = read(tmp_path, "a.xml", text)
    assert corpus.given == [["dc:author", None]]
    expected = text.replace(" y", " <dc:author>y</dc:author>")
    assert written(tmp_path, corpus, [["dc:author", "dc:author"]]) == expected


@pytest.mark.parametrize(("content", "label"), [("a l\n", "first name"), ("a\tl\n", "x\ty"), ("a l\n", "x\ny")])
def test_labels_that_are_no_columns_are_refused(content, label, tmp_path):
    with pytest.raises(InputError, match="cannot stand in a column"):
        written(tmp_path, read(tmp_path, "a.conll", content), [[label]])
    assert not (tmp_path / "out.conll").exists()


@given(st.binary(max_size=60), st.sampled_from(["conll", "jsonl", "xml"]))
def test_any_bytes_are_read_or_refused(data, format):
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"a.{format}")
        path.write_bytes(data)
        try:
            corpus = read_corpus(str(path))
        except FileError:
            return
        assert all(map(len, corpus.tokens))
