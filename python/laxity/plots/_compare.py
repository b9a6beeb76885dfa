"""Schedulers side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import pyarrow as pa
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from laxity._native import Result
from laxity.plots._style import GRAY, MISSED, PALETTE, Sources, labelled, plain, provenance, span, tidy

Measure: TypeAlias = Literal["missed", "preemptions", "migrations", "overhead"]
MEASURES: tuple[Measure, ...] = ("missed", "preemptions", "migrations", "overhead")

_TITLE = {
    "missed": "missed deadlines\n(% of released jobs)",
    "preemptions": "preemptions\n(per 100 released jobs)",
    "migrations": "migrations\n(per 100 released jobs)",
    "overhead": "scheduler and interrupts\n(% of CPU time)",
}


@dataclass(frozen=True)
class _Totals:
    """What a bar of each panel is made of."""

    label: str
    released: int
    missed: int
    preemptions: int
    migrations: int
    overhead_ns: int
    available_ns: int
    """CPU time there was: duration times CPUs."""

    def percentage(self, measure: Measure) -> float:
        """The height of the bar; 0 where nothing was released."""
        if measure == "overhead":
            return 100 * self.overhead_ns / max(self.available_ns, 1)
        return 100 * int(getattr(self, measure)) / max(self.released, 1)


def compare(
    results: Sources | pa.Table,
    measures: Sequence[Measure] = MEASURES,
    *,
    figure: Figure | None = None,
) -> list[Axes]:
    """A bar for each scheduler (or label), in one panel for each measure.

    Args:
        results: results of :func:`laxity.simulate` (several, or a mapping from labels to them), or the table of
            :func:`laxity.simulate_many` with a row a workload, whose rows are added up by scheduler.
        measures: of "missed", "preemptions", "migrations" and "overhead".
        figure: where to draw; a new one if not given.

    Returns:
        The axes, one a measure.

    Raises:
        ValueError: if there is nothing to compare, or a measure is unknown.
    """
    unknown = [measure for measure in measures if measure not in _TITLE]
    if unknown or not measures:
        raise ValueError(f"measures={list(measures)!r}: write at least one of {', '.join(_TITLE)}")
    if isinstance(results, pa.Table):
        totals, about = _of_table(results)
    else:
        totals, about = _of_results(results)
    height = 1.5 + 0.3 * len(totals)
    if figure is None:
        figure = pyplot.figure(figsize=(1.2 + 2.0 * len(measures), height), layout="constrained")
    panels = figure.subplots(1, len(measures), sharey=True, squeeze=False)[0]
    for panel, measure in zip(panels, measures, strict=True):
        _draw(panel, measure, totals)
    panels[0].invert_yaxis()
    figure.suptitle(about, fontsize="small", color=GRAY, x=0.01, ha="left")
    return list(panels)


def _draw(panel: Axes, measure: Measure, totals: list[_Totals]) -> None:
    values = [total.percentage(measure) for total in totals]
    colour = MISSED if measure == "missed" else PALETTE[0]
    bars = panel.barh([plain(total.label) for total in totals], values, height=0.62, color=colour)
    panel.bar_label(bars, [_number(value) for value in values], padding=3, fontsize="small")
    panel.set_xlabel(_TITLE[measure], fontsize="small")
    # Room for the number beside the longest bar; a scale where all are zero.
    panel.set_xlim(0, 1.35 * max(values) if max(values) > 0 else 1)
    panel.tick_params(axis="y", length=0)
    panel.locator_params(axis="x", nbins=4)
    tidy(panel)


def _number(value: float) -> str:
    """Three digits; a zero only for zero."""
    return "0" if value == 0 else f"{value:.3g}"


def _of_results(results: Sources) -> tuple[list[_Totals], str]:
    named = labelled(results)
    totals = []
    for item in named:
        if not isinstance(item.source, Result):
            raise ValueError("compare takes results; pass what `laxity.simulate` returned, not its trace")
        summary = item.source.summary
        cpus = item.source.cpus
        totals.append(
            _totals(
                item.label,
                summary["total"],
                overhead_ns=sum(cpus["overhead_ns"].to_pylist()),
                available_ns=item.source.duration_ns * cpus.num_rows,
            )
        )
    return totals, provenance([item.source for item in named])


def _of_table(table: pa.Table) -> tuple[list[_Totals], str]:
    if "overhead_ns" not in table.column_names or table.num_rows == 0:
        raise ValueError('compare takes the table of `laxity.simulate_many` with per="workload" and at least one row')
    sums: dict[str, dict[str, int]] = {}
    for row in table.to_pylist():
        total = sums.setdefault(row["scheduler"], dict.fromkeys((*_COUNTS, "overhead_ns", "available_ns"), 0))
        for count in (*_COUNTS, "overhead_ns"):
            total[count] += row[count]
        # Neither the number of CPUs nor rounding matters: what a CPU does adds up to the time there was.
        total["available_ns"] += sum(row[part] for part in ("busy_ns", "lock_wait_ns", "idle_ns", "overhead_ns"))
    workloads = len(set(table["workload"].to_pylist()))
    durations = set(table["duration_ns"].to_pylist())
    each = f" for {span(durations.pop())} each" if len(durations) == 1 else ""
    seeds = sorted(set(table["seed"].to_pylist()))
    about = f"{workloads} workloads, simulated{each}, seed {', '.join(map(str, seeds))}"
    return [_totals(label, total, **_times(total)) for label, total in sums.items()], about


_COUNTS = ("released", "missed", "preemptions", "migrations")


def _times(total: dict[str, int]) -> dict[str, int]:
    return {name: total[name] for name in ("overhead_ns", "available_ns")}


def _totals(label: str, counts: dict[str, Any], *, overhead_ns: int, available_ns: int) -> _Totals:
    picked = {name: counts[name] for name in _COUNTS}
    return _Totals(label, **picked, overhead_ns=overhead_ns, available_ns=available_ns)
