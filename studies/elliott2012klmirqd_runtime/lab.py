"""What the kernel lab showed of section V: Laxity's scheduler in Linux, interrupts of devices, an emulated machine.

The numbers are kept in data/; measure.py writes them.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from studies.common.claims import csv_text
from studies.common.results import Array

DATA = Path(__file__).parent / "data"
INVERSIONS, RUNS = "lab_inversions.csv", "lab_runs.csv"

HANDLINGS = ("ordinary", "threaded", "klmirqd")
KINDS = ("waiting_bottom_half", "overtaken")


@dataclass(frozen=True)
class LabRuns:
    """The runs of all task sets under one handling, together; times in microseconds.

    Attributes:
        lengths_us: of the inversions, the shortest first.
        kinds: how many inversions began so, and how long they are together.
        seconds: how long the task sets ran.
        interrupts: how many there were.
        top_halves_us: what their top halves took of jobs more urgent than their owners; no part of the inversions.
        bottom_halves_us: how long bottom halves executed.
        co_scheduled_us: of that, while their owner executed on another CPU.
    """

    lengths_us: Array
    kinds: dict[str, tuple[int, float]]
    seconds: float
    interrupts: int
    top_halves_us: float
    bottom_halves_us: float
    co_scheduled_us: float

    @property
    def total_us(self) -> float:
        """How long all inversions are together."""
        return float(self.lengths_us.sum())

    @property
    def longest_us(self) -> float:
        """The longest."""
        return float(self.lengths_us[-1]) if len(self.lengths_us) else 0.0

    def percentile_us(self, percent: float) -> float:
        """So many percent of the inversions are at most that long; nan without inversions."""
        count = len(self.lengths_us)
        return float(self.lengths_us[max(int(np.ceil(count * percent / 100)) - 1, 0)]) if count else float("nan")

    def beyond(self, length_us: float) -> float:
        """The share of the sum that is of inversions longer than that."""
        return float(self.lengths_us[self.lengths_us > length_us].sum()) / max(self.total_us, 1e-9)


@dataclass(frozen=True)
class Lab:
    """What was measured, by handling: with one CPU, and with two."""

    linux: str
    one: dict[str, LabRuns]
    two: dict[str, LabRuns]

    @classmethod
    def read(cls, folder: Path = DATA) -> Lab | None:
        """That of a folder, if it has any."""
        if not (folder / RUNS).exists():
            return None
        runs, inversions = (
            list(csv.DictReader((folder / name).read_text().splitlines())) for name in (RUNS, INVERSIONS)
        )

        def of(cpus: str) -> dict[str, LabRuns]:
            return {
                handling: _together(
                    *(
                        [row for row in rows if (row["cpus"], row["handling"]) == (cpus, handling)]
                        for rows in (runs, inversions)
                    )
                )
                for handling in HANDLINGS
            }

        return cls(runs[0]["linux"], of("1"), of("2"))


def _together(runs: list[dict[str, str]], inversions: list[dict[str, str]]) -> LabRuns:
    def total(column: str) -> int:
        return sum(int(run[column]) for run in runs)

    lengths = {kind: [int(row["length_ns"]) / 1e3 for row in inversions if row["kind"] == kind] for kind in KINDS}
    return LabRuns(
        np.sort(np.array([length for kind in KINDS for length in lengths[kind]])),
        {kind: (len(found), sum(found)) for kind, found in lengths.items()},
        total("span_ms") / 1e3,
        total("interrupts"),
        *(total(f"{name}_ns") / 1e3 for name in ("top_halves", "bottom_halves", "co_scheduled")),
    )


def tabulated(measured: Iterable[tuple[int, int, str, dict[int, Any]]], linux: str) -> dict[str, str]:
    """CSV files by name, of what kernel_inversions found: CPUs, length of a run in ms, handling, and by set."""
    inversions = [["cpus", "handling", "set", "task", "since_ns", "kind", "length_ns"]]
    numbers = ("interrupts", "top_halves_ns", "bottom_halves_ns", "co_scheduled_ns")
    runs = [["linux", "cpus", "handling", "set", "span_ms", *numbers]]
    for cpus, span_ms, handling, sets in measured:
        for seed, found in sets.items():
            head = [str(cpus), handling, str(seed)]
            runs.append([linux, *head, str(span_ms), *(str(getattr(found, name)) for name in numbers)])
            for one in found.inversions:
                inversions.append([*head, one.task, str(one.since_ns), one.kind, str(one.length_ns)])
    return {INVERSIONS: csv_text(inversions), RUNS: csv_text(runs)}
