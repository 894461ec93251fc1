"""Numba kernels of dual coordinate ascent, one file per loss.

Arrays of a sweep: order (t,), the rows to visit; labels, kappa, norms = ‖x_i‖² and gaps (n,); margins (K, K), row y
for the right label y; rows, tree and W (d, M) as in `kernels.rows`; dual variables p or t (n, K). W, the dual variables
and the gaps are updated in place.
"""

GAP_LEFT = 0.25
"""The estimated fraction of a row's gap that is left when it is visited, and the other rows have moved W."""

MARGIN, SQUARED, MAXENT = 0, 1, 2
"""Losses that kernels know."""
