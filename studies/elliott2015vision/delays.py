"""Completion delays: how regularly the frames of a graph are shown (paper 003, section 5.5.3.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
NAN = float("nan")


@dataclass(frozen=True)
class Delays:
    """A row of Tables 5.3 to 5.13 in ms, or of Table 5.14 in periods.

    All but the first are NaN where there is no delay: for a graph that showed fewer than two frames.

    Attributes:
        dropped_percent: frames that were not shown in time, as a percentage of those of the whole run.
        max: greatest delay; then percentiles.
        std: standard deviation.
    """

    dropped_percent: float
    max: float
    p99_9: float
    p99: float
    median: float
    mean: float
    std: float


MEASURES = tuple(field.name for field in fields(Delays))
HEADINGS = ("dropped, %", "max", "99.9 %", "99 %", "median", "mean", "std")


def delays_ms(completion_ns: Array) -> Array:
    """Differences between consecutive completions, in ms. Shape (frames - 1,), empty for fewer than two frames."""
    return np.diff(np.sort(completion_ns)) / 1e6


def summary(completion_ns: Array, expected: int) -> Delays:
    """The row of a graph that should have shown so many frames."""
    delays = delays_ms(completion_ns)
    dropped = 100 * max(0.0, 1 - len(completion_ns) / expected)
    if len(delays) == 0:
        return Delays(dropped, NAN, NAN, NAN, NAN, NAN, NAN)
    p99_9, p99, median = (float(value) for value in np.percentile(delays, (99.9, 99, 50)))
    return Delays(dropped, float(delays.max()), p99_9, p99, median, float(delays.mean()), float(delays.std()))


def averaged(rows: Sequence[tuple[Delays, float]]) -> Delays:
    """The row of a configuration in Table 5.14.

    Delays are divided by the graph's period and averaged over the graphs that have some; the percentage that was
    dropped is of the frames of all graphs. NaN if no graph has any.

    Args:
        rows: of the graphs, with their periods in ms.
    """
    periods = np.array([period for _, period in rows])
    values = np.array([[getattr(row, name) for name in MEASURES] for row, _ in rows])
    # A graph of half the period has twice the frames.
    dropped = np.average(values[:, 0], weights=1 / periods)
    normalized = (values[:, 1:] / periods[:, np.newaxis])[~np.isnan(values[:, 1])]
    if not len(normalized):
        return Delays(float(dropped), NAN, NAN, NAN, NAN, NAN, NAN)
    return Delays(float(dropped), *(float(value) for value in normalized.mean(axis=0)))


def cell(value: float, digits: int = 2) -> str:
    """A number of a table."""
    return "none" if np.isnan(value) else f"{value:.{digits}f}"
