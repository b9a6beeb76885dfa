"""What a run of the simulated run-time study consists of: whole simulations, each of which is a chunk."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from laxity import __version__
from laxity._native import RuntimeStudy, StudyStop

from studies.common.study import Choices

STUDY = "elliott2012klmirqd_runtime"
SHOWN = 11_200
"""The utilization whose figures the paper discusses, in thousandths of a CPU."""

INVERSION_VARIANTS = (
    "interrupts=1",
    "interrupts=6",
    "overlap=0",
    "overlap=1000",
    "halves=mean",
    "definition=entitled",
    "waiting=poll",
    "waiting=poll interrupts=6",
)
"""What else the paper might have meant in section V: run at SHOWN."""

RESPONSE_VARIANTS = ("interrupts=0", "interrupts=6", "halves=mean", "phases=random")
"""And in section VI: run a few times."""

VARIANT_REPETITIONS = 3


@dataclass(frozen=True, order=True)
class Simulation:
    """One simulation.

    Attributes:
        variant: place among the plan's options; 0: the study's own.
        part: "inversions" for section V, "responses" for section VI.
        system: place among the handlings, or among the columns of Table II.
        point: utilization in thousandths of a CPU, or repetition.
        count: simulated seconds.
    """

    variant: int
    part: str
    system: int
    point: int
    count: int

    @property
    def name(self) -> str:
        """The name of its part file."""
        return f"v{self.variant:02}-{self.part}-{self.system}-{self.point:05}"


@dataclass(frozen=True)
class RuntimePlan:
    """The study with its options, and what to simulate.

    Attributes:
        options: complete options: the study's own, then those of the variants of both parts.
        points: utilizations, in thousandths of a CPU.
        repetitions: runs on each system of Table II.
        seconds: simulated time of a run of section V and of one of Table II.
    """

    options: tuple[str, ...]
    points: tuple[int, ...]
    repetitions: int
    seconds: tuple[int, int]
    study: ClassVar[str] = STUDY
    unit: ClassVar[str] = "simulated s"

    def simulations(self) -> list[Simulation]:
        """All simulations, in the order of the result."""
        inversions, responses = self.seconds
        handlings, systems = (range(len(names)) for names in (_study("").handlings, _study("").systems))
        own = [Simulation(0, "inversions", h, point, inversions) for point in self.points for h in handlings]
        own += [Simulation(0, "responses", s, index, responses) for s in systems for index in range(self.repetitions)]
        first = 1 + len(INVERSION_VARIANTS)
        variants = [Simulation(v, "inversions", h, SHOWN, inversions) for v in range(1, first) for h in handlings]
        variants += [
            Simulation(v, "responses", s, index, responses)
            for v in range(first, len(self.options))
            for s in systems
            for index in range(min(VARIANT_REPETITIONS, self.repetitions))
        ]
        # A variant may be what was asked for, or another one together with that.
        first_with = {(self.options[run.variant], run.part): run.variant for run in reversed(own + variants)}
        return [run for run in own + variants if first_with[self.options[run.variant], run.part] == run.variant]

    def chunks(self) -> list[Simulation]:
        """All simulations, shuffled (always alike) so that the rate so far says how long the rest takes."""
        simulations = self.simulations()
        random.Random(0).shuffle(simulations)
        return simulations

    def identity(self) -> dict[str, Any]:
        """Everything the results depend on, for JSON."""
        return {
            "study": self.study,
            "options": self.options[0],
            "variants": list(self.options[1:]),
            "points": list(self.points),
            "repetitions": self.repetitions,
            "seconds": list(self.seconds),
            "laxity": __version__,
            "generator": _study("").generator_version,
        }

    def evaluate(self, chunk: Simulation, stop: StudyStop | None = None) -> pa.Table | None:
        """Simulates; None if told to stop."""
        study = _study(self.options[chunk.variant])
        if chunk.part == "inversions":
            return study.inversions(chunk.point, chunk.system, chunk.count, stop)
        return study.responses(chunk.system, chunk.point, chunk.count, stop)

    def result(self, parts: Iterable[tuple[Simulation, pa.Table]]) -> pa.Table:
        """All that was measured, in the order of ``simulations``; columns of the other part are null."""
        tables = dict(parts)
        return pa.concat_tables(
            [self._keyed(run, tables[run]) for run in self.simulations()], promote_options="default"
        ).combine_chunks()

    def _keyed(self, run: Simulation, table: pa.Table) -> pa.Table:
        """The table of a simulation with what tells it from others."""
        study = _study("")
        table = table.cast(pa.schema([field.with_nullable(True) for field in table.schema]))
        system = study.handlings[run.system] if run.part == "inversions" else study.systems[run.system][0]
        keys: dict[str, Any] = {"options": self.options[run.variant], "part": run.part, "system": system}
        for name, value in reversed({**keys, "point": np.uint32(run.point)}.items()):
            table = table.add_column(0, name, pa.array([value] * len(table)))
        return table


@lru_cache(maxsize=32)
def _study(options: str) -> RuntimeStudy:
    return RuntimeStudy(options)


def runtime_plan(
    options: str = "", *, step: int = 1, repetitions: int | None = None, seconds: int | None = None
) -> RuntimePlan:
    """A plan of the whole study, or of a part of it.

    Args:
        options: what differs from its default options.
        step: take every so many-th utilization, the one that the paper shows among them.
        repetitions: runs on each system of Table II; None: as many as the paper.
        seconds: simulated time of a run, if that is less than the paper's.

    Raises:
        ValueError: for an unknown option, or a number below 1.
    """
    study = RuntimeStudy(options)
    runs = study.repetitions if repetitions is None else repetitions
    limit = max(study.seconds) if seconds is None else seconds
    for name, number in (("step", step), ("replicates", runs), ("seconds", limit)):
        if number < 1:
            raise ValueError(f"{name} is {number}; it must be at least 1")
    first = study.utilizations.index(SHOWN) % step
    variants = [RuntimeStudy(f"{options} {variant}").options for variant in INVERSION_VARIANTS + RESPONSE_VARIANTS]
    inversions, responses = study.seconds
    length = min(limit, inversions), min(limit, responses)
    return RuntimePlan((study.options, *variants), tuple(study.utilizations[first::step]), runs, length)


def chosen(choices: Choices) -> RuntimePlan:
    """A plan of what was chosen. Raises ValueError as ``runtime_plan`` does, and for what the study does not have."""
    choices.refuse(STUDY, "scenarios", "chunk")
    step = 1 if choices.step is None else choices.step
    return runtime_plan(choices.options, step=step, repetitions=choices.replicates, seconds=choices.seconds)
