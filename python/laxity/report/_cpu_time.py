"""What used the CPUs while something was measured."""

from __future__ import annotations

from typing import NamedTuple

from laxity.report._fields import Fields
from laxity.report._files import ResultsError


class Share(NamedTuple):
    """Some programs, and their share of the time of all CPUs."""

    name: str
    share: float


def shares(items: list[Fields]) -> tuple[Share, ...]:
    """As `run.json` has them; empty where it has none. Raises ResultsError for one that is no share."""
    found = tuple(Share(item.text("name"), item.number("share")) for item in items)
    for name, share in found:
        if not 0 <= share <= 1:
            raise ResultsError(f"the share of CPU time of {name} is {share:g}; it must be 0 to 1")
    return found


def rows(columns: list[tuple[Share, ...]]) -> list[tuple[str, list[float | None]]]:
    """A row for each name, in the order in which they come: the share in each column; None where it has none."""
    names = list(dict.fromkeys(name for column in columns for name, _ in column))
    return [(name, [dict(column).get(name) for column in columns]) for name in names]
