"""Figures 5, 6 and 95 to 334 of Elliott & Anderson, ECRTS 2012, from our results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from laxity.plots._style import GRAY
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from studies.common.results import Curve, Results
from studies.common.style import BLUE, GREEN, VERMILION, Canvas, Look, draw, figure, note, save, settings
from studies.elliott2012klmirqd.claims import (
    BANDS,
    DISTRIBUTIONS,
    ENOUGH_SETS,
    FIGURE_5,
    HANDLINGS,
    INTERRUPTS,
    SPEEDUPS,
    first_figure,
)

COLOURS = {"SLIH": BLUE, "PAI": VERMILION, "klmirqd": GREEN}
DASHES: dict[int, Any] = {1: "-", 3: (0, (4, 1.6)), 6: (0, (1.2, 1.2))}
NAMES = tuple(f"{handling} i={i}" for handling in HANDLINGS for i in INTERRUPTS)


def look(name: str) -> Look:
    """How a curve is drawn: colour by handling, dash by interrupts a job."""
    handling, i = name.split(" i=")
    return Look(COLOURS[handling], DASHES[int(i)], name)


def x_label(speedup: int) -> str:
    """The x-axis of a graph."""
    return "CPU utilization [CPUs]" if speedup == 1 else f"effective utilization, GPU {speedup}x as fast [CPUs]"


def draw_all(canvas: Canvas[Results], *, every: bool) -> Iterator[tuple[str, str, Path]]:
    """Draws what the results allow; yields name, caption and SVG path of each figure as it is done."""
    results = canvas.results
    with settings():
        if FIGURE_5 in results.scenarios:
            for number, speedup in ((5, 1), (6, 16)):
                text = "uniform [50%, 90%], 50 to 60 % of the tasks use a GPU" + (
                    "" if speedup == 1 else f", GPU {speedup}x as fast as a CPU"
                )
                yield f"Figure {number}", text, _single(canvas, number, speedup, text)
        for row, (name, text) in enumerate(DISTRIBUTIONS):
            for column, speedup in enumerate(SPEEDUPS):
                if any(scenario.startswith(name) for scenario in results.scenarios) and (every or speedup == 1):
                    first = first_figure(row, column)
                    title = f"{text}; R = {speedup}; ten bands of the share of GPU-using tasks"
                    path = _sheet(canvas, (name, text), first, speedup)
                    yield f"Figures {first} to {first + 9}", title, path


def _curves(results: Results, scenario: str, speedup: int) -> list[tuple[Curve, Look]]:
    """The nine curves, without bins of few task sets."""
    curves = []
    for name in NAMES:
        curve = results.curve(scenario, f"R={speedup}", name)
        enough = curve.sets >= min(ENOUGH_SETS, float(np.max(curve.sets)))
        part = {field: getattr(curve, field)[enough] for field in ("x", "y", "low", "high", "sets")}
        curves.append((replace(curve, **part), look(name)))
    return curves


def _legend(fig: Any, ncols: int) -> None:
    styles = [look(name) for name in NAMES]
    handles = [Line2D([], [], color=s.colour, linestyle=s.dash, linewidth=1.4, label=s.label) for s in styles]
    fig.legend(handles=handles, loc="outside upper center", ncols=ncols, frameon=False, handlelength=2.6)


def _single(canvas: Canvas[Results], number: int, speedup: int, text: str) -> Path:
    results = canvas.results
    fig = figure(6.4, 4.2)
    ax = fig.subplots()
    curves = _curves(results, FIGURE_5, speedup)
    draw(ax, curves, xlim=(0, _end(curves)))
    ax.set(xlabel=x_label(speedup), ylabel="schedulable task sets")
    if speedup == 16:
        _at_90(ax, results)
    _legend(fig, 3)
    note(fig, f"Paper: Fig. {number}. Soft real-time, C-EDF, average overheads; {text}. {canvas.caption}")
    return save(fig, canvas, f"figure-{number:03}")


def _at_90(ax: Axes, results: Results) -> None:
    """Marks where 90 % are schedulable at six interrupts a job: in the paper and here."""
    ax.axhline(0.9, color=GRAY, linewidth=0.7, linestyle=(0, (2, 2)))
    rows = [("i = 6, 90 % schedulable at", "paper", "ours")]
    for names, paper in (("klmirqd", 65.0), ("SLIH", 55.0), ("PAI", 55.0)):
        here = results.curve(FIGURE_5, "R=16", f"{names} i=6").up_to(0.9, ENOUGH_SETS)
        colour = COLOURS[names]
        ax.plot([paper], [0.9], marker="x", color=colour, markersize=7, markeredgewidth=1.8, linestyle="none", zorder=5)
        ax.plot([here], [0.9], marker="o", color=colour, markersize=5, markerfacecolor="white", zorder=5)
        rows.append((names, f"{paper:.1f}", f"{here:.1f}"))
    for line, row in enumerate(rows):
        y = 0.44 - 0.065 * line
        style: dict[str, Any] = {"fontsize": 7.5, "transform": ax.transAxes, "color": COLOURS.get(row[0], GRAY)}
        ax.text(0.03, y, row[0], **style)
        ax.text(0.33, y, row[1] + ("" if line == 0 else " \N{MULTIPLICATION SIGN}"), ha="center", **style)
        ax.text(0.42, y, row[2] + ("" if line == 0 else " \N{WHITE CIRCLE}"), ha="center", **style)


def _sheet(canvas: Canvas[Results], distribution: tuple[str, str], first: int, speedup: int) -> Path:
    """Ten graphs: a row of Table IV."""
    results = canvas.results
    fig = figure(11.0, 5.4)
    axes = fig.subplots(2, 5, sharey=True)
    name, text = distribution
    for offset, (ax, band) in enumerate(zip(axes.flat, BANDS, strict=True)):
        scenario = f"{name}/gpu={band}%"
        if scenario in results.scenarios:
            curves = _curves(results, scenario, speedup)
            draw(ax, curves, xlim=(0, _end(curves)), label=False)
        ax.set_title(f"Fig. {first + offset}: {band.replace('-', ' to ')} % use a GPU")
    fig.supylabel("schedulable task sets", fontsize=8)
    for ax in axes[1]:
        ax.set_xlabel(x_label(speedup) if speedup == 1 else f"effective utilization, R = {speedup} [CPUs]")
    _legend(fig, 9)
    note(
        fig, f"Paper: Figs. {first} to {first + 9}, {text}. Soft real-time, C-EDF, average overheads. {canvas.caption}"
    )
    return save(fig, canvas, f"figures-{first:03}-{first + 9:03}")


def _end(curves: list[tuple[Curve, Look]]) -> float:
    """Where all curves have ended: nothing is schedulable beyond."""
    ends = [float(curve.x[np.flatnonzero(curve.y > 0.001)[-1]]) for curve, _ in curves if np.any(curve.y > 0.001)]
    longest = max((float(curve.x[-1]) for curve, _ in curves), default=1.0)
    return min(longest, 1.05 * max(ends, default=longest))
