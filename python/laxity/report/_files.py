"""Reading what is in a folder of results."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from laxity._errors import LaxityError

MEDIA = {".jpg": "image/jpeg", ".png": "image/png", ".svg": "image/svg+xml"}
"""Pictures that a page can have, by the end of their names."""


class ResultsError(LaxityError, ValueError):
    """A folder of results is not what it should be: names the file, and what is wrong with it."""


def text(path: Path) -> str:
    """A file of text. Raises ResultsError if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ResultsError(f"{path}: cannot be read: {error}") from error


def table(path: Path) -> dict[str, Any]:
    """A file with one JSON object. Raises ResultsError if it is none."""
    try:
        value = json.loads(text(path))
    except json.JSONDecodeError as error:
        raise ResultsError(f"{path}:{error.lineno}:{error.colno}: is no JSON: {error.msg}") from error
    if not isinstance(value, dict):
        raise ResultsError(f"{path}: is {type(value).__name__}, not an object of JSON")
    return value


def picture(path: Path) -> str:
    """A picture as a URI that has all of it. Raises ResultsError if it cannot be read or is none."""
    media = MEDIA.get(path.suffix)
    if media is None:
        raise ResultsError(f"{path}: is no picture that a page can have; write one of {', '.join(MEDIA)}")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ResultsError(f"{path}: cannot be read: {error}") from error
    return f"data:{media};base64,{base64.b64encode(content).decode()}"
