"""Feature rows: tf-idf or hashed words of texts, or vectors provided by the user."""

from transduce.cli.features.tfidf import Features, Vectorizer, fit_vectorizer
from transduce.cli.features.vectors import read_vectors, unit_rows

__all__ = ["Features", "Vectorizer", "fit_vectorizer", "read_vectors", "unit_rows"]
