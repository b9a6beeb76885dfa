"""Many video stabilizers at once, that together nearly fill the machine, under plain Linux and under Laxity."""

from __future__ import annotations

import json
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import children
import machine

PERIODS_MS = (20, 20, 30, 30, 40, 40, 60, 60, 60, 60, 60, 80, 80, 80, 80, 100, 100)
"""Of the 17 instances in Table 5.2 of Elliott (2015); scaled to the machine."""

LOAD = 0.85
"""Of all CPUs, that the instances need together. Linux keeps 5 % from real-time threads, and reading the clip, the
interrupts and the demo itself need some, too."""

FOR_S = 15
SIZE = (640, 360)
SHOWN = ("--from", "2 s", "--to", "2500 ms")
"""Of the schedule of the first instance."""
CACHED = 60
"""Frames that each instance has in memory: 41 MB."""

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
    says: str


WAYS = (
    Way("plain Linux", "other", "SCHED_OTHER, what every program gets."),
    Way("Laxity", "fifo", "SCHED_FIFO: shorter periods first, within a graph deeper nodes first."),
)


class Programs(NamedTuple):
    """What is started."""

    laxity: Path
    stabilize: Path
    clip: Path


def run(programs: Programs, out: Path) -> dict[str, Any]:
    """Runs all of them under each configuration and returns what `run.json` says of it. Raises children.FailedError."""
    shutil.rmtree(out / "video", ignore_errors=True)
    start_s, frame_ms = _calibrate(programs)
    instances = _instances(frame_ms)
    load = frame_ms * sum(1e6 / one.period_ns for one in instances) / _cpus()
    print(f"  a frame takes {frame_ms:.1f} ms of CPU time; {len(instances)} need {load:.0%} of {_cpus()} CPUs")
    # All decode their frames at first, on the same CPUs; longer than that should take.
    wait_s = 2 + 1.5 * start_s * len(instances) / _cpus()
    periods = sorted({one.period_ns / 1e6 for one in instances})
    return {
        "clip": programs.clip.name,
        "width": SIZE[0],
        "height": SIZE[1],
        "duration_ns": FOR_S * 1_000_000_000,
        "load": f"A frame takes {frame_ms:.1f} ms of CPU time, measured before; periods are those of Table 5.2 of "
        f"Elliott (2015), scaled to {periods[0]:.1f} to {periods[-1]:.1f} ms, so that all together need {load:.0%} of "
        f"{_cpus()} CPUs.",
        "instances": [{"name": one.name, "period_ns": one.period_ns} for one in instances],
        "configurations": [_configuration(programs, out / "video", instances, way, wait_s) for way in WAYS],
    }


def _configuration(programs: Programs, out: Path, instances: list[Instance], way: Way, wait_s: float) -> dict[str, Any]:
    folder = out / way.scheduler
    folder.mkdir(parents=True)
    trace = folder / f"{instances[0].name}.lxt"
    start_ns = time.monotonic_ns() + round(wait_s * 1e9)
    commands = [[programs.stabilize, *_options(one, way, start_ns, folder), programs.clip] for one in instances]
    recorder = children.Observer(wait_s, lambda pid: [programs.laxity, "graph", "record", f"stabilizer-{pid}", trace])
    label = f"{len(instances)} stabilizers, {way.name}"
    before = machine.Times.now()
    children.run_together(commands, folder / "said", label, wait_s + FOR_S, recorder)
    says = f"{way.says} {machine.Times.now().since(before)}"
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


def _calibrate(programs: Programs) -> tuple[float, float]:
    """How long an instance takes before its first frame, in s, and the CPU time of a frame, in ms: the sum of the
    medians of its nodes in a plain loop.
    """
    before = time.monotonic()
    said = children.output(
        *(programs.stabilize, "--sequential", *_common(), "--frames", 2 * CACHED, "--summary", "json", programs.clip)
    )
    summary = json.loads(said)
    start_s = time.monotonic() - before - summary["elapsed_s"]
    return start_s, sum(node["cpu_median_us"] for node in summary["nodes"]) / 1000


def _instances(frame_ms: float) -> list[Instance]:
    """The instances, with periods so long that they need LOAD of the CPUs; to 0.1 ms."""
    unscaled = frame_ms * sum(1 / period for period in PERIODS_MS)
    scale = unscaled / (LOAD * _cpus())
    ranks = {period: rank for rank, period in enumerate(sorted(set(PERIODS_MS), reverse=True))}
    return [
        Instance(f"G{number}", round(10 * period * scale) * 100_000, 1 + LEVELS * ranks[period])
        for number, period in enumerate(PERIODS_MS, start=1)
    ]


def _options(instance: Instance, way: Way, start_ns: int, folder: Path) -> list[object]:
    return [
        *(*_common(), "--scheduler", way.scheduler),
        *(["--base-priority", instance.priority] if way.scheduler == "fifo" else []),
        *("--period", f"{instance.period_ns // 1000}us", "--duration", f"{FOR_S}s", "--start-at", start_ns),
        *("--times", folder / f"{instance.name}.csv", "--summary", "json"),
    ]


def _common() -> list[object]:
    return ["--size", f"{SIZE[0]}x{SIZE[1]}", "--cache-frames", CACHED]


def _cpus() -> int:
    return len(os.sched_getaffinity(0))
