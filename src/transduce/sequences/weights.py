"""The weight step for chains: L-BFGS on the regularised loss, given expected features of the labels.

    J(θ) = λ/2 ‖θ‖² + Σ_s κ_s log Z_s(θ) − ⟨F, θ⟩        F = Σ_s κ_s E_q[features of s]

is the maxent loss of labels that follow the distribution q, or are given: its gradient is λθ plus the expected features
of the model less F, and q enters through F alone. The structured margin with softness μ replaces log Z by

    μ log Σ_y exp((score(y) + Δ(y, q)) / μ),        Δ(y, q) = Σ_t (1 − q_t(y_t)),

the number of wrong tokens, which tends to max_y (score(y) + Δ(y, q)) as μ falls. Reference: Lafferty, McCallum and
Pereira (2001); Taskar, Guestrin and Koller (2003); Nocedal (1980) for L-BFGS.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from transduce.arrays import Array, FloatArray
from transduce.sequences.chains import Chains
from transduce.weight_step.lbfgs import Minimum, gradient_at_zero

SOFTNESS = 0.2
"""μ of the structured margin."""
MEMORY, MAX_HALVINGS = 6, 30
"""Steps that L-BFGS remembers, and how often it halves one."""


@dataclass(frozen=True, eq=False)
class ChainLoss:
    """Loss of the weights θ (d + K + 2, K) for labels with expected features F.

    chains    sequences as the model sees them, without bias or constraints
    weights   (n,) κ of each sequence
    features  (d + K + 2, K) F
    posterior (N, K) distributions of the tokens' labels for the structured margin; None for maxent
    """

    chains: Chains
    weights: FloatArray
    features: FloatArray
    posterior: FloatArray | None = None

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Return the loss and its gradient."""
        log_z, expected = self.model(theta)
        gradient = expected - self.features
        return float(self.weights @ log_z) - float(np.vdot(self.features, theta)), gradient

    def model(self, theta: Array) -> tuple[FloatArray, FloatArray]:
        """Soft maximum of the scores (n,), and expected features of the model."""
        S, A, mu = self.chains.scores(theta), self.chains.transitions(theta), 1.0
        if self.posterior is not None:
            S, mu = S + 1.0 - self.posterior, SOFTNESS
        sums = self.chains.marginals(S, A, None, mu, self.weights, out=S)
        return mu * sums.log_z, self.chains.pullback(S, sums.edges)

    def minimize(self, theta: Array, alpha: float, tol: float, max_iter: int) -> Minimum:
        """Minimise J from θ until the gradient is at most `tol` of that at 0; `gradient` is relative to it too."""
        at_zero = max(gradient_at_zero(self, theta), 1e-12)

        def regularized(flat: FloatArray) -> tuple[float, FloatArray]:
            value, gradient = self(flat.reshape(theta.shape))
            gradient = gradient.ravel()
            gradient += alpha * flat
            return value + 0.5 * alpha * float(flat @ flat), gradient

        x, value, gradient, n = _lbfgs(regularized, theta.ravel().copy(), tol * at_zero, max_iter)
        return Minimum(x.reshape(theta.shape), value, gradient / at_zero, float(n), gradient <= tol * at_zero)


def _lbfgs(
    function: Callable[[FloatArray], tuple[float, FloatArray]], x: FloatArray, gtol: float, max_iter: int
) -> tuple[FloatArray, float, float, int]:
    """Minimise a smooth convex function; return x, its value, the largest entry of the gradient, and evaluations.

    That of SciPy spends more time on bounds, which there are none of here, than the loss takes for a few sequences.
    """
    (value, g), pairs, n = function(x), deque(maxlen=MEMORY), 1  # type: ignore[var-annotated]
    for _ in range(max_iter):
        largest = float(np.abs(g).max())
        if largest <= gtol:
            break
        direction = _direction(g, pairs)
        slope, step = float(g @ direction), 1.0 if pairs else min(1.0, 1.0 / float(np.linalg.norm(g)))
        for _ in range(MAX_HALVINGS):
            new = x + step * direction
            (new_value, new_g), n = function(new), n + 1
            if new_value <= value + 1e-4 * step * slope:
                break
            step *= 0.5
        else:
            break
        s, y = new - x, new_g - g
        if s @ y > 1e-12 * (y @ y):
            pairs.append((s, y, 1.0 / float(s @ y)))
        x, value, g = new, new_value, new_g
    return x, value, float(np.abs(g).max()), n


def _direction(g: FloatArray, pairs: Sequence[tuple[FloatArray, FloatArray, float]]) -> FloatArray:
    """Minus the gradient times the inverse of the curvature that the last steps showed (two-loop recursion)."""
    q, parts = -g, []
    for s, y, rho in reversed(pairs):
        parts.append(rho * float(s @ q))
        q -= parts[-1] * y
    if pairs:
        s, y, rho = pairs[-1]
        q *= 1.0 / (rho * float(y @ y))
    for (s, y, rho), part in zip(pairs, reversed(parts), strict=True):
        q += (part - rho * float(y @ q)) * s
    return q
