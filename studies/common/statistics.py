"""The little statistics that curves need."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Z95 = 1.959963984540054
"""Two-sided 95 % of the standard normal distribution."""


def wilson(
    accepted: ArrayLike, total: ArrayLike, z: float = Z95
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Fractions, and the ends of their confidence intervals (Wilson 1927: right near 0 and 1 and for few sets).

    Returns three float64 arrays of the shape of ``accepted``.
    """
    n: NDArray[Any] = np.maximum(np.asarray(total, np.float64), 1.0)
    p = np.asarray(accepted, np.float64) / n
    centre = p + z * z / (2 * n)
    spread = z * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    # At 0 and 1 an end is the fraction itself, up to a rounding error that must not put it on the wrong side.
    low, high = np.minimum(p, (centre - spread) / scale), np.maximum(p, (centre + spread) / scale)
    return p, np.maximum(0.0, low), np.minimum(1.0, high)


def last_crossing(x: NDArray[np.float64], y: NDArray[np.float64], level: float) -> float:
    """The largest x up to which y is at least ``level``, linearly between points; nan if it never is.

    "Up to which" means: until y falls below the level for good.
    """
    above = np.flatnonzero(y >= level)
    if not above.size:
        return float("nan")
    last = int(above[-1])
    if last == len(x) - 1:
        return float(x[last])
    share = (y[last] - level) / (y[last] - y[last + 1])
    return float(x[last] + share * (x[last + 1] - x[last]))
