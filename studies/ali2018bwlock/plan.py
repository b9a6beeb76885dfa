"""What a run of the study consists of: a simulation, or two, for each case of each figure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa
from laxity import Result, __version__, simulate
from laxity._native import StudyStop

from studies.ali2018bwlock.published import thresholds
from studies.ali2018bwlock.workloads import READINGS, figure_4, kernel_workload, pairs_workload, read
from studies.common.study import Choices

STUDY = "ali2018bwlock"
SECONDS = 5
"""Of a system with pairs of tasks: thousands of periods."""

PERIODS = 1_000
"""Figs. 5 and 6 show so many, after so many thousand."""

FIG8_MBPS = (1024, 512, 256, 128, 64, 32, 16, 8, 4, 2, 1)
"""The artifact's thresholds, in 64,000 B/s: the paper says from 1 GB/s, by halves."""

ROWS = pa.schema([("figure", pa.string()), ("case", pa.string()), ("measure", pa.string()), ("value", pa.float64())])


@dataclass(frozen=True, order=True)
class Case:
    """What a figure shows in one place.

    Attributes:
        figure: which.
        reading: of the budget.
        corunners: memory tasks, or pairs of tasks.
        budget: of a CPU while the lock is held, in bytes a second; -1: no lock.
        punishment: of TFS; 0: CFS.
        staggered: whether the CPUs' periods are.
        seconds: simulated, where that can be chosen.
        label: what else tells it apart.
    """

    figure: str
    reading: str
    corunners: int = 0
    budget: int = -1
    punishment: int = 0
    staggered: bool = False
    seconds: int = SECONDS
    label: str = ""
    count: ClassVar[int] = 1

    @property
    def name(self) -> str:
        """The name of its part file, and of its rows."""
        parts = [self.figure, self.reading, f"{self.corunners}", f"{self.budget}", f"rho{self.punishment}"]
        return "-".join([*parts, *(["staggered"] if self.staggered else []), *([self.label] if self.label else [])])


@dataclass(frozen=True)
class BwlockPlan:
    """All cases.

    Attributes:
        seconds: simulated, of systems with pairs of tasks.
    """

    seconds: int
    study: ClassVar[str] = STUDY
    unit: ClassVar[str] = "cases"

    def chunks(self) -> list[Case]:
        """All of them, in the order of the result."""
        cases = [Case("fig4", "A", punishment=rho) for rho in (0, 3)]
        for reading, budget in READINGS.items():
            cases += [Case("fig6", reading, 1, budget, rho) for rho in (0, 1, 3)]
            for corunners in range(4):
                cases.append(Case("fig1", reading, corunners))
                cases += [
                    Case("fig1", reading, corunners, thresholds()["histo"], staggered=staggered)
                    for staggered in (False, True)
                ]
            cases += [Case("artifact", reading, 2, 512 * 64_000, staggered=staggered) for staggered in (False, True)]
            cases += [Case("fig8", reading, 3, level * 1_024_000) for level in FIG8_MBPS]
            cases += [
                Case("fig10", reading, 3, budget, rho, seconds=self.seconds, label=benchmark)
                for benchmark, budget in thresholds().items()
                for rho in (0, 1, 3)
            ]
        return cases

    def identity(self) -> dict[str, Any]:
        """Everything the results depend on, for JSON."""
        return {"study": self.study, "seconds": self.seconds, "laxity": __version__}

    def evaluate(self, chunk: Case, stop: StudyStop | None = None) -> pa.Table | None:
        """Simulates; None if told to stop."""
        try:
            measured = _measure(chunk, stop)
        except KeyboardInterrupt:
            return None
        rows = [
            {"figure": chunk.figure, "case": chunk.name, "measure": key, "value": value}
            for key, value in measured.items()
        ]
        return pa.Table.from_pylist(rows, ROWS)

    def result(self, parts: Iterable[tuple[Case, pa.Table]]) -> pa.Table:
        """All that was measured, in the order of ``chunks``."""
        tables = dict(parts)
        return pa.concat_tables([tables[case] for case in self.chunks()]).combine_chunks()


def _measure(case: Case, stop: StudyStop | None) -> dict[str, float]:
    if case.figure == "fig4":
        return _figure_4(case, stop)
    if case.figure == "fig6":
        return _figure_6(case, stop)
    if case.figure == "fig10":
        workload = pairs_workload(case.reading, case.budget, case.punishment, case.seconds + 1, case.corunners)
        memory = _memory(simulate(read(workload), duration=f"{case.seconds} s", stop=stop))
        return {"throttled_s": sum(cpu["throttled_ns"] for cpu in memory["cpus"]) / 1e9}
    budget = None if case.budget < 0 else case.budget
    workload = kernel_workload(case.reading, case.corunners, budget, staggered=case.staggered)
    (kernel,) = _memory(simulate(read(workload), duration="5 s", stop=stop))["operations"]
    return {"slowdown": kernel["time_ns"] / kernel["solo_ns"]}


def _figure_4(case: Case, stop: StudyStop | None) -> dict[str, float]:
    """Instants in ms: the first throttling, when the memory task goes on after that, when the other does."""
    result = simulate(read(figure_4(case.punishment)), duration="5 ms", trace=True, stop=stop)
    events = result.trace.events().to_pylist()
    first = next(row["at_ns"] for row in events if row["event"] == "throttle")

    def after(task: str, least: float) -> float:
        found = (row["at_ns"] for row in events if row["event"] == "dispatch" and row["task_name"] == task)
        return next((at for at in found if at > least), float("nan")) / 1e6

    tasks = _memory(result)["best_effort"]
    return {
        "first_throttled_ms": first / 1e6,
        "mem_again_ms": after("mem", first),
        "cpu_again_ms": after("cpu", first),
        "mem_lost_virtual_ms": next(task for task in tasks if task["name"] == "mem")["lost_virtual_time_ns"] / 1e6,
    }


def _figure_6(case: Case, stop: StudyStop | None) -> dict[str, float]:
    """In how many of 1,000 periods each of the two tasks executed, after 5,000 others."""
    workload = read(pairs_workload(case.reading, case.budget, case.punishment, 10, case.corunners))
    used = []
    for periods in (5 * PERIODS, 6 * PERIODS):
        tasks = _memory(simulate(workload, duration=f"{periods} ms", stop=stop))["best_effort"]
        used.append({task["name"].split()[0]: task["periods_used"] for task in tasks})
    return {f"{task}_periods": float(used[1][task] - used[0][task]) for task in ("memory", "cpu")}


def _memory(result: Result) -> dict[str, Any]:
    """What the summary says of best-effort tasks and operations."""
    found: dict[str, Any] = result.summary["memory"]
    return found


def chosen(choices: Choices) -> BwlockPlan:
    """A plan of what was chosen. Raises ValueError for what the study does not have."""
    choices.refuse(STUDY, "scenarios", "step", "replicates", "chunk")
    if choices.options:
        raise ValueError(f"{STUDY} has no options, as both readings are part of every run; leave out --options")
    seconds = SECONDS if choices.seconds is None else choices.seconds
    if not 1 <= seconds <= 60:
        raise ValueError(f"seconds is {seconds}; it must be 1 to 60")
    return BwlockPlan(seconds)
