"""Counts of schedulability studies: parts added up to curves."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from laxity import LaxityError
from laxity._native import Study

from studies.common.statistics import wilson

if TYPE_CHECKING:
    from studies.common.plan import Plan

COUNTS = ("sets", "accepted", "undecided", "weight", "weight_accepted")

Row = tuple[tuple[int, int, int], tuple[int, ...]]
"""Scenario, curve and x, with the counts there."""


def summed(plan: Plan, study: Study, rows: Iterable[Row]) -> pa.Table:
    """The curves, from counts by (scenario, curve, x).

    Raises:
        LaxityError: if a curve has not seen each task set of the plan once.
    """
    sums: defaultdict[tuple[int, int, int], list[int]] = defaultdict(lambda: [0] * len(COUNTS))
    for place, counts in rows:
        total = sums[place]
        for index, count in enumerate(counts):
            total[index] += count
    _check_complete(plan, study, sums)
    places = sorted(sums)
    columns = {name: np.array([sums[place][i] for place in places], np.uint64) for i, name in enumerate(COUNTS)}
    fraction, low, high = wilson(columns["accepted"], columns["sets"])
    # The extension module makes new lists of them each time it is asked.
    scenarios, curves = study.scenarios, study.curves
    return pa.table(
        {
            "scenario": [scenarios[place[0]] for place in places],
            "graph": [curves[place[1]][0] for place in places],
            "curve": [curves[place[1]][1] for place in places],
            "x_thousandths": np.array([place[2] for place in places], np.uint64),
            **columns,
            "fraction": fraction,
            "low": low,
            "high": high,
            "weighted": _weighted(places, columns["weight"], columns["weight_accepted"]),
        }
    )


def _check_complete(plan: Plan, study: Study, sums: dict[tuple[int, int, int], list[int]]) -> None:
    """Every curve of every scenario has seen each task set once."""
    seen: defaultdict[tuple[int, int], int] = defaultdict(int)
    for place, counts in sums.items():
        seen[place[:2]] += counts[0]
    expected = len(plan.points) * plan.replicates
    scenarios, curves = study.scenarios, study.curves
    for scenario in plan.scenarios:
        for curve, names in enumerate(curves):
            sets = seen.pop((scenario, curve), 0)
            if sets != expected:
                name = f"{scenarios[scenario]}, {' '.join(names)}"
                raise LaxityError(f"{name}: {sets} task sets, expected {expected}; name the run they belong to")
    if seen:
        raise LaxityError(f"task sets of {len(seen)} curves that the run does not have; name the run they belong to")


def rows_of(tables: Iterable[pa.Table]) -> Iterator[Row]:
    """The counts of part tables."""
    for table in tables:
        columns = [table.column(name).to_pylist() for name in ("scenario", "curve", "x", *COUNTS)]
        for scenario, curve, x, *counts in zip(*columns, strict=True):
            yield (scenario, curve, x), tuple(counts)


def rows_of_csv(study: Study, paths: Iterable[Path]) -> Iterator[Row]:
    """The counts in CSV files of ``run_study``, the Rust example that needs no Python.

    Raises:
        LaxityError: if a file is of another study or has other options.
    """
    scenarios = {name: index for index, name in enumerate(study.scenarios)}
    curves = {name: index for index, name in enumerate(study.curves)}
    for path in paths:
        with path.open(newline="") as lines:
            head, expected = lines.readline().rstrip("\n"), f"# study={study.name} options={study.options}"
            if head != expected:
                raise LaxityError(f"{path} begins with {head!r}, not {expected!r}; name the run it belongs to")
            for row in csv.DictReader(lines):
                place = scenarios[row["scenario"]], curves[row["graph"], row["curve"]], int(row["x_thousandths"])
                yield place, tuple(int(row[name]) for name in COUNTS)


def _weighted(places: list[tuple[int, int, int]], weight: np.ndarray, accepted: np.ndarray) -> np.ndarray:
    """The weighted schedulability of each row's curve: utilization accepted over utilization drawn."""
    sums: defaultdict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0])
    for place, total, part in zip(places, weight.tolist(), accepted.tolist(), strict=True):
        sums[place[:2]][0] += total
        sums[place[:2]][1] += part
    return np.array([sums[place[:2]][1] / max(1, sums[place[:2]][0]) for place in places])
