"""A small model, its file, and the parts of a file, to be changed."""

import json
from dataclasses import replace

import numpy as np

from transduce.features.identity import EncoderIdentity
from transduce.features.tfidf import Features, Vectorizer, fit_vectorizer
from transduce.model_file import Model

TEXTS = ["green tea", "black tea", "black coffee", "coffee with milk", "茶", "thé vert"]
CLASSES = ("tea/leaf", 'tea/寒い "quoted"\n', "coffee")
NUMBERS = ("coef", "intercept", "shift")
ENCODER = EncoderIdentity("teas/leaves-5", "f00d", ((0.25, -1.5), (0.0, 1.0)))


def about(classes=CLASSES):
    counts = dict.fromkeys(("labelled", "asked_low", "asked_high", "assigned", "own"), 3)
    fractions = dict.fromkeys(("texts_low", "texts_high", "price"), 0.25)
    rounds = {"restart": 0, "stage": 1, "objective": 0.5, "moved": 2, "seconds": 0.1, "temperature": 0.0, "weight": 1.0}
    return {
        "transduce": "0.1.0",
        "created": "2024-05-01T12:00:00+00:00",
        "source": "teas.csv",
        "seed": None,
        "settings": {"loss": "hinge", "alpha": 1e-3, "text": ["title", "body"], "label": "label"},
        "n_labelled": 3,
        "n_unlabelled": 9,
        "prior": "Class sizes were stated.",
        "ending": "Converged.",
        "seconds": 1.25,
        "interrupted": False,
        "sizes": [{"class": name, **counts, **fractions} for name in classes],
        "history": [rounds, rounds],
    }


def small_model(kind="tfidf", dtype=np.float32, **changes):
    if kind == "mix":
        words, center = fit_vectorizer(TEXTS, Features())[0], np.linspace(-1, 1, 5, dtype=np.float32)
        features = Features("mix", n_features=5, encoder=ENCODER, words_share=0.3)
        vectorizer = Vectorizer(features, words.vocabulary, words.idf, center)
    elif kind in ("vectors", "centred", "embeddings"):
        center = np.empty(0, np.float32) if kind == "vectors" else np.linspace(-1, 1, 5, dtype=np.float32)
        features = Features("vectors", n_features=5)
        if kind == "embeddings":
            features = Features("embeddings", n_features=5, encoder=ENCODER)
        vectorizer = Vectorizer(features, center=center)
    else:
        vectorizer, _ = fit_vectorizer(TEXTS, Features(kind, hash_bits=4))
    draw = np.random.default_rng(0).normal
    K, d = len(CLASSES), vectorizer.n_columns
    numbers = (draw(size=shape).astype(dtype) for shape in ((K, d), K, K))
    return replace(Model(CLASSES, *numbers, vectorizer, True, "hinge", about()), **changes)


def parts(content):
    """Header and numbers of a file."""
    end = 8 + int.from_bytes(content[:8], "little")
    return json.loads(content[8:end]), content[end:]


def joined(header, numbers):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + numbers


def described(content, change):
    """The file with its description changed."""
    header, numbers = parts(content)
    description = json.loads(header["__metadata__"]["transduce"])
    change(description)
    header["__metadata__"]["transduce"] = json.dumps(description)
    return joined(header, numbers)


def change_about(**values):
    return lambda header: header["about"].update(values)
