"""Feature rows: tf-idf or hashed words of texts, vectors of an encoder, or vectors provided by the user."""

from transduce.cli.features.tfidf import Features, Vectorizer, fit_vectorizer
from transduce.cli.features.vectors import fit_vectors, read_vectors, unit_rows

__all__ = ["Features", "Vectorizer", "fit_vectorizer", "fit_vectors", "read_vectors", "unit_rows"]
