"""The built-in corpus as published: sizes, paths, splits, nothing empty."""

from collections import Counter

from transduce.datasets import load_clinc150


def test_ten_domains_of_fifteen_intents_of_150_requests():
    texts, labels, split = load_clinc150()
    assert len(texts) == len(labels) == len(split) == 22_500
    assert set(Counter(labels).values()) == {150}
    domains = Counter(label.split("/")[0] for label in set(labels))
    assert len(domains) == 10
    assert set(domains.values()) == {15}
    assert Counter(split) == {"train": 15_000, "val": 3_000, "test": 4_500}
    assert all(text.strip() for text in texts)


def test_two_loads_are_equal_and_independent():
    first, second = load_clinc150(), load_clinc150()
    assert all((a == b).all() for a, b in zip(first, second, strict=True))
    first.labels[0] = "changed"
    assert second.labels[0] != "changed"
