"""Workloads live, with functions of the program as bodies of tasks and nodes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from types import SimpleNamespace
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from laxity import _native
from laxity._errors import RunError
from laxity._native import Result, Workload

if TYPE_CHECKING:
    from laxity._native import _Arbitration, _Path


class Messages(Protocol):
    """The messages of an edge."""

    peer: str
    """The node at the other end."""

    def __len__(self) -> int:
        """How many there are."""
        ...

    def __getitem__(self, number: int) -> memoryview:
        """Message `number`, in place; those that come in are not to be written. Valid until the function returns."""
        ...

    def resize(self, length: int, number: int = 0) -> None:
        """Of message `number`, which goes out, only the first `length` bytes are sent.

        Its memoryview stays as long as it is: all that fits. Raises ValueError if they do not fit, and IndexError if
        there is no such message.
        """
        ...


class Job(Protocol):
    """A step of a job: what a body is called with."""

    task: str
    index: int
    """The number of the job, from 0."""
    release_ns: int
    """When it arrived, and when it is due, both on CLOCK_MONOTONIC."""
    deadline_ns: int
    step: int
    """Which of the steps that call the body, from 0."""
    kind: Literal["cpu", "nonpreemptive", "suspend"]

    @property
    def is_warm_up(self) -> bool:
        """Whether it is before time 0: it has no messages then."""
        ...

    def input(self, peer: str | None = None) -> Messages:
        """The edge from the node `peer`, or the only one. Raises KeyError if there is none, or are several."""
        ...

    def output(self, peer: str | None = None) -> Messages:
        """The edge to the node `peer`, or the only one. Raises KeyError if there is none, or are several."""
        ...


class _Called(Protocol):
    def __call__(self, job: Job, /) -> object: ...


Body: TypeAlias = Callable[[Job], object] | type[_Called]
"""A function of a `Job`, or a class whose objects are called with jobs: made on the task's thread before the first job,
and closed by `close()`, if it has that, after the last."""


def run(
    workload: Workload,
    bodies: Mapping[str, Body] | None = None,
    *,
    policy: str | None = None,
    scheduler: Literal["laxity", "kernel", "fifo", "deadline", "other"] | None = None,
    duration: str | None = None,
    seed: int = 0,
    trace: bool = False,
    arbitration: _Arbitration | None = None,
    warm: Sequence[str] = (),
    folder: _Path | None = None,
) -> Result:
    """Runs a workload live on threads of this process, as ``laxity run`` does, and returns when all its jobs are done.

    Jobs of tasks and nodes that are named in ``bodies`` call these functions in place of using up CPU time, once for
    each step that takes time, on their own threads, under the workload's scheduler. Generators and ``async``
    functions do not run when they are called: they end the run with an error. They share the interpreter's lock
    (GIL). Ctrl-C ends the run and raises KeyboardInterrupt. A body that crashes with that lock ends the program, as
    docs/guides/own-code.md says.

    Args:
        workload: what to run.
        bodies: functions of jobs, by the name of the task, or GRAPH/NODE; see `laxity.Job`.
        policy: as in `laxity.simulate`; None: the workload's own. Quanta, and interrupts on a CPU of their own, are
            those of the scheduler in the kernel: without it jobs are scheduled by events on all CPUs, with a
            RuntimeWarning.
        scheduler: what schedules the threads: Laxity's own scheduler, in user space or in the kernel, or a class of
            Linux; None: the strongest that is permitted and does what the policy says. "other" guarantees nothing.
        duration: jobs released within it are run; None: ten periods of each task after its phase, at least 1 s.
        seed: decides random execution times, gaps and jitter of tasks without code.
        trace: whether to keep every event, as `Result.trace`.
        arbitration: as in `laxity.simulate`.
        warm: names of ``bodies`` to call once before time 0, too.
        folder: where paths of code that the workload names start; None: such code is not run, and its tasks use up CPU
            time.

    Warns:
        RuntimeWarning: if another realization of the scheduler runs than was asked for.

    Raises:
        ValueError: for arguments that cannot be read, and for ``warm`` without a body.
        WorkloadError: for tasks that do not suit ``policy``.
        RunError: if the workload cannot be run here, or a body raised: its ``result`` is what was measured until then.
    """
    bodies = bodies or {}
    for name in warm:
        if name not in bodies:
            raise ValueError(f'warm: "{name}" has no body; write one of {", ".join(bodies) or "none"}')
    for name, body in bodies.items():
        if not callable(body):
            raise RunError(f'task "{name}": its body is no function, but {body!r}')
    named = [(name, f"b{next(_numbers)}", body) for name, body in bodies.items()]
    for _, attribute, body in named:
        setattr(_bodies, attribute, body)
    try:
        given = [(name, f"{__name__}:_bodies.{attribute}", name in warm) for name, attribute, _ in named]
        where = None if folder is None else os.fspath(folder)
        return _native._run(workload, given, where, policy, scheduler, duration, seed, trace, arbitration)
    finally:
        for _, attribute, _ in named:
            delattr(_bodies, attribute)


# Where the threads of a run look for the functions that they call.
_bodies = SimpleNamespace()
_numbers = count()
