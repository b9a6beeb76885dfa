"""What Laxity's scheduler in the kernel costs, as ``make measure-kernel`` measured it in an emulated machine."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from laxity._native import _overhead_points

from studies.brandenburg2009gedf.claims import PLUGINS
from studies.common.claims import Table
from studies.common.results import Array, Results

LAB = Path(__file__).with_name("lab")
REALIZATIONS = (*PLUGINS, "S-CQm", "S-CQ1")
"""Those with curves, in the order of the paper's legends."""
MEASURED = (*REALIZATIONS, "HE1")
"""HE1, which the paper has not, has the IPI latency of HEm."""
SOURCES = ("release", "scheduling", "context_switch", "ipi_latency", "tick", "timer_rearming")
NANOSECONDS = {"ps": 1e-3, "ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
MANY = 250
"""The most tasks that were measured."""


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


@dataclass(frozen=True)
class Costs:
    """The costs of all realizations, measured one way.

    Attributes:
        suffix: of the names of their files in ``lab/``.
        waiting: what they have of waiting for locks, for captions and tables.
    """

    suffix: str
    waiting: str

    def of(self, realization: str) -> Measured:
        """What was measured of a realization, such as "CEm"."""
        return _read(realization, self.suffix)

    def us(self, realization: str, statistic: str, source: str, tasks: int) -> float:
        """An overhead in microseconds, at a number of tasks that was measured, or whatever that is."""
        at, us = self.of(realization).tables[statistic, source]
        return float(np.interp(tasks, at, us))

    def in_words(self, source: str, *realizations: str) -> str:
        """What a source costs at worst with many tasks, beside the paper."""
        ours = ", ".join(f"{name} {self.us(name, 'worst', source, MANY):.1f}" for name in realizations)
        theirs = ", ".join(f"{paper_us(name, 'worst', source, MANY):.1f}" for name in realizations)
        return f"{source.replace('_', ' ')} with {MANY} tasks, worst case in us: {ours} (the paper's: {theirs})"

    def tables(self) -> Callable[[Results], list[Table]]:
        """The tables of a page: what was measured, beside the paper."""
        return lambda _: [self._table()]

    def _table(self) -> Table:
        machine = self.of("CEm").machine
        head = ["realization", "tasks", *(source.replace("_", " ") for source in SOURCES)]
        rows = [
            [realization, str(tasks), *(self._beside(realization, source, tasks) for source in SOURCES)]
            for realization in REALIZATIONS
            for tasks in (50, MANY)
        ]
        text = (
            f"Measured on {machine['processor']}, Linux {machine['kernel']}. In microseconds: worst case / mean, and "
            "in brackets the same of the paper on its Sun Niagara (-: none). Left out: the largest 1 % of the samples "
            "on one CPU (names with m), 10 % on two, which take turns; of two measurements there the one with the "
            "shorter tick counts. The IPI latency is that with 25 tasks on two. "
            f"{self.waiting} The folder `brandenburg2009gedf_kernel/lab/` has all numbers of tasks, and all quantities."
        )
        return Table("Overheads", text, head, rows)

    def _beside(self, realization: str, source: str, tasks: int) -> str:
        ours = [self.us(realization, statistic, source, tasks) for statistic in ("worst", "average")]
        theirs = [paper_us(realization, statistic, source, tasks) for statistic in ("worst", "average")]
        return f"{_pair(ours)} ({_pair(theirs)})"


ALONE = Costs("", "No CPU waits for a lock there: what many would wait is in none of these numbers.")
WAITING = Costs(
    "-waiting-32",
    "To that is added what a CPU of 32 waits at most for the lock of the links: each of the other 31 holds it once "
    "before it gets it, as long as the lock was held at worst, or on average (decision 154). On a real machine CPUs "
    "rarely all ask at once: these numbers are bounds, not measurements, of waiting.",
)


@cache
def _read(realization: str, suffix: str) -> Measured:
    file = tomllib.loads((LAB / f"{realization}{suffix}.toml").read_text())
    # As crates/laxity-study has it: that of the fewest tasks on two CPUs, as CPUs of the machine take turns.
    two = tomllib.loads((LAB / f"{realization.replace('m', '1')}{suffix}.toml").read_text())
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


def paper_us(plugin: str, statistic: str, source: str, tasks: int) -> float:
    """The same of the paper; of aligned quanta, but for S-."""
    quanta = "staggered" if plugin.startswith("S-") else "aligned"
    name = f"brandenburg2009-{plugin.removeprefix('S-')}-{statistic}-{quanta}"
    points = _overhead_points(name, source)
    if not points:
        return 0.0
    at, picoseconds = zip(*points, strict=True)
    return float(np.interp(tasks, at, picoseconds)) / 1e6


def _pair(values: list[float]) -> str:
    return " / ".join(f"{value:.1f}" for value in values) if any(values) else "-"
