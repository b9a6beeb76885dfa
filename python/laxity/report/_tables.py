"""What the tables of the page have in their cells: texts, rounded as readers want them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from laxity.report._frames import Spread
from laxity.report._results import Configuration, Video
from laxity.report._summary import Summary, of_period, periods, summarize
from laxity.report._words import change, digits, milliseconds, percent

SPREAD = {
    "max": "longest",
    "p999": "99.9th percentile",
    "p99": "99th percentile",
    "median": "median",
    "mean": "mean",
    "deviation": "deviation",
}
"""The numbers of a spread, and what they are called."""


@dataclass(frozen=True)
class Row:
    """A name and what stands in each column."""

    name: str
    cells: list[str]


@dataclass(frozen=True)
class Group:
    """The stabilizers of a period: a row for each configuration."""

    period: str
    instances: str
    rows: list[Row]


def totals(video: Video) -> dict[str, list[Row]]:
    """By what they are about: a row a number, a column a configuration, and how the last compares with the first."""
    all_of_them = [summarize(one.instances) for one in video.configurations]
    frames = [
        Row("expected", [*(f"{total.expected:,}" for total in all_of_them), ""]),
        Row("completed", [*(f"{total.completed:,}" for total in all_of_them), ""]),
        _compared("dropped", [total.dropped for total in all_of_them], "{:,}".format),
    ]
    delays, latencies = [], []
    for field, name in SPREAD.items():
        row = _compared(name, [_number(total.delays, field) for total in all_of_them], digits)
        # Median and mean should be 1: less is not better.
        delays.append(Row(name, [*row.cells[:-1], ""]) if field in ("median", "mean") else row)
        latencies.append(_compared(name, [_number(total.latencies, field) for total in all_of_them], digits))
    tables = {"frames": frames, "completion delay, periods": delays, "latency, periods": latencies}
    if not video.start_ns:
        return tables
    return {f"{about}, after the start": rows for about, rows in tables.items()} | _start(video)


def _start(video: Video) -> dict[str, list[Row]]:
    """The few numbers of the start, where latencies are long once: they say nothing of the steady state."""
    start = [summarize(one.start) for one in video.configurations]
    return {
        f"the first {video.start_ns / 1e9:g} s": [
            _compared("frames dropped", [total.dropped for total in start], "{:,}".format),
            _compared("longest completion delay", [_number(total.delays, "max") for total in start], digits),
            _compared("longest latency", [_number(total.latencies, "max") for total in start], digits),
        ]
    }


def _compared(name: str, values: Sequence[float | None], written: Callable[[Any], str]) -> Row:
    return Row(name, [*map(written, values), change(values[0], values[-1])])


def by_period(video: Video) -> list[Group]:
    """The stabilizers of each period, under each configuration; times in ms."""
    return [
        Group(
            milliseconds(period_ns),
            _names([one.name for one in video.configurations[0].instances if one.period_ns == period_ns]),
            [_row(one, period_ns) for one in video.configurations],
        )
        for period_ns in periods(video.configurations[0])
    ]


def tiles(video: Video) -> list[tuple[str, list[Row]]]:
    """The few numbers that a reader sees first."""
    named = [(one.name, summarize(one.instances)) for one in video.configurations]

    def tile(title: str, value: list[str]) -> tuple[str, list[Row]]:
        return title, [Row(name, [text]) for (name, _), text in zip(named, value, strict=True)]

    return [
        tile("frames dropped", [percent(total.dropped, total.expected) for _, total in named]),
        tile("longest completion delay, periods", [digits(_number(total.delays, "max")) for _, total in named]),
        tile(
            "deviation of delays, periods",
            [digits(_number(total.delays, "deviation")) for _, total in named],
        ),
        tile("latency, 99th percentile, periods", [digits(_number(total.latencies, "p99")) for _, total in named]),
    ]


def _row(configuration: Configuration, period_ns: int) -> Row:
    total: Summary = of_period(configuration, period_ns)
    return Row(
        configuration.name,
        [
            f"{total.expected:,}",
            f"{total.completed:,}",
            percent(total.dropped, total.expected),
            *(milliseconds(_number(total.delays, field)) for field in SPREAD),
            *(milliseconds(_number(total.latencies, field)) for field in ("median", "p99", "max")),
        ],
    )


def _number(spread: Spread | None, field: str) -> float | None:
    return None if spread is None else float(getattr(spread, field))


def _names(names: list[str]) -> str:
    """One or two names, or the first and the last."""
    return ", ".join(names) if len(names) <= 2 else f"{names[0]} ... {names[-1]}"
