"""A workload that was analysed, simulated and run: the same jobs three times."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from laxity.report._beside import beside
from laxity.report._fields import Fields
from laxity.report._files import picture


@dataclass(frozen=True)
class LiveRun:
    """A run on the machine.

    Attributes:
        name: of the way it was run.
        says: what that way is.
        completed: jobs.
        missed: jobs that missed their deadlines.
        is_bounded: whether the analysis is about this way to schedule.
        gantt: part of the schedule, as a URI that has all of it.
        files: what lies beside the page, by name.
    """

    name: str
    says: str
    completed: int
    missed: int
    is_bounded: bool
    gantt: str
    files: dict[str, str]


@dataclass(frozen=True)
class Line:
    """Response times of a task, or from end to end of a graph, in nanoseconds; None where there is none.

    Attributes:
        name: of the task or graph.
        period_ns: of the task; None for a graph.
        deadline_ns: relative; None for a graph.
        bound_ns: proven by the analysis.
        simulated_ns: the longest that was simulated.
        live_ns: the longest of each run.
    """

    name: str
    period_ns: int | None
    deadline_ns: int | None
    bound_ns: int | None
    simulated_ns: int | None
    live_ns: tuple[int | None, ...]


@dataclass(frozen=True)
class Workload:
    """A workload, its bounds, and what was seen of it."""

    name: str
    file: str
    scheduler: str
    status: str
    why: str
    simulated_missed: int
    simulated_completed: int
    runs: tuple[LiveRun, ...]
    lines: tuple[Line, ...]

    def beyond_bounds(self) -> list[tuple[Line, LiveRun | None, int]]:
        """What took longer than the analysis says, and how long; no run stands for the simulation."""
        found: list[tuple[Line, LiveRun | None, int]] = []
        for line in self.lines:
            if line.bound_ns is None:
                continue
            seen = [(None, line.simulated_ns)]
            bounded = [(run, ns) for run, ns in zip(self.runs, line.live_ns, strict=True) if run.is_bounded]
            found += [(line, run, ns) for run, ns in [*seen, *bounded] if ns is not None and ns > line.bound_ns]
        return found


def read_workload(folder: Path, workload: Fields) -> Workload:
    """Reads what `run.json` says of a workload, and the files that it names."""
    check = Fields.read(folder / workload.text("check"))
    simulated = Fields.read(folder / workload.text("simulated"))
    runs = [(run, Fields.read(folder / run.text("measured"))) for run in workload.each("runs")]
    hard = check.inner("hard")
    failures = hard.each("failures")
    return Workload(
        name=workload.text("name"),
        file=workload.text("file"),
        scheduler=check.text("scheduler"),
        status=hard.text("status"),
        why=failures[0].text("message") if failures else "",
        simulated_missed=simulated.inner("total").whole("missed"),
        simulated_completed=simulated.inner("total").whole("completed"),
        runs=tuple(_run(folder, run, measured) for run, measured in runs),
        lines=tuple(_lines(check, simulated, [measured for _, measured in runs])),
    )


def _run(folder: Path, run: Fields, measured: Fields) -> LiveRun:
    total = measured.inner("total")
    return LiveRun(
        run.text("name"),
        run.text("says"),
        total.whole("completed"),
        total.whole("missed"),
        run.flag("is_bounded"),
        picture(folder / run.text("gantt")),
        beside(folder, run.each("files")),
    )


def _lines(check: Fields, simulated: Fields, measured: list[Fields]) -> list[Line]:
    """One for each task that the analysis knows, and one for each graph."""
    tasks = [
        Line(
            task.text("name"),
            task.whole("period_ns"),
            task.whole("deadline_ns"),
            task.maybe("response_time_ns"),
            _longest(simulated, "tasks", "response_time_ns", "max", task.text("name")),
            tuple(_longest(run, "tasks", "response_time_ns", "max", task.text("name")) for run in measured),
        )
        for task in check.each("tasks")
    ]
    graphs = [
        Line(
            f"{graph.text('name')}, from end to end",
            None,
            None,
            graph.maybe("end_to_end_ns"),
            _longest(simulated, "graphs", "end_to_end", "max_ns", graph.text("name")),
            tuple(_longest(run, "graphs", "end_to_end", "max_ns", graph.text("name")) for run in measured),
        )
        for graph in check.each("graphs")
    ]
    return tasks + graphs


def _longest(measured: Fields, of: str, what: str, longest: str, name: str) -> int | None:
    """The longest span that was measured of the thing of this name; None if there was none."""
    for thing in measured.each(of):
        if thing.text("name") == name:
            return thing.inner(what).whole(longest) if what in thing else None
    return None
