"""Who had the CPUs while something was measured."""

from __future__ import annotations

from typing import NamedTuple

from laxity.report._fields import Fields
from laxity.report._files import ResultsError


class Share(NamedTuple):
    """Somebody, and their share of the time of all CPUs."""

    who: str
    share: float


def shares(items: list[Fields]) -> tuple[Share, ...]:
    """As `run.json` has them; empty where it has none. Raises ResultsError for one that is no share."""
    found = tuple(Share(item.text("who"), item.number("share")) for item in items)
    for who, share in found:
        if not 0 <= share <= 1:
            raise ResultsError(f"the share of CPU time of {who} is {share:g}; it must be 0 to 1")
    return found


def rows(columns: list[tuple[Share, ...]]) -> list[tuple[str, list[float | None]]]:
    """By who had it, in the order in which they come: the share in each column; None where they are not in it."""
    names = list(dict.fromkeys(who for column in columns for who, _ in column))
    return [(name, [dict(column).get(name) for column in columns]) for name in names]
