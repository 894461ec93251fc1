"""Checks of texts: every planted problem is found in its row, and texts of any script are not garbled."""

import unicodedata

import pytest
from helpers.checked_documents import check, clean, only

from transduce.features.word_counts import count_words


@pytest.mark.parametrize(
    ("text", "severity", "words"),
    [
        ("", "warning", "1 of 60 texts is empty (row 41)"),
        (" \n\t", "warning", "is empty"),
        ("caf\ufffd number", "warning", "1 text has the replacement character"),
        ("cafÃ© number one", "warning", "garbled characters such as 'Ã©'"),
        ("it isnâ€™t so", "warning", "garbled characters such as 'â€™'"),
        ("20 Â°C today", "warning", "garbled"),
        ("Ð¿Ñ€Ð¸Ð²ÐµÑ‚", "warning", "garbled"),
        ("nice ðŸ˜€", "warning", "garbled"),
        ("nul \x00 here", "warning", "control characters"),
        ("escape \x1b[31m", "warning", "control characters"),
        ("\ufeffmark at the start", "warning", "control characters"),
        ("word " * 1000, "note", "has 5000 characters; the median is"),
        ("?!", "note", "1 of 60 texts has no word (row 41)"),
        ("a", "note", "has no word"),
        ("- 1 -", "note", "has no word"),
        ("茶", "note", "is nearly empty"),
        ("ok", "note", "is nearly empty"),
    ],
)
def test_a_bad_text_is_found_in_its_row(text, severity, words):
    texts, labels = clean()
    texts[40] = text
    found = only(check(texts, labels))
    assert (found.severity, found.rows) == (severity, (41,))
    assert words in found.message
    assert "row 41" in found.message


@pytest.mark.parametrize(
    "text",
    [
        "naïve café: 5 µm — “so”…",
        "SÃO, NÃO, IRMÃ” Â Ã",
        "привет, мир",
        "日本語です",
        "line one\r\n\tline two\f",
        "El Niño, AÑO",
    ],
)
def test_well_written_text_of_any_script_is_not_garbled(text):
    texts, labels = clean()
    texts[40] = text + " " + texts[40]
    assert check(texts, labels) == []


def test_empty_texts_with_and_without_labels():
    texts, labels = clean()
    assert check([""] * 60, labels)[0].severity == "problem"
    texts[2] = texts[50] = " "
    empty, labelled = check(texts, labels)
    assert (empty.rows, labelled.rows) == ((3, 51), (3,))
    assert "1 empty text has a label (row 3)" in labelled.message


@pytest.mark.parametrize("text", ["", "?!", "a b c", "é", "ab", "茶", "_", "__", "１", "x😀y", "naïve", "ก"])
def test_a_text_has_no_word_if_tfidf_finds_none(text):
    texts, labels = clean()
    texts[40] = text
    _, counts = count_words(["two words", text], ngrams=1)
    no_word = [one.rows for one in check(texts, labels) if one.check in ("empty_texts", "texts_without_words")]
    assert no_word == [(41,)] * (counts[1].nnz == 0)


def test_mixed_unicode_forms_are_found():
    texts, labels = clean()
    texts = [text + " café" for text in texts]
    apart = [unicodedata.normalize("NFD", text) for text in texts]
    assert check(texts, labels) == check(apart, labels) == []
    found = only(check(texts[:55] + apart[55:], labels))
    assert found.rows == (56, 57, 58, 59, 60)
    assert "5 texts have accents separate from their letters" in found.message


def test_duplicates_may_differ_in_case_and_spacing():
    texts, labels = clean()
    texts[50], texts[51] = texts[45].upper(), "  " + texts[45].replace(" ", "\n")
    texts[55] = texts[40]
    found = only(check(texts, labels))
    assert (found.severity, found.rows) == ("note", (46, 51, 52))
    assert "2 texts occur more than once, in 5 rows; the most frequent one 3 times" in found.message


def test_duplicates_with_conflicting_labels():
    texts, labels = clean()
    texts[3] = texts[0]  # both tea
    texts[10] = texts[9].upper()  # tea and coffee
    conflict, duplicates = check(texts, labels)
    assert (conflict.severity, conflict.rows) == ("warning", (10, 11))
    assert "1 text has different labels" in conflict.message
    assert "'tea' in row 10 and 'coffee' in row 11" in conflict.message
    assert "2 texts occur more than once" in duplicates.message
