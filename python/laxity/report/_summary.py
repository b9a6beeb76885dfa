"""Numbers of several instances together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from laxity.report._frames import Frames, Spread
from laxity.report._results import Configuration


@dataclass(frozen=True)
class Summary:
    """What became of the frames of some instances.

    Attributes:
        expected: frames that were due.
        completed: that came out in time.
        delays: completion delays.
        latencies: from release to completion.
    """

    expected: int
    completed: int
    delays: Spread | None
    latencies: Spread | None

    @property
    def dropped(self) -> int:
        """Frames that were due and did not come out in time."""
        return self.expected - self.completed


def summarize(instances: Sequence[Frames]) -> Summary:
    """All of them, whatever their periods: each spread in periods of its instance, then the mean over instances.

    Source: Elliott (2015), section 5.5.3.1, on Table 5.14.
    """
    delays = [(Spread.of(one.delays_ns), one.period_ns) for one in instances]
    latencies = [(Spread.of(one.latencies_ns), one.period_ns) for one in instances]
    return Summary(
        expected=sum(one.expected for one in instances),
        completed=sum(one.completed for one in instances),
        delays=Spread.average([spread.over(period_ns) for spread, period_ns in delays if spread]),
        latencies=Spread.average([spread.over(period_ns) for spread, period_ns in latencies if spread]),
    )


def periods(configuration: Configuration) -> list[int]:
    """The periods that there are, ascending."""
    return sorted({one.period_ns for one in configuration.instances})


def of_period(configuration: Configuration, period_ns: int) -> Summary:
    """The instances of this period, taken together; spreads in nanoseconds."""
    alike: list[Frames] = [one for one in configuration.instances if one.period_ns == period_ns]
    return Summary(
        expected=sum(one.expected for one in alike),
        completed=sum(one.completed for one in alike),
        delays=Spread.of(np.concatenate([one.delays_ns for one in alike])),
        latencies=Spread.of(np.concatenate([one.latencies_ns for one in alike])),
    )
