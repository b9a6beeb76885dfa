"""Figures 5.10 to 5.22 of paper 003, and its Table 5.14, from our results."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from laxity.plots._style import GRAY, tidy
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import PercentFormatter

from studies.common.style import (
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    PINK,
    SKY,
    VERMILION,
    Canvas,
    Look,
    figure,
    note,
    save,
    settings,
)
from studies.elliott2015vision.delays import Array, delays_ms
from studies.elliott2015vision.published import published_summary
from studies.elliott2015vision.results import Runs, VisionResults
from studies.elliott2015vision.stabilizers.configuration import PERIODS_MS
from studies.elliott2015vision.views import short
from studies.elliott2015vision.workload import CONFIGURATIONS, GRAPHS

BUCKET = 0.005
"""In periods: the paper's."""
X_MAX = 2.5
"""Of densities, in periods: the paper's. Longer delays are in the tables."""
MS_BUCKET, MS_MAX = 1.0, 250.0
COLUMNS = 3
FAINT = "#E4E6E9"
OF_LINUX = {"SCHED_OTHER": PINK, "SCHED_FIFO": GRAY}
BY_TOKENS = {0: BLACK, 1: VERMILION, 2: ORANGE, 3: GREEN, 6: BLUE}
BY_PERIOD = dict(zip(sorted(set(PERIODS_MS)), (VERMILION, ORANGE, GREEN, BLUE, PINK, SKY), strict=True))
DASHED = (0, (4, 1.6))
DOTTED = (0, (1.2, 1.2))


def draw_all(canvas: Canvas[VisionResults], *, every: bool) -> Iterator[tuple[str, str, Path]]:
    """Draws what the results allow; yields name, caption and SVG path of each figure as it is done."""
    del every  # there are few
    results = canvas.results
    with settings():
        runs = results.simulated
        looks = {one.name: _look(one.name, one.tokens, one.engine_order) for one in CONFIGURATIONS}
        titles = {one.name: f"Fig. 5.{one.figure}: {short(one.name)}" for one in CONFIGURATIONS}
        text = f"densities of normalized completion delays, simulated; buckets of {BUCKET} periods"
        yield (
            "Figures 5.10 to 5.20",
            text,
            _densities(canvas, runs, titles, "figures-5-10-to-5-20", caption=canvas.caption),
        )
        text = "completion delays in ms by period, simulated"
        yield "Figures 5.10 to 5.20, in ms", text, _histograms(canvas, runs, titles, "delays-ms", canvas.caption)
        text = "latency from end to end in periods, simulated"
        yield (
            "Figures 5.21 and 5.22",
            text,
            _latencies(canvas, runs, [("", looks)], "figures-5-21-5-22", canvas.caption),
        )
        text = "averages over the graphs, ours beside the paper's"
        yield "Table 5.14", text, _summary(canvas, runs, "table-5-14")
        if results.has_live:
            yield from _draw_live(canvas, results.live)


def _draw_live(canvas: Canvas[VisionResults], runs: Runs) -> Iterator[tuple[str, str, Path]]:
    """The same of live runs."""
    caption = canvas.results.live_caption()
    names = runs.configurations
    titles = {name: name for name in names}
    text = f"densities of normalized completion delays, live; buckets of {4 * BUCKET} periods"
    yield "Densities, live", text, _densities(canvas, runs, titles, "live-densities", caption=caption, wider=4)
    text = "completion delays in ms by period, live"
    yield "Completion delays in ms, live", text, _histograms(canvas, runs, titles, "live-delays-ms", caption)
    groups = []
    for scheduler in dict.fromkeys(name.split()[0] for name in names):
        of = [name for name in names if name.split()[0] == scheduler]
        groups.append((scheduler, {name: _live_look(name, of) for name in of}))
    text = "latency from end to end in periods, live"
    yield "Latencies, live", text, _latencies(canvas, runs, groups, "live-latencies", caption)


def _look(name: str, tokens: int, order: str) -> Look:
    if name in OF_LINUX:
        return Look(OF_LINUX[name], DOTTED, short(name))
    return Look(BY_TOKENS[tokens], DASHED if order == "priority" and tokens else "-", short(name))


def _live_look(name: str, group: Sequence[str]) -> Look:
    _, managed, management = name.partition(" ")
    if not managed:
        return Look(BLACK, "-", "no management")
    tokens = list(dict.fromkeys(one.partition("(")[2].partition(",")[0] for one in group if "(" in one))
    colours = (VERMILION, BLUE, GREEN, ORANGE, PINK, SKY)
    colour = colours[tokens.index(management[1:].partition(",")[0]) % len(colours)]
    return Look(colour, DASHED if "PRIO" in name else "-", management)


# --- Densities --------------------------------------------------------------------------------------------------------


def _densities(
    canvas: Canvas[VisionResults], runs: Runs, titles: dict[str, str], name: str, *, caption: str, wider: int = 1
) -> Path:
    """A density for each configuration, all on the same axes."""
    fig, axes = _sheet(len(titles), sharey=True)
    bucket = BUCKET * wider
    edges = np.arange(0, X_MAX + bucket / 2, bucket)
    curves = {one: _density(runs.delays(one), edges) for one in titles if one in runs.shown}
    top = 1.08 * max((float(np.percentile(curve, 99.8)) for curve in curves.values()), default=1.0)
    for ax, (one, title) in zip(axes, titles.items(), strict=False):
        _panel(ax, title)
        ax.axvline(1, color=GRAY, linewidth=0.6, linestyle=(0, (2, 2)))
        ax.set_xlim(0, X_MAX)
        ax.set_ylim(0, top)
        if one in curves:
            ax.stairs(curves[one], edges, color=BLUE, fill=True, alpha=0.85, linewidth=0)
        else:
            ax.text(0.5, 0.5, _missing(one, runs), transform=ax.transAxes, ha="center", color=GRAY)
    fig.supylabel("probability density", fontsize=8)
    text = f"Horizontal: completion delay in periods of the graph, to {X_MAX}; all seventeen graphs together."
    note(fig, f"{text} {caption}")
    return save(fig, canvas, name)


def _density(values: Array, edges: Array) -> Array:
    """A histogram whose area is the share of values that it shows."""
    counts, _ = np.histogram(values, edges)
    density: Array = counts / max(len(values), 1) / (edges[1] - edges[0])
    return density


def _histograms(canvas: Canvas[VisionResults], runs: Runs, titles: dict[str, str], name: str, caption: str) -> Path:
    """Completion delays in ms, a line for the graphs of each period."""
    fig, axes = _sheet(len(titles), sharey=False)
    longest = max(PERIODS_MS) * float(runs.run.get("periods_scaled", 1.0))
    bucket, right = (scale * max(1.0, longest / max(PERIODS_MS)) for scale in (MS_BUCKET, MS_MAX))
    edges = np.arange(0, right + bucket / 2, bucket)
    for ax, (one, title) in zip(axes, titles.items(), strict=False):
        _panel(ax, title)
        ax.set_xlim(0, right)
        ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        if one not in runs.shown:
            ax.set_yticks([])
            ax.text(0.5, 0.5, _missing(one, runs), transform=ax.transAxes, ha="center", color=GRAY)
            continue
        for period, colour in BY_PERIOD.items():
            of = [runs.frames(one, graph) for graph in runs.graphs if PERIODS_MS[GRAPHS.index(graph)] == period]
            if not of:
                continue
            delays = np.concatenate([delays_ms(frames.completion_ns) for frames in of])
            counts, _ = np.histogram(delays, edges)
            ax.stairs(counts / max(len(delays), 1), edges, color=colour, linewidth=0.9)
        ax.set_ylim(bottom=0)
    factor = float(runs.run.get("periods_scaled", 1.0))
    handles = [
        Line2D([], [], color=colour, linewidth=1.4, label=f"{period * factor:g} ms")
        for period, colour in BY_PERIOD.items()
    ]
    fig.legend(handles=handles, loc="outside upper center", ncols=6, frameon=False, handlelength=1.6)
    fig.supylabel(f"share of delays, buckets of {bucket:g} ms", fontsize=8)
    note(fig, f"Horizontal: completion delay [ms], to {right:g}; a line for the graphs of each period. {caption}")
    return save(fig, canvas, name)


def _missing(configuration: str, runs: Runs) -> str:
    """Why nothing is drawn."""
    return "no frames" if configuration in runs.configurations else "not simulated"


def _sheet(count: int, *, sharey: bool) -> tuple[Any, list[Axes]]:
    """A figure of so many small graphs with one horizontal axis."""
    rows = math.ceil(count / COLUMNS)
    fig = figure(8.4, 0.7 + 1.35 * rows)
    axes = list(fig.subplots(rows, COLUMNS, squeeze=False, sharex=True, sharey=sharey).flat)
    for ax in axes[count:]:
        ax.set_visible(False)
    for ax in axes[max(0, count - COLUMNS) : count]:
        ax.tick_params(labelbottom=True)
    return fig, axes


def _panel(ax: Axes, title: str) -> None:
    ax.set_title(title, fontsize=7.5, pad=2)
    ax.tick_params(labelsize=6.5)
    ax.grid(color=FAINT, linewidth=0.6)
    ax.set_axisbelow(True)
    tidy(ax)


# --- Latencies --------------------------------------------------------------------------------------------------------


def _latencies(
    canvas: Canvas[VisionResults], runs: Runs, groups: list[tuple[str, dict[str, Look]]], name: str, caption: str
) -> Path:
    """For each group of configurations CDF and CCDF, side by side."""
    fig = figure(8.4, 0.9 + 2.9 * len(groups))
    rows = fig.subplots(len(groups), 2, squeeze=False)
    for (title, looks), (left, right) in zip(groups, rows, strict=True):
        _cumulative(left, right, {one: np.sort(runs.latencies(one)) for one in looks if one in runs.shown}, looks)
        if title:
            left.set_title(title, fontsize=8, loc="left")
        right.legend(
            handles=[
                Line2D([], [], color=x.colour, linestyle=x.dash, linewidth=1.4, label=x.label) for x in looks.values()
            ],
            loc="upper left",
            bbox_to_anchor=(1.0, 1.0),
            frameon=False,
            fontsize=7,
            handlelength=2.6,
        )
    note(
        fig, f"Latency from the release at the source to the completion at the sink, in periods of the graph. {caption}"
    )
    return save(fig, canvas, name)


def _cumulative(left: Axes, right: Axes, values: dict[str, Array], looks: dict[str, Look]) -> None:
    """The CDF, up to where most of the better configurations have ended; the CCDF of all, logarithmic."""
    tails = sorted(float(np.percentile(found, 99.9)) for found in values.values() if len(found))
    clip = 1.3 * tails[len(tails) // 2] if tails else 1.0
    for one, found in values.items():
        if not len(found):
            continue
        x, below = _thinned(found)
        look: dict[str, Any] = {"color": looks[one].colour, "linestyle": looks[one].dash, "linewidth": looks[one].width}
        left.plot(x, below, **look)
        right.plot(x, np.maximum(1 - below, 0.5 / len(found)), **look)
    left.set_xlim(0, clip)
    left.set_ylim(-0.02, 1.04)
    left.yaxis.set_major_formatter(PercentFormatter(1.0))
    left.set(xlabel=f"latency, in periods (to {clip:.3g})", ylabel="frames at most that late")
    right.set_xscale("log")
    right.set_yscale("log")
    right.set(xlabel="latency, in periods", ylabel="frames that are later")
    for ax in (left, right):
        ax.grid(color=FAINT, linewidth=0.6)
        ax.set_axisbelow(True)
        tidy(ax)


def _thinned(found: Array) -> tuple[Array, Array]:
    """Points of a distribution function that show all of it: dense towards the end, where the CCDF is seen."""
    count = len(found)
    ranks = np.concatenate([np.linspace(1, count, 400), count + 1 - np.geomspace(1, count, 400)])
    ranks = np.unique(np.clip(np.rint(ranks), 1, count).astype(np.int64))
    return found[ranks - 1], ranks / count


# --- Table 5.14 -------------------------------------------------------------------------------------------------------


def _summary(canvas: Canvas[VisionResults], runs: Runs, name: str) -> Path:
    """Each column of the table: a dot is ours, a cross the paper's."""
    measures = (("dropped_percent", "dropped, %"), ("max", "max"), ("p99_9", "99.9 %"), ("p99", "99 %"), ("std", "std"))
    fig = figure(8.4, 3.4)
    axes = fig.subplots(1, len(measures), sharey=True)
    paper = published_summary()
    names = [one.name for one in CONFIGURATIONS]
    places = np.arange(len(names))[::-1]
    for ax, (measure, label) in zip(axes, measures, strict=True):
        ax.plot([getattr(paper[one], measure) for one in names], places, "x", color=BLACK, markersize=5)
        ours = [
            (getattr(runs.averaged(one), measure), y)
            for one, y in zip(names, places, strict=True)
            if one in runs.configurations
        ]
        ax.plot(*zip(*ours, strict=True), "o", color=BLUE, markersize=5, alpha=0.85)
        ax.set_xlim(left=0)
        ax.set_xlabel(label)
        ax.grid(color=FAINT, linewidth=0.6)
        ax.set_axisbelow(True)
        tidy(ax)
    axes[0].set_yticks(places, [short(one) for one in names], fontsize=7)
    what = "Crosses: paper, dots: simulated. All but the first in periods, averaged over the graphs."
    note(fig, f"{what} {canvas.caption}")
    return save(fig, canvas, name)
