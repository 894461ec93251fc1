"""transduce labels a pile of documents from labels for a few of them and the size of each class.

The public names, all of them:

    solve_labels   the cheapest labels for given class sizes, optimal, with a certificate

and, one module down, `transduce.label_step` (the label steps as objects), `transduce.losses`, `transduce.counts` and
`transduce.corpora` (the built-in corpus).
"""

from transduce.label_step import solve_labels

__all__ = ["solve_labels"]
__version__ = "0.1.0"
