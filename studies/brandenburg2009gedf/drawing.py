"""Figures 3, 4, 5, 18 to 29 and 30 to 155 of Brandenburg & Anderson, RTSS 2009, from our results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from matplotlib.lines import Line2D

from studies.brandenburg2009gedf.claims import COMPARISONS, FIGURE_ORDER, HARD, NUMBERS, PERIODS, SOFT, UTILIZATIONS
from studies.brandenburg2009gedf.overheads import overhead_us
from studies.common.results import Curve, Results
from studies.common.style import (
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    PINK,
    VERMILION,
    Canvas,
    Look,
    draw,
    figure,
    note,
    save,
    settings,
)

CPUS = 32
UTILIZATION = {
    "uni-light": "uniform light [0.001, 0.1]",
    "uni-medium": "uniform medium [0.1, 0.4]",
    "uni-heavy": "uniform heavy [0.5, 0.9]",
    "bimo-light": "bimodal light 8/9 : 1/9",
    "bimo-medium": "bimodal medium 6/9 : 3/9",
    "bimo-heavy": "bimodal heavy 4/9 : 5/9",
}
PERIOD = {"short": "short [3 ms, 33 ms]", "moderate": "moderate [10 ms, 100 ms]", "long": "long [50 ms, 250 ms]"}
GRAPH = {
    "hard": "hard real-time, worst-case overheads",
    "hard-strongest": "hard real-time, worst-case overheads, strongest tests",
    "soft": "soft real-time, average overheads",
}
X_LABEL = "task set utilization cap [CPUs]"
Y_LABEL = "schedulable task sets"

# Colour: queue and scheduling; dash: interrupts on all CPUs. The best, on a dedicated CPU, are solid.
COLOURS = {"G-EDF": BLACK, "CE": BLUE, "FE": VERMILION, "HE": GREEN, "CQ": PINK, "S-CQ": ORANGE}


def look(name: str) -> Look:
    """How a curve of the paper's legend is drawn, with its number as label."""
    label = f"[{NUMBERS[name]}] {name}"
    if name == "G-EDF":
        return Look(BLACK, "-", label, 1.1)
    return Look(COLOURS[name[:-1]], "-" if name.endswith("1") else (0, (4, 1.6)), label)


def draw_all(canvas: Canvas[Results], *, every: bool) -> Iterator[tuple[str, str, Path]]:
    """Draws what the results allow; yields name, caption and SVG path of each figure as it is done."""
    results = canvas.results
    with settings():
        yield "Figure 3", "Average overheads per event under staggered quanta, as published", _figure_3(canvas)
        for number, graph in ((4, "hard"), (5, "soft")):
            if all(f"{u}/moderate" in results.scenarios for u in UTILIZATIONS):
                title = f"{GRAPH[graph]}; moderate periods"
                names = SOFT if graph == "soft" else HARD
                yield f"Figure {number}", title, insets(canvas, number, graph, names)
        for first, graph in ((18, "hard"), (24, "soft")):
            for offset, utilization in enumerate(FIGURE_ORDER):
                if f"{utilization}/short" in results.scenarios:
                    title = f"{GRAPH[graph]}; {UTILIZATION[utilization]}"
                    names = SOFT if graph == "soft" else HARD
                    paper = f"Fig. {first + offset}"
                    yield f"Figure {first + offset}", title, row(canvas, paper, graph, utilization, names)
        if every:
            yield from _comparisons(canvas)


def _figure_3(canvas: Canvas[Results]) -> Path:
    fig = figure(7.4, 2.6)
    axes = fig.subplots(1, 3)
    names = ("CEm", "CE1", "FEm", "FE1", "HEm", "CQm", "CQ1")
    for ax, (kind, title) in zip(
        axes, (("release", "(a) release"), ("scheduling", "(b) scheduling"), ("tick", "(c) tick")), strict=True
    ):
        for name in names:
            n, us = overhead_us(kind, "staggered", "average", name)
            style = look(name)
            ax.plot(n, us, color=style.colour, linestyle=style.dash, linewidth=1.3)
        ax.set(title=f"{title} overhead", xlabel="number of tasks", ylabel="average [µs]")
        ax.set_ylim(bottom=0)
        ax.grid(color="#E4E6E9", linewidth=0.6)
        ax.spines[["top", "right"]].set_visible(False)
    legend(fig, names)
    note(fig, "Paper: Fig. 3 (same tables). Data: Brandenburg & Anderson 2009, Tables 8, 10, 12.")
    return save(fig, canvas, "figure-003")


def legend(fig, names: tuple[str, ...]) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """The curves of these names, above all insets."""
    styles = [look(name) for name in names]
    handles = [Line2D([], [], color=s.colour, linestyle=s.dash, linewidth=1.4, label=s.label) for s in styles]
    fig.legend(handles=handles, loc="outside upper center", ncols=5, frameon=False, columnspacing=1.2, handlelength=2.6)


def insets(canvas: Canvas[Results], number: int, graph: str, names: tuple[str, ...]) -> Path:
    """Figures 4 and 5: two columns, uniform at the left and bimodal at the right."""
    fig = figure(7.4, 8.2)
    axes = fig.subplots(3, 2)
    order = ("uni-light", "bimo-light", "uni-medium", "bimo-medium", "uni-heavy", "bimo-heavy")
    for letter, ax, utilization in zip("abcdef", axes.flat, order, strict=True):
        _inset(ax, canvas.results, graph, f"{utilization}/moderate", names)
        ax.set(title=f"({letter}) {UTILIZATION[utilization]}", xlabel=X_LABEL, ylabel=Y_LABEL)
    legend(fig, names)
    note(fig, f"Paper: Fig. {number}. {GRAPH[graph]}, periods {PERIOD['moderate']}. {canvas.caption}")
    return save(fig, canvas, f"figure-{number:03}")


def _inset(ax, results: Results, graph: str, scenario: str, names: tuple[str, ...]) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    curves = [(results.curve(scenario, graph, name), look(name)) for name in names]
    short = [(curve, Look(s.colour, s.dash, s.label.split("]")[0].strip("[ "), s.width)) for curve, s in curves]
    draw(ax, short, xlim=(_start(curves[0][0]), CPUS))


def _start(curve: Curve) -> float:
    return float(curve.x[0])


def row(canvas: Canvas[Results], paper: str, graph: str, utilization: str, names: tuple[str, ...]) -> Path:
    """Three insets: short, moderate and long periods."""
    results = canvas.results
    fig = figure(9.6, 3.3)
    axes = fig.subplots(1, 3)
    for letter, ax, period in zip("abc", axes, PERIODS, strict=True):
        scenario = f"{utilization}/{period}"
        if scenario in results.scenarios:
            _inset(ax, results, graph, scenario, names)
        ax.set(title=f"({letter}) {PERIOD[period]}", xlabel=X_LABEL, ylabel=Y_LABEL)
    legend(fig, names)
    note(fig, f"Paper: {paper}. {GRAPH[graph]}, {UTILIZATION[utilization]}. {canvas.caption}")
    number = int(paper.removeprefix("Fig. ").split(",")[0])
    return save(fig, canvas, f"figure-{number:03}")


def _comparisons(canvas: Canvas[Results]) -> Iterator[tuple[str, str, Path]]:
    """Appendix B.2: two curves at a time, 126 figures."""
    canvas = replace(canvas, formats=canvas.formats[:1])
    for hard, soft, names, what in COMPARISONS:
        for graph, first in (("hard", hard), ("soft", soft)):
            if first is None:
                continue
            for offset, utilization in enumerate(FIGURE_ORDER):
                if f"{utilization}/short" not in canvas.results.scenarios:
                    continue
                number = first + offset
                title = f"{names[0]} and {names[1]} ({what}); {GRAPH[graph]}; {UTILIZATION[utilization]}"
                path = row(canvas, f"Fig. {number}, {what}", graph, utilization, names)
                yield f"Figure {number}", title, path
