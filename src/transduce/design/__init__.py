"""The design matrix X: rows with their products, columns by frequency, and lengths of rows."""

from transduce.design.columns import frequency_order, pays_to_reorder, undo_order
from transduce.design.lengths import mean_squared_length, squared_norm, sum_of_squares
from transduce.design.matrix import Design

__all__ = [
    "Design",
    "frequency_order",
    "mean_squared_length",
    "pays_to_reorder",
    "squared_norm",
    "sum_of_squares",
    "undo_order",
]
