"""What a paper says, checked against our curves."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Verdict = Literal["reproduced", "partly reproduced", "not reproduced", "undecided", "not decidable here"]
"""Undecided is what was not run, or not for long enough; not decidable here, what was run and cannot tell."""


class UndecidableError(Exception):
    """What was run cannot tell; the text says why."""


@dataclass(frozen=True)
class Finding:
    """What we see of a claim.

    Attributes:
        verdict: whether it is so in our curves.
        ours: the numbers behind it.
        why: where it differs, the reason as the results show it.
        hypothesis: what else the reason may be; nothing here tests it.
    """

    verdict: Verdict
    ours: str
    why: str = ""
    hypothesis: str = ""


@dataclass(frozen=True)
class Claim:
    """A claim of a paper.

    Attributes:
        key: a short name.
        where: section or figure.
        says: what the paper says, quoted or nearly so.
        check: finds it in our results.
        criterion: when it counts as reproduced, and as partly reproduced; empty where the numbers found say so.
    """

    key: str
    where: str
    says: str
    check: Callable[[Any], Finding]
    criterion: str = ""


@dataclass(frozen=True)
class Table:
    """A table of a page.

    Attributes:
        title: its heading.
        text: what stands above it.
        header: names of the columns.
        rows: cells.
    """

    title: str
    text: str
    header: list[str]
    rows: list[list[str]]


def csv_text(rows: Iterable[Sequence[str]]) -> str:
    """Rows as a CSV file, the header first."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def partly(good: bool, some: bool) -> Verdict:
    """A verdict with a middle."""
    return "reproduced" if good else "partly reproduced" if some else "not reproduced"


def graded(good: int, total: int, *, most: float = 0.9, some: float = 0.5) -> Verdict:
    """A verdict on a claim about many cases: reproduced if nearly all are so, partly if half are."""
    share = good / max(total, 1)
    return partly(share >= most, share >= some)


def yes(condition: bool) -> Verdict:
    """A verdict on a claim that is so or not."""
    return "reproduced" if condition else "not reproduced"
