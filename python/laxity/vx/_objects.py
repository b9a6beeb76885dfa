"""What a vision graph is described with: data objects, parameters, policies; and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from laxity._native import _VxGraph

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclass(frozen=True, eq=False)
class Object:
    """A data object of a graph, or a delay, whose current slot it is.

    Attributes:
        name: unique in the graph.
        number: its number in the graph, from 0.
        shape: of its arrays.
        dtype: of its arrays.
        slots: 1, or for a delay how many frames it holds.
    """

    name: str
    number: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    slots: int
    _graph: _VxGraph


@dataclass(frozen=True)
class Parameter:
    """What a node does with an object."""

    object: Object
    direction: Literal["input", "output", "inout"]
    ago: int = 0


def input(object: Object) -> Parameter:  # noqa: A001, A002, OpenVX's word
    """The node reads the object."""
    return Parameter(object, "input")


def past(delay: Object, ago: int) -> Parameter:
    """The node reads what was in the delay so many frames ago."""
    return Parameter(delay, "input", ago)


def output(object: Object) -> Parameter:  # noqa: A002, OpenVX's word
    """The node writes all of the object, or of the current slot of the delay: what is in it before is undetermined."""
    return Parameter(object, "output")


def inout(object: Object) -> Parameter:  # noqa: A002, OpenVX's word
    """The node changes the object in place."""
    return Parameter(object, "inout")


@dataclass(frozen=True)
class Policy:
    """How Linux schedules the threads of nodes: of `other`, `fifo`, `deadline` or `deadline_measured`."""

    kind: Literal["other", "fifo", "deadline", "measured"]
    base: int = 0
    default: str | None = None
    frames: int = 0
    margin_percent: int = 0


def other() -> Policy:
    """SCHED_OTHER: as other programs."""
    return Policy("other")


def fifo(base: int) -> Policy:
    """SCHED_FIFO: `base`, 1 to 97, and the length of the longest path from the input callback to the node."""
    return Policy("fifo", base=base)


def deadline(default: str | None = None) -> Policy:
    """SCHED_DEADLINE: the node's budget in each period, or `default`, a text such as "2 ms".

    Without a default, nodes that say nothing are refused.
    """
    return Policy("deadline", default=default)


def deadline_measured(frames: int, margin_percent: int = 20) -> Policy:
    """SCHED_DEADLINE after `frames` frames under SCHED_OTHER, in which the budgets are measured.

    So many hundredths are added to the most that a job needed.
    """
    return Policy("measured", frames=frames, margin_percent=margin_percent)


@dataclass(frozen=True)
class Dependency:
    """That a job of one node waits for a job of another.

    Attributes:
        producer: the node that is waited for.
        consumer: the node that waits.
        kind: ``edge``, ``back-edge`` (it reads what the other one wrote frames ago) or ``feedback`` (it writes where
            the other one may still read).
        initial: job j waits for job j - `initial`.
    """

    producer: str
    consumer: str
    kind: str
    initial: int


@dataclass(frozen=True)
class FrameTimes:
    """When frames were released and done, in ns of `time.monotonic_ns`.

    Attributes:
        period_ns: of the graph.
        first_release_ns: when frame 0 was due.
        begun: frames that were begun.
        completed: frames that were completed.
        index: number of each completed frame that is remembered, from 0; int64 of shape (n,), as are the next two.
        release_ns: when it was due, by the timer.
        completion_ns: when the output callback was done with it.
    """

    period_ns: int
    first_release_ns: int
    begun: int
    completed: int
    index: npt.NDArray[np.int64]
    release_ns: npt.NDArray[np.int64]
    completion_ns: npt.NDArray[np.int64]

    @property
    def latency_ns(self) -> npt.NDArray[np.int64]:
        """From the release to the completion, in ns: int64 of shape (n,)."""
        return self.completion_ns - self.release_ns

    @property
    def completion_delay_ns(self) -> npt.NDArray[np.int64]:
        """From each completion to the next, in ns: int64 of shape (n - 1,)."""
        return np.diff(self.completion_ns)
