"""Published schedulability studies at full size: run them, and see our curves beside what the papers say.

    python -m laxity.studies brandenburg2009gedf --out out/gedf            # all CPUs of this machine; Ctrl-C, resume
    python -m laxity.studies brandenburg2009gedf --out out/gedf --dask tcp://scheduler:8786
    python -m laxity.studies elliott2012klmirqd --out out/klmirqd --quick  # a smaller one, in seconds

Everything is decided in Rust (``laxity-study``): here chunks are handed out, counts are added up, and curves are drawn.
The result does not depend on how the work was split, byte for byte.
"""

from laxity._native import Study
from laxity.studies._plan import Chunk, Plan, plan
from laxity.studies._results import Curve, Results
from laxity.studies._run import run

STUDIES = ("brandenburg2009gedf", "elliott2012klmirqd")

__all__ = ["STUDIES", "Chunk", "Curve", "Plan", "Results", "Study", "plan", "run"]
