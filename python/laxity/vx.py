"""Vision graphs in OpenVX's terms, executed periodically: a thread a node, consecutive frames at the same time.

    import numpy as np
    from laxity import vx

    graph = vx.Graph("motion")
    image = graph.object("image", (480, 640), np.uint8)             # shape (height, width)
    gray = graph.delay("gray", (480, 640), np.float32, slots=3)     # this frame's, and those of the two before
    moving = graph.object("moving", (1,), np.int64)

    def read(job):                                                  # before all nodes; False: there is no frame
        job.write(image)[:] = camera()

    def convert(job):
        np.divide(job.read(image), 255, out=job.write(gray))

    def compare(job):
        job.write(moving)[0] = np.count_nonzero(job.read(gray) != job.read(gray, 2))

    graph.input([vx.output(image)], read)
    graph.node("convert", [vx.input(image), vx.output(gray)], convert)
    graph.node("compare", [vx.input(gray), vx.past(gray, 2), vx.output(moving)], compare)
    graph.output([vx.input(moving)], lambda job: print(job.read(moving)[0]))

    with graph.verify().spawn("33 ms", frames=300) as run:
        run.wait()

Who waits for whom follows from what nodes read and write: the graph computes what a loop computes that calls one node
after the other. A job's arrays are in shared memory, in place, and end with it: a kernel that keeps one fails. Copy
what must live longer. Kernels are threads of one Python: they overlap where numpy and others let go of its lock.

A graph that is spawned with a `laxity.gpu.Device` has a GPU: `Job.gpu` copies arrays there and back and launches GPU
kernels, and each job takes a token for it by itself.

The documentation of the Rust crate ``laxity-vx`` has the rules; every decision is made there.
"""

from __future__ import annotations

import atexit
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from laxity._errors import LaxityError
from laxity._native import _VxGraph, _VxJob, _VxRun, _VxVerified
from laxity._vx_gpu import Gpu
from laxity.gpu import UseError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Sequence
    from types import TracebackType

    import numpy.typing as npt

    from laxity._native import Graph as LiveGraph
    from laxity.gpu import Device

__all__ = [
    "Dependency",
    "FrameTimes",
    "Gpu",
    "Graph",
    "GraphFailedError",
    "Job",
    "Object",
    "Parameter",
    "Policy",
    "Run",
    "SpawnError",
    "Verified",
    "VerifyError",
    "VxError",
    "deadline",
    "deadline_measured",
    "fifo",
    "inout",
    "input",
    "other",
    "output",
    "past",
]


class VxError(LaxityError):
    """Whatever a vision graph raises that is not an error of the caller's Python.

    Attributes:
        status: what OpenVX would say, such as ``VX_ERROR_MULTIPLE_WRITERS``.
    """

    def __init__(self, text: str, status: str, *parts: object) -> None:
        super().__init__(text, status, *parts)
        self.status = status

    def __str__(self) -> str:
        return str(self.args[0])


class VerifyError(VxError, ValueError):
    """A graph cannot be executed as it is described."""


class SpawnError(VxError):
    """A graph is not executed: options that cannot be, or what Linux refuses."""


class GraphFailedError(VxError):
    """A kernel has raised, and the graph has stopped. What it raised is the cause.

    Attributes:
        node: the node.
        frame: the frame, from 0; None if the node was at none.
    """

    def __init__(self, text: str, node: str, frame: int | None, status: str) -> None:
        super().__init__(text, status)
        self.args = (text, node, frame, status)
        self.node = node
        self.frame = frame


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


class Job:
    """What a kernel sees of its node in one frame, until it returns."""

    __slots__ = ("_job",)

    def __init__(self, job: _VxJob) -> None:
        self._job = job

    @property
    def index(self) -> int:
        """The frame, from 0."""
        return self._job.index

    @property
    def release_ns(self) -> int | None:
        """What the job's deadline is counted from, in ns of `time.monotonic_ns`; None without a recorder."""
        return self._job.release_ns

    @property
    def deadline_ns(self) -> int | None:
        """When the job should be complete, in ns of `time.monotonic_ns`; None without a recorder."""
        return self._job.deadline_ns

    def read(self, object: Object, ago: int = 0) -> npt.NDArray[Any]:  # noqa: A002, OpenVX's word
        """What is in an input of the node, or was so many frames ago: in place, read-only, of the object's shape.

        Raises ValueError for what the node does not declare.
        """
        buffer = self._job.read(object.number, ago)
        if buffer is None:
            of = f" of {ago} frames ago" if ago else ""
            msg = f"the node does not read object {object.name}{of}; declare it as an input"
            raise ValueError(msg)
        return np.frombuffer(memoryview(buffer), object.dtype).reshape(object.shape)

    def write(self, object: Object) -> npt.NDArray[Any]:  # noqa: A002, OpenVX's word
        """An output of the node, in which anything may be, or what it changes: in place, of the object's shape.

        Raises ValueError for what the node does not declare.
        """
        buffer = self._job.write(object.number)
        if buffer is None:
            msg = f"the node does not write object {object.name}; declare it as an output or inout"
            raise ValueError(msg)
        return np.frombuffer(memoryview(buffer), object.dtype).reshape(object.shape)

    @property
    def gpu(self) -> Gpu:
        """The GPU, for this job. Nodes that never ask for it do not register with the arbitration.

        Raises laxity.gpu.UseError if the graph was spawned without one.
        """
        gpu = self._job.gpu
        if gpu is None:
            msg = "the graph has no GPU; spawn it with one"
            raise UseError(msg)
        return Gpu(gpu)

    def __repr__(self) -> str:
        return f"<laxity.vx.Job {self.index}>"


class Graph:
    """A graph that is being described.

    Args:
        name: which it has while it runs, and by which `laxity graph watch` finds it. No other one has it then.
        directory: where names are; that of all others, by default.
    """

    def __init__(self, name: str, directory: str | os.PathLike[str] | None = None) -> None:
        self.name = name
        self._graph = _VxGraph(name, directory)

    def object(self, name: str, shape: int | Sequence[int], dtype: npt.DTypeLike) -> Object:
        """A data object: an array of this shape and type."""
        return self._add(name, shape, dtype, 1, None)

    def delay(
        self,
        name: str,
        shape: int | Sequence[int],
        dtype: npt.DTypeLike,
        slots: int,
        initial: npt.ArrayLike | None = None,
    ) -> Object:
        """A delay: slot 0 is written in this frame, slot k was k frames ago, up to `slots` - 1.

        Args:
            name: unique among objects.
            shape: of each slot.
            dtype: of each slot.
            slots: how many, that of the current frame included.
            initial: what no frame wrote, of that shape; zeros if not given.
        """
        return self._add(name, shape, dtype, slots, initial)

    def _add(
        self, name: str, shape: int | Sequence[int], dtype: npt.DTypeLike, slots: int, initial: npt.ArrayLike | None
    ) -> Object:
        kind = np.dtype(dtype)
        if kind.hasobject:
            msg = f"object {name}: {kind} has references to objects of Python; use a type of numbers"
            raise ValueError(msg)
        sides = (shape,) if isinstance(shape, int) else tuple(shape)
        size = int(np.prod(sides, dtype=object)) * kind.itemsize
        contents = None if initial is None else np.broadcast_to(np.asarray(initial, kind), sides).tobytes()
        number = self._graph.object(name, size, slots, contents)
        return Object(name, number, sides, kind, slots, self._graph)

    def node(
        self,
        name: str,
        parameters: Iterable[Parameter],
        kernel: Callable[[Job], Any],
        budget: str | None = None,
    ) -> None:
        """A node, which calls `kernel` with a `Job` in each frame.

        Nodes that use one object do so in the order in which they are added, the one that writes it first.

        Args:
            name: unique among nodes.
            parameters: of `input`, `past`, `output` and `inout`.
            kernel: its answer does not matter; what it raises stops the graph.
            budget: CPU time that a job needs at most, for SCHED_DEADLINE: a text such as "2 ms".
        """
        self._graph.node(name, self._given(name, parameters), lambda job: _ignore(kernel(Job(job))), budget)

    def input(
        self, parameters: Iterable[Parameter], callback: Callable[[Job], bool | None], budget: str | None = None
    ) -> None:
        """Sets what is called at the release of each frame, before all nodes.

        It may write the objects that are the graph's input, and answers False if there is no frame.
        """
        given = self._given("input_callback", parameters)
        self._graph.input(given, lambda job: callback(Job(job)), budget)

    def output(
        self, parameters: Iterable[Parameter], callback: Callable[[Job], Any], budget: str | None = None
    ) -> None:
        """Sets what is called when all nodes are done with a frame; it may read the graph's output."""
        given = self._given("output_callback", parameters)
        self._graph.output(given, lambda job: _ignore(callback(Job(job))), budget)

    def _given(self, node: str, parameters: Iterable[Parameter]) -> list[tuple[int, str, int]]:
        given: list[tuple[int, str, int]] = []
        for parameter in parameters:
            if parameter.object._graph is not self._graph:
                msg = f"node {node}: object {parameter.object.name} belongs to another graph; make it one of this"
                raise VerifyError(msg, "VX_ERROR_INVALID_SCOPE")
            given.append((parameter.object.number, parameter.direction, parameter.ago))
        return given

    def verify(self) -> Verified:
        """Derives who waits for whom. The description is used up by it.

        Raises VerifyError for cycles without a delay, objects that nobody writes or that two nodes write, and so on.
        """
        return Verified(self.name, self._graph.verify())


def _ignore(_answer: Any) -> None:
    """Only what the input callback answers matters."""


class Verified:
    """A graph that can be spawned, again when it has ended."""

    def __init__(self, name: str, verified: _VxVerified) -> None:
        self.name = name
        self._verified = verified

    @property
    def depth(self) -> int:
        """The number of nodes on the longest path: by rule of thumb the number of replicas."""
        return self._verified.depth

    def dependencies(self, replicas: int | None = None) -> list[Dependency]:
        """Who waits for whom with so many replicas of each object; as many as `depth`, by default."""
        found = self._verified.dependencies(self.depth if replicas is None else replicas)
        return [Dependency(*one) for one in found]

    def dot(self) -> str:
        """The graph in the language of Graphviz, back-edges dashed."""
        return self._verified.dot()

    def spawn(
        self,
        period: str,
        policy: Policy | None = None,
        *,
        frames: int | None = None,
        duration: str | None = None,
        replicas: int | None = None,
        start_ns: int | None = None,
        phase: str = "0 s",
        cpus: Iterable[int] = (),
        lock_memory: bool = False,
        recorder: int = 256,
        gpu: Device | None = None,
    ) -> Run:
        """Executes the graph periodically. Returns when all threads are ready.

        Args:
            period: a frame is released so often: a text such as "33 ms".
            policy: how Linux schedules threads; `other()` by default.
            frames: the graph ends after so many.
            duration: no frame is released so long after the first, or later.
            replicas: how many frames can be worked on at the same time; `depth` by default.
            start_ns: when time 0 is, in ns of `time.monotonic_ns`; when all threads are ready, by default.
            phase: the first frame is released so long after time 0.
            cpus: those that threads keep to; all, by default.
            lock_memory: whether all memory of the process is kept in RAM.
            recorder: how many of its last jobs each node remembers, for traces.
            gpu: what kernels use by `Job.gpu`: one for the process, with the arbitration that it was opened with.

        Raises SpawnError; no thread is left then, and it can be tried again.
        """
        chosen = policy or other()
        given = {
            "period": period,
            "policy": (chosen.kind, chosen.base, chosen.default, chosen.frames, chosen.margin_percent),
            "replicas": replicas,
            "start_ns": start_ns,
            "phase": phase,
            "frames": frames,
            "duration": duration,
            "cpus": list(cpus),
            "lock_memory": lock_memory,
            "recorder": recorder,
            "gpu": None if gpu is None else gpu._device,
        }
        return Run(self._verified.spawn(given))


class Run:
    """A graph that is executed. A context manager: at the end of `with` it is closed."""

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
