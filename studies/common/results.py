"""The result of a study, as curves."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from laxity import LaxityError
from numpy.typing import NDArray

from studies.common.claims import csv_text
from studies.common.plan import load
from studies.common.statistics import last_crossing

Array = NDArray[np.float64]


class NotRunError(LaxityError):
    """A result has no curve of these names: a part of a study was run."""


@dataclass(frozen=True)
class Curve:
    """A curve: fractions of task sets shown schedulable over a utilization.

    Attributes:
        x: utilization in CPUs, ascending.
        y: fraction, 0 to 1.
        low: lower end of its 95 % confidence interval.
        high: upper end.
        sets: task sets at each x.
        weighted: its weighted schedulability: the share of the utilization drawn that was schedulable.
    """

    x: Array
    y: Array
    low: Array
    high: Array
    sets: Array
    weighted: float

    def up_to(self, level: float, sets: int = 1) -> float:
        """The largest x in CPUs up to which at least ``level`` of the task sets are schedulable; nan if none is.

        Places with fewer than ``sets`` task sets do not count.
        """
        counted = self.sets >= sets
        return last_crossing(self.x[counted], self.y[counted], level)

    def at(self, x: float) -> float:
        """The fraction at x CPUs, linearly between points."""
        return float(np.interp(x, self.x, self.y))


class Results:
    """A result file.

    Attributes:
        run: what was run: study, options, scenarios, points, replicates, version.
        undecided: task sets for which a test gave up, over all curves.
        sets: verdicts in total.
    """

    def __init__(self, path: Path) -> None:
        table = pq.read_table(path)
        self.run: dict[str, Any] = json.loads(table.schema.metadata[b"laxity.study"])
        self.undecided = int(np.sum(table.column("undecided").to_numpy()))
        self.sets = int(np.sum(table.column("sets").to_numpy()))
        self._curves: dict[tuple[str, str, str], Curve] = {}
        keys = zip(*(table.column(name).to_pylist() for name in ("scenario", "graph", "curve")), strict=True)
        rows: dict[tuple[str, str, str], list[int]] = {}
        for index, key in enumerate(keys):
            rows.setdefault(key, []).append(index)
        names = ("x_thousandths", "fraction", "low", "high", "sets", "weighted")
        columns = {name: table.column(name).to_numpy().astype(np.float64) for name in names}
        for key, places in rows.items():
            x, y, low, high, sets, weighted = (columns[name][places] for name in names)
            self._curves[key] = Curve(x / 1000, y, low, high, sets, float(weighted[0]))

    @property
    def scenarios(self) -> list[str]:
        """The scenarios there are results of, in the study's order."""
        return list(dict.fromkeys(key[0] for key in self._curves))

    def curve(self, scenario: str, graph: str, name: str) -> Curve:
        """A curve. Raises NotRunError if there is none of these names."""
        try:
            return self._curves[scenario, graph, name]
        except KeyError:
            raise NotRunError(f"{scenario}, {graph} {name} was not run") from None

    def weighted(self, scenario: str, graph: str, name: str) -> float:
        """The weighted schedulability of a curve."""
        return self.curve(scenario, graph, name).weighted

    def caption(self) -> str:
        """What the data of all figures is, in one line."""
        run = self.run
        return (
            f"Laxity {run['laxity']}, {run['replicates']} task sets at each of {len(run['points'])} caps; bands: 95 % "
            f"confidence."
        )

    def facts(self) -> list[tuple[str, str]]:
        """What was run, for people."""
        run = self.run
        full = load(run["study"], run["options"])
        points, scenarios = len(run["points"]), len(run["scenarios"])
        whole = (len(full.scenarios), len(full.points), full.replicates)
        size = f"{scenarios} scenarios, {points} points, {run['replicates']} a point"
        if (scenarios, points, run["replicates"]) != whole:
            size += f". A reduced run: a full one has {whole[0]} scenarios, {whole[1]} points, {whole[2]:,} a point"
        return [
            ("Options", run["options"]),
            ("Task sets", size),
            (
                "Verdicts",
                f"{self.sets:,}, of which {self.undecided:,} undecided (a test gave up; counted as not schedulable)",
            ),
            ("Versions", f"laxity {run['laxity']}, generator {run['generator']}"),
        ]

    def published(self) -> dict[str, str]:
        """What a repository keeps of the numbers: the weighted schedulability of every curve, as a CSV file."""
        head = ("scenario", "graph", "curve", "weighted_schedulability")
        return {"weighted.csv": csv_text([head, *((*key, f"{weighted:.4f}") for key, weighted in self.all_weighted())])}

    def all_weighted(self) -> list[tuple[tuple[str, str, str], float]]:
        """Scenario, graph and name of every curve with its weighted schedulability."""
        return [(key, curve.weighted) for key, curve in self._curves.items()]
