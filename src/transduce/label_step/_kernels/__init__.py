"""Compiled loops of the label steps; each file opens with the problem it solves."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Labels: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]
