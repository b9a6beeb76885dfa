"""What Laxity's scheduler in the kernel costs, as ``make measure-kernel`` measured it in an emulated machine."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from laxity._native import _overhead_points

from studies.common.claims import Table
from studies.common.results import Array, Results

LAB = Path(__file__).with_name("lab")
REALIZATIONS = ("CEm", "CE1", "CQm", "CQ1", "S-CQm", "S-CQ1")
SOURCES = ("release", "scheduling", "context_switch", "ipi_latency", "tick", "timer_rearming")
NANOSECONDS = {"ps": 1e-3, "ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}


@dataclass(frozen=True)
class Measured:
    """A file of ``laxity sched measure``.

    Attributes:
        machine: where and how it was measured.
        tables: tasks and microseconds, by statistic ("worst" or "average") and source.
        counts: samples, by the name of a quantity.
    """

    machine: dict[str, object]
    tables: dict[tuple[str, str], tuple[Array, Array]]
    counts: dict[str, int]


@cache
def measured(realization: str) -> Measured:
    """What was measured of a realization, such as "CEm"."""
    file = tomllib.loads((LAB / f"{realization}.toml").read_text())
    # As crates/laxity-study has it: that of the fewest tasks on two CPUs, as CPUs of the machine take turns.
    two = tomllib.loads((LAB / f"{realization.replace('m', '1')}.toml").read_text())
    for statistic in ("worst", "average"):
        latency = two[statistic].get("ipi_latency", "0 ns")
        file[statistic]["ipi_latency"] = latency if isinstance(latency, str) else latency[0][1]
    tables = {
        (statistic, source): _points(file[statistic].get(source, "0 ns"))
        for statistic in ("worst", "average")
        for source in SOURCES
    }
    return Measured(file["machine"], tables, {it["name"]: it["count"] for it in file["quantity"]})


def _points(table: str | list[list[object]]) -> tuple[Array, Array]:
    points = [(1, table)] if isinstance(table, str) else table
    return (
        np.array([tasks for tasks, _ in points], np.float64),
        np.array([_us(str(cost)) for _, cost in points], np.float64),
    )


def _us(text: str) -> float:
    number, unit = text.split()
    return float(number) * NANOSECONDS[unit] / 1e3


def cost_us(realization: str, statistic: str, source: str, tasks: int) -> float:
    """An overhead in microseconds, at a number of tasks that was measured, or whatever that is."""
    at, us = measured(realization).tables[statistic, source]
    return float(np.interp(tasks, at, us))


def paper_us(plugin: str, statistic: str, source: str, tasks: int) -> float:
    """The same of the paper; of aligned quanta, but for S-."""
    quanta = "staggered" if plugin.startswith("S-") else "aligned"
    name = f"brandenburg2009-{plugin.removeprefix('S-')}-{statistic}-{quanta}"
    points = _overhead_points(name, source)
    if not points:
        return 0.0
    at, picoseconds = zip(*points, strict=True)
    return float(np.interp(tasks, at, picoseconds)) / 1e6


def tables(_: Results) -> list[Table]:
    """What was measured, beside the paper."""
    machine = measured("CEm").machine
    head = ["realization", "tasks", *(source.replace("_", " ") for source in SOURCES)]
    rows = [
        [realization, str(tasks), *(_beside(realization, source, tasks) for source in SOURCES)]
        for realization in REALIZATIONS
        for tasks in (50, 250)
    ]
    text = (
        f"Measured on {machine['processor']}, Linux {machine['kernel']}. In microseconds: worst case / mean, and in "
        "brackets the same of the paper on its Sun Niagara (-: none). Left out: the largest 1 % of the samples on one "
        "CPU (CEm, CQm, S-CQm), 10 % on two, which take turns; the IPI latency is that with 25 tasks on two. No CPU "
        "waits for the lock there: what many would wait is in none of these numbers. [lab/](lab) has all numbers of "
        "tasks, and all quantities."
    )
    return [Table("Overheads", text, head, rows)]


def _beside(realization: str, source: str, tasks: int) -> str:
    ours = [cost_us(realization, statistic, source, tasks) for statistic in ("worst", "average")]
    theirs = [paper_us(realization, statistic, source, tasks) for statistic in ("worst", "average")]
    return f"{_pair(ours)} ({_pair(theirs)})"


def _pair(values: list[float]) -> str:
    return " / ".join(f"{value:.1f}" for value in values) if any(values) else "-"
