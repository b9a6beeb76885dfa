"""What all plots share: colours, units, captions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from matplotlib import pyplot
from matplotlib.axes import Axes

from laxity._native import Result, Trace

Source: TypeAlias = Result | Trace
Sources: TypeAlias = Source | Iterable[Source] | Mapping[str, Source]

# Okabe & Ito, "Color Universal Design" (2008), without yellow, which is too light for lines on white, and with gray for
# black, which stands for the scheduler.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8C8C8C")
DASHES = ("-", "--", ":", "-.")
MISSED = "#D55E00"
GRAY = "#5F6368"
DARK = "#202124"

NS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
"""Nanoseconds of each unit."""


@dataclass(frozen=True)
class Labelled:
    """A source and what it is called in the plot."""

    label: str
    source: Source


def labelled(sources: Sources) -> list[Labelled]:
    """The sources with labels: those of a mapping, else whatever tells the sources apart.

    Raises:
        ValueError: if there is none.
    """
    if isinstance(sources, Mapping):
        named = [Labelled(label, source) for label, source in sources.items()]
    else:
        several = [sources] if isinstance(sources, Result | Trace) else list(sources)
        named = [Labelled(label, source) for label, source in zip(_labels(several), several, strict=True)]
    if not named:
        raise ValueError("nothing to plot; pass at least one result or trace")
    return named


def _labels(sources: list[Source]) -> list[str]:
    parts = [(source.scheduler, source.workload, f"seed {source.seed}") for source in sources]
    differ = [index for index in range(3) if len({part[index] for part in parts}) > 1] or [0]
    return [", ".join(part[index] for index in differ) for part in parts]


def plain(name: str) -> str:
    """A name that matplotlib shows as it is: dollar signs are no formulas, and all characters may stand in XML."""
    shown = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in name)
    # A legend leaves out what begins with an underscore.
    return (" " + shown if shown.startswith("_") else shown).replace("$", r"\$")


def trace_of(source: Source) -> Trace:
    """The trace of a source. Raises LaxityError for a result that has none."""
    return source.trace if isinstance(source, Result) else source


def line_styles() -> Iterator[tuple[str, str]]:
    """Colours and dashes, told apart as long as there are at most 28."""
    for dash in DASHES:
        for colour in PALETTE:
            yield colour, dash
    yield from line_styles()


def unit_for(longest_ns: float) -> tuple[str, int]:
    """The unit in which the longest span has one to three digits before the point, and its nanoseconds."""
    fitting = [(unit, ns) for unit, ns in NS.items() if ns <= abs(longest_ns)]
    return fitting[-1] if fitting else ("ns", 1)


def provenance(sources: list[Source]) -> str:
    """What the data is, in one line: only what all sources share."""
    first = sources[0]
    origins = {source.origin if isinstance(source, Trace) else "simulated" for source in sources}
    lengths = {source.duration_ns for source in sources}
    parts = []
    if len({source.workload for source in sources}) == 1:
        parts.append(first.workload)
    if len({source.scheduler for source in sources}) == 1:
        parts.append(first.scheduler)
    origin = " and ".join(sorted(origins, reverse=True))
    parts.append(f"{origin} {span(first.duration_ns)}" if len(lengths) == 1 else origin)
    if len({source.seed for source in sources}) == 1:
        parts.append(f"seed {first.seed}")
    return plain(", ".join(parts))


def span(ns: int) -> str:
    """A span for people: ``60 s``, ``1.5 ms``."""
    unit, scale = unit_for(ns)
    return f"{ns / scale:.4g} {unit}"


def caption(ax: Axes, text: str) -> None:
    """Writes what the data is above the axes, at the left."""
    ax.set_title(text, loc="left", fontsize="small", color=GRAY)


def new_axes(width: float, height: float) -> Axes:
    """Axes of a figure of their own, in inches, that leaves room for what stands around them."""
    _, ax = pyplot.subplots(figsize=(width, height), layout="constrained")
    return ax


def explain(ax: Axes, handles: list[Any] | None = None, rows: int = 8) -> None:
    """A legend to the right of the axes, in columns of at most ``rows``."""
    shown = ax.get_legend_handles_labels()[0] if handles is None else handles
    ax.legend(
        handles=shown,
        fontsize="small",
        frameon=False,
        loc="center left",
        bbox_to_anchor=(1.02, 0.5),
        ncols=max(1, -(-len(shown) // rows)),
    )


def tidy(ax: Axes) -> None:
    """Removes the lines of the frame that carry nothing."""
    ax.spines[["top", "right"]].set_visible(False)
