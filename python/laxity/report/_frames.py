"""Frames that a video program put out, and how regularly.

The *completion delay* is the time between the completions of consecutive frames. A frame is *dropped* if it was due,
but was not complete when the time was over. Source: Elliott, "Real-Time Scheduling for GPUs with
Applications in Advanced Automotive Systems" (2015), section 5.5.3.1.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from laxity.report._files import ResultsError, text

Nanos: TypeAlias = NDArray[np.int64]

HEADER = ["frame", "release_us", "completion_us"]
"""Of a file of frames: microseconds of the monotonic clock, a line a frame."""


@dataclass(frozen=True)
class Spread:
    """How spans are distributed, in the unit that they were given in; percentiles are values that occurred.

    Attributes:
        max: the longest.
        p999: 99.9 of 100 are no longer.
        p99: 99 of 100 are no longer.
        median: half are no longer.
        mean: arithmetic.
        deviation: standard deviation, of the whole population.
    """

    max: float
    p999: float
    p99: float
    median: float
    mean: float
    deviation: float

    @classmethod
    def of(cls, values: NDArray[np.int64] | NDArray[np.float64]) -> Spread | None:
        """That of `values`; None where there are none."""
        if not values.size:
            return None
        p999, p99, median = np.quantile(values, (0.999, 0.99, 0.5), method="inverted_cdf")
        return cls(*map(float, (values.max(), p999, p99, median, values.mean(), values.std())))

    @classmethod
    def average(cls, spreads: Sequence[Spread]) -> Spread | None:
        """The mean of each number; None of none."""
        if not spreads:
            return None
        return cls(*(float(np.mean([getattr(one, field.name) for one in spreads])) for field in fields(cls)))

    def over(self, unit: float) -> Spread:
        """The same in another unit, which is so many of this one."""
        return Spread(*(getattr(self, field.name) / unit for field in fields(self)))


@dataclass(frozen=True)
class Frames:
    """What one program put out.

    Attributes:
        name: of the program.
        period_ns: between two releases.
        expected: frames that were due.
        release_ns: when each frame that is complete was released, int64 of shape (n_frames,).
        completion_ns: when it was complete; ascending.
    """

    name: str
    period_ns: int
    expected: int
    release_ns: Nanos
    completion_ns: Nanos

    @property
    def completed(self) -> int:
        """Frames that came out."""
        return len(self.completion_ns)

    @property
    def dropped(self) -> int:
        """Frames that were due and did not."""
        return self.expected - self.completed

    def split(self, origin_ns: int, start_ns: int) -> tuple[Frames, Frames]:
        """The frames of the start, released in so many ns from the origin, and those that follow."""
        due = min(self.expected, -(-start_ns // self.period_ns))
        is_start = self.release_ns < origin_ns + start_ns
        parts = [(due, is_start), (self.expected - due, ~is_start)]
        start, steady = (
            replace(self, expected=count, release_ns=self.release_ns[which], completion_ns=self.completion_ns[which])
            for count, which in parts
        )
        return start, steady

    @property
    def delays_ns(self) -> Nanos:
        """Completion delays, int64 of shape (n_frames - 1,)."""
        return np.diff(self.completion_ns)

    @property
    def latencies_ns(self) -> Nanos:
        """From each frame's release to its completion, int64 of shape (n_frames,)."""
        return self.completion_ns - self.release_ns


def read_frames(path: str | os.PathLike[str], name: str, period_ns: int, duration_ns: int) -> Frames:
    """Reads a file of frames, ordered by completion, of a program that ran for so long.

    Of a file that ends in the middle of a line, as that of a killed program may, the whole lines count.

    Raises:
        ResultsError: if the file is missing or malformed, or has more frames than were due.
    """
    path = Path(path)
    content = text(path)
    lines = content.splitlines() if content.endswith("\n") else content.splitlines()[:-1]
    rows = list(csv.reader(lines))
    if not rows or rows[0] != HEADER:
        raise ResultsError(f"{path}:1: is no file of frames; the first line should be {','.join(HEADER)}")
    times = np.empty((len(rows) - 1, 2), np.int64)
    for number, row in enumerate(rows[1:]):
        times[number] = _times(path, number + 2, row)
    times = times[np.argsort(times[:, 1], kind="stable")]
    # Whole periods: a frame that is released when the time is over is not due.
    expected = duration_ns // period_ns
    if len(times) > expected:
        raise ResultsError(
            f"{path}: has {len(times)} frames, but a period of {period_ns} ns has only {expected} in {duration_ns} ns"
        )
    return Frames(name, period_ns, expected, times[:, 0], times[:, 1])


def _times(path: Path, line: int, row: list[str]) -> tuple[int, int]:
    try:
        _, release_us, completion_us = map(int, row)
    except ValueError as error:
        raise ResultsError(f"{path}:{line}: {','.join(row)}: is not {len(HEADER)} whole numbers") from error
    if completion_us < release_us:
        raise ResultsError(f"{path}:{line}: completed at {completion_us} us, before its release at {release_us} us")
    return release_us * 1000, completion_us * 1000
