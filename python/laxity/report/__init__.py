"""One page about a run: ``pip install laxity[report]``, then ``python -m laxity.report FOLDER``.

The file ``run.json`` of a folder of results says what was run and which files have the numbers. The page is a single
HTML file that needs no network, and it says why a part is missing. Numbers are computed here, from the files, so that a
page can be made again.
"""

try:
    import jinja2 as _jinja2  # noqa: F401
    import matplotlib as _matplotlib  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"laxity.report needs matplotlib and jinja2; run `pip install laxity[report]` ({error})"
    ) from error

from laxity.report._files import ResultsError
from laxity.report._frames import Frames, Spread, read_frames
from laxity.report._page import render, write
from laxity.report._results import read

__all__ = [
    "Frames",
    "ResultsError",
    "Spread",
    "read",
    "read_frames",
    "render",
    "write",
]
