"""Schedules as Gantt charts that can be combined with other plots; `Trace.gantt_svg` draws them in more detail."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from laxity._native import nanos
from laxity.plots._style import (
    DARK,
    GRAY,
    MISSED,
    PALETTE,
    Source,
    caption,
    explain,
    new_axes,
    plain,
    provenance,
    tidy,
    trace_of,
    unit_for,
)

Spans: TypeAlias = list[tuple[float, float]]
Row: TypeAlias = Literal["cpus", "tasks"]

STOLEN: dict[str, Any] = {"facecolor": "#F7E1F0", "edgecolor": "#8E1B6B", "linewidth": 0, "hatch": "\\\\\\\\"}

INTERVALS_MAX = 20_000
"""A chart of more would be a smear that takes minutes to draw."""

OCCUPYING = ("execution", "spinning")
"""What a task's job does with the CPU that it has."""


def gantt(
    source: Source,
    ax: Axes | None = None,
    *,
    start: str = "0 ms",
    end: str | None = None,
    rows: Row = "cpus",
    legend: bool = True,
) -> Axes:
    """What ran when.

    With a row a CPU, colours are tasks and black is scheduler and interrupt code; hatched is time in which a CPU was
    stolen from all threads (`laxity run --watch-cpus`). An interval that is shorter than a pixel is drawn as faint as
    it is short. With a row a task, arrows up are releases, arrows down deadlines, and a red cross stands at the
    deadline of each job that missed it.

    Args:
        source: a trace, or a result that has one.
        ax: where to draw; a new figure if not given.
        start: left edge, with its unit.
        end: right edge; the end of the trace if not given.
        rows: "cpus" or "tasks".
        legend: whether to explain colours and signs.

    Raises:
        ValueError: if nothing lies between ``start`` and ``end``, or too much to be drawn.
        LaxityError: for a result without a trace.
    """
    trace = trace_of(source)
    if rows not in ("cpus", "tasks"):
        raise ValueError(f'rows="{rows}" is unknown; write "cpus" or "tasks"')
    left = nanos(start)
    right = trace.duration_ns if end is None else nanos(end)
    if left >= right:
        raise ValueError(f"nothing lies between {start} and {end or 'the end of the trace'}; choose a later end")
    intervals = _window(trace.intervals(), left, right)
    if intervals.num_rows > INTERVALS_MAX:
        raise ValueError(
            f"{intervals.num_rows:,} intervals are more than the {INTERVALS_MAX:,} that can be told apart; choose a "
            "shorter window with `start` and `end`"
        )
    names = [f"cpu{cpu}" for cpu in range(trace.cpus)] if rows == "cpus" else [plain(name) for name in trace.task_names]
    ax = new_axes(8.0, 1.2 + 0.36 * len(names)) if ax is None else ax
    unit, scale = unit_for(right - left)
    drawing = _Drawing(ax, left, right, scale)
    handles = drawing.cpus(intervals, trace.task_names) if rows == "cpus" else drawing.tasks(intervals, trace.jobs())
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.set_xlim(left / scale, right / scale)
    ax.set_xlabel(f"time, {unit}")
    ax.tick_params(axis="y", length=0)
    tidy(ax)
    if legend:
        explain(ax, handles, rows=4 + 3 * len(names) // 2)
    caption(ax, provenance([source]))
    return ax


class _Drawing:
    """Axes and the window of time they show."""

    def __init__(self, ax: Axes, left: int, right: int, scale: int) -> None:
        self.ax, self.left, self.right, self.scale = ax, left, right, scale

    def cpus(self, intervals: pa.Table, names: list[str]) -> list[Any]:
        executions: defaultdict[tuple[int, int], Spans] = defaultdict(list)
        overheads: defaultdict[int, Spans] = defaultdict(list)
        stolen: defaultdict[int, Spans] = defaultdict(list)
        for row in intervals.to_pylist():
            if row["activity"] in OCCUPYING:
                executions[row["cpu"], row["task"]].append(self._span(row))
            elif row["activity"] == "stolen":
                stolen[row["cpu"]].append(self._span(row))
            elif row["cpu"] is not None and row["activity"] != "non_preemptive":
                overheads[row["cpu"]].append(self._span(row))
        for (cpu, task), spans in executions.items():
            self._bars(cpu, spans, **_look(task))
        for cpu, spans in overheads.items():
            self._bars(cpu, spans, facecolor=DARK, linewidth=0)
        tasks = sorted({task for _, task in executions})
        handles = [Patch(label=names[task], **_look(task)) for task in tasks]
        if overheads:
            handles.append(Patch(facecolor=DARK, linewidth=0, label="scheduler, interrupts"))
        return handles + self._stolen(stolen)

    def tasks(self, intervals: pa.Table, jobs: pa.Table) -> list[Any]:
        executions: defaultdict[int, Spans] = defaultdict(list)
        rows = intervals.to_pylist()
        gaps = [row for row in rows if row["activity"] == "stolen"]
        stolen: defaultdict[int, Spans] = defaultdict(list)
        for row in rows:
            if row["activity"] in OCCUPYING:
                executions[row["task"]].append(self._span(row))
                stolen[row["task"]] += [self._span(both) for gap in gaps if (both := _both(row, gap))]
        for task, spans in executions.items():
            self._bars(task, spans, facecolor=PALETTE[0], linewidth=0)
        gap_handles = self._stolen(stolen)
        releases = self._marks(jobs, "release_ns", "^", DARK)
        deadlines = self._marks(jobs, "deadline_ns", "v", GRAY)
        missed = self._marks(jobs.filter(jobs["missed"]), "deadline_ns", "x", MISSED)
        executes = Patch(facecolor=PALETTE[0], label="executes")
        return [
            executes,
            *gap_handles,
            *_legends([(releases, "release"), (deadlines, "deadline"), (missed, "missed deadline")]),
        ]

    def _stolen(self, stolen: Mapping[int, Spans]) -> list[Patch]:
        """Draws, over what jobs were said to do meanwhile, when CPUs were stolen from all threads."""
        shown = {row: spans for row, spans in stolen.items() if spans}
        for row, spans in shown.items():
            self._bars(row, spans, **STOLEN)
        return [Patch(label="CPU stolen", **STOLEN)] if shown else []

    def _span(self, row: dict[str, Any]) -> tuple[float, float]:
        """Left edge and width of what lies in the window."""
        begin, end = max(row["from_ns"], self.left), min(row["to_ns"], self.right)
        return begin / self.scale, (end - begin) / self.scale

    def _bars(self, row: int, spans: Spans, **look: Any) -> None:
        # Snapped to pixels, of many short bars some would vanish and others grow.
        self.ax.broken_barh(spans, (row - 0.28, 0.56), snap=False, **look)

    def _marks(self, jobs: pa.Table, column: str, marker: str, colour: str) -> Line2D | None:
        """A sign for each job: above its row for what begins, below it for what ends. None if there is none."""
        inside = pc.and_(pc.greater_equal(jobs[column], self.left), pc.less_equal(jobs[column], self.right))
        shown = jobs.filter(inside)
        if shown.num_rows == 0:
            return None
        times = shown[column].to_numpy() / self.scale
        rows = shown["task"].to_numpy() + {"^": -0.4, "v": 0.4, "x": 0.0}[marker]
        filled = {"markerfacecolor": colour} if marker != "x" else {"markeredgewidth": 1.8}
        size = 7 if marker == "x" else 4
        (line,) = self.ax.plot(
            times, rows, linestyle="none", marker=marker, markersize=size, color=colour, clip_on=False, **filled
        )
        return line


def _both(execution: dict[str, Any], gap: dict[str, Any]) -> dict[str, int] | None:
    """When the CPU of the execution was stolen during it by this gap."""
    begin, end = max(execution["from_ns"], gap["from_ns"]), min(execution["to_ns"], gap["to_ns"])
    return {"from_ns": begin, "to_ns": end} if execution["cpu"] == gap["cpu"] and begin < end else None


def _look(task: int) -> dict[str, Any]:
    """Colour, and from the eighth task on a hatch: 28 tasks can be told apart."""
    hatch = ("", "....", "xxxx", "----")[task // len(PALETTE) % 4]
    return {"facecolor": PALETTE[task % len(PALETTE)], "edgecolor": "white", "linewidth": 0, "hatch": hatch}


def _legends(marks: list[tuple[Line2D | None, str]]) -> list[Line2D]:
    for line, label in marks:
        if line is not None:
            line.set_label(label)
    return [line for line, _ in marks if line is not None]


def _window(intervals: pa.Table, left: int, right: int) -> pa.Table:
    return intervals.filter(pc.and_(pc.less(intervals["from_ns"], right), pc.greater(intervals["to_ns"], left)))
