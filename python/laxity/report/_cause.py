"""Why a job took longer than its proven bound: what the trace and the machine say, or that they say nothing.

A job of a live run computes until its thread has had its CPU time. If it executes longer than its WCET by the trace,
then something else had the CPU meanwhile: the hypervisor, of which Linux knows the sum (*steal* in /proc/stat), or
interrupts. While the job is ready and neither it nor another job of the workload executes on its CPU, something else
has that CPU, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from laxity._native import Trace


@dataclass(frozen=True)
class Lost:
    """What others had of a job's CPUs while it was pending, by the trace.

    Attributes:
        stretched_ns: how much longer than their WCETs the job, and those that ran meanwhile on its CPUs, executed.
        waiting_ns: for how long it was ready, and nothing of the workload had its CPU.
    """

    stretched_ns: int
    waiting_ns: int


@dataclass(frozen=True)
class Cause:
    """What is known of the longest job of a task that exceeded its bound.

    Attributes:
        excess_ns: beyond the bound.
        lost: what the trace says that others had; None without a trace that has the job.
        stolen_ns: CPU time that the hypervisor took during the run, on all CPUs; None if it was not recorded.
    """

    excess_ns: int
    lost: Lost | None
    stolen_ns: int | None

    @property
    def says(self) -> str:
        """It in words."""
        excess = f"{_ms(self.excess_ns)} ms beyond the bound"
        if self.lost is None:
            if self.stolen_ns is not None and self.stolen_ns >= self.excess_ns:
                taken = f"the hypervisor took the CPUs from Linux for {_ms(self.stolen_ns)} ms of the run"
                return f"{excess}: perhaps because {taken}."
            return f"{excess}: no cause found."
        longer = f"jobs executed {_ms(self.lost.stretched_ns)} ms longer than their WCETs"
        idle = f"for {_ms(self.lost.waiting_ns)} ms it was ready and nothing of the workload had its CPU"
        if self.lost.stretched_ns + self.lost.waiting_ns < self.excess_ns:
            return f"{excess}: no cause found; by the trace {longer}, and {idle}."
        return f"{excess}: others had the CPU, as by the trace {longer}, and {idle}. {self._thief}"

    @property
    def _thief(self) -> str:
        if self.stolen_ns is None:
            return "Whether it was the hypervisor was not recorded."
        rest = "" if self.stolen_ns >= self.excess_ns else ", so that interrupts and other threads remain"
        return f"The hypervisor took {_ms(self.stolen_ns)} ms during the run{rest}."


def lost(trace: Trace, task: int, wcets_ns: list[int]) -> Lost | None:
    """What others had while the task's longest job was pending.

    Args:
        trace: of a live run.
        task: its number.
        wcets_ns: of all tasks. None is returned if one is missing, or no job of the task is complete.
    """
    jobs = [job for job in trace.jobs().to_pylist() if job["task"] < len(wcets_ns)]
    own = [job for job in jobs if job["task"] == task and job["response_time_ns"] is not None]
    if not own:
        return None
    longest = max(own, key=lambda job: job["response_time_ns"])
    rows = [
        row
        for row in trace.intervals().to_pylist()
        if row["to_ns"] > longest["release_ns"] and row["from_ns"] < longest["completion_ns"]
    ]
    executed = _meanwhile(rows, longest)
    of = {(row["task"], row["job"]) for row in executed}
    beyond = (int(job["executed_ns"]) - wcets_ns[job["task"]] for job in jobs if (job["task"], job["job"]) in of)
    return Lost(sum(max(0, ns) for ns in beyond), _waiting_ns(rows, executed, longest))


def _meanwhile(rows: list[dict[str, Any]], job: dict[str, Any]) -> list[dict[str, Any]]:
    """Executions on the CPUs that the job used, its own among them."""
    executed = [row for row in rows if row["activity"] == "execution"]
    cpus = {row["cpu"] for row in executed if _is_of(row, job)}
    return [row for row in executed if row["cpu"] in cpus]


def _waiting_ns(rows: list[dict[str, Any]], executed: list[dict[str, Any]], job: dict[str, Any]) -> int:
    """For how long the job did nothing by itself, while one of its CPUs had nothing of the workload."""
    # A critical section goes on while its job is preempted.
    active = [row for row in rows if _is_of(row, job) and row["activity"] != "critical_section"]
    cpus = {row["cpu"] for row in executed}
    edges = {job["release_ns"], job["completion_ns"]}
    edges |= {row[edge] for row in (*active, *executed) for edge in ("from_ns", "to_ns")}
    inside = sorted(at for at in edges if job["release_ns"] <= at <= job["completion_ns"])

    def is_lost(at: int) -> bool:
        used = {row["cpu"] for row in executed if row["from_ns"] <= at < row["to_ns"]}
        return used < cpus and not any(row["from_ns"] <= at < row["to_ns"] for row in active)

    return sum(to - at for at, to in pairwise(inside) if is_lost(at))


def _is_of(row: dict[str, Any], job: dict[str, Any]) -> bool:
    return (row["task"], row["job"]) == (job["task"], job["job"])


def _ms(ns: int) -> str:
    return f"{ns / 1e6:.2f}"
