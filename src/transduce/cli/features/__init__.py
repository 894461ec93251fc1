"""Feature rows: from texts by their words, or from vectors that a user brings."""

from transduce.cli.features.tfidf import Features, Vectorizer, fit_vectorizer
from transduce.cli.features.vectors import read_vectors, unit_rows

__all__ = ["Features", "Vectorizer", "fit_vectorizer", "read_vectors", "unit_rows"]
