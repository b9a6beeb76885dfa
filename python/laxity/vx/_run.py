"""A vision graph that is executed."""

from __future__ import annotations

import atexit
import weakref
from typing import TYPE_CHECKING

import numpy as np

from laxity._native import _VxRun

if TYPE_CHECKING:
    from types import TracebackType

    from laxity._native import Graph as LiveGraph

from laxity.vx._objects import FrameTimes


class Run:
    """A graph that is executed. A context manager: at the end of `with` it is closed.

    In a forked child its methods raise UseError, but for `close`, which does nothing there, as the end of `with`. In a
    kernel of the run, `wait` and `wait_for_frames` (unless the time-out is "0 s") and `close` raise it: the kernel
    would wait for itself.
    """

    def __init__(self, run: _VxRun) -> None:
        self._run = run
        _RUNS.add(self)

    def wait(self, timeout: str | None = None) -> bool:
        """Waits until the graph has ended, or `timeout`, a text such as "5 s". Answers whether it has.

        Raises GraphFailedError if a kernel has raised.
        """
        return self._run.wait(timeout)

    def wait_for_frames(self, frames: int, timeout: str | None = None) -> int:
        """Waits until so many frames are completed, or the graph has ended. Answers with how many are completed."""
        return self._run.wait_for_frames(frames, timeout)

    def stop(self) -> None:
        """Releases no more frames. Those that were begun are completed. Does not wait for that."""
        self._run.stop()

    def terminate(self) -> None:
        """Ends as soon as kernels return. Frames that were begun are given up. Does not wait for that."""
        self._run.terminate()

    @property
    def has_ended(self) -> bool:
        """Whether all nodes have ended."""
        return self._run.has_ended

    def times(self) -> FrameTimes:
        """When frames were released and done so far."""
        period_ns, first_release_ns, begun, completed, frames = self._run.times()
        columns = np.array(frames, np.int64).reshape(-1, 3).T
        return FrameTimes(period_ns, first_release_ns, begun, completed, *columns)

    def graph(self) -> LiveGraph:
        """The graph as other processes see it, a `laxity.live.Graph`: to be recorded, and asked for the state of nodes.

        It keeps the graph's memory and name until it is closed.
        """
        return self._run.graph()

    def close(self) -> None:
        """Terminates it, if it has not ended, and waits until its threads have."""
        self._run.close()

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


_RUNS: weakref.WeakSet[Run] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """Threads that run Python must have ended before it does."""
    for run in list(_RUNS):
        run.close()
