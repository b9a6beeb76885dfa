"""A workload that was proven, simulated and run: what `laxity report` made of it, and how it was run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from laxity.report._beside import beside
from laxity.report._cpu_time import Share, shares
from laxity.report._fields import Fields
from laxity.report._files import text


@dataclass(frozen=True)
class LiveRun:
    """A run on the machine.

    Attributes:
        name: of the way it was run.
        says: what that way is.
        files: what lies beside the page, by name.
        cpu_time: shares of it, as far as they were recorded.
    """

    name: str
    says: str
    files: dict[str, str]
    cpu_time: tuple[Share, ...]


@dataclass(frozen=True)
class Workload:
    """A workload, and what `laxity report` says of it.

    Attributes:
        name: of the workload.
        file: that it is from.
        says: what there is to say of it.
        verdict: what came out, in a few sentences.
        part: HTML of `laxity report --part`, in which all text is escaped.
        runs: on the machine.
    """

    name: str
    file: str
    says: str
    verdict: str
    part: str
    runs: tuple[LiveRun, ...]


def read_workload(folder: Path, workload: Fields) -> Workload:
    """Reads what `run.json` says of a workload, and the part that it names."""
    return Workload(
        name=workload.text("name"),
        file=workload.text("file"),
        says=workload.text("says"),
        verdict=workload.text("verdict"),
        part=text(folder / workload.text("part")),
        runs=tuple(_run(folder, run) for run in workload.each("runs")),
    )


def _run(folder: Path, run: Fields) -> LiveRun:
    return LiveRun(run.text("name"), run.text("says"), beside(folder, run.each("files")), shares(run.each("cpu_time")))
