"""What the paper measured: Tables 5.3 to 5.14 of paper 003."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from functools import lru_cache

from studies.elliott2015vision.delays import MEASURES, Delays
from studies.elliott2015vision.nodes import data


@lru_cache(maxsize=1)
def published() -> dict[tuple[str, str], Delays]:
    """Tables 5.3 to 5.13: completion delays in ms, by configuration and graph."""
    rows = _rows("completion_delays_ms.csv")
    return {(row["configuration"], row["graph"]): _delays(row, "_ms") for row in rows}


@lru_cache(maxsize=1)
def published_summary() -> dict[str, Delays]:
    """Table 5.14: averages over the graphs, in periods, by configuration."""
    return {row["configuration"]: _delays(row, "") for row in _rows("summary.csv")}


def _rows(name: str) -> Iterator[dict[str, str]]:
    return csv.DictReader(line for line in data(name).splitlines() if not line.startswith("#"))


def _delays(row: dict[str, str], unit: str) -> Delays:
    dropped, *times = MEASURES
    return Delays(float(row[dropped]), *(float(row[f"{name}{unit}"]) for name in times))
