"""What the lab's runs say of section V: claims, a table, a figure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from studies.common.claims import Claim, Finding, Table, UndecidableError, partly, yes
from studies.common.results import NotRunError
from studies.elliott2012klmirqd_runtime.lab import HANDLINGS, Lab, LabRuns

if TYPE_CHECKING:
    from studies.common.style import Canvas
    from studies.elliott2012klmirqd_runtime.results import RuntimeResults

MACHINE = "an emulated machine, where an instruction takes 1 ns"
NAMES = {"ordinary": "SLIH (Linux as it is)", "threaded": "threads at SCHED_FIFO 50", "klmirqd": "klmirqd"}
P90_US = 5.0
BEYOND_US = 100.0
TENTH = 0.1
MUCH = 0.5


def seen(results: RuntimeResults) -> Lab:
    """The lab's runs. Raises NotRunError if there are none."""
    if results.lab is None:
        raise NotRunError("nothing ran in the lab; `make study-klmirqd-lab`")
    return results.lab


def _each(runs: dict[str, LabRuns], number: str, unit: str = "us", digits: int = 1) -> str:
    """A number of each handling."""
    return ", ".join(f"{h} {getattr(runs[h], number):,.{digits}f} {unit}" for h in HANDLINGS)


def _percentiles(runs: dict[str, LabRuns], percent: float) -> dict[str, float]:
    return {handling: runs[handling].percentile_us(percent) for handling in HANDLINGS}


def _dispatch(results: RuntimeResults) -> str:
    """Where inversions under klmirqd come from."""
    count, sum_us = seen(results).one["klmirqd"].kinds["waiting_bottom_half"]
    others = {h: seen(results).one[h].kinds["waiting_bottom_half"] for h in ("ordinary", "threaded")}
    means = ", ".join(f"{h} {us / max(number, 1):.1f} us" for h, (number, us) in others.items())
    return (
        f"{count:,} of the inversions under klmirqd are waits of an urgent bottom half for its thread to be "
        f"dispatched, {sum_us / max(count, 1):.1f} us each on average ({means}): Linux's way from a wake-up to a "
        "thread through sched_ext, at an instruction a nanosecond. Table III of the paper has 2.98 us for that "
        "(krel + ipi + sch + cxs)"
    )


def _p90(results: RuntimeResults) -> Finding:
    ours = _percentiles(seen(results).one, 90)
    text = ", ".join(f"{h} {us:.1f} us" for h, us in ours.items())
    good = ours["klmirqd"] < P90_US
    return Finding(yes(good), text, "" if good else _dispatch(results))


def _typical(results: RuntimeResults) -> Finding:
    runs = seen(results).one
    means = {h: runs[h].total_us / max(len(runs[h].lengths_us), 1) for h in HANDLINGS}
    half, p90 = _percentiles(runs, 50), _percentiles(runs, 90)
    text = "; ".join(
        f"{h}: mean {means[h]:.1f} us, median {half[h]:.1f} us, 90th percentile {p90[h]:.1f} us" for h in HANDLINGS
    )
    below = [
        all(number["klmirqd"] <= MUCH * number[h] for h in ("ordinary", "threaded")) for number in (p90, means, half)
    ]
    return Finding(partly(all(below), any(below)), text, "" if all(below) else _dispatch(results))


def _tail(results: RuntimeResults) -> Finding:
    runs = seen(results).one
    longest = {h: runs[h].longest_us for h in HANDLINGS}
    why = (
        "a bottom half that has begun is not preempted: Linux carries softirqs out with preemption off, in threads, "
        "too. So the longest under klmirqd is one that a more urgent job was released in"
    )
    good = longest["klmirqd"] < min(longest["ordinary"], longest["threaded"])
    return Finding(yes(good), _each(runs, "longest_us"), why)


def _order(results: RuntimeResults) -> Finding:
    runs = seen(results).one
    total = {h: runs[h].total_us for h in HANDLINGS}
    below = [total["klmirqd"] < total[h] for h in ("ordinary", "threaded")]
    whole = ", ".join(f"{h} {us + runs[h].top_halves_us:,.0f} us" for h, us in total.items())
    seconds = runs["klmirqd"].seconds
    text = f"{_each(runs, 'total_us', digits=0)} in {seconds:.0f} s; with top halves {whole}. PAI is in no Linux"
    return Finding(partly(all(below), any(below)), text, "" if all(below) else _dispatch(results))


def _plateau(results: RuntimeResults) -> Finding:
    beyond = {h: seen(results).one[h].beyond(BEYOND_US) for h in HANDLINGS}
    text = f"share of the sum beyond {BEYOND_US:.0f} us: " + ", ".join(
        f"{h} {share:.0%}" for h, share in beyond.items()
    )
    good = beyond["klmirqd"] < beyond["ordinary"] / 2
    return Finding(yes(good), text, "" if good else "bottom halves that have begun are not preempted")


def _overtaken(results: RuntimeResults) -> Finding:
    runs = seen(results).one
    sums = {h: runs[h].kinds["overtaken"][1] for h in HANDLINGS}
    text = ", ".join(f"{h} {us:,.0f} us in {runs[h].kinds['overtaken'][0]} inversions" for h, us in sums.items())
    top = _each(runs, "top_halves_us", digits=0)
    least = [sums["klmirqd"] <= TENTH * sums[h] for h in ("ordinary", "threaded")]
    some = sums["klmirqd"] < min(sums["ordinary"], sums["threaded"])
    why = f"top halves are no part of that; they took of more urgent jobs: {top}. To wake the thread is in them"
    return Finding(partly(all(least), some), text, why)


def _beside(results: RuntimeResults) -> Finding:
    runs = seen(results).two
    text = ", ".join(f"{h} {runs[h].co_scheduled_us:,.1f} of {runs[h].bottom_halves_us:,.0f} us" for h in HANDLINGS)
    if not max(runs[h].co_scheduled_us for h in ("ordinary", "threaded")):
        raise UndecidableError(f"under no handling a bottom half executed beside its owner: {text}")
    why = "CPUs of the emulated machine take turns: that a number is 0 means something, and how large it is does not"
    return Finding(yes(runs["klmirqd"].co_scheduled_us == 0), text, why)


WHERE = "measured in the lab"
LAB_CLAIMS = (
    Claim("lab-p90", f"Section V, Fig. 3, {WHERE}", "90% of inversions under klmirqd are shorter than 5 us.", _p90,
          "90th percentile below 5 us"),
    Claim("lab-typical", f"Section V, Fig. 3, {WHERE}",
          "A typical priority inversion is much shorter under klmirqd than under SLIH.", _typical,
          "mean, median and 90th percentile at most half of those of SLIH and of threads; partly: one of the three"),
    Claim("lab-tail", f"Section V, {WHERE}", "The distribution under SLIH has a very long tail.", _tail,
          "the longest under klmirqd is shorter than under SLIH and under threads"),
    Claim("lab-order", f"Section V, {WHERE}", "The total duration of priority inversions is least under klmirqd.",
          _order, "less than under SLIH and under threads; partly: than under one of them"),
    Claim("lab-plateau", f"Section V, Fig. 4, {WHERE}",
          "The curve for SLIH increases slowly, that for klmirqd plateaus abruptly.", _plateau,
          f"its share beyond {BEYOND_US:.0f} us is below half of SLIH's"),
    Claim("lab-observation-1", f"Observation 1, {WHERE}",
          "Threads of a high fixed priority preempt jobs on behalf of lower-priority ones; klmirqd does not.",
          _overtaken, f"at most {TENTH:.0%} of what urgent jobs lose to bottom halves of others; partly: less"),
    Claim("lab-co-scheduling", f"Section V, {WHERE}", "klmirqd never co-schedules bottom half and owner.", _beside,
          "two CPUs: 0 under klmirqd, and not 0 elsewhere"),
)  # fmt: skip


def tables(results: RuntimeResults) -> list[Table]:
    """What was measured, by handling."""
    if results.lab is None:
        return []
    one, two = results.lab.one, results.lab.two
    header = ["", "inversions", "50th percentile, us", "90th", "longest", "sum, us", "of that: bottom half waits",
              "of that: overtaken", "top halves on more urgent jobs, us", "beside the owner, two CPUs, us"]  # fmt: skip
    rows = []
    for handling in HANDLINGS:
        runs = one[handling]
        rows.append([
            NAMES[handling], f"{len(runs.lengths_us):,}",
            *(f"{us:,.1f}" for us in (runs.percentile_us(50), runs.percentile_us(90), runs.longest_us)),
            f"{runs.total_us:,.0f}", *(f"{runs.kinds[kind][1]:,.0f}" for kind in runs.kinds),
            f"{runs.top_halves_us:,.0f}",
            f"{two[handling].co_scheduled_us:,.1f} of {two[handling].bottom_halves_us:,.0f}",
        ])  # fmt: skip
    runs = one["klmirqd"]
    text = (
        f"Linux {results.lab.linux} in {MACHINE}; one CPU. Random task sets of "
        f"eight tasks with periods of 15 to 60 ms, {runs.seconds:.0f} s together, scheduled by Laxity in the kernel "
        "under P-RM; two tasks of a set use network cards, with Linux's network stack as bottom half, "
        f"{runs.interrupts:,} interrupts. An inversion: of the ready jobs and bottom halves the most urgent one does "
        "not execute, while a less urgent one does, and one of the two is a bottom half. `waits` is from the end of "
        "a top half to the dispatch of what follows; `overtaken`, a bottom half on top of a more urgent job. PAI is "
        "in no Linux. `make study-klmirqd-lab` measures it anew."
    )
    return [Table("Measured in the lab", text, header, rows)]


def facts(results: RuntimeResults) -> list[tuple[str, str]]:
    """What ran in the lab, for people."""
    if results.lab is None:
        return [("Lab", "not run")]
    seconds = results.lab.one["klmirqd"].seconds
    return [("Lab", f"{MACHINE}, Linux {results.lab.linux}, one CPU: {seconds:.0f} s under each of three handlings")]


def draw(canvas: Canvas[RuntimeResults], lab: Lab) -> Path:
    """Figs. 3 and 4 of the lab's runs."""
    from laxity.plots._style import tidy  # noqa: PLC0415 (matplotlib only where it is used)

    from studies.common.style import BLUE, GREEN, ORANGE, figure, note, save  # noqa: PLC0415

    looks = {"klmirqd": (GREEN, "-"), "threaded": (ORANGE, (0, (4, 1.6))), "ordinary": (BLUE, (0, (1.2, 1.2)))}
    fig = figure(8.4, 3.6)
    left, right = fig.subplots(1, 2)
    edge = 1.05 * max(lab.one[handling].longest_us for handling in looks)
    for handling, (colour, dash) in looks.items():
        lengths = lab.one[handling].lengths_us
        x = np.concatenate(([0.0], lengths, [edge]))
        share = np.concatenate((np.arange(len(lengths) + 1) / max(len(lengths), 1), [1.0]))
        total = np.concatenate(([0.0], np.cumsum(lengths), [lengths.sum()])) / 1e3
        style = {"color": colour, "linestyle": dash, "linewidth": 1.5, "drawstyle": "steps-post"}
        left.plot(x, share, label=NAMES[handling], **style)
        right.plot(x, total, **style)
    left.set(xlabel="length of a priority inversion [µs]", ylabel="share of inversions at most that long")
    right.set(xlabel="longest priority inversion counted [µs]", ylabel="cumulative length [ms]")
    for ax in (left, right):
        ax.set_xlim(0, edge)
        ax.set_ylim(bottom=0)
        ax.grid(color="#E4E6E9", linewidth=0.6)
        ax.set_axisbelow(True)
        tidy(ax)
    fig.legend(loc="outside upper center", ncols=3, frameon=False, handlelength=2.6)
    note(fig, f"Paper: Figs. 3 and 4. Measured: Linux {lab.linux} in {MACHINE}; {lab.one['klmirqd'].seconds:.0f} s.")
    return save(fig, canvas, "lab")
