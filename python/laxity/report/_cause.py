"""Why a job took longer than its proven bound: what the trace and the machine say, or that they say nothing.

A job of a live run computes until its thread has had its CPU time. What it executes longer by the trace than its WCET
somebody else had meanwhile: the hypervisor, of which Linux knows the sum (*steal* in /proc/stat), or interrupts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from laxity._native import Trace


@dataclass(frozen=True)
class Cause:
    """What is known of the longest job of a task that exceeded its bound.

    Attributes:
        excess_ns: beyond the bound.
        stretched_ns: how much longer than their WCETs the job, and those that ran before it on its CPUs, executed; None
            without a trace that has the job.
        stolen_ns: CPU time that the hypervisor took from Linux during the run, on all CPUs; None if nobody looked.
    """

    excess_ns: int
    stretched_ns: int | None
    stolen_ns: int | None

    @property
    def says(self) -> str:
        """It in words."""
        excess = f"{_ms(self.excess_ns)} ms beyond the bound"
        if self.stretched_ns is None:
            if self.stolen_ns is not None and self.stolen_ns >= self.excess_ns:
                taken = f"the hypervisor took the CPUs from Linux for {_ms(self.stolen_ns)} ms of the run"
                return f"{excess}: perhaps because {taken}."
            return f"{excess}: no cause found."
        longer = f"this job and those that ran before it executed {_ms(self.stretched_ns)} ms longer than their WCETs"
        if self.stretched_ns < self.excess_ns:
            return f"{excess}: no cause found; {longer}."
        return f"{excess}: the CPU was taken from Linux's threads, as by the trace {longer}. {self._thief}"

    @property
    def _thief(self) -> str:
        if self.stolen_ns is None:
            return "Whether by the hypervisor was not recorded."
        if self.stolen_ns >= self.excess_ns:
            return f"The hypervisor took {_ms(self.stolen_ns)} ms during the run."
        return f"The hypervisor took {_ms(self.stolen_ns)} ms during the run, so that interrupts remain."


def stretched_ns(trace: Trace, task: int, wcets_ns: list[int]) -> int | None:
    """How much longer than their WCETs the task's longest job, and those that ran meanwhile on its CPUs, executed.

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
    of = _meanwhile(trace, longest)
    beyond = (int(job["executed_ns"]) - wcets_ns[job["task"]] for job in jobs if (job["task"], job["job"]) in of)
    return int(sum(max(0, ns) for ns in beyond))


def _meanwhile(trace: Trace, job: dict[str, Any]) -> set[tuple[int, int]]:
    """Jobs that executed between release and completion of a job on a CPU that it used; it is among them."""
    executed = [
        row
        for row in trace.intervals().to_pylist()
        if row["activity"] == "execution" and row["to_ns"] > job["release_ns"] and row["from_ns"] < job["completion_ns"]
    ]
    cpus = {row["cpu"] for row in executed if (row["task"], row["job"]) == (job["task"], job["job"])}
    return {(row["task"], row["job"]) for row in executed if row["cpu"] in cpus}


def _ms(ns: int) -> str:
    return f"{ns / 1e6:.2f}"
