"""Many video stabilizers at once, that together nearly fill the machine, under plain Linux and under Laxity."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import children
import machine

PERIODS_MS = (20, 20, 30, 30, 40, 40, 60, 60, 60, 60, 60, 80, 80, 80, 80, 100, 100)
"""Of the 17 instances in Table 5.2 of Elliott (2015); scaled to the machine."""

CPU_LOAD = 0.85
"""Of all CPUs, that the instances need together at most. Linux keeps 5 % from real-time threads, and reading the clip,
interrupts and the demo itself need some, too."""
ENGINE_LOAD = 0.66
"""Of the GPU's engine for kernels at most; as in section 5.5.2 there."""

FOR_S = 15
SIZE = (640, 360)
SHOWN = ("--from", "2 s", "--to", "2500 ms")
"""Of the schedule of the first instance."""
CACHED = 60
"""Frames that each instance has in memory: 41 MB."""

TOO_EARLY = "start later"
"""What an instance says that was not ready in time."""
WAIT_MAX_S = 60
CLIENTS = 22
"""Of the arbitration, for an instance: twice its nodes."""

LEVELS = 10
"""Priorities of an instance: its nodes have one more for each step of the longest path of the graph, which has nine."""


@dataclass(frozen=True)
class Instance:
    """A stabilizer."""

    name: str
    period_ns: int
    priority: int
    """Of its first node, where it has one: the shorter the period, the higher."""


@dataclass(frozen=True)
class Way:
    """How to run all of them."""

    name: str
    scheduler: str
    is_managed: bool
    """Whether the GPU is."""
    says: str


WAYS = (
    Way("plain Linux", "other", False, "SCHED_OTHER, what every program gets; operations on the GPU as they come."),
    Way(
        "Laxity",
        "fifo",
        True,
        "SCHED_FIFO: shorter periods first, within a graph deeper nodes first. The GPU is shared by the rules of "
        "GPUSync: as many tokens as CPUs, engine locks by priority, interrupts as urgent as whom they are for.",
    ),
)


@dataclass(frozen=True)
class Cost:
    """Of a frame, in ms; and how long an instance takes before its first frame, in s."""

    cpu_ms: float
    engine_ms: float
    start_s: float

    def scale(self) -> float:
        """What periods are multiplied by, so that neither CPUs nor the engine have more to do than they should."""
        per_ms = sum(1 / period for period in PERIODS_MS)
        return max(self.cpu_ms * per_ms / (CPU_LOAD * _cpus()), self.engine_ms * per_ms / ENGINE_LOAD)


class Programs(NamedTuple):
    """What is started."""

    laxity: Path
    stabilize: Path
    clip: Path


def run(programs: Programs, out: Path) -> dict[str, Any]:
    """Runs all of them under each configuration and returns what `run.json` says of it. Raises children.FailedError."""
    shutil.rmtree(out / "video", ignore_errors=True)
    cost = _calibrate(programs)
    instances = _instances(cost.scale())
    per_ms = sum(1e6 / one.period_ns for one in instances)
    cpu, engine = f"{cost.cpu_ms * per_ms / _cpus():.0%} of {_cpus()} CPUs", f"{cost.engine_ms * per_ms:.0%} of the GPU"
    print(f"  {len(instances)} stabilizers need {cpu} and {engine}", flush=True)
    # All decode their frames at first, on the same CPUs; longer than that should take.
    wait_s = 2 + 1.5 * cost.start_s * len(instances) / _cpus()
    periods = sorted({one.period_ns / 1e6 for one in instances})
    return {
        "clip": programs.clip.name,
        "width": SIZE[0],
        "height": SIZE[1],
        "duration_ns": FOR_S * 1_000_000_000,
        "load": f"A frame takes {cost.cpu_ms:.1f} ms of CPU time; the GPU's kernels take {cost.engine_ms:.1f} ms in a "
        "plain loop. The GPU is soft: CPUs run its kernels, one at a time. Periods are those of Table 5.2 of Elliott "
        f"(2015), scaled to {periods[0]:.1f} to {periods[-1]:.1f} ms, so that all together need {cpu} and {engine}.",
        "instances": [{"name": one.name, "period_ns": one.period_ns} for one in instances],
        "configurations": [_in_time(programs, out / "video", instances, way, wait_s) for way in WAYS],
    }


def _in_time(programs: Programs, out: Path, instances: list[Instance], way: Way, wait_s: float) -> dict[str, Any]:
    """A run that begins when all instances are ready; tried again, later, if they were not."""
    try:
        return _configuration(programs, out, instances, way, wait_s)
    except children.FailedError as failure:
        if TOO_EARLY not in str(failure) or wait_s > WAIT_MAX_S:
            raise
    print(f"  not all were ready after {wait_s:.0f} s; again, with twice as much", flush=True)
    return _in_time(programs, out, instances, way, 2 * wait_s)


def _configuration(programs: Programs, out: Path, instances: list[Instance], way: Way, wait_s: float) -> dict[str, Any]:
    folder = out / way.scheduler
    folder.mkdir(parents=True, exist_ok=True)
    trace = folder / f"{instances[0].name}.lxt"
    start_ns = time.monotonic_ns() + round(wait_s * 1e9)
    commands = [[programs.stabilize, *_options(one, way, start_ns, folder), programs.clip] for one in instances]
    recorder = children.Observer(wait_s, lambda pid: [programs.laxity, "graph", "record", f"stabilizer-{pid}", trace])
    label = f"{len(instances)} stabilizers, {way.name}"
    before = machine.Times.now()
    # On an idle machine every scheduler looks good.
    with _arbitration(programs.laxity, way, len(instances)), children.busy_loops(_cpus(), wait_s):
        children.run_together(commands, folder / "said", label, wait_s + FOR_S, recorder)
    says = f"{way.says} {_cpus()} busy loops compete for the CPUs. {machine.Times.now().since(before)}"
    told = {"name": way.name, "says": says, "folder": f"{out.name}/{folder.name}"}
    return told | (_schedule(programs.laxity, trace, f"{out.name}/{folder.name}") if trace.exists() else {})


def _schedule(laxity: Path, trace: Path, folder: str) -> dict[str, Any]:
    """A picture of half a second of a trace, and the trace for others."""
    gantt, perfetto = trace.with_suffix(".svg"), trace.with_suffix(".pftrace")
    children.output(laxity, "trace", trace, "gantt", *SHOWN, "--by", "task", "--svg", gantt)
    children.output(laxity, "trace", trace, "export", "-o", perfetto)
    return {
        "gantt": f"{folder}/{gantt.name}",
        "gantt_says": f"Half a second of the nodes of {trace.stem}",
        "files": [
            {"name": f"trace of {trace.stem} for Perfetto", "file": f"{folder}/{perfetto.name}"},
            {"name": f"trace of {trace.stem} for laxity", "file": f"{folder}/{trace.name}"},
        ],
    }


def _arbitration(laxity: Path, way: Way, instances: int) -> AbstractContextManager[None]:
    """That of the GPU, where it is managed: rho f = m, and f = 1 (Elliott 2015, section 5.5.2)."""
    if not way.is_managed:
        return nullcontext()
    sizes = ["--gpus", 1, "--copy-engines", 2, "--cpus", _cpus(), "--tokens", _cpus(), "--fifo-length", 1]
    rules = ["--engine-order", "priority", "--clients", CLIENTS * instances]
    return children.serving(laxity, "gpu", "create", _gpu(way), *sizes, *rules)


def _gpu(way: Way) -> str:
    """The name of the soft GPU, and of its arbitration."""
    return f"laxity-demo-{os.getpid()}-{way.scheduler}"


def _calibrate(programs: Programs) -> Cost:
    """What a frame costs: CPU time of an instance that is alone, and in a plain loop that of the GPU's nodes."""
    began = time.monotonic()
    loop = _summary(programs, ["--sequential", "--frames", 2 * CACHED])
    start_s = time.monotonic() - began - loop["elapsed_s"]
    engine_ms = sum(node["cpu_median_us"] / 1000 for node in loop["nodes"] if node["place"] == "GPU")
    alone = ["--gpu", f"soft:laxity-demo-{os.getpid()}-alone", "--period", "50ms", "--duration", "2s"]
    live = _summary(programs, alone)
    return Cost(1000 * live["cpu_s"] / live["frames"]["completed"], engine_ms, start_s)


def _summary(programs: Programs, options: Sequence[object]) -> dict[str, Any]:
    """What an instance says of itself."""
    said = children.output(programs.stabilize, *_common(), *options, "--summary", "json", programs.clip)
    return dict(json.loads(said))


def _instances(scale: float) -> list[Instance]:
    """The instances; periods to 0.1 ms."""
    ranks = {period: rank for rank, period in enumerate(sorted(set(PERIODS_MS), reverse=True))}
    return [
        Instance(f"G{number}", round(10 * period * scale) * 100_000, 1 + LEVELS * ranks[period])
        for number, period in enumerate(PERIODS_MS, start=1)
    ]


def _options(instance: Instance, way: Way, start_ns: int, folder: Path) -> list[object]:
    return [
        *(*_common(), "--scheduler", way.scheduler, "--gpu", f"soft:{_gpu(way)}"),
        *(["--arbitration", _gpu(way)] if way.is_managed else []),
        *(["--base-priority", instance.priority] if way.scheduler == "fifo" else []),
        *("--period", f"{instance.period_ns // 1000}us", "--duration", f"{FOR_S}s", "--start-at", start_ns),
        *("--times", folder / f"{instance.name}.csv", "--summary", "json"),
    ]


def _common() -> list[object]:
    return ["--size", f"{SIZE[0]}x{SIZE[1]}", "--cache-frames", CACHED]


def _cpus() -> int:
    return len(os.sched_getaffinity(0))
