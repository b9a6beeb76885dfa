"""What a published study consists of, and how one is found by its name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
from laxity._native import StudyStop

from studies.common.claims import Claim, Table

STUDIES = (
    "ali2018bwlock",
    "brandenburg2009gedf",
    "brandenburg2009gedf_kernel",
    "brandenburg2009gedf_kernel_waiting",
    "elliott2012klmirqd",
    "elliott2012klmirqd_runtime",
    "elliott2015vision",
)


class Work(Protocol):
    """What is run: chunks with a name and a count each, and how their tables make a result."""

    @property
    def study(self) -> str:
        """The name of the study."""

    @property
    def unit(self) -> str:
        """What the counts of the chunks count."""

    def chunks(self) -> list[Any]:
        """All of the work."""

    def identity(self) -> dict[str, Any]:
        """Everything the results depend on, for JSON."""

    def evaluate(self, chunk: Any, stop: StudyStop | None = None) -> pa.Table | None:
        """The table of a chunk; None if told to stop."""

    def result(self, parts: Iterable[tuple[Any, pa.Table]]) -> pa.Table:
        """The result, from chunks with their tables. It does not depend on how the work was cut."""


class StudyResults(Protocol):
    """A result file, read."""

    @property
    def run(self) -> dict[str, Any]:
        """What was run."""

    def caption(self) -> str:
        """What the data of all figures is, in one line."""

    def facts(self) -> list[tuple[str, str]]:
        """What was run, for people."""

    def published(self) -> dict[str, str]:
        """What a repository keeps of the numbers: CSV files by name."""


@dataclass(frozen=True)
class Choices:
    """What of a study is to be run; None where the study decides.

    Attributes:
        options: what differs from its default options.
        scenarios: which of its scenarios.
        step: take every so many-th of its points.
        replicates: task sets a point, or repetitions.
        seconds: simulated time of a run, where runs are simulations.
        chunk: task sets a chunk.
    """

    options: str = ""
    scenarios: range | None = None
    step: int | None = None
    replicates: int | None = None
    seconds: int | None = None
    chunk: int | None = None

    def refuse(self, study: str, *names: str) -> None:
        """Raises ValueError if one of these was chosen: the study has no such thing."""
        chosen = [name for name in names if getattr(self, name) is not None]
        if chosen:
            raise ValueError(f"{study} has no choice of {', '.join(chosen)}; leave out --{' --'.join(chosen)}")


@dataclass(frozen=True)
class PublishedStudy:
    """A published study.

    Attributes:
        name: of its folder. Its module ``drawing`` has ``draw_all``, which needs matplotlib.
        title: the paper's.
        claims: what the paper says, each with what checks it.
        plan: what there is to run; ValueError for choices that it does not have.
        quick: the choices of ``--quick``: about half a minute on two CPUs, figures included.
        read: a result file.
        tables: of its page, from what was read.
        alternatives: every other value of an option, as ``KEY=VALUE``; empty where variants are part of every run.
    """

    name: str
    title: str
    claims: tuple[Claim, ...]
    plan: Callable[[Choices], Work]
    quick: Choices
    read: Callable[[Path], StudyResults]
    tables: Callable[[Any], list[Table]] = lambda _: []
    alternatives: tuple[str, ...] = ()


def study(name: str) -> PublishedStudy:
    """The study of this name, one of ``STUDIES``."""
    found: PublishedStudy = import_module(f"studies.{name}").STUDY
    return found
