"""Words of a text in many scripts; scikit-learn is the oracle for Latin text."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer

from transduce.features.tokenize import words_of
from transduce.features.word_counts import count_words

LATIN = st.text("abcXYZ éÖß_09.,-'\n\t", max_size=40)


@settings(max_examples=25, deadline=None)
@given(st.lists(LATIN, max_size=8), st.sampled_from([1, 2]))
def test_words_of_latin_text_equal_scikit_learn(texts, ngrams):
    analyse = TfidfVectorizer(ngram_range=(1, ngrams)).build_analyzer()
    found, counts = count_words(texts, ngrams)
    expected = [sorted(analyse(text)) for text in texts]
    assert found == sorted({word for text in expected for word in text})
    for row, wanted in zip(counts.toarray().astype(int), expected, strict=True):
        assert [word for word, times in zip(found, row, strict=True) for _ in range(times)] == wanted


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = a_b, C3PO!", {"a_b", "c3po"}),
        ("Straße ÉCOLE", {"straße", "école"}),
        ("Привет, МИР", {"привет", "мир"}),
        ("हिन्दी भाषा", {"हिन्दी", "भाषा"}),
        ("한국어 문서", {"한국어", "문서"}),
        ("東京2020大会", {"東", "京", "東京", "2020", "大", "会", "大会"}),
        ("茶", {"茶"}),
        ("コーヒー", {"コ", "ー", "ヒ", "コー", "ーヒ", "ヒー"}),
        ("ชา", {"ช", "า", "ชา"}),
        ("𠮷野", {"𠮷", "野", "𠮷野"}),
        ("tea ☕️ 1️⃣ 👩‍🔬 a é", {"tea"}),
        ("\ud800 tea\ud800cup", {"tea", "cup"}),
        ("", set()),
    ],
)
def test_words_of_many_scripts(text, expected):
    assert set(count_words([text])[0]) == expected


def test_composed_and_decomposed_text_have_equal_words():
    text = "école über 한국어 ばら"
    assert words_of(unicodedata.normalize("NFD", text), 2) == words_of(text, 2)


def test_pairs_do_not_cross_unspaced_scripts():
    assert set(words_of("green tea 茶 hot cup", 2)) == {"green", "tea", "green tea", "茶", "hot", "cup", "hot cup"}
