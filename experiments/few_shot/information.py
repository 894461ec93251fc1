"""Class weights learned with a regulariser of the predictions on unlabelled rows: TIM, alpha-TIM and Fisher-Rao.

A row z of length 1 has class k with probability p_k = softmax_k(-t/2 |z - w_k|^2). The weights w start at the class
means and minimise

    c * cross-entropy of the labelled rows + R(p_1, ..., p_n)

by Adam. With m the mean of the n predictions, pi the class proportions and K classes, R is

    TIM (Boudiaf et al., 2020)          KL(m || pi) + a/n sum_i H(p_i)
    alpha-TIM (Veilleux et al., 2021)   1/(q - 1) sum_k (m_k^q (K pi_k)^(1 - q) - 1/n sum_i p_ik^q)
    Fisher-Rao (Colombo et al., 2023)   1/n sum_i log sum_j sum_k sqrt(p_ik p_jk) / (K pi_k)

The papers take pi as uniform, in which case these are, up to constants, the losses as published: minus the mutual
information of rows and labels, its Tsallis version, and the logarithm of the cosines of half the Fisher-Rao distances.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from experiments.few_shot.prototypes import class_means, softmax, unit
from experiments.few_shot.task import Fitted, Task, applied
from experiments.few_shot.transport import assumed

N_STEPS, STEP = 1000, 1e-4
DECAYS, EPSILON = (0.9, 0.999), 1e-8
TINY = 1e-12

Regularizer = Callable[[np.ndarray, np.ndarray], tuple[float, np.ndarray]]
"""From predictions P (n, K) and proportions to the value, and P times the gradient in P."""


class Setting(NamedTuple):
    """t, c, a or q, and the class proportions where none are known: "uniform" or "labeled"."""

    temperature: float
    labeled_weight: float
    parameter: float
    prior: str = "uniform"


def mutual_information(a: float) -> Regularizer:
    def evaluate(P: np.ndarray, proportions: np.ndarray) -> tuple[float, np.ndarray]:
        mean, logs = P.mean(axis=0), np.log(P + TINY)
        ratio = np.log((mean + TINY) / proportions)
        value = float(mean @ ratio) - a * float(np.vdot(P, logs)) / len(P)
        logs *= -a
        logs += ratio + (1 - a)
        logs *= P / len(P)
        return value, logs

    return evaluate


def tsallis_information(q: float) -> Regularizer:
    def evaluate(P: np.ndarray, proportions: np.ndarray) -> tuple[float, np.ndarray]:
        mean, powers = P.mean(axis=0), P ** (q - 1)
        relative = (mean / (proportions * len(mean))) ** (q - 1)
        value = float(mean @ relative) - float(np.vdot(P, powers)) / len(P)
        return value / (q - 1), (relative - powers) * P * (q / (q - 1) / len(P))

    return evaluate


def fisher_rao(scale: float) -> Regularizer:
    def evaluate(P: np.ndarray, proportions: np.ndarray) -> tuple[float, np.ndarray]:
        roots, relative = np.sqrt(P), proportions * P.shape[1]
        total = roots.sum(axis=0) / relative
        near = roots @ total
        inverse = (roots.T @ (1 / near)) / relative
        gradient = roots * (total / near[:, None] + inverse)
        return scale * float(np.log(near).mean()), gradient * (scale / 2 / len(P))

    return evaluate


REGULARIZERS: dict[str, Callable[[float], Regularizer]] = {
    "TIM": mutual_information,
    "alpha-TIM": tsallis_information,
    "Fisher-Rao": fisher_rao,
}


def logits(W: np.ndarray, Z: np.ndarray, temperature: float) -> np.ndarray:
    """Up to a constant for each row."""
    return temperature * (Z @ W.T - np.sum(W**2, axis=1) / 2)


class Objective:
    """The loss of class weights W (K, d) and its gradient."""

    def __init__(self, regularizer: Regularizer, setting: Setting, task: Task) -> None:
        self.regularizer, self.setting, self.one_hot = regularizer, setting, task.one_hot
        self.X, self.Q = unit(task.X), unit(task.Q)
        self.proportions = assumed(setting.prior, task).astype(self.Q.dtype)

    def __call__(self, W: np.ndarray) -> tuple[float, np.ndarray]:
        t, c, n_labeled = self.setting.temperature, self.setting.labeled_weight, len(self.X)
        P = softmax(logits(W, self.X, t))
        loss = -c * float(np.log(np.sum(P * self.one_hot, axis=1) + TINY).mean())
        gradient = _pulled(c / n_labeled * (P - self.one_hot), self.X, W)
        P = softmax(logits(W, self.Q, t))
        value, weighted = self.regularizer(P, self.proportions)
        weighted -= P * weighted.sum(axis=1, keepdims=True)
        return loss + value, t * (gradient + _pulled(weighted, self.Q, W))


def _pulled(D: np.ndarray, Z: np.ndarray, W: np.ndarray) -> np.ndarray:
    """Gradient in W of sum(D * logits) at temperature 1."""
    return D.T @ Z - D.sum(axis=0)[:, None] * W


def adam(objective: Objective, W: np.ndarray, n_steps: int, step: float) -> np.ndarray:
    first, second = np.zeros_like(W), np.zeros_like(W)
    for t in range(1, n_steps + 1):
        _, gradient = objective(W)
        first = DECAYS[0] * first + (1 - DECAYS[0]) * gradient
        second = DECAYS[1] * second + (1 - DECAYS[1]) * gradient**2
        scale = np.sqrt(second / (1 - DECAYS[1] ** t)) + EPSILON
        W = W - step / (1 - DECAYS[0] ** t) * first / scale
    return W


def information_maximized(
    name: str, setting: Setting, task: Task, n_steps: int = N_STEPS, step: float = STEP
) -> Fitted:
    """Scores of the weights that minimise the loss of a method."""
    objective = Objective(REGULARIZERS[name](setting.parameter), setting, task)
    W = adam(objective, class_means(task._replace(X=objective.X)), n_steps, step)
    return applied(lambda rows: logits(W, unit(rows), setting.temperature), task)
