"""The result of the study: a value for each case and measure."""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from studies.ali2018bwlock import live_view
from studies.ali2018bwlock.live import Observed
from studies.ali2018bwlock.plan import BwlockPlan, Case
from studies.common.claims import csv_text
from studies.common.results import NotRunError


class BwlockResults:
    """A result file, read, and the live runs beside it."""

    def __init__(self, path: Path) -> None:
        self.table = pq.read_table(path)
        self.run: dict[str, Any] = json.loads(pq.read_schema(path).metadata[b"laxity.study"])
        self.live = Observed.read(path.parent)

    @cached_property
    def _values(self) -> dict[tuple[str, str], float]:
        return {(row["case"], row["measure"]): row["value"] for row in self.table.to_pylist()}

    def value(self, case: Case, measure: str) -> float:
        """What was measured of a case. Raises NotRunError if it was not run."""
        found = self._values.get((case.name, measure))
        if found is None:
            raise NotRunError(f"the result has no {measure} of {case.name}; run the study anew")
        return found

    def slowdown(
        self, figure: str, reading: str, corunners: int, budget: int = -1, *, staggered: bool = False
    ) -> float:
        """Times its time alone that the kernel took."""
        return self.value(Case(figure, reading, corunners, budget, staggered=staggered), "slowdown")

    def memory_periods(self, reading: str, budget: int, punishment: int) -> float:
        """Of 1,000 periods, those in which the memory task of Fig. 6 executed."""
        return self.value(Case("fig6", reading, 1, budget, punishment), "memory_periods")

    def throttled_less_percent(self, reading: str, punishment: int) -> dict[str, float]:
        """Fig. 10: how much less CPUs are throttled under TFS than under CFS, by benchmark."""
        cases = [case for case in BwlockPlan(self.run["seconds"]).chunks() if case.figure == "fig10"]
        throttled = {
            (case.label, case.punishment): self.value(case, "throttled_s") for case in cases if case.reading == reading
        }
        benchmarks = dict.fromkeys(case.label for case in cases)
        return {name: 100 * (1 - throttled[name, punishment] / throttled[name, 0]) for name in benchmarks}

    def caption(self) -> str:
        """What the data of all figures is, in one line."""
        return f"Simulated: {self.run['seconds']} s of each system of Fig. 10; Laxity {self.run['laxity']}."

    def facts(self) -> list[tuple[str, str]]:
        """What was run, for people."""
        return [
            ("systems", f"{len(set(self.table['case'].to_pylist()))} simulations of the paper's, under two readings"),
            ("simulated", f"{self.run['seconds']} s each for Fig. 10; a kernel of 1 s, or 1,000 periods, for others"),
            ("Laxity", self.run["laxity"]),
            *live_view.facts(self.live),
        ]

    def published(self) -> dict[str, str]:
        """What a repository keeps of the numbers."""
        rows = [[row["case"], row["measure"], f"{row['value']:.6g}"] for row in self.table.to_pylist()]
        simulated = {"values.csv": csv_text([["case", "measure", "value"], *rows])}
        return simulated | live_view.published(self.live)
