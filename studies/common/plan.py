"""What a run of a study evaluates, and how that is cut into chunks."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, ClassVar

import pyarrow as pa
from laxity import __version__
from laxity._native import Study, StudyStop

from studies.common.counts import rows_of, summed
from studies.common.study import Choices


@dataclass(frozen=True, order=True)
class Chunk:
    """Some replicates at one point of one scenario; see ``Study.evaluate``."""

    scenario: int
    point: int
    first: int
    count: int

    @property
    def name(self) -> str:
        """The name of its part file."""
        return f"s{self.scenario:03}-p{self.point:06}-r{self.first:06}-n{self.count:06}"


@dataclass(frozen=True)
class Plan:
    """A study with its options, and the task sets to draw.

    Attributes:
        study: its name.
        options: its options, complete.
        scenarios: places among the study's scenarios.
        points: caps on utilization, in thousandths of a CPU.
        replicates: task sets a point.
        chunk: task sets a chunk at most. No part of the results depends on it.
    """

    study: str
    options: str
    scenarios: tuple[int, ...]
    points: tuple[int, ...]
    replicates: int
    chunk: int
    unit: ClassVar[str] = "sets"

    def chunks(self) -> list[Chunk]:
        """All chunks, shuffled (always alike) so that the rate so far says how long the rest takes."""
        chunks = [
            Chunk(scenario, point, first, min(self.chunk, self.replicates - first))
            for scenario in self.scenarios
            for point in self.points
            for first in range(0, self.replicates, self.chunk)
        ]
        random.Random(0).shuffle(chunks)
        return chunks

    def identity(self) -> dict[str, Any]:
        """Everything the results depend on, for JSON."""
        plan = asdict(self)
        del plan["chunk"]
        plan["scenarios"], plan["points"] = list(self.scenarios), list(self.points)
        return {**plan, "laxity": __version__, "generator": load(self.study, self.options).generator_version}

    def evaluate(self, chunk: Chunk, stop: StudyStop | None = None) -> pa.Table | None:
        """The counts of a chunk; None if told to stop."""
        return load(self.study, self.options).evaluate(chunk.scenario, chunk.point, chunk.first, chunk.count, stop)

    def result(self, parts: Iterable[tuple[Chunk, pa.Table]]) -> pa.Table:
        """The curves, from all chunks with their counts."""
        return summed(self, load(self.study, self.options), rows_of(table for _, table in parts))


@lru_cache(maxsize=8)
def load(study: str, options: str) -> Study:
    """The study of this name and options; parsing its overhead tables takes longer than a small chunk."""
    return Study(study, options)


def plan(
    study: str,
    options: str = "",
    *,
    scenarios: range | None = None,
    step: int = 1,
    replicates: int | None = None,
    chunk: int | None = None,
) -> Plan:
    """A plan of the whole study, or of a part of it.

    Args:
        study: its name.
        options: what differs from its default options.
        scenarios: which of its scenarios; None: all.
        step: take every so many-th of its points.
        replicates: task sets a point; None: as many as a full run.
        chunk: task sets a chunk; None: as many as take about a second.

    Raises:
        ValueError: for an unknown study, option or scenario, or a number below 1.
    """
    whole = load(study, options)
    count = whole.replicates if replicates is None else replicates
    size = min(count, 1000 if study == "elliott2012klmirqd" else 250) if chunk is None else chunk
    for name, number in (("step", step), ("replicates", count), ("chunk", size)):
        if number < 1:
            raise ValueError(f"{name} is {number}; it must be at least 1")
    chosen = range(len(whole.scenarios)) if scenarios is None else scenarios
    if not chosen or chosen[0] < 0 or chosen[-1] >= len(whole.scenarios):
        raise ValueError(f"scenarios {chosen} are not among the {len(whole.scenarios)} of {study}, counted from 0")
    return Plan(study, whole.options, tuple(chosen), tuple(whole.points[::step]), count, size)


def chosen(study: str, choices: Choices) -> Plan:
    """A plan of what was chosen of a study. Raises ValueError as ``plan`` does, and if a simulated time was chosen."""
    choices.refuse(study, "seconds")
    return plan(
        study,
        choices.options,
        scenarios=choices.scenarios,
        step=1 if choices.step is None else choices.step,
        replicates=choices.replicates,
        chunk=choices.chunk,
    )
