"""Real-time scheduling for Linux systems with GPUs: generate, simulate, measure and plot.

    import laxity

    workload = laxity.load("robot.toml")
    result = laxity.simulate(workload, duration="60 s", trace=True)
    print(result.tasks.to_pandas())
    result.trace.jobs()                     # a pyarrow.Table: so do polars and pandas take it
    laxity.check(workload).tasks            # what is proven
    laxity.plots.cdf(result).figure.savefig("response-times.svg")

`laxity.live` takes part in live graphs: processes that exchange tokens and data. `laxity.gpu` shares GPUs,
`laxity.sched` schedules threads, `laxity.vx` executes vision graphs, and `laxity.report` makes pages of results.

Times are ints in nanoseconds, and the names of what holds them end in ``_ns``; spans to be read are texts with a unit,
such as ``"5 ms"``. Every decision is made by the Rust crates below: the same workload, policy, seed and version yield
the same schedule as the ``laxity`` command, byte for byte.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from laxity._answers import Account, Check, Effect, Finding, Part, Ranked, Score, Tuned, check, tune, why, worst
from laxity._build import Task, workload
from laxity._errors import LaxityError, RunError, SimulationError, TraceError, WorkloadError, WorkloadIssue
from laxity._generate import generate, generate_many
from laxity._native import (
    Result,
    Trace,
    Violation,
    Workload,
    __version__,
    load,
    measured_realizations,
    nanos,
    overhead_profiles,
    read_trace,
    simulate,
    simulate_many,
)
from laxity._run import Job, Messages, run

if TYPE_CHECKING:
    from laxity import gpu, live, plots, report, sched, vx

__all__ = [
    "Account",
    "Check",
    "Effect",
    "Finding",
    "Job",
    "LaxityError",
    "Messages",
    "Part",
    "Ranked",
    "Result",
    "RunError",
    "Score",
    "SimulationError",
    "Task",
    "Trace",
    "TraceError",
    "Tuned",
    "Violation",
    "Workload",
    "WorkloadError",
    "WorkloadIssue",
    "__version__",
    "check",
    "generate",
    "generate_many",
    "gpu",
    "live",
    "load",
    "measured_realizations",
    "nanos",
    "overhead_profiles",
    "plots",
    "read_trace",
    "report",
    "run",
    "sched",
    "simulate",
    "simulate_many",
    "tune",
    "vx",
    "why",
    "workload",
    "worst",
]


def __getattr__(name: str) -> Any:
    """Imports subpackages, of which `laxity.plots` takes matplotlib, only where they are used."""
    if name in ("gpu", "live", "plots", "report", "sched", "vx"):
        return import_module(f"laxity.{name}")
    raise AttributeError(f"module 'laxity' has no attribute {name!r}")
