"""How even live runs were: whether frames took as long all the time."""

from __future__ import annotations

import numpy as np

from studies.common.claims import Table
from studies.elliott2015vision.delays import Array
from studies.elliott2015vision.results import Runs

STRETCHES = 20


def medians_ms(release_ns: Array, completion_ns: Array, seconds: float) -> Array:
    """Median latencies of frames, in ms, by the twentieth of a run in which they were released. Shape (20,)."""
    latency_ms = (completion_ns - release_ns) / 1e6
    stretch = (release_ns / 1e9 / seconds * STRETCHES).astype(int)
    of = (latency_ms[stretch == number] for number in range(STRETCHES))
    return np.array([np.median(some) if len(some) else np.nan for some in of])


def table(runs: Runs) -> Table:
    """The latencies of the first graph, of the whole of each run and of its fastest and slowest stretch."""
    first = runs.graphs[0]
    rows = []
    for name in runs.configurations:
        frames = runs.frames(name, first)
        medians = medians_ms(frames.release_ns, frames.completion_ns, runs.seconds())
        rows.append([name, *_cells(medians, runs.seconds() / STRETCHES)])
    text = (
        f"Median latencies of {first}, the first of the shortest period, in ms: of the twentieths of a run, their "
        "median, the least and the greatest, and when that was. A configuration ran once. Where the slowest twentieth "
        "is far from the rest something lasted for a while: the machine was slower, or frames that were late delayed "
        "those that followed; the runs do not tell which. Where priorities are fixed graphs of long periods fall "
        "behind then, and the greatest delays above may tell more of that than of the configuration."
    )
    headings = ["", "median", "fastest", "slowest", "from, s", "slowest by median"]
    where = "" if runs.kind == "live" else " on a virtual machine"
    return Table(f"How even the runs were{where}", text, headings, rows)


def _cells(medians: Array, stretch_s: float) -> list[str]:
    if np.isnan(medians).all():
        return ["none"] * 5
    middle, slowest = float(np.nanmedian(medians)), int(np.nanargmax(medians))
    values = [f"{value:.1f}" for value in (middle, float(np.nanmin(medians)), float(medians[slowest]))]
    return [*values, f"{slowest * stretch_s:.0f}", f"{medians[slowest] / middle:.2f}"]
