"""A vision graph: described, verified, and a job of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from laxity._native import _VxGraph, _VxJob, _VxVerified
from laxity.gpu import UseError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Sequence

    import numpy.typing as npt

    from laxity.gpu import Device

from laxity.vx._errors import VerifyError
from laxity.vx._gpu import Gpu
from laxity.vx._objects import Dependency, Object, Parameter, Policy, other
from laxity.vx._run import Run


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
        """Derives which node waits for which. The description is used up by it.

        Raises VerifyError for cycles without a delay, objects that no node writes or that two nodes write, and so on.
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
        """Which node waits for which with so many replicas of each object; as many as `depth`, by default."""
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
