"""A kernel beside a program that streams through the same memory: alone, unprotected, and under the bandwidth lock.

Three short runs on real memory, the same as those of the study of BWLOCK++, and one picture of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
from laxity import LaxityError

from examples.demo import children
from examples.demo.simulated import section

matplotlib.use("agg")
from matplotlib import pyplot

from studies.ali2018bwlock.live import SLOWDOWN_MAX, Bench, RefusedError, rate

SECONDS = 1.0
"""Of each run of the kernel: with hogs that outlast it, all of the part takes about nine seconds."""

SEEN = 1.2
"""What is less slower is noise."""

TITLE = "Live: a kernel and a program that streams through the same memory"
COLOURS = ("#0072B2", "#D55E00", "#009E73")


def run(command: Path, out: Path) -> list[dict[str, Any]]:
    """Runs, draws in `out`/protected, and returns the section. Raises children.FailedError."""
    folder = out / "protected"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        bench = Bench(command.absolute(), Path("/dev/shm"), SECONDS, 1)
        alone = bench.kernel()
        speed, hogs = bench.beside(None)
        beside = alone / speed
        hog = sum(rate(one.communicate()[0]) for one in hogs) / len(hogs)
        runs, says = {"alone": 1.0, "beside it, unprotected": beside}, ""
        if beside < SEEN:
            says = (
                f"Beside it the kernel takes {beside:.2f} times as long: on this machine the CPUs have bandwidth to "
                "spare, or the host does not let them interfere now, so that there is nothing to protect."
            )
        else:
            budget = guess(beside, hog)
            try:
                speed, _ = bench.beside(("0", False), budget)
                runs[f"beside it, with the lock:\n{budget / 1e6:.0f} MB/s for each of its CPUs"] = alone / speed
                says = (
                    "While the kernel runs it holds the bandwidth lock, and the other CPUs keep to a budget of traffic."
                )
            except RefusedError as refused:
                says = f"This machine cannot regulate, so that there is no run with the lock: {refused}."
    except LaxityError as error:
        raise children.FailedError(str(error)) from error
    for name, slowdown in runs.items():
        print(f"  {name.splitlines()[0].removesuffix(':')}: {slowdown:.2f} times the time alone", flush=True)
    draw(runs, folder / "protected.svg")
    text = (
        f"Live, on {len(bench.others)} of this machine's CPUs beside that of the kernel; {SECONDS:g} s each, by CPU "
        "time. `python -m studies ali2018bwlock --live` measures it with care, and finds the budget."
    )
    return [section(TITLE, says, [(f"{folder.name}/protected.svg", text)])]


def guess(beside: float, hog: float) -> int:
    """The budget at which the kernel is expected to be slowed down by half of what it may, by what one run showed."""
    allowed = 1 + (SLOWDOWN_MAX - 1) / 2
    return max(int(hog * (allowed - 1) / allowed / (1 - 1 / beside)), 1_000_000)


def draw(runs: dict[str, float], path: Path) -> None:
    """A bar for each run."""
    figure, ax = pyplot.subplots(figsize=(7.2, 2.2), layout="constrained")
    bars = ax.barh(list(runs), list(runs.values()), 0.6, color=COLOURS[: len(runs)])
    ax.bar_label(bars, [f"{slowdown:.2f}" for slowdown in runs.values()], padding=4)
    ax.axvline(1, color="#5f6368", linewidth=0.8, linestyle=(0, (2, 2)))
    ax.invert_yaxis()
    ax.set_xlabel("time that the kernel takes, relative to alone")
    ax.set_xlim(0, 1.15 * max(runs.values()))
    ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(path)
    pyplot.close(figure)
