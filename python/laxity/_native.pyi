"""The native part of `laxity`; import from `laxity` instead."""

from collections.abc import Sequence
from os import PathLike
from typing import Any, Literal, TypeAlias, final

import pyarrow as pa

from laxity._native_gpu import (
    Arbitration,
    BandwidthLock,
    Budget,
    Client,
    CopyChunks,
    Engine,
    Token,
    _Buffer,
    _Device,
    _serve_soft_gpu,
    _VxGpu,
    _VxGraph,
    _VxJob,
    _VxRun,
    _VxVerified,
    gc,
    look,
    names,
)
from laxity._native_kernel import (
    KernelEvent,
    KernelExpectation,
    KernelHold,
    KernelInterrupts,
    KernelJob,
    KernelLock,
    KernelScheduler,
    KernelSection,
    KernelStatus,
    KernelTask,
    kernel_look,
)
from laxity._native_live import Graph, Job, Node, Pipeline, Recording, Registry, Spec, UserData
from laxity._native_sched import (
    Hold,
    Lock,
    Section,
    Suspension,
    System,
    Task,
    TaskJob,
    sched_gc,
    sched_look,
    sched_names,
)

_Path: TypeAlias = str | PathLike[str]
_Rows: TypeAlias = Literal["cpus", "tasks", "both"]
_Arbitration: TypeAlias = Literal["driver", "driver_spinning", "semaphore", "k_fmlp", "gpusync"]
_Handling: TypeAlias = Literal["linux", "preempt_rt_low", "preempt_rt_high", "pai", "klmirqd"]

__all__ = [
    "Arbitration",
    "BandwidthLock",
    "Budget",
    "Client",
    "CopyChunks",
    "Engine",
    "Graph",
    "Hold",
    "Job",
    "KernelEvent",
    "KernelExpectation",
    "KernelHold",
    "KernelInterrupts",
    "KernelJob",
    "KernelLock",
    "KernelScheduler",
    "KernelSection",
    "KernelStatus",
    "KernelTask",
    "Lock",
    "Node",
    "Pipeline",
    "Recording",
    "Registry",
    "Result",
    "RuntimeStudy",
    "Section",
    "Spec",
    "Study",
    "StudyStop",
    "Suspension",
    "System",
    "Task",
    "TaskJob",
    "Token",
    "Trace",
    "UserData",
    "Violation",
    "Workload",
    "_Buffer",
    "_Device",
    "_VxGpu",
    "_VxGraph",
    "_VxJob",
    "_VxRun",
    "_VxVerified",
    "__version__",
    "_check",
    "_generate",
    "_generate_many",
    "_overhead_points",
    "_restore_trace",
    "_restore_workload",
    "_run",
    "_serve_soft_gpu",
    "_tune",
    "_why",
    "gc",
    "kernel_look",
    "load",
    "look",
    "measured_realizations",
    "names",
    "nanos",
    "overhead_profiles",
    "read_trace",
    "sched_gc",
    "sched_look",
    "sched_names",
    "simulate",
    "simulate_many",
]

__version__: str

@final
class Workload:
    __hash__: None  # type: ignore[assignment]
    @classmethod
    def from_toml(cls, text: str, file: str | None = None) -> Workload: ...
    @classmethod
    def from_json(cls, text: str, file: str | None = None) -> Workload: ...
    def to_toml(self) -> str: ...
    def to_json(self) -> str: ...
    def save(self, path: _Path) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def cpus(self) -> int: ...
    @property
    def scheduler(self) -> str: ...
    @property
    def overheads(self) -> str: ...
    @property
    def utilization(self) -> float: ...
    @property
    def provenance(self) -> str | None: ...
    @property
    def warnings(self) -> list[str]: ...
    @property
    def tasks(self) -> pa.Table: ...
    def with_scheduler(self, policy: str) -> Workload: ...
    def with_overheads(self, overheads: _Path) -> Workload: ...
    @property
    def arbitration(self) -> _Arbitration: ...
    @property
    def handling(self) -> _Handling: ...
    def with_gpu_management(
        self, *, arbitration: _Arbitration | None = None, handling: _Handling | None = None
    ) -> Workload: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...

@final
class Result:
    @property
    def workload(self) -> str: ...
    @property
    def scheduler(self) -> str: ...
    @property
    def overheads(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def duration_ns(self) -> int: ...
    @property
    def summary(self) -> dict[str, Any]: ...
    @property
    def total(self) -> dict[str, Any]: ...
    @property
    def tasks(self) -> pa.Table: ...
    @property
    def cpus(self) -> pa.Table: ...
    @property
    def arbitration(self) -> _Arbitration: ...
    @property
    def handling(self) -> _Handling: ...
    @property
    def inversions(self) -> pa.Table: ...
    @property
    def waits(self) -> pa.Table: ...
    @property
    def engines(self) -> pa.Table: ...
    @property
    def threads(self) -> pa.Table: ...
    @property
    def graphs(self) -> pa.Table: ...
    @property
    def chains(self) -> pa.Table: ...
    @property
    def completions(self) -> pa.Table: ...
    @property
    def trace(self) -> Trace: ...

@final
class Trace:
    @property
    def workload(self) -> str: ...
    @property
    def scheduler(self) -> str: ...
    @property
    def origin(self) -> Literal["simulated", "live"]: ...
    @property
    def seed(self) -> int: ...
    @property
    def cpus(self) -> int: ...
    @property
    def task_names(self) -> list[str]: ...
    @property
    def duration_ns(self) -> int: ...
    @property
    def damage(self) -> str | None: ...
    def __len__(self) -> int: ...
    def jobs(self) -> pa.Table: ...
    def events(self) -> pa.Table: ...
    def intervals(self) -> pa.Table: ...
    def check(self, *, deadlines: bool = False) -> list[Violation]: ...
    def metrics(self) -> dict[str, Any]: ...
    def to_bytes(self) -> bytes: ...
    def save(self, path: _Path) -> None: ...
    def to_perfetto(self, path: _Path) -> None: ...
    def to_parquet(self, path: _Path, *, table: Literal["jobs", "events", "intervals"] = "jobs") -> None: ...
    def gantt_svg(
        self,
        *,
        start: str = "0 ms",
        end: str | None = None,
        rows: _Rows = "both",
        width: int = 1000,
        caption: bool = True,
        legend: bool = True,
    ) -> str: ...
    def gantt_text(
        self,
        *,
        start: str = "0 ms",
        end: str | None = None,
        rows: _Rows = "both",
        width: int = 120,
        ascii: bool = False,
    ) -> str: ...
    def _repr_svg_(self) -> str | None: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Violation:
    __hash__: None  # type: ignore[assignment]
    @property
    def checker(self) -> Literal["legality", "policy", "deadlines"]: ...
    @property
    def at_ns(self) -> int: ...
    @property
    def cpu(self) -> int | None: ...
    @property
    def task(self) -> int | None: ...
    @property
    def job(self) -> int | None: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...

def nanos(span: str) -> int: ...
def load(path: _Path) -> Workload: ...
def read_trace(path: _Path, *, strict: bool = True) -> Trace: ...
def simulate(
    workload: Workload,
    policy: str | None = None,
    *,
    duration: str | None = None,
    seed: int = 0,
    trace: bool = False,
    overheads: _Path | None = None,
    arbitration: _Arbitration | None = None,
    handling: _Handling | None = None,
    completions: Sequence[str] = ...,
    stop: StudyStop | None = None,
) -> Result: ...
def simulate_many(
    workloads: Sequence[Workload],
    policy: str | Sequence[str] | None = None,
    *,
    duration: str | None = None,
    seed: int = 0,
    overheads: _Path | None = None,
    per: Literal["workload", "task"] = "workload",
    threads: int | None = None,
) -> pa.Table: ...
def overhead_profiles() -> list[str]: ...
def measured_realizations() -> list[str]: ...
def _generate(
    generator: str,
    seed: int,
    cpus: int,
    platform: str | None,
    policy: str,
    name: str | None,
) -> Workload: ...
def _generate_many(
    generator: str,
    count: int,
    seed: int,
    point: int,
    cpus: int,
    platform: str | None,
    policy: str,
    threads: int | None,
) -> list[Workload]: ...
def _check(
    workload: Workload,
    policy: str | None,
    overheads: _Path | None,
    arbitration: str | None,
    handling: str | None,
    accounting: str,
    soft: bool,
    scaling: bool,
) -> dict[str, Any]: ...
def _why(trace: Trace, job: str | None, count: int, by: str) -> list[dict[str, Any]]: ...
def _tune(
    workload: Workload,
    load_permille: int,
    within: str,
    duration: str | None,
    seed: int,
    overheads: _Path | None,
    best: int,
    threads: int | None,
) -> tuple[dict[str, Any], Workload]: ...
def _run(
    workload: Workload,
    bodies: Sequence[tuple[str, str, bool]],
    folder: _Path | None,
    policy: str | None,
    scheduler: str | None,
    duration: str | None,
    seed: int,
    trace: bool,
    arbitration: str | None,
) -> Result: ...
def _restore_workload(json: str, provenance: str | None) -> Workload: ...
def _restore_trace(bytes: bytes) -> Trace: ...

@final
class StudyStop:
    def __new__(cls) -> StudyStop: ...
    def set(self) -> None: ...

@final
class RuntimeStudy:
    def __new__(cls, options: str = "") -> RuntimeStudy: ...
    @property
    def options(self) -> str: ...
    @property
    def utilizations(self) -> list[int]: ...
    @property
    def handlings(self) -> list[str]: ...
    @property
    def systems(self) -> list[tuple[str, str]]: ...
    @property
    def repetitions(self) -> int: ...
    @property
    def seconds(self) -> tuple[int, int]: ...
    @property
    def generator_version(self) -> int: ...
    def inversions(
        self, utilization: int, handling: int, seconds: int, stop: StudyStop | None = None
    ) -> pa.Table | None: ...
    def responses(
        self, system: int, repetition: int, seconds: int, stop: StudyStop | None = None
    ) -> pa.Table | None: ...

@final
class Study:
    def __new__(cls, name: str, options: str = "") -> Study: ...
    @property
    def name(self) -> str: ...
    @property
    def options(self) -> str: ...
    @property
    def scenarios(self) -> list[str]: ...
    @property
    def curves(self) -> list[tuple[str, str]]: ...
    @property
    def points(self) -> list[int]: ...
    @property
    def replicates(self) -> int: ...
    @property
    def generator_version(self) -> int: ...
    def evaluate(
        self, scenario: int, point: int, first: int, count: int, stop: StudyStop | None = None
    ) -> pa.Table | None: ...

def _overhead_points(profile: str, source: str) -> list[tuple[int, int]]: ...
