"""Files that lie beside the page."""

from __future__ import annotations

from pathlib import Path

from laxity.report._fields import Fields
from laxity.report._files import ResultsError


def beside(folder: Path, items: list[Fields]) -> dict[str, str]:
    """Files that the page links to, by name. Raises ResultsError if one is not there."""
    files = {item.text("name"): item.text("file") for item in items}
    for file in files.values():
        if not (folder / file).is_file():
            raise ResultsError(f"{folder / file}: is not there, though run.json names it")
    return files
