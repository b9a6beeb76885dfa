"""The overheads with waiting, and figures 4, 5 and 18 to 29 of the paper with them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from studies.brandenburg2009gedf_kernel.drawing import draw_with
from studies.brandenburg2009gedf_kernel.overheads import WAITING
from studies.common.results import Results
from studies.common.style import Canvas


def draw_all(canvas: Canvas[Results], *, every: bool) -> Iterator[tuple[str, str, Path]]:
    """Draws what the results allow; yields name, caption and SVG path of each figure as it is done."""
    del every
    return draw_with(canvas, WAITING)
