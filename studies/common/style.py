"""What all figures share: colours told apart by readers with any colour vision, axes with units, direct labels."""

from __future__ import annotations

import re
import textwrap
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import matplotlib as mpl
import numpy as np
from laxity.plots._style import GRAY, tidy
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from studies.common.results import Curve

# Okabe & Ito, "Color Universal Design" (2008), without yellow.
BLUE, ORANGE, GREEN, PINK, SKY, VERMILION = "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00"
BLACK = "#202124"

SETTINGS: dict[Any, Any] = {
    "font.size": 8.0,
    "axes.labelsize": 8.0,
    "axes.titlesize": 8.5,
    "legend.fontsize": 8.0,
    "svg.fonttype": "none",
    "svg.hashsalt": "laxity",
    "path.simplify": True,
    "path.simplify_threshold": 0.3,
}


CHARACTERS_AN_INCH = 20
"""Of notes."""


@dataclass(frozen=True)
class Look:
    """How a curve is drawn.

    Attributes:
        colour: of the line and its label.
        dash: as matplotlib takes it.
        label: what stands on the line.
        width: in points.
    """

    colour: str
    dash: Any
    label: str
    width: float = 1.4


R = TypeVar("R")


@dataclass(frozen=True)
class Canvas(Generic[R]):
    """What all figures of a page share.

    Attributes:
        results: whose curves are drawn.
        folder: where the figures go.
        caption: what the data is, in one line.
        formats: in which each is written.
    """

    results: R
    folder: Path
    caption: str
    formats: tuple[str, ...] = ("svg", "png")


def draw(ax: Axes, curves: list[tuple[Curve, Look]], *, xlim: tuple[float, float], label: bool = True) -> None:
    """Draws curves with their 95 % confidence bands, each labelled where it falls."""
    for curve, look in curves:
        # Where all sets agree the bands of ten curves would lie on one another and hide the rest.
        uncertain = (curve.y > 0) & (curve.y < 1)
        wide = uncertain | np.roll(uncertain, 1) | np.roll(uncertain, -1)
        ax.fill_between(curve.x, curve.low, curve.high, where=wide, color=look.colour, alpha=0.16, linewidth=0)
        ax.plot(curve.x, curve.y, color=look.colour, linestyle=look.dash, linewidth=look.width)
    ax.set_xlim(*xlim)
    ax.set_ylim(-0.02, 1.04)
    ax.yaxis.set_major_formatter(PercentFormatter(1.0))
    ax.grid(color="#E4E6E9", linewidth=0.6)
    ax.set_axisbelow(True)
    tidy(ax)
    if label:
        _label(ax, curves)


def _label(ax: Axes, curves: list[tuple[Curve, Look]]) -> None:
    """Puts each label on its line, at heights that take turns from right to left so that neighbours do not collide."""
    order = sorted(curves, key=lambda item: -_middle(item[0]))
    levels = np.linspace(0.93, 0.12, max(len(order), 2))
    for (curve, look), level in zip(order, levels, strict=False):
        x = curve.up_to(float(level))
        y = float(level)
        if np.isnan(x):
            x = float(curve.x[0])
        elif curve.y[-1] >= level:
            x, y = x - 0.03 * (x - float(curve.x[0])), float(curve.y[-1])
        ax.text(
            x,
            y,
            look.label,
            color=look.colour,
            fontsize=6.5,
            ha="center",
            va="center",
            bbox={"boxstyle": "round,pad=0.12", "facecolor": "white", "edgecolor": "none", "alpha": 0.85},
        )


def _middle(curve: Curve) -> float:
    x = curve.up_to(0.5)
    return -1.0 if np.isnan(x) else x


def save(figure: Figure, canvas: Canvas[Any], name: str) -> Path:
    """Writes a figure, the same bytes each time, and returns the path in the first format."""
    canvas.folder.mkdir(parents=True, exist_ok=True)
    paths = [canvas.folder / f"{name}.{suffix}" for suffix in canvas.formats]
    for path in paths:
        metadata = {"Date": None} if path.suffix == ".svg" else {"Software": "laxity"}
        figure.savefig(path, dpi=150, metadata=metadata)
        # It stands as it was laid out for the first format: to lay it out takes as long as to draw it.
        figure.set_layout_engine("none")
        if path.suffix == ".svg":
            path.write_text(re.sub(r' d="[^"]*"', _shorter, path.read_text()))
    return paths[0]


def _shorter(path: re.Match[str]) -> str:
    """Path data with hundredths of a point, which halves a file."""
    return re.sub(r"(\.\d\d)\d+", r"\1", path[0])


def figure(width: float, height: float) -> Figure:
    """A figure of so many inches with room for what stands around its axes."""
    return Figure(figsize=(width, height), layout="constrained")


def note(figure: Figure, text: str) -> None:
    """Writes what the data is below a figure."""
    lines = textwrap.wrap(text, int(figure.get_figwidth() * CHARACTERS_AN_INCH))
    figure.supxlabel("\n".join(lines), x=0.01, ha="left", fontsize=6.5, color=GRAY)


def settings() -> AbstractContextManager[None]:
    """The settings of all figures, as a context."""
    return mpl.rc_context(SETTINGS)
