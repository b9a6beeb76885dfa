"""Workloads written in Python instead of in a file. They are read and validated as files are."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

from laxity._native import Workload

Fields: TypeAlias = Mapping[str, Any]
"""A table of a workload file: its field names and their values."""


@dataclass(frozen=True, kw_only=True)
class _Table:
    """A table of a workload file: one field for each of its keys."""

    def to_fields(self) -> dict[str, Any]:
        """The fields that are given, as the file would have them."""
        given = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: value for name, value in given if value is not None}


@dataclass(frozen=True, init=False)
class Task(_Table):
    """A real-time task: the ``[[task]]`` of a workload file, with its fields and units.

    Spans are texts with a unit: ``"5 ms"``, ``"33.333333 ms"``, ``"250 us"``. A job has either ``wcet``
    (optionally with ``actual``) or a ``body``, a sequence of steps as in ``[{"cpu": "1 ms"}, {"suspend": "2 ms"}]``.

    Args:
        name: unique.
        period: exact, or for sporadic tasks the least separation of arrivals.
        wcet: bound on the CPU time of every job.
        actual: what simulated jobs need, such as ``"3 ms"``, ``{"uniform": ["1 ms", "4 ms"]}``,
            ``{"histogram": [{"min": "1 ms", "max": "2 ms", "weight": 3}]}`` or ``{"recorded": ["1 ms", "2 ms"]}``.
        body: steps, instead of ``wcet``.
        deadline: relative to the arrival; the period if not given.
        phase: first arrival.
        jitter: a job is released up to this long after it arrives.
        arrival: ``"periodic"`` or ``"sporadic"``.
        gap: of a sporadic task: what an arrival waits beyond the period; as ``actual``.
        priority: for fixed priorities given by hand; the smaller number is the higher.
        cluster: under clustered scheduling its cluster, under partitioned scheduling its CPU.
        working_set: what a job touches, such as ``"2 MB"``.
        budget: what jobs may execute in a period before they are throttled until the next.
        server: the bandwidth server that jobs execute in, such as
            ``{"kind": "cbs_hard", "budget": "2 ms", "period": "10 ms"}``.
        memory_demand: memory bandwidth that jobs use while they execute, such as ``"200 MB/s"``.
        memory_budget: that of best-effort tasks while a job holds the bandwidth lock.
        run: code that live runs call, such as ``{"library": "libcar.so", "symbol": "detect"}``.
    """

    name: str
    period: str
    wcet: str | None
    actual: str | Fields | None
    body: Sequence[Fields] | None
    deadline: str | None
    phase: str | None
    jitter: str | None
    arrival: str | None
    gap: str | Fields | None
    priority: int | None
    cluster: int | None
    working_set: str | None
    budget: str | None
    server: Fields | None
    memory_demand: str | None
    memory_budget: str | None
    run: Fields | None

    def __init__(
        self,
        name: str,
        *,
        period: str,
        wcet: str | None = None,
        actual: str | Fields | None = None,
        body: Sequence[Fields] | None = None,
        deadline: str | None = None,
        phase: str | None = None,
        jitter: str | None = None,
        arrival: str | None = None,
        gap: str | Fields | None = None,
        priority: int | None = None,
        cluster: int | None = None,
        working_set: str | None = None,
        budget: str | None = None,
        server: Fields | None = None,
        memory_demand: str | None = None,
        memory_budget: str | None = None,
        run: Fields | None = None,
    ) -> None:
        given = locals()
        for field in fields(self):
            object.__setattr__(self, field.name, given[field.name])


def workload(
    name: str,
    *,
    cpus: int,
    tasks: Iterable[Task | Fields] = (),
    policy: str | Fields | None = None,
    overheads: str | Fields | None = None,
    clusters: Sequence[str | Sequence[int]] | int | None = None,
    tick: str | None = None,
    quantum: str | None = None,
    memory: Fields | None = None,
    gpus: Iterable[Fields] = (),
    devices: Iterable[Fields] = (),
    gpu_management: Fields | None = None,
    resources: Iterable[Fields] = (),
    best_effort: Iterable[Fields] = (),
    best_effort_scheduler: str | Fields | None = None,
    graphs: Iterable[Fields] = (),
    chains: Iterable[Fields] = (),
) -> Workload:
    """A workload written in Python.

    Args:
        name: for tables and plots.
        cpus: how many.
        tasks: the real-time tasks; their order breaks ties.
        policy: the scheduler, "G-EDF" if not given; its name, or ``[scheduler]`` of the file.
        overheads: a published profile ("brandenburg2009-worst") or a table of costs (``{"release": "2 us"}``).
        clusters: the CPUs of each, ``["0-3", "4-7"]`` or ``[[0, 1], [2, 3]]``, or how many of equal size; one of all
            CPUs if not given.
        tick: period of each CPU's timer interrupt.
        quantum: scheduling quantum of quantum-driven scheduling.
        memory: ``[platform.memory]`` of the file.
        gpus: ``[[platform.gpu]]``.
        devices: ``[[platform.device]]``: other sources of interrupts.
        gpu_management: ``[gpu_management]``.
        resources: ``[[resource]]``.
        best_effort: ``[[best_effort]]``.
        best_effort_scheduler: a name, or ``[best_effort_scheduler]``.
        graphs: ``[[graph]]``.
        chains: ``[[chain]]``.

    Raises:
        WorkloadError: with everything that is wrong.
    """
    platform = {"cpus": cpus, "clusters": clusters, "tick": tick, "quantum": quantum, "overheads": overheads}
    lists = {"resource": resources, "task": tasks, "best_effort": best_effort, "graph": graphs, "chain": chains}
    document: dict[str, Any] = {"laxity": 1, "name": name}
    document["platform"] = _given(platform | {"memory": memory, "gpu": list(gpus), "device": list(devices)})
    document |= _given({"scheduler": policy, "gpu_management": gpu_management})
    document |= _given({"best_effort_scheduler": best_effort_scheduler})
    document |= _given({key: [_plain(item) for item in items] for key, items in lists.items()})
    return Workload.from_json(json.dumps(_written(document)))


def _written(value: Any) -> Any:
    """``value`` with the numbers that JSON has no words for as texts: what reads the document names the field then."""
    if isinstance(value, Mapping):
        return {key: _written(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_written(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _given(table: Fields) -> dict[str, Any]:
    """The fields that have a value."""
    return {name: value for name, value in table.items() if value is not None and value != []}


def _plain(item: _Table | Fields) -> Fields:
    return item.to_fields() if isinstance(item, _Table) else item
