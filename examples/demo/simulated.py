"""Schedulers under the overheads of real machines, simulated.

Simulates random task sets on 32 CPUs under the realizations of global EDF measured by Brandenburg and Anderson (RTSS
2009), with the worst overheads they published, and draws where deadlines begin to be missed, how long jobs take, and
what a schedule looks like. Then GPUs interrupt the machine of Elliott and Anderson (2012), and what their bottom halves
do to the schedule is measured as they measured it.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import laxity
import matplotlib

from examples.demo import children

matplotlib.use("agg")
from laxity import plots
from matplotlib import pyplot

from studies.common.report import report
from studies.common.run import run as run_study
from studies.elliott2012klmirqd_runtime.plan import runtime_plan

WORKLOADS = Path(__file__).parents[1] / "workloads"
QUICKSTART = WORKLOADS / "quickstart.toml"
SCENARIO = "uni-light/short"
CPUS = 32
CAPS = (14, 16, 18, 20, 21, 22, 23, 24, 26)
SETS_PER_CAP = 4
SEED = 2009
OVERHEADS = "brandenburg2009-worst"


def run(command: Path, out: Path) -> list[dict[str, Any]]:
    """Simulates and draws in `out`/simulated; returns the sections of the report. Raises children.FailedError."""
    folder = out / "simulated"
    folder.mkdir(parents=True, exist_ok=True)
    realizations = laxity.measured_realizations()
    sets = len(CAPS) * SETS_PER_CAP
    print(f"  {sets} task sets on {CPUS} CPUs under {len(realizations)} realizations of global EDF:", flush=True)
    misses = sweep(realizations)
    pictures = [
        draw_misses(misses, folder / "misses.svg"),
        draw_comparison(realizations, folder / "comparison.svg"),
        draw_response_times(folder / "response-times.svg"),
        draw_schedule(command, QUICKSTART, folder),
        draw_figure_1(folder / "figure-1.svg"),
    ]
    print("  GPU interrupts on 12 CPUs and 8 GPUs under three ways to handle them:", flush=True)
    interrupts = study_interrupts(folder / "interrupts")
    return [
        section(
            "Simulated: global EDF, nine ways to build it",
            "With the overheads that Brandenburg and Anderson measured on a Sun Niagara of 32 CPUs (RTSS 2009).",
            [(f"{folder.name}/{name}", says) for name, says in pictures],
        ),
        section(
            "Simulated: GPU interrupts, three ways to handle them",
            "A short run of what Elliott and Anderson (2012) measured on twelve CPUs and eight GPUs, with the "
            "overheads they published.",
            [(f"{folder.name}/{name}", says) for name, says in interrupts],
        ),
    ]


def section(title: str, says: str, pictures: list[tuple[str, str]]) -> dict[str, Any]:
    """What `run.json` says of pictures that belong together."""
    return {"title": title, "says": says, "pictures": [{"file": file, "says": text} for file, text in pictures]}


def sweep(realizations: list[str]) -> dict[str, list[float]]:
    """Percentage of released jobs that miss, per realization and cap on utilization."""
    misses: dict[str, list[float]] = {name: [] for name in realizations}
    for done, cap in enumerate(CAPS, start=1):
        sets = laxity.generate_many(SCENARIO, SETS_PER_CAP, seed=SEED, point=cap, cpus=CPUS, cap=cap)
        table = laxity.simulate_many(sets, realizations, duration="500 ms", overheads=OVERHEADS)
        for name in realizations:
            rows = [row for row in table.to_pylist() if row["scheduler"].endswith(f"/{name}")]
            released = sum(row["released"] for row in rows)
            misses[name].append(100 * sum(row["missed"] for row in rows) / released)
        text = f"  utilization {cap:>2} of {CPUS}, {100 * done // len(CAPS):>3} %"
        if sys.stdout.isatty():
            print(f"\r{text}", end="\n" if done == len(CAPS) else "", flush=True)
        else:
            print(text, flush=True)
    return misses


def draw_misses(misses: dict[str, list[float]], path: Path) -> tuple[str, str]:
    figure, ax = pyplot.subplots(figsize=(7.2, 4.2), layout="constrained")
    for (name, percentages), (colour, dash, marker) in zip(misses.items(), looks(), strict=False):
        ax.plot(
            CAPS,
            percentages,
            color=colour,
            linestyle=dash,
            marker=marker,
            markersize=4.5,
            label=name,
        )
    ax.set_xlabel(f"cap on total utilization, {CPUS} CPUs")
    ax.set_ylabel("jobs that missed their deadline, %")
    ax.set_ylim(-2, 102)
    ax.grid(alpha=0.3, linewidth=0.6)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(title="realization", frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    figure.savefig(path)
    text = (
        f"Simulated: jobs that miss under each realization of global EDF. {SCENARIO}, {SETS_PER_CAP} task sets a "
        f"point, 0.5 s each, overheads {OVERHEADS}, seed {SEED}. A coarse (C), fine-grained (F) or hierarchical (H) "
        "ready queue; event- (E) or quantum-driven (Q), staggered (S-) or aligned; interrupts on all CPUs (m) or one "
        "(1)."
    )
    return path.name, text


def looks() -> Iterator[tuple[str, str, str]]:
    """Colour, dash and marker of each curve, distinct without colour too."""
    colours = (
        "#0072B2",
        "#E69F00",
        "#009E73",
        "#CC79A7",
        "#0072B2",
        "#E69F00",
        "#CC79A7",
        "#56B4E9",
        "#56B4E9",
    )
    dashes = ("-", "-", "-", "-", "--", "--", "--", "-", "--")
    return iter(zip(colours, dashes, "osD^osDv^", strict=True))


def draw_comparison(realizations: list[str], path: Path) -> tuple[str, str]:
    cap = 20
    sets = laxity.generate_many(SCENARIO, SETS_PER_CAP, seed=SEED, point=cap, cpus=CPUS, cap=cap)
    table = laxity.simulate_many(sets, realizations, duration="500 ms", overheads=OVERHEADS)
    figure = plots.compare(table)[0].figure
    figure.savefig(path)
    return path.name, (
        f"Simulated: what the realizations cost at a cap of {cap}; the same task sets for all. CPU time of scheduler "
        "and interrupts is where the schedule spent it, not an estimate."
    )


def draw_response_times(path: Path) -> tuple[str, str]:
    cap = CAPS[0]
    workload = laxity.generate(SCENARIO, seed=SEED, cpus=CPUS, cap=cap)
    results = {
        name: laxity.simulate(workload, policy=name, duration="500 ms", overheads=OVERHEADS, trace=True)
        for name in ("FE1", "CEm", "HEm", "S-CQm")
    }
    ax = plots.cdf(results, "response_time")
    ax.set_xlim(0, 12)
    ax.figure.savefig(path)
    return path.name, (
        f"Simulated: response times of all jobs of one task set at a cap of {cap}. The handlers of S-CQm are the "
        "cheapest, so its fastest jobs are faster; waiting for quanta to begin stretches all others."
    )


def draw_schedule(command: Path, workload: Path, out: Path) -> tuple[str, str]:
    trace = out / "schedule.lxt"
    children.output(command, "simulate", workload, "--for", "200 ms", "--trace", trace, "--quiet")
    children.output(command, "trace", trace, "check")
    children.output(command, "trace", trace, "export", "-o", out / "schedule.pftrace")
    children.output(command, "trace", trace, "gantt", "--to", "60 ms", "--svg", out / "schedule.svg")
    return (
        "schedule.svg",
        "Simulated: the first 60 ms of examples/workloads/quickstart.toml, as in schedule.pftrace.",
    )


def draw_figure_1(path: Path) -> tuple[str, str]:
    workload = laxity.load(WORKLOADS / "paper002_fig1.toml")
    result = laxity.simulate(workload, policy="G-EDF", duration="14 ms", trace=True)
    path.write_text(result.trace.gantt_svg(), encoding="utf-8")
    return (
        path.name,
        "Simulated: paper 002, Fig. 1(a): three jobs on two CPUs, event-driven, without overheads.",
    )


def study_interrupts(folder: Path) -> list[tuple[str, str]]:
    """A short form of `python -m studies elliott2012klmirqd_runtime`, with a page of its own."""
    shutil.rmtree(folder, ignore_errors=True)
    results = run_study(runtime_plan(step=10, repetitions=1, seconds=10), folder)
    with contextlib.redirect_stdout(None):  # verdicts on the paper's claims are on the study's own page
        report(results, folder, every_figure=False)
    lengths = (
        "Simulated: how long priority inversions are that the bottom halves of GPU interrupts cause, and how long "
        "together, under standard Linux handling (SLIH), process-aware interrupts (PAI) and klmirqd. 10 s, total "
        "utilization 11.2."
    )
    columns = (
        "Simulated: a workload made to hurt fixed-priority interrupt threads, under the eight systems of the paper's "
        "Table II. Where the paper's numbers leave the axis, its Linux was slower by orders of magnitude; that is "
        "not modelled."
    )
    figures = Path(folder.name) / "figures"
    return [(str(figures / "figures-003-004.svg"), lengths), (str(figures / "table-2.svg"), columns)]
