"""Cumulative distributions of what jobs experienced."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
import pyarrow.compute as pc
from matplotlib.axes import Axes
from numpy.typing import NDArray

from laxity._native import Trace
from laxity.plots._style import (
    GRAY,
    Sources,
    caption,
    explain,
    labelled,
    line_styles,
    new_axes,
    plain,
    provenance,
    tidy,
    trace_of,
    unit_for,
)

Metric: TypeAlias = Literal["response_time", "lateness", "tardiness"]
Nanos: TypeAlias = NDArray[np.int64]

_AXIS = {
    "response_time": "response time (completion - arrival)",
    "lateness": "lateness (completion - deadline)",
    "tardiness": "tardiness (completion - deadline, if positive)",
}


def cdf(
    sources: Sources,
    metric: Metric = "response_time",
    *,
    task: str | None = None,
    per_task: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Which fraction of the completed jobs took at most how long.

    The curves are exact: a step for each job, none left out or smoothed. Jobs that are incomplete at the end are not
    counted; the label says how many jobs are.

    Args:
        sources: results with a trace, or traces: one, several, or a mapping from labels to them.
        metric: "response_time", "lateness" or "tardiness".
        task: only jobs of the task of this name.
        per_task: a curve a task instead of one a source; takes a single source.
        ax: where to draw; a new figure if not given.

    Raises:
        ValueError: if no job is left to draw, or the metric is unknown.
        LaxityError: for a result without a trace.
    """
    if metric not in _AXIS:
        raise ValueError(f'metric="{metric}" is unknown; write one of {", ".join(_AXIS)}')
    named = labelled(sources)
    if per_task and len(named) > 1:
        raise ValueError(f"per_task takes a single source, {len(named)} were given; draw one plot for each")
    traces = {item.label: trace_of(item.source) for item in named}
    curves: dict[str, Nanos] = {}
    for label, trace in traces.items():
        curves |= _per_task(trace, metric) if per_task else {label: _values(trace, metric, task)}
    curves = {label: values for label, values in curves.items() if len(values) > 0}
    if not curves:
        whose = "" if task is None else f' of task "{task}"'
        raise ValueError(f"no completed job{whose} to draw; simulate for longer or name another task")

    ax = new_axes(5.6, 3.6) if ax is None else ax
    unit, scale = unit_for(max(float(np.abs(values).max()) for values in curves.values()))
    for number, ((name, values), (colour, dash)) in enumerate(zip(curves.items(), line_styles(), strict=False)):
        jobs = f"{len(values):,} job" + ("s" if len(values) != 1 else "")
        fractions = np.arange(len(values) + 1) / len(values)
        # From 0 at the smallest value, up by a step at every job.
        edges = np.concatenate([values[:1], values]) / scale
        # The first curves are the widest: they can be seen below those that lie on them.
        width = 1.3 + 0.6 * max(0, min(len(curves), 6) - number - 1)
        label = plain(f"{name} ({jobs})")
        ax.step(edges, fractions, where="post", color=colour, linestyle=dash, linewidth=width, label=label)
    if metric == "lateness":
        ax.axvline(0, color=GRAY, linewidth=0.8, linestyle=(0, (1, 2)))
        ax.annotate(
            "deadline",
            (0, 0.02),
            xytext=(-3, 0),
            textcoords="offset points",
            ha="right",
            color=GRAY,
            fontsize="small",
            rotation=90,
        )
    ax.set_xlabel(f"{_AXIS[metric]}, {unit}")
    ax.set_ylabel("fraction of completed jobs")
    ax.set_ylim(0, 1.02)
    if metric != "lateness":
        ax.set_xlim(left=0)
    ax.grid(alpha=0.3, linewidth=0.6)
    tidy(ax)
    explain(ax, rows=14)
    only = "" if task is None else plain(f"task {task}, ")
    caption(ax, only + provenance([item.source for item in named]))
    return ax


def _values(trace: Trace, metric: Metric, task: str | None) -> Nanos:
    """The metric of the completed jobs in ns, sorted: int64 of shape (n_jobs,)."""
    jobs = trace.jobs()
    if task is not None:
        if task not in trace.task_names:
            raise ValueError(f'no task "{task}" in the trace; there are {", ".join(trace.task_names)}')
        jobs = jobs.filter(pc.equal(jobs["task"], trace.task_names.index(task)))
    values: Nanos = jobs[f"{metric}_ns"].drop_null().to_numpy().astype(np.int64)
    values.sort()
    return values


def _per_task(trace: Trace, metric: Metric) -> dict[str, Nanos]:
    return {name: _values(trace, metric, name) for name in trace.task_names}
