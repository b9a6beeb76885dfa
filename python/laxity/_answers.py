"""What the analysis, the explainer of traces and the search for better configurations answer."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from laxity import _native
from laxity._errors import LaxityError
from laxity._native import Trace, Workload

if TYPE_CHECKING:
    import pyarrow as pa

    from laxity._native import _Arbitration, _Handling, _Path


@dataclass(frozen=True)
class Finding:
    """An answer of the analysis. True if it is proven."""

    status: Literal["schedulable", "not_proven", "infeasible", "refused"]
    """Of several clusters the worst."""
    tests: tuple[str, ...]
    """The tests that decided."""
    failures: tuple[str, ...]
    """Why not, the most telling first."""

    def __bool__(self) -> bool:
        return self.status == "schedulable"


@dataclass(frozen=True)
class Check:
    """What is proven about a workload. True if no deadline is ever missed."""

    workload: str
    scheduler: str
    overheads: str
    """The name of the profile that was charged."""
    hard: Finding
    """Whether no job ever misses its deadline, and no output of a chain."""
    soft: Finding
    """Whether tardiness is bounded."""
    refused: tuple[str, ...]
    """What cannot be analysed; if there is anything, nothing else says anything."""
    growth: float | None
    """By how much all execution times on CPUs may be multiplied so that it is still proven; None: by nothing."""
    tasks: pa.Table = field(repr=False)
    """A row a task, then a node. Columns: task (uint32), name, cluster (uint32), and int64, null where there is no
    bound: period_ns, deadline_ns, wcet_ns, inflated_wcet_ns (with overheads and blocking), response_time_ns (bound),
    tardiness_ns (bound), laxity_ns (deadline minus response time; negative if a job may be late); response_time_by (the
    test)."""
    graphs: pa.Table = field(repr=False)
    """A row a graph. Columns: name, end_to_end_ns (int64: bound, null where there is none), reason (why that is)."""
    chains: pa.Table = field(repr=False)
    """A row a chain. Columns: name, data_age_ns and reaction_time_ns (int64: bounds), data_age_max_ns and
    reaction_time_max_ns (int64: its deadlines, null where there are none), reason (why there are no bounds)."""
    report: dict[str, Any] = field(repr=False)
    """All of it, as ``laxity check --json`` prints it (docs/reference/json.md)."""

    def __bool__(self) -> bool:
        return bool(self.hard)


@dataclass(frozen=True)
class Part:
    """All that one thing took of a job's time."""

    cause: str
    """"execution", "other_job", "lock" ...: see docs/reference/json.md."""
    description: str
    time_ns: int
    pieces: int
    """How often."""
    longest_ns: int


@dataclass(frozen=True)
class Account:
    """Where the time of a job went, from its arrival to its completion. Times are ns since the start of the trace."""

    job: str
    """As in "camera#17"."""
    task: str
    index: int
    """Which job of the task; the first is 0."""
    arrival_ns: int
    release_ns: int
    deadline_ns: int | None
    """Absolute; None of a best-effort job, which has none."""
    completion_ns: int | None
    """None if it was pending when the trace ended."""
    time_ns: int
    """From the arrival to the completion, or to the end of the trace: the sum of the parts."""
    lateness_ns: int | None
    """Negative if it was early; None without a deadline."""
    parts: tuple[Part, ...]
    """The largest first."""
    pieces: pa.Table = field(repr=False)
    """The parts in order, a row a piece and cause. Columns: from_ns, to_ns (int64), cause, description, cpu (uint16,
    null where none is meant), other_job (null likewise), time_ns (int64: several causes share a piece)."""


@dataclass(frozen=True)
class Score:
    """How good a configuration is; ppm are millionths."""

    laxity_ppm: int | None
    """The least proven laxity of a task, node or chain, in ppm of its deadline; None if a deadline is not proven."""
    tightest: str | None
    """Whose that is."""
    unproven: str | None
    """Why nothing is proven, if so."""
    missed: int | None
    """Jobs and outputs of chains that were simulated to be late; None if it cannot be simulated."""
    p99_ppm: int | None
    """The greatest 99th percentile of a response time, in ppm of the deadline; of a graph, of what its latency lies
    above that of the graph alone, in ppm of its period."""
    max_ppm: int | None
    """The same of the longest."""
    worst: str | None
    """Whose 99th percentile that is."""


@dataclass(frozen=True)
class Ranked:
    """A configuration: the changes to the workload that make it, and how good it is."""

    changes: tuple[tuple[str, str], ...]
    """What is changed, and to what: ("scheduler", "P-RM")."""
    score: Score


@dataclass(frozen=True)
class Effect:
    """What one change of the best configuration buys."""

    what: str
    to: str
    alone: Score
    """The workload with this change alone."""
    without: Score
    """The best configuration without it."""


@dataclass(frozen=True)
class Tuned:
    """What a search for more laxity found."""

    workload: Workload
    """The workload as the best configures it, at the load asked for."""
    own: Ranked
    """The workload's own configuration."""
    best: tuple[Ranked, ...]
    """The best, in order."""
    effects: tuple[Effect, ...]
    growth: float | None
    """By how much all execution times of the best may be multiplied so that it is proven; None: by nothing."""
    bottlenecks: dict[str, float]
    """Where the best is not proven: the tasks and nodes of which one alone can make it so, and to what part of its
    execution times it has to shrink."""
    tried: int
    settings: int
    """How many configurations there are."""


def check(
    workload: Workload,
    policy: str | None = None,
    *,
    overheads: _Path | None = None,
    arbitration: _Arbitration | None = None,
    handling: _Handling | None = None,
    accounting: Literal["safe", "published"] = "safe",
    soft: bool = False,
    growth: bool = True,
) -> Check:
    """Proves that no deadline is missed, or says why that is not proven: ``laxity check``.

    Args:
        workload: what to analyse.
        policy: as in `laxity.simulate`; None: the workload's own.
        overheads: as in `laxity.simulate`.
        arbitration: as in `laxity.simulate`.
        handling: as in `laxity.simulate`.
        accounting: how overheads become execution time: "safe" (whatever may delay a job), or as "published".
        soft: whether `Check.growth` is that of bounded tardiness instead of deadlines.
        growth: whether to search it, which takes most of the time.

    Raises:
        ValueError: for an unknown policy, profile, arbitration or handling.
        WorkloadError: for tasks that do not suit the policy, or a profile that cannot be read.
    """
    report = _native._check(workload, policy, overheads, arbitration, handling, accounting, soft, growth)
    scaling = report["scaling"]
    return Check(
        workload=report["workload"],
        scheduler=report["scheduler"],
        overheads=report["overheads"]["profile"],
        hard=_finding(report["hard"]),
        soft=_finding(report["soft"]),
        refused=tuple(f"{refusal['subject']}: {refusal['reason']}" for refusal in report["refused"]),
        growth=None if scaling is None else _factor(scaling["permille"]),
        tasks=_table(_TASKS, report["tasks"]),
        graphs=_table(_GRAPHS, report["graphs"]),
        chains=_table(_CHAINS, report["chains"]),
        report=report,
    )


def why(trace: Trace, job: str | None = None, *, by: Literal["lateness", "response"] = "lateness") -> Account:
    """Accounts for every nanosecond of a job: ``laxity trace FILE why``.

    Args:
        trace: simulated or live.
        job: as in "camera#17"; "camera" for the worst job of it; None: the worst of all.
        by: what makes a job the worst: its lateness, or its response time.

    Raises:
        ValueError: if the trace has no such task.
        TraceError: if no such job is in the trace.
    """
    return _account(_native._why(trace, job, 1, by)[0])


def worst(trace: Trace, count: int = 5, *, by: Literal["lateness", "response"] = "lateness") -> list[Account]:
    """The accounts of the worst jobs, the worst first. Raises TraceError if no job completed."""
    return [_account(row) for row in _native._why(trace, None, count, by)]


def tune(
    workload: Workload,
    *,
    load: float = 1.0,
    within: str = "1 min",
    duration: str | None = None,
    seed: int = 0,
    overheads: _Path | None = None,
    best: int = 5,
    threads: int | None = None,
) -> Tuned:
    """Searches for the configuration that leaves the most laxity, proven first: ``laxity tune``.

    Other Python threads go on meanwhile, and Ctrl-C raises KeyboardInterrupt. A search that ends before its time is
    over finds the same on any machine.

    Args:
        workload: what to search from.
        load: what to multiply all execution times with first, to the thousandth.
        within: how long to search at most.
        duration: for how long to simulate each configuration; None: ten periods of each task after its
            phase, at least 1 s.
        seed: of the search and of the simulations.
        overheads: as in `laxity.simulate`.
        best: how many of the best to keep.
        threads: how many to use; None: one a CPU.

    Raises:
        ValueError: for spans and factors that cannot be read.
        LaxityError: if no configuration can be simulated.
    """
    if not math.isfinite(load):
        raise ValueError(f"load={load} is no factor; pass a number such as 1.2")
    permille = round(load * 1000)
    if permille < 1:
        raise ValueError(f"load={load} leaves nothing to do; pass at least 0.001")
    found, tuned = _native._tune(workload, permille, within, duration, seed, overheads, best, threads)
    if not found["best"]:
        raise LaxityError("no configuration can be simulated; `laxity.simulate` says why")
    return Tuned(
        workload=tuned,
        own=_ranked(found["own"]),
        best=tuple(_ranked(ranked) for ranked in found["best"]),
        effects=tuple(_effect(effect) for effect in found["changes"]),
        growth=_factor(found["growth_permille"]),
        bottlenecks={bottleneck["name"]: bottleneck["permille"] / 1000 for bottleneck in found["bottlenecks"]},
        tried=found["tried"],
        settings=found["settings"],
    )


_Columns = list[tuple[str, str]]

_TASKS: _Columns = (
    [("task", "uint32"), ("name", "string"), ("cluster", "uint32")]
    + [(f"{name}_ns", "int64") for name in ("period", "deadline", "wcet", "inflated_wcet", "response_time")]
    + [("tardiness_ns", "int64"), ("laxity_ns", "int64"), ("response_time_by", "string")]
)
_GRAPHS: _Columns = [("name", "string"), ("end_to_end_ns", "int64"), ("reason", "string")]
_CHAINS: _Columns = (
    [("name", "string")]
    + [(f"{name}_ns", "int64") for name in ("data_age", "reaction_time", "data_age_max", "reaction_time_max")]
    + [("reason", "string")]
)
_PIECES: _Columns = [
    ("from_ns", "int64"),
    ("to_ns", "int64"),
    ("cause", "string"),
    ("description", "string"),
    ("cpu", "uint16"),
    ("other_job", "string"),
    ("time_ns", "int64"),
]


def _table(columns: _Columns, rows: list[dict[str, Any]]) -> pa.Table:
    import pyarrow  # noqa: PLC0415 (a program that only takes part in a schedule needs none)

    return pyarrow.Table.from_pylist(rows, schema=pyarrow.schema(columns))


def _factor(permille: int | None) -> float | None:
    return None if permille is None else permille / 1000


def _finding(finding: dict[str, Any]) -> Finding:
    failures = tuple(failure["message"] for failure in finding["failures"])
    return Finding(finding["status"], tuple(finding["tests"]), failures)


def _account(row: dict[str, Any]) -> Account:
    pieces = [
        {"from_ns": piece["from_ns"], "to_ns": piece["to_ns"], **cause}
        for piece in row["pieces"]
        for cause in piece["causes"]
    ]
    parts = tuple(Part(**part) for part in row["parts"])
    return Account(**(row | {"parts": parts, "pieces": _table(_PIECES, pieces)}))


def _score(score: dict[str, Any]) -> Score:
    proof, tail = score["proof"] or {}, score["tail"] or {}
    return Score(
        laxity_ppm=proof.get("laxity_ppm"),
        tightest=proof.get("tightest"),
        unproven=score["unproven"],
        missed=tail.get("missed"),
        p99_ppm=tail.get("p99_ppm"),
        max_ppm=tail.get("max_ppm"),
        worst=tail.get("worst"),
    )


def _ranked(ranked: dict[str, Any]) -> Ranked:
    return Ranked(tuple((change["what"], change["to"]) for change in ranked["changes"]), _score(ranked["score"]))


def _effect(effect: dict[str, Any]) -> Effect:
    change = effect["change"]
    return Effect(change["what"], change["to"], _score(effect["alone"]), _score(effect["without"]))
