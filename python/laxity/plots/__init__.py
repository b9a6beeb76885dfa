"""Plots with matplotlib, for reports and papers: ``pip install laxity[plots]``.

Every function takes an optional ``ax`` and returns what it drew on, so that a figure can be changed before it is saved.
Colours are told apart by readers with any colour vision, axes say their units, and a caption says what the data is:
simulated or live, the scheduler, the seed.
"""

try:
    import matplotlib as _matplotlib  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("laxity.plots needs matplotlib; run `pip install laxity[plots]`") from error

from laxity.plots._cdf import cdf
from laxity.plots._compare import compare
from laxity.plots._gantt import gantt

__all__ = ["cdf", "compare", "gantt"]
