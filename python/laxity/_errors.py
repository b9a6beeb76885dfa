"""The exceptions of the package. Each can be pickled, so that it survives a trip from a worker process."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from laxity._native import Result


class LaxityError(Exception):
    """Whatever Laxity raises that is not an error of the caller's Python."""


@dataclasses.dataclass(frozen=True)
class WorkloadIssue:
    """One thing that is wrong with a workload."""

    file: str | None
    """The file's name; None for a workload that was not read from a file."""
    line: int | None
    """Where in the file, counted from 1."""
    column: int | None
    """Where in the line, in characters counted from 1."""
    field: str
    """Which field, in the file's own terms: ``task[3].deadline``. Empty where the text cannot be read at all."""
    message: str
    """What is wrong, with both values and the way out."""
    text: str = dataclasses.field(repr=False)
    """All of it in one line, as a compiler would print it."""

    def __str__(self) -> str:
        return self.text


class WorkloadError(LaxityError, ValueError):
    """A workload is wrong. ``errors`` has everything that is, in the order of the file."""

    def __init__(self, errors: Iterable[WorkloadIssue]) -> None:
        self.errors: tuple[WorkloadIssue, ...] = tuple(errors)
        super().__init__(self.errors)

    def __str__(self) -> str:
        return "\n".join(map(str, self.errors))


class SimulationError(LaxityError, ValueError):
    """The simulator cannot run this workload yet. ``reasons`` has one text for each thing it cannot run."""

    def __init__(self, reasons: Iterable[str]) -> None:
        self.reasons: tuple[str, ...] = tuple(reasons)
        super().__init__(self.reasons)

    def __str__(self) -> str:
        return "\n".join(self.reasons)


class RunError(LaxityError):
    """A live run cannot begin, or ended as a job's code failed. ``result`` is what was measured until then, or None.

    Pickled and copied errors have None: results stay in the process that measured them.
    """

    def __init__(self, message: str, result: Result | None = None) -> None:
        self.result = result
        super().__init__(message)

    def __reduce__(self) -> tuple[type[RunError], tuple[object, ...], dict[str, object]]:
        return type(self), self.args, {**self.__dict__, "result": None}


class TraceError(LaxityError, ValueError):
    """A trace cannot be read, or not be used for what was asked."""


def run_error(text: str, result: Result | None) -> RunError:
    """The exception of what the extension module found, which names options as the command does."""
    parts = text.split("`")
    # Between backticks are commands, which stay.
    parts[::2] = map(_as_argument, parts[::2])
    return RunError("`".join(parts), result)


def _as_argument(text: str) -> str:
    """`text` with `scheduler="fifo"` for ``--scheduler fifo``."""
    text = re.sub(r"--(scheduler) (laxity|kernel|fifo|deadline|other)\b", r'\1="\2"', text)
    text = re.sub(r"--(policy) ([A-Z][\w/-]*)", r'\1="\2"', text)
    return re.sub(r"--(scheduler|policy)\b", r"\1", text)


def workload_error(issues: Sequence[tuple[str | None, int | None, int | None, str, str, str]]) -> WorkloadError:
    """The exception of what the extension module found."""
    return WorkloadError(WorkloadIssue(*issue) for issue in issues)
