"""The page: a template, filled."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined

from laxity.report import _cpu_time, _figures, _tables, _words
from laxity.report._results import Results, Video, read


def write(folder: Path, page: Path) -> None:
    """Writes the page about a folder of results; a page that was there is replaced at once, or stays as it was.

    Raises ResultsError if something in the folder is not what it should be.
    """
    part = page.with_name(f".{page.name}.part")
    try:
        part.write_text(render(read(folder)), encoding="utf-8")
        part.replace(page)
    finally:
        part.unlink(missing_ok=True)


def render(results: Results) -> str:
    """The page as HTML. Files that it links to are named relative to the folder of the results."""
    environment = Environment(
        loader=PackageLoader("laxity.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "cpu_rows": _cpu_time.rows,
        "link": quote,
        "share": _words.share,
        "ms": _words.milliseconds,
        "digits": _words.digits,
        "count": _words.count,
        "change": _words.change,
        "seconds": lambda ns: f"{ns / 1e9:g} s",
    }
    return environment.get_template("page.html").render(
        results=results,
        verdict=_words.verdict(results),
        video=_video(results.video) if results.video else None,
        css=Path(__file__).with_name("page.css").read_text(encoding="utf-8"),
    )


def _video(video: Video) -> dict[str, Any]:
    """What is calculated for the section of the stabilizers."""
    has_frames = all(frames.completed > 1 for one in video.configurations for frames in one.instances)
    return {
        "tiles": _tables.tiles(video),
        "totals": _tables.totals(video),
        "groups": _tables.by_period(video),
        "plots": [_figures.delays(video), _figures.longest(video), *_figures.latencies(video)] if has_frames else [],
    }
