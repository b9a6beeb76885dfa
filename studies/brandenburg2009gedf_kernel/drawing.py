"""The overheads of Laxity's scheduler in the kernel, and figures 4, 5 and 18 to 29 of the paper with them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from studies.brandenburg2009gedf.claims import FIGURE_ORDER, HARD, SOFT, UTILIZATIONS
from studies.brandenburg2009gedf.drawing import GRAPH, UTILIZATION, insets, legend, look, row
from studies.brandenburg2009gedf_kernel.overheads import ALONE, REALIZATIONS, SOURCES, Costs
from studies.common.results import Results
from studies.common.style import Canvas, figure, note, save, settings


def draw_all(canvas: Canvas[Results], *, every: bool) -> Iterator[tuple[str, str, Path]]:
    """Draws what the results allow; yields name, caption and SVG path of each figure as it is done."""
    del every
    return draw_with(canvas, ALONE)


def draw_with(canvas: Canvas[Results], costs: Costs) -> Iterator[tuple[str, str, Path]]:
    """The same, with these costs."""
    results = canvas.results
    with settings():
        for statistic, name in (("worst", "Worst-case"), ("average", "Average")):
            title = f"{name} overheads over the number of tasks: emulated machine, instruction counts"
            yield f"Overheads, {statistic}", title, _overheads(canvas, costs, statistic)
        for number, graph, names in ((4, "hard", HARD), (5, "soft", SOFT)):
            if all(f"{u}/moderate" in results.scenarios for u in UTILIZATIONS):
                title = f"{GRAPH[graph]} of the scheduler in the kernel; moderate periods"
                yield f"As figure {number}", title, insets(canvas, number, graph, names)
        for first, graph, names in ((18, "hard", HARD), (24, "soft", SOFT)):
            for offset, utilization in enumerate(FIGURE_ORDER):
                if f"{utilization}/short" in results.scenarios:
                    title = f"{GRAPH[graph]} of the scheduler in the kernel; {UTILIZATION[utilization]}"
                    paper = f"Fig. {first + offset}"
                    yield f"As figure {first + offset}", title, row(canvas, paper, graph, utilization, names)


def _overheads(canvas: Canvas[Results], costs: Costs, statistic: str) -> Path:
    fig = figure(7.4, 5.2)
    axes = fig.subplots(2, 3)
    for letter, ax, source in zip("abcdef", axes.flat, SOURCES, strict=True):
        for name in REALIZATIONS:
            tasks, us = costs.of(name).tables[statistic, source]
            if not us.any():
                continue
            style = look(name)
            # One that does not depend on the number of tasks is a line, too.
            at = tasks if len(tasks) > 1 else [25, 250]
            ax.plot(at, us if len(us) > 1 else [us[0]] * 2, color=style.colour, linestyle=style.dash, linewidth=1.3)
        ax.set(title=f"({letter}) {source.replace('_', ' ')}", xlabel="number of tasks", ylabel="[µs]")
        ax.set_ylim(bottom=0)
        ax.grid(color="#E4E6E9", linewidth=0.6)
        ax.spines[["top", "right"]].set_visible(False)
    legend(fig, REALIZATIONS)
    waiting = "with the longest waiting of 32 CPUs" if costs.suffix else "no CPU waits"
    note(
        fig,
        f"Laxity's scheduler in the kernel, measured in an emulated machine ({waiting}): an instruction takes 1 ns.",
    )
    return save(fig, canvas, f"overheads-{statistic}")
