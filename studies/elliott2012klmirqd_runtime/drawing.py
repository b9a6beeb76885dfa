"""Figures 3, 4 and 13 to 94 of Elliott & Anderson 2012, and its Table II as bars, from our results."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from laxity.plots._style import GRAY, tidy
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, PercentFormatter

from studies.common.style import BLUE, GREEN, VERMILION, Canvas, figure, note, save, settings
from studies.elliott2012klmirqd_runtime import lab_view
from studies.elliott2012klmirqd_runtime.claims import INVERSIONS_SECONDS, PERCENTILES, TABLE_2, TOTALS, first_figures
from studies.elliott2012klmirqd_runtime.plan import SHOWN
from studies.elliott2012klmirqd_runtime.results import KINDS, RuntimeResults

LOOKS: dict[str, tuple[str, Any]] = {
    "klmirqd": (GREEN, "-"),
    "PAI": (VERMILION, (0, (4, 1.6))),
    "SLIH": (BLUE, (0, (1.2, 1.2))),
}
X_MAX_US = 100.0
"""Of the figures; the tail of SLIH is "not depicted due to scale" in the paper either."""

SOME = (7_500, 9_500, SHOWN, 11_500)
"""Utilizations with figures of their own where not all are drawn."""

POLLING = "waiting=poll interrupts=6"


def draw_all(canvas: Canvas[RuntimeResults], *, every: bool) -> Iterator[tuple[str, str, Path]]:
    """Draws what the results allow; yields name, caption and SVG path of each figure as it is done."""
    results = canvas.results
    with settings():
        if SHOWN in results.points:
            text = "utilization 11.2: how long priority inversions are, and how long together"
            yield "Figures 3 and 4", text, _shown(canvas, "", "figures-003-004", text)
            text = f"utilization 11.2 if jobs poll and raise six interrupts ({POLLING})"
            yield "Figures 3 and 4, polling", text, _shown(canvas, POLLING, "figures-003-004-poll", text)
        if results.lab is not None:
            text = "priority inversions in the kernel of an emulated machine: how long they are, and how long together"
            yield "Figures 3 and 4, measured in the lab", text, lab_view.draw(canvas, results.lab)
        yield "Table II", "response times and missed deadlines, ours beside the paper's", _table2(canvas)
        text = "distribution of inversion lengths at all utilizations"
        yield "Figures 13 to 53", text, _sheet(canvas, "figures-013-053", text, cumulative=False)
        text = "cumulative inversion length at all utilizations"
        yield "Figures 54 to 94", text, _sheet(canvas, "figures-054-094", text, cumulative=True)
        for point in results.points:
            if every or point in SOME:
                first, second = first_figures(point)
                text = f"task set of utilization {point / 1000:.1f}"
                yield f"Figures {first} and {second}", text, _pair(canvas, point, text)


def _distribution(ax: Axes, results: RuntimeResults, point: int, variant: str = "", *, width: float = 1.5) -> None:
    """A step for each length: how many inversions are at most that long."""
    for handling, (colour, dash) in LOOKS.items():
        curve = results.inversions(handling, point, variant)
        share = curve.rank / max(curve.count, 1)
        x, y = _until(curve.length_us, share)
        ax.plot(x, y, color=colour, linestyle=dash, linewidth=width, drawstyle="steps-post")
    ax.set_ylim(-0.02, 1.04)
    ax.yaxis.set_major_formatter(PercentFormatter(1.0))
    _axes(ax)


def _cumulative(ax: Axes, results: RuntimeResults, point: int, variant: str = "", *, width: float = 1.5) -> None:
    """For each length, how long the inversions of at most that length are together."""
    for handling, (colour, dash) in LOOKS.items():
        curve = results.inversions(handling, point, variant)
        x, y = _until(curve.length_us, curve.cumulative_us / 1e3)
        ax.plot(x, y, color=colour, linestyle=dash, linewidth=width, drawstyle="steps-post")
    ax.set_ylim(bottom=0)
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    _axes(ax)


def _until(x: Any, y: Any) -> tuple[Any, Any]:
    """The part of a curve that is seen, up to the right edge."""
    seen = x <= X_MAX_US
    return np.append(x[seen], X_MAX_US), np.append(y[seen], y[seen][-1])


def _axes(ax: Axes) -> None:
    ax.set_xlim(0, X_MAX_US)
    ax.grid(color="#E4E6E9", linewidth=0.6)
    ax.set_axisbelow(True)
    tidy(ax)


def _legend(fig: Any) -> None:
    handles = [Line2D([], [], color=c, linestyle=d, linewidth=1.5, label=name) for name, (c, d) in LOOKS.items()]
    fig.legend(handles=handles, loc="outside upper center", ncols=3, frameon=False, handlelength=2.6)


def _pair(canvas: Canvas[RuntimeResults], point: int, text: str) -> Path:
    """The two graphs of a utilization in appendix C."""
    fig = figure(8.4, 3.3)
    left, right = fig.subplots(1, 2)
    _distribution(left, canvas.results, point)
    _cumulative(right, canvas.results, point)
    _label(left, right)
    _legend(fig)
    first, second = first_figures(point)
    note(fig, f"Paper: Figs. {first} and {second}, {text}. {canvas.caption}")
    return save(fig, canvas, f"utilization-{point / 1000:.1f}".replace(".", "-"))


def _label(left: Axes, right: Axes) -> None:
    left.set(xlabel="length of a priority inversion [µs]", ylabel="inversions at most that long")
    right.set(xlabel="longest priority inversion counted [µs]", ylabel="cumulative length [ms]")


def _shown(canvas: Canvas[RuntimeResults], variant: str, name: str, text: str) -> Path:
    """Figs. 3 and 4 with what the paper reads off them."""
    results = canvas.results
    fig = figure(8.4, 3.9)
    left, right = fig.subplots(1, 2)
    _distribution(left, results, SHOWN, variant)
    _cumulative(right, results, SHOWN, variant)
    _label(left, right)
    left.axhline(0.9, color=GRAY, linewidth=0.7, linestyle=(0, (2, 2)))
    curves = {handling: results.inversions(handling, SHOWN, variant) for handling in LOOKS}
    for handling, paper in PERCENTILES.items():
        colour = LOOKS[handling][0]
        left.plot([paper], [0.9], marker="x", color=colour, markersize=7, markeredgewidth=1.8, zorder=5, clip_on=False)
        ours = curves[handling].percentile_us(90)
        left.plot([ours], [0.9], marker="o", color=colour, markersize=5, markerfacecolor="white", zorder=6)
    percentiles = {h: (PERCENTILES[h], curves[h].percentile_us(90)) for h in LOOKS}
    totals = {h: (TOTALS[h] / 1e3, curves[h].total_us / 1e3) for h in LOOKS}
    _beside(left, "90th percentile [µs]", percentiles, y=0.42, x=0.34, marked=True)
    seconds = results.run["seconds"][0]
    # A sum grows with time: a shorter run says so beside the number that is not comparable.
    title = "all inversions [ms]" if seconds == INVERSIONS_SECONDS else f"sum [ms]; ours: {seconds} s"
    _beside(right, title, totals, y=0.97, x=0.05)
    right.set_ylim(top=1.6 * right.get_ylim()[1])
    _legend(fig)
    note(fig, f"Paper: {text}. {canvas.caption}{f' Here with {variant}.' if variant else ''}")
    return save(fig, canvas, name)


def _beside(
    ax: Axes, title: str, numbers: dict[str, tuple[float, float]], *, x: float, y: float, marked: bool = False
) -> None:
    """The paper's numbers beside ours, as text in the graph."""
    rows = [(title, "paper" + " \N{MULTIPLICATION SIGN}" * marked, "ours" + " \N{WHITE CIRCLE}" * marked)]
    rows += [(handling, f"{paper:,.0f}", f"{ours:,.1f}") for handling, (paper, ours) in numbers.items()]
    for line, row in enumerate(rows):
        colour = LOOKS[row[0]][0] if row[0] in LOOKS else GRAY
        style: dict[str, Any] = {"fontsize": 7.5, "transform": ax.transAxes, "color": colour, "va": "top"}
        ax.text(x, y - 0.07 * line, row[0], **style)
        ax.text(x + 0.47, y - 0.07 * line, row[1], ha="right", **style)
        ax.text(x + 0.62, y - 0.07 * line, row[2], ha="right", **style)


def _sheet(canvas: Canvas[RuntimeResults], name: str, text: str, *, cumulative: bool) -> Path:
    """A small graph for each utilization."""
    results = canvas.results
    columns = min(7, len(results.points))
    rows = -(-len(results.points) // columns)
    fig = figure(11.0 if columns > 4 else 8.4, 0.7 + 1.35 * rows)
    axes = np.atleast_2d(fig.subplots(rows, columns, sharex=True, sharey=not cumulative, squeeze=False))
    for ax in axes.flat[len(results.points) :]:
        ax.set_visible(False)
    for ax, point in zip(axes.flat, results.points, strict=False):
        (_cumulative if cumulative else _distribution)(ax, results, point, width=1.2)
        ax.set_title(f"{point / 1000:.1f}: Fig. {first_figures(point)[int(cumulative)]}", fontsize=7, pad=2)
        ax.tick_params(labelsize=6.5)
        ax.set_xticks([0, 50, 100])
    if len(results.points) % columns and rows > 1:
        for ax in axes[-2, len(results.points) % columns :]:
            ax.tick_params(labelbottom=True)
    fig.supylabel("cumulative length [ms]" if cumulative else "inversions at most that long", fontsize=8)
    _legend(fig)
    x = "longest priority inversion counted" if cumulative else "length of a priority inversion"
    note(fig, f"Paper: {text}. Horizontal: {x} [µs]. {canvas.caption}")
    return save(fig, canvas, name)


def _table2(canvas: Canvas[RuntimeResults]) -> Path:
    """Response times and misses of the columns: a bar is ours, a cross the paper's."""
    results = canvas.results
    fig = figure(8.4, 4.6)
    axes = fig.subplots(2, 2, sharex=True)
    systems = [column for column, _ in results.systems]
    places = np.arange(len(systems))
    for row, (measure, label, top) in enumerate(
        (("response", "response time, % of period", 100), ("missed", "missed, %", 15))
    ):
        for ax, kind in zip(axes[row], KINDS, strict=True):
            colour = BLUE if kind == KINDS[0] else GREEN
            ours = [getattr(results.responses(system, kind), measure) for system in systems]
            ax.bar(places, ours, color=colour, width=0.62, alpha=0.85)
            paper = [getattr(TABLE_2[system, kind], measure) for system in systems]
            for place, value in zip(places, paper, strict=True):
                if value <= top:
                    ax.plot(
                        [place], [value], marker="x", color="black", markersize=6, markeredgewidth=1.5, clip_on=False
                    )
                else:
                    style: dict[str, Any] = {"ha": "center", "va": "top", "rotation": 90, "fontsize": 7, "color": GRAY}
                    ax.annotate(f"{value:,.0f} %", (place, top), **style)
            ax.set_ylim(0, top)
            ax.set_xticks(places, [f"({system})" for system in systems])
            ax.set_ylabel(label)
            if row == 0:
                ax.set_title(f"{kind} tasks")
            ax.grid(axis="y", color="#E4E6E9", linewidth=0.6)
            ax.set_axisbelow(True)
            tidy(ax)
    run = results.run
    note(
        fig,
        "Paper: Table II (crosses; grey numbers are beyond the axis). (a), (b) PREEMPT_RT, low and high priority; "
        "(c) Linux; (d) to (f) LITMUS C-RM with SLIH, klmirqd, PAI; (g), (h) C-EDF with klmirqd, PAI. Bars: "
        f"simulated, {run['repetitions']} times {run['seconds'][1]} s.",
    )
    return save(fig, canvas, "table-2")
