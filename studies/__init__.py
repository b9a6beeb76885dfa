"""Published studies at full size: run them, and see our curves beside what the papers say.

    python -m laxity.studies brandenburg2009gedf --out out/gedf            # all CPUs of this machine; Ctrl-C, resume
    python -m laxity.studies brandenburg2009gedf --out out/gedf --dask tcp://scheduler:8786
    python -m laxity.studies elliott2012klmirqd --out out/klmirqd --quick  # a smaller one, in seconds
    python -m laxity.studies elliott2012klmirqd_runtime                    # simulations: inversions, response times
    python -m laxity.studies elliott2015vision --live --for 60s            # simulations, and processes on this machine

Everything is decided in Rust (``laxity-study``): here chunks are handed out, counts are added up, and curves are drawn.
The result does not depend on how the work was split, byte for byte.
"""

from laxity._native import RuntimeStudy, Study
from laxity.studies._plan import Chunk, Plan, plan
from laxity.studies._results import Curve, Results
from laxity.studies._run import run
from laxity.studies._runtime_plan import RuntimePlan, runtime_plan
from laxity.studies._runtime_results import RuntimeResults
from laxity.studies._vision_plan import VisionPlan, vision_plan
from laxity.studies._vision_results import VisionResults

STUDIES = ("brandenburg2009gedf", "elliott2012klmirqd", "elliott2012klmirqd_runtime", "elliott2015vision")

__all__ = [
    "STUDIES",
    "Chunk",
    "Curve",
    "Plan",
    "Results",
    "RuntimePlan",
    "RuntimeResults",
    "RuntimeStudy",
    "Study",
    "VisionPlan",
    "VisionResults",
    "plan",
    "run",
    "runtime_plan",
    "vision_plan",
]
