"""A workload that was analysed, simulated and run: the same jobs three times."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from laxity._errors import LaxityError
from laxity._native import Trace, read_trace
from laxity.report._beside import beside
from laxity.report._cause import Cause, Lost, lost
from laxity.report._check import why_not
from laxity.report._cpu_time import Share, shares
from laxity.report._fields import Fields
from laxity.report._files import ResultsError, picture


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
        cpu_time: shares of it, as far as they were recorded.
        stolen_ns: of it, that the hypervisor took on all CPUs; None if it was not recorded.
        trace: of the run; None if there is none.
    """

    name: str
    says: str
    completed: int
    missed: int
    is_bounded: bool
    gantt: str
    files: dict[str, str]
    cpu_time: tuple[Share, ...]
    stolen_ns: int | None
    trace: Trace | None


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
        task: its number in traces; None for a graph.
    """

    name: str
    task: int | None
    period_ns: int | None
    deadline_ns: int | None
    bound_ns: int | None
    simulated_ns: int | None
    live_ns: tuple[int | None, ...]


@dataclass(frozen=True)
class Workload:
    """A workload, its bounds, and what was seen of it.

    Attributes:
        name: of the workload.
        file: that it is from.
        says: what there is to say of it.
        scheduler: of the analysis and the simulation.
        status: what the analysis answers.
        why: why it does not prove that deadlines are met, if it does not.
        overheads: that it charges.
        simulated_missed: simulated jobs that missed their deadlines.
        simulated_completed: simulated jobs.
        runs: on the machine.
        lines: response times.
        wcets_ns: of the tasks, by their numbers.
    """

    name: str
    file: str
    says: str
    scheduler: str
    status: str
    why: str
    overheads: str
    simulated_missed: int
    simulated_completed: int
    runs: tuple[LiveRun, ...]
    lines: tuple[Line, ...]
    wcets_ns: tuple[int, ...]

    @property
    def bounds(self) -> int:
        """How many there are."""
        return sum(line.bound_ns is not None for line in self.lines)

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

    def causes(self) -> list[tuple[Line, LiveRun, Cause]]:
        """Why what was run live took longer than the analysis says, as far as known."""
        return [
            (line, run, Cause(ns - (line.bound_ns or 0), self._lost(line, run), run.stolen_ns))
            for line, run, ns in self.beyond_bounds()
            if run is not None
        ]

    def _lost(self, line: Line, run: LiveRun) -> Lost | None:
        if run.trace is None or line.task is None:
            return None
        return lost(run.trace, line.task, list(self.wcets_ns))


def read_workload(folder: Path, workload: Fields) -> Workload:
    """Reads what `run.json` says of a workload, and the files that it names."""
    check = Fields.read(folder / workload.text("check"))
    simulated = Fields.read(folder / workload.text("simulated"))
    runs = [(run, Fields.read(folder / run.text("measured"))) for run in workload.each("runs")]
    for run, measured in runs:
        _match(folder / run.text("measured"), measured, simulated)
    return Workload(
        name=workload.text("name"),
        file=workload.text("file"),
        says=workload.text("says"),
        scheduler=check.text("scheduler"),
        status=check.inner("hard").text("status").replace("_", " "),
        why=why_not(check.values),
        overheads=check.inner("overheads").text("profile"),
        simulated_missed=simulated.inner("total").whole("missed"),
        simulated_completed=simulated.inner("total").whole("completed"),
        runs=tuple(_run(folder, run, measured) for run, measured in runs),
        lines=tuple(_lines(check, simulated, [measured for _, measured in runs])),
        wcets_ns=tuple(task.whole("wcet_ns") for task in simulated.each("tasks")),
    )


def _match(path: Path, measured: Fields, simulated: Fields) -> None:
    """Raises ResultsError if what was measured is not of the tasks and graphs that were simulated."""
    for kind in ("tasks", "graphs"):
        ran, expected = ([thing.text("name") for thing in one.each(kind)] for one in (measured, simulated))
        if ran != expected:
            raise ResultsError(f"{path}: has the {kind} {', '.join(ran)}, simulated were {', '.join(expected)}")


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
        shares(run.each("cpu_time")),
        run.maybe("stolen_ns"),
        _trace(folder / run.text("trace")) if "trace" in run else None,
    )


def _trace(path: Path) -> Trace:
    try:
        return read_trace(path)
    except (LaxityError, OSError) as error:
        raise ResultsError(f"{path}: {error}") from error


def _lines(check: Fields, simulated: Fields, measured: list[Fields]) -> list[Line]:
    """One for each task or node of a graph, and one for each graph: all number them alike."""
    bounds = {task.whole("task"): task.maybe("response_time_ns") for task in check.each("tasks")}
    tasks = [
        Line(
            task.text("name"),
            number,
            task.whole("period_ns"),
            task.whole("deadline_ns"),
            bounds.get(task.whole("task")),
            _longest(task, "response_time_ns", "max"),
            tuple(_longest(run.each("tasks")[number], "response_time_ns", "max") for run in measured),
        )
        for number, task in enumerate(simulated.each("tasks"))
    ]
    from_end_to_end = {graph.text("name"): graph.maybe("end_to_end_ns") for graph in check.each("graphs")}
    graphs = [
        Line(
            f"{graph.text('name')}, from end to end",
            None,
            None,
            None,
            from_end_to_end.get(graph.text("name")),
            _longest(graph, "end_to_end", "max_ns"),
            tuple(_longest(run.each("graphs")[number], "end_to_end", "max_ns") for run in measured),
        )
        for number, graph in enumerate(simulated.each("graphs"))
    ]
    return tasks + graphs


def _longest(measured: Fields, what: str, longest: str) -> int | None:
    """The longest span that was measured; None if there was none."""
    return measured.inner(what).whole(longest) if what in measured else None
