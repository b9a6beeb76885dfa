"""The plots of the page: SVG whose colours are variables of its style, so that they follow light and dark."""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from numpy.typing import NDArray

from laxity.plots._style import plain, tidy
from laxity.report._results import Configuration, Video

# Stand-ins that are exchanged for the variables of page.css, where they have a value for light and one for dark.
INK, FAINT, GRID = "#202124", "#5f6368", "#e4e6e9"
SERIES = ("#d55e00", "#0072b2", "#009e73", "#cc79a7")
VARIABLES = {INK: "--ink", FAINT: "--faint", GRID: "--grid"} | {
    colour: f"--series-{number}" for number, colour in enumerate(SERIES)
}

MARKERS = "os^v"

WIDTH = 4.9
"""Inches; as wide as a phone, so that letters are read there, too."""

SETTINGS: dict[Any, Any] = {
    "font.size": 9.5,
    "path.simplify": True,
    "path.simplify_threshold": 0.3,
    "svg.fonttype": "none",
    "svg.hashsalt": "laxity",
    "font.family": "sans-serif",
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 9,
}

DELAYS_BINS_A_PERIOD = 10
DELAYS_PERIODS_MAX = 12
"""What is longer is counted in the last bin: a single frame may take a second."""


@dataclass(frozen=True)
class Plot:
    """A plot, and what it shows in words."""

    svg: Markup
    says: str


def delays(video: Video) -> Plot:
    """How completion delays are distributed, in periods, of all instances together."""
    values = {plain(one.name): _periods(one) for one in video.configurations}
    longest = max((float(of.max()) for of in values.values() if of.size), default=2.0)
    end = min(max(2, int(np.ceil(longest))), DELAYS_PERIODS_MAX)
    with mpl.rc_context(SETTINGS):
        figure, ax = _axes(2.9)
        for (name, of), (colour, dash) in zip(values.items(), _looks(), strict=False):
            bins = np.linspace(0, end, end * DELAYS_BINS_A_PERIOD + 1)
            counts, _ = np.histogram(np.minimum(of, end), bins)
            ax.stairs(counts / max(of.size, 1), bins, color=colour, linestyle=dash, linewidth=1.6, label=name)
        ax.axvline(1, color=FAINT, linewidth=0.8, linestyle=(0, (1, 2)))
        ax.set_yscale("log")
        ax.yaxis.set_major_formatter(_percent())
        ax.set_xlim(0, end)
        ax.set_xlabel("completion delay, periods")
        ax.set_ylabel(f"frames in each 1/{DELAYS_BINS_A_PERIOD} period")
        _legend(ax)
        svg = _svg(figure, "delays")
    last = f" Longer ones are in the last bin, at {end}." if longest > end else ""
    return Plot(
        svg,
        "Time between the completions of consecutive frames, in periods, of all instances together. Regular playback "
        f"is 1 (dotted). The share of frames has a logarithmic axis, so that single outliers are seen.{last}",
    )


def longest(video: Video) -> Plot:
    """The longest completion delay of each instance."""
    names = [plain(one.name) for one in video.configurations[0].instances]
    with mpl.rc_context(SETTINGS):
        figure, ax = _axes(2.9)
        for number, (one, colour) in enumerate(zip(video.configurations, SERIES, strict=False)):
            of = [(row, frames) for row, frames in enumerate(one.instances) if frames.delays_ns.size]
            periods = [frames.delays_ns.max() / frames.period_ns for _, frames in of]
            rows = [row for row, _ in of]
            ax.plot(rows, periods, MARKERS[number], color=colour, markersize=5, label=plain(one.name))
        ax.axhline(1, color=FAINT, linewidth=0.8, linestyle=(0, (1, 2)))
        # Every other name where all would run into each other.
        step = 1 + len(names) // 12
        ax.set_xticks(range(0, len(names), step), names[::step])
        ax.set_ylim(bottom=0)
        ax.set_xlabel("stabilizer")
        ax.set_ylabel("longest completion delay, periods")
        _legend(ax)
        svg = _svg(figure, "longest")
    return Plot(svg, "The longest time between two frames of each stabilizer, in its periods.")


def latencies(video: Video) -> list[Plot]:
    """Latency from release to completion: which share of frames took at most, and which share took longer."""
    values = {plain(one.name): _latencies(one) for one in video.configurations}
    with mpl.rc_context(SETTINGS):
        figure, ax = _axes(2.7)
        for (name, of), (colour, dash) in zip(values.items(), _looks(), strict=False):
            ax.step(of, (np.arange(of.size) + 1) / of.size, where="post", color=colour, linestyle=dash, label=name)
        ax.set_ylabel("frames that took at most this")
        ax.yaxis.set_major_formatter(_percent())
        _time_axis(ax)
        _legend(ax)
        at_most = _svg(figure, "latencies")
        figure, ax = _axes(2.7)
        for (name, of), (colour, dash) in zip(values.items(), _looks(), strict=False):
            # As many as are at least as long as the k-th: none is left out, and the last is above zero.
            ax.step(of, 1 - np.arange(of.size) / of.size, where="pre", color=colour, linestyle=dash, label=name)
        ax.set_ylabel("frames that took at least this")
        ax.set_yscale("log")
        ax.yaxis.set_major_formatter(_percent())
        _time_axis(ax)
        _legend(ax)
        at_least = _svg(figure, "latencies-tail")
    return [
        Plot(
            at_most,
            "Latency: from the release of a frame to the completion of its last node, in periods of its stabilizer, of "
            "all instances together, as cumulative distribution. Fixed priorities delay long periods on purpose, so "
            "that in milliseconds the longest latencies are longer than where all are treated alike.",
        ),
        Plot(at_least, "The same from the other end, with a logarithmic axis: how rare the longest latencies are."),
    ]


def _periods(configuration: Configuration) -> NDArray[np.float64]:
    """All completion delays, each in periods of its own instance."""
    parts = [frames.delays_ns / frames.period_ns for frames in configuration.instances]
    return np.concatenate(parts)


def _latencies(configuration: Configuration) -> NDArray[np.float64]:
    """All latencies, each in periods of its own instance, ascending."""
    return np.sort(np.concatenate([frames.latencies_ns / frames.period_ns for frames in configuration.instances]))


def _axes(height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(WIDTH, height), layout="constrained", facecolor="none")
    ax = figure.add_subplot(facecolor="none")
    tidy(ax)
    return figure, ax


def _looks() -> Iterator[tuple[str, str]]:
    """Colours, and dashes for readers who cannot tell these apart."""
    return zip(SERIES, itertools.cycle(("-", "--", "-.", ":")), strict=False)


def _time_axis(ax: Axes) -> None:
    _log_axis(ax)
    ax.set_xlabel("latency, periods")


def _log_axis(ax: Axes) -> None:
    """A number at 1, 2 and 5 of each decade where there are few, so that there are at least two."""
    ax.set_xscale("log")
    left, right = ax.get_xlim()
    subs = (1,) if right > 1000 * left else (1, 3) if right > 100 * left else (1, 2, 5)
    ax.xaxis.set_major_locator(LogLocator(subs=subs))
    ax.xaxis.set_major_formatter(_plain())
    ax.xaxis.set_minor_formatter(NullFormatter())


def _plain() -> FuncFormatter:
    return FuncFormatter(lambda value, _: f"{value:g}")


def _percent() -> FuncFormatter:
    return FuncFormatter(lambda value, _: f"{100 * value:g} %")


def _legend(ax: Axes) -> None:
    """Above the axes, as wide as the figure: in them it would lie on curves."""
    ax.figure.legend(loc="outside upper left", ncols=2, handlelength=1.8)


def _svg(figure: Figure, name: str) -> Markup:
    """The figure as an element of a page. Its ids begin with `name`, which has letters, digits and hyphens only."""
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    svg = out.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", svg)
    svg = re.sub(r' d="[^"]*"', lambda path: re.sub(r"(\.\d\d)\d+", r"\1", path[0]), svg)
    for colour, variable in VARIABLES.items():
        svg = svg.replace(colour, f"var({variable})")
    # Its size is that of the box it is in; the view box has the proportions.
    svg = re.sub(
        r'<svg [^>]*?(viewBox="[^"]*")[^>]*>',
        r'<svg role="img" \1 xmlns="http://www.w3.org/2000/svg" '
        r'xmlns:xlink="http://www.w3.org/1999/xlink">',
        svg,
        count=1,
    )
    return Markup(svg)
