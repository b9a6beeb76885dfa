"""The result of the simulated run-time study: curves of priority inversions, and the table of response times."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
from laxity._native import RuntimeStudy

from studies.common.claims import csv_text
from studies.common.results import Array, NotRunError
from studies.elliott2012klmirqd_runtime import lab_view
from studies.elliott2012klmirqd_runtime.lab import Lab
from studies.elliott2012klmirqd_runtime.plan import SHOWN

CAUSES = ("waiting_bottom_half", "blocked_stack", "overtaken", "co_scheduled")
KINDS = ("CPU-only", "GPU-using")


@dataclass(frozen=True)
class Inversions:
    """The priority inversions of a run, the shortest first; of many, some are left out.

    Attributes:
        rank: how many are at most that long.
        length_us: that length.
        cumulative_us: how long they are together.
        interrupts: how many GPU interrupts there were.
        causes: number, and cumulative length in microseconds, by cause.
    """

    rank: Array
    length_us: Array
    cumulative_us: Array
    interrupts: int
    causes: dict[str, tuple[int, float]]

    @property
    def count(self) -> int:
        """How many there were."""
        return int(self.rank[-1])

    @property
    def total_us(self) -> float:
        """How long all were together."""
        return float(self.cumulative_us[-1])

    @property
    def longest_us(self) -> float:
        """The longest."""
        return float(self.length_us[-1])

    def percentile_us(self, percent: float) -> float:
        """So many percent of the inversions are at most that long; nan without inversions."""
        if not self.count:
            return float("nan")
        return float(self.length_us[np.searchsorted(self.rank, self.count * percent / 100)])

    def beyond(self, length_us: float) -> float:
        """The share of the cumulative length that is of inversions longer than that."""
        within = self.cumulative_us[self.length_us <= length_us]
        return 1 - float(within[-1]) / self.total_us if self.total_us else 0.0


@dataclass(frozen=True)
class Responses:
    """What became of the jobs of one kind of task on a system: means over tasks, then over repetitions.

    Attributes:
        missed: percentage of jobs that missed their deadline, counted from their release point as the paper does.
        missed_from_arrival: the same, counted from their arrival.
        missed_by_quantum: percentage that was still not complete 1 ms after that.
        response: mean response time as a percentage of the period.
        spread: standard deviation of ``response`` over repetitions.
    """

    missed: float
    missed_from_arrival: float
    missed_by_quantum: float
    response: float
    spread: float


class RuntimeResults:
    """A result file.

    Attributes:
        run: what was run: study, options, variants, points, repetitions, seconds, version.
        lab: what was measured in the kernel lab, which is kept beside the code; None: nothing is there.
    """

    def __init__(self, path: Path) -> None:
        table = pq.read_table(path)
        self.run: dict[str, Any] = json.loads(table.schema.metadata[b"laxity.study"])
        self.lab = Lab.read()
        self.points: tuple[int, ...] = tuple(self.run["points"])
        study = RuntimeStudy(self.run["options"])
        self.handlings, self.systems, self._full = study.handlings, study.systems, study
        self._inversions: dict[tuple[str, str, int], Inversions] = {}
        self._responses: dict[tuple[str, str, str], Responses] = {}
        self._read_inversions(table.filter(pc.field("part") == "inversions"))
        self._read_responses(table.filter(pc.field("part") == "responses"))

    def _read_inversions(self, table: Any) -> None:
        for key, start, end in _runs(table, ("options", "system", "point")):
            rows = table.slice(start, end - start)
            rank, length, cumulative = (
                rows.column(name).to_numpy().astype(np.float64) for name in ("rank", "length_ns", "cumulative_ns")
            )
            first = rows.slice(0, 1).to_pylist()[0]
            causes = {cause: (first[cause], first[f"{cause}_ns"] / 1e3) for cause in CAUSES}
            self._inversions[key] = Inversions(rank, length / 1e3, cumulative / 1e3, first["interrupts"], causes)

    def _read_responses(self, table: Any) -> None:
        columns = {name: np.array(table.column(name).to_pylist()) for name in (*_OF_TASKS, "kind", "options", "system")}
        of_period = columns["response_sum_ns"] / np.maximum(columns["completed"], 1) / columns["period_ns"]
        for options in dict.fromkeys(columns["options"].tolist()):
            for system, _ in self.systems:
                for kind in KINDS:
                    at = (columns["options"] == options) & (columns["system"] == system) & (columns["kind"] == kind)
                    if not at.any():
                        continue
                    jobs = np.maximum(columns["jobs"][at], 1)
                    missed = [100 * float(np.mean(columns[name][at] / jobs)) for name in _MISSES]
                    of_runs = [at & (columns["point"] == repetition) for repetition in np.unique(columns["point"][at])]
                    runs = [100 * float(np.mean(of_period[run])) for run in of_runs]
                    self._responses[options, system, kind] = Responses(
                        missed[0], missed[1], missed[2], float(np.mean(runs)), float(np.std(runs))
                    )

    def inversions(self, handling: str, point: int = SHOWN, variant: str = "") -> Inversions:
        """The inversions under a handling at a utilization. Raises NotRunError if that was not run."""
        key = (self.options(variant), handling, point)
        if key not in self._inversions:
            raise NotRunError(f"{handling} at utilization {point / 1000:.1f} {variant} was not run")
        return self._inversions[key]

    def responses(self, system: str, kind: str, variant: str = "") -> Responses:
        """The jobs of a kind of task on a column of Table II. Raises NotRunError if that was not run."""
        key = (self.options(variant), system, kind)
        if key not in self._responses:
            raise NotRunError(f"column ({system}) {variant} was not run")
        return self._responses[key]

    def options(self, variant: str = "") -> str:
        """The complete options of a variant."""
        return RuntimeStudy(f"{self.run['options']} {variant}").options

    def caption(self) -> str:
        """What the data of all figures is, in one line."""
        return f"Simulated. Laxity {self.run['laxity']}, {self.run['seconds'][0]} s a run; {self.run['options']}."

    def facts(self) -> list[tuple[str, str]]:
        """What was run, for people."""
        run, full = self.run, self._full
        inversions, responses = run["seconds"]
        size = (
            f"section V: {len(self.points)} task sets under {len(self.handlings)} handlings, {inversions} s each; "
            "section "
            f"VI: {len(self.systems)} systems, {run['repetitions']} times {responses} s"
        )
        whole = (len(full.utilizations), full.repetitions, full.seconds)
        if (len(self.points), run["repetitions"], (inversions, responses)) != whole:
            sets, times, (longer, shorter) = whole
            size += f". A reduced run: a full one has {sets} task sets, {longer} s each; {times} times {shorter} s"
        return [
            ("Options", run["options"]),
            ("Simulated", size),
            ("Versions", f"laxity {run['laxity']}, generator {run['generator']}"),
            *lab_view.facts(self),
        ]

    def published(self) -> dict[str, str]:
        """What a repository keeps of the numbers: CSV files by name."""
        lengths = ("p50_us", "p90_us", "p99_us", "longest_us", "total_us", *(f"{cause}_us" for cause in CAUSES))
        inversions = [["utilization", "handling", "interrupts", "inversions", *lengths]]
        for point in self.points:
            for handling in self.handlings:
                curve = self.inversions(handling, point)
                percentiles = (curve.percentile_us(percent) for percent in (50, 90, 99))
                numbers = [
                    *percentiles,
                    curve.longest_us,
                    curve.total_us,
                    *(curve.causes[cause][1] for cause in CAUSES),
                ]
                head = [f"{point / 1000:.1f}", handling, str(curve.interrupts), str(curve.count)]
                inversions.append([*head, *(f"{number:.2f}" for number in numbers)])
        names = ("missed", "missed_from_arrival", "missed_by_quantum", "response", "spread")
        responses = [["column", "system", "tasks", *(f"{name}_percent" for name in names)]]
        for system, name in self.systems:
            for kind in KINDS:
                ours = self.responses(system, kind)
                responses.append([system, name, kind, *(f"{getattr(ours, field):.3f}" for field in names)])
        return {"inversions.csv": csv_text(inversions), "table2.csv": csv_text(responses)}


_MISSES = ("missed", "missed_from_arrival", "missed_by_quantum")
_OF_TASKS = (*_MISSES, "point", "period_ns", "jobs", "completed", "response_sum_ns")


def _runs(table: Any, names: tuple[str, ...]) -> list[tuple[tuple[Any, ...], int, int]]:
    """Where the rows of each key begin and end; they are together."""
    keys = list(zip(*(table.column(name).to_pylist() for name in names), strict=True))
    starts = [index for index, key in enumerate(keys) if index == 0 or keys[index - 1] != key]
    return [(keys[start], start, end) for start, end in zip(starts, [*starts[1:], len(keys)], strict=True)]
