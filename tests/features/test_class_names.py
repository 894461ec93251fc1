"""Class names: files, descriptions, names that are refused, and cosines with texts."""

import numpy as np
import pytest

from transduce import TextClassifier
from transduce.errors import InputError
from transduce.features.class_names import describe_classes, name_scores, read_class_names
from transduce.features.embeddings import Encoding

WORDS = ("tea", "coffee", "milk")


def encode(texts):
    """A vector of how often each word occurs, and how long the text is."""
    return [[*(text.lower().count(word) + 0.01 for word in WORDS), 0.001 * len(text)] for text in texts]


def test_a_file_has_names_and_descriptions(tmp_path):
    path = tmp_path / "classes.csv"
    path.write_text('tea,"tea, of any kind"\n\nhot/coffee\n', encoding="utf-8")
    assert read_class_names(str(path)) == {"tea": "tea, of any kind", "hot/coffee": "hot: coffee"}


def test_a_file_may_have_tabs(tmp_path):
    path = tmp_path / "classes.tsv"
    path.write_text("tea\tgreen, black\ncoffee\tespresso\n", encoding="utf-8")
    assert read_class_names(str(path)) == {"tea": "green, black", "coffee": "espresso"}


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["tea", " "], "class name 2 is empty"),
        (["tea", "Tea"], "are the same"),
        (["green_tea", "green tea"], "are the same"),
        (["tea"], "two or more class names"),
        ({"tea": "drink", "coffee": "drink"}, "the same description"),
        ("tea", "must be a list"),
        ({"tea": 3, "coffee": "drink"}, "description of class 'tea' must be text, but is 3"),
    ],
)
def test_names_that_collide_or_are_empty_are_refused(names, message):
    with pytest.raises(InputError, match=message):
        describe_classes(names)


def test_a_file_that_is_not_there_is_no_list_of_names():
    with pytest.raises(InputError, match=r"no file nowhere\.txt"):
        read_class_names("nowhere.txt")


def test_many_names_are_no_path():
    names = [f"class {number}" for number in range(1000)]
    assert list(read_class_names(", ".join(names))) == names


def test_scores_are_cosines_and_empty_texts_have_none():
    scores = name_scores(["tea tea", "", "milk"], {"t": "tea", "m": "milk"}, Encoding(encode, cache=False))
    vectors, names = np.array(encode(["tea tea", "milk"])), np.array(encode(["tea", "milk"]))
    cosines = vectors @ names.T / np.outer(np.linalg.norm(vectors, axis=1), np.linalg.norm(names, axis=1))
    assert np.allclose(scores[[0, 2]], cosines, atol=1e-6)
    assert np.isnan(scores[1]).all()


def test_texts_are_labelled_by_class_names_alone():
    texts = [f"{'more ' * (k % 4)}{word}" for k in range(10) for word in WORDS]
    model = TextClassifier(features="embeddings", encoder=encode, cache=False, class_prior="equal", random_state=0)
    assert model.fit(texts, class_names=[*WORDS]).transduction_.tolist() == [*WORDS] * 10
    with pytest.raises(ValueError, match="cannot be combined"):
        model.fit(texts, class_names=[*WORDS], guesses=[*WORDS] * 10)
