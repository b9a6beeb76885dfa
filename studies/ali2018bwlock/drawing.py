"""Figures 1, 6, 8 and 10 of the paper from our results, with the numbers that it states."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from laxity.plots._style import GRAY, tidy
from matplotlib.axes import Axes

from studies.ali2018bwlock.live import SLOWDOWN_MAX, Observed
from studies.ali2018bwlock.plan import FIG8_MBPS, Case
from studies.ali2018bwlock.published import SLOWDOWN_FIG1, thresholds, throttled_less_percent, two_co_runners
from studies.ali2018bwlock.results import BwlockResults
from studies.ali2018bwlock.workloads import READINGS
from studies.common.style import BLUE, GREEN, VERMILION, Canvas, figure, note, save, settings

LOOKS = {"A": (BLUE, "100 MB/s (text)"), "B": (VERMILION, "1,049 MB/s (artifact)")}


def draw_all(canvas: Canvas[BwlockResults], *, every: bool) -> Iterator[tuple[str, str, Path]]:
    """Draws all of them; yields name, caption and SVG path of each figure as it is done."""
    del every
    with settings():
        yield "Figures 1 and 9", "histo beside co-runners, without and with the lock", _slowdowns(canvas)
        yield "Figure 6", "periods used by a memory task and a CPU task", _periods(canvas)
        yield "Figure 8", "slowdown of histo by threshold", _thresholds(canvas)
        yield "Figure 10", "how much less CPUs are throttled under TFS", _throttling(canvas)
        live = canvas.results.live
        if live is not None and live.curve:
            yield "Live", "a copying kernel beside hogs on this machine, without and with the lock", _live(canvas, live)


def _finish(ax: Axes) -> None:
    ax.grid(color="#E4E6E9", linewidth=0.6)
    ax.set_axisbelow(True)
    tidy(ax)


def _slowdowns(canvas: Canvas[BwlockResults]) -> Path:
    fig = figure(5.2, 3.2)
    ax = fig.subplots()
    x = np.arange(4)
    for name, (colour, label) in LOOKS.items():
        unlocked = [canvas.results.slowdown("fig1", name, it) for it in range(4)]
        locked = [canvas.results.slowdown("fig1", name, it, thresholds()["histo"]) for it in range(4)]
        ax.plot(x, unlocked, color=colour, linestyle=(0, (3, 2)), label=f"no lock, {label}")
        ax.plot(x, locked, color=colour, label=f"lock, {label}")
    paper = [3, 2], [SLOWDOWN_FIG1, two_co_runners()["unlocked"]]
    ax.plot(*paper, "x", color=GRAY, markersize=7, label="paper and artifact, no lock")
    ax.plot([2], [two_co_runners()["locked"]], "+", color=GRAY, markersize=8, label="artifact, lock with 33 MB/s")
    ax.set(xlabel="memory intensive co-runners", ylabel="times the time alone", xticks=x, ylim=(0.8, 3.5))
    ax.legend(frameon=False, fontsize=7)
    _finish(ax)
    note(fig, f"Figs. 1 and 9, histo, periods aligned. {canvas.caption}")
    return save(fig, canvas, "figures-001-009")


def _periods(canvas: Canvas[BwlockResults]) -> Path:
    fig = figure(5.2, 2.8)
    axes = fig.subplots(1, 2, sharey=True)
    for ax, (name, budget) in zip(axes, READINGS.items(), strict=True):
        values = {
            task: [canvas.results.value(Case("fig6", name, 1, budget, rho), f"{task}_periods") for rho in (0, 1, 3)]
            for task in ("memory", "cpu")
        }
        x = np.arange(3)
        ax.bar(x - 0.2, values["memory"], 0.38, color=VERMILION, label="memory task")
        ax.bar(x + 0.2, values["cpu"], 0.38, color=GREEN, label="CPU task")
        ax.plot([-0.2, 0.2], [750, 250], "_", color="black", markersize=16, label="paper")
        ax.set_xticks(x, ["CFS", "TFS-1", "TFS-3"])
        ax.set_title(LOOKS[name][1])
        _finish(ax)
    axes[0].set_ylabel("periods of 1,000")
    axes[0].legend(frameon=False, fontsize=7)
    note(fig, f"Fig. 6: periods in which each task executes. {canvas.caption}")
    return save(fig, canvas, "figure-006")


def _thresholds(canvas: Canvas[BwlockResults]) -> Path:
    fig = figure(5.2, 3.0)
    ax = fig.subplots()
    for name, (colour, label) in LOOKS.items():
        values = [100 * (canvas.results.slowdown("fig8", name, 3, it * 1_024_000) - 1) for it in FIG8_MBPS]
        ax.plot(FIG8_MBPS, values, "o-", color=colour, markersize=3, label=label)
    ax.axhline(10, color=GRAY, linewidth=0.8, linestyle=(0, (2, 2)))
    ax.set_xscale("log", base=2)
    ax.set_xticks(FIG8_MBPS, [str(it) for it in FIG8_MBPS])
    ax.set(xlabel="threshold of each CPU [MB/s]", ylabel="slowdown [%]", ylim=(0, 250))
    ax.legend(frameon=False)
    _finish(ax)
    note(fig, f"Fig. 8: histo beside three co-runners. The paper states no value. {canvas.caption}")
    return save(fig, canvas, "figure-008")


def _throttling(canvas: Canvas[BwlockResults]) -> Path:
    fig = figure(5.6, 3.0)
    axes = fig.subplots(1, 2, sharey=True)
    for ax, (punishment, paper) in zip(axes, throttled_less_percent().items(), strict=True):
        for shift, (name, (colour, label)) in zip((-0.2, 0.2), LOOKS.items(), strict=True):
            values = canvas.results.throttled_less_percent(name, punishment)
            ax.bar(np.arange(len(values)) + shift, list(values.values()), 0.38, color=colour, label=label)
            ax.set_xticks(np.arange(len(values)), list(values), rotation=40, ha="right")
        ax.axhline(paper, color=GRAY, linewidth=1, label="paper, mean of six")
        ax.set_title(f"TFS-{punishment}")
        _finish(ax)
    axes[0].set_ylabel("throttled less than under CFS [%]")
    axes[1].legend(frameon=False, fontsize=7, loc="lower right")
    note(fig, f"Fig. 10. {canvas.caption}")
    return save(fig, canvas, "figure-010")


def _live(canvas: Canvas[BwlockResults], observed: Observed) -> Path:
    fig = figure(5.6, 3.0)
    curve, bars = fig.subplots(1, 2, sharey=True)
    points = sorted(observed.curve)
    curve.plot([budget / 1e9 for budget, _ in points], [it for _, it in points], "o-", color=BLUE, markersize=3)
    curve.plot([observed.hog_rate / 1e9], [observed.interference], "x", color=VERMILION, label="unhindered")
    curve.set_xscale("log", base=2)
    # As numbers: powers of ten and their multiples do not fit side by side.
    curve.xaxis.set_major_formatter("{x:g}")
    curve.set(xlabel="budget of each CPU [GB/s]", ylabel="times the time alone", ylim=(0.9, None), title="lock")
    curve.legend(frameon=False, fontsize=7)
    values = {"no lock": observed.interference}
    if observed.threshold is not None:
        values["lock"] = dict(observed.curve)[observed.threshold]
    for rho, one in (observed.shares or {}).items():
        values[f"TFS-{rho}" if rho else "fair"] = one.slowdown
    colours = [VERMILION, *[GREEN] * (len(values) - 1)]
    bars.bar(np.arange(len(values)), list(values.values()), 0.6, color=colours)
    bars.set_xticks(np.arange(len(values)), list(values))
    bars.set(title="at the threshold")
    for ax in (curve, bars):
        ax.axhline(SLOWDOWN_MAX, color=GRAY, linewidth=0.8, linestyle=(0, (2, 2)))
        _finish(ax)
    note(fig, f"{observed.machine}, {observed.date}: medians of {observed.repeats} runs of {observed.seconds:g} s.")
    return save(fig, canvas, "live")
