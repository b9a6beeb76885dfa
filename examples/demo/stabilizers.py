"""Many video stabilizers at once, that together nearly fill the GPU, under several schedulers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from laxity import LaxityError

from examples.demo import children, machine
from studies.elliott2015vision.stabilizers import (
    Attempt,
    Configuration,
    Load,
    Order,
    Processes,
    Programs,
    Stabilizers,
    cpus,
    measure_load,
    tried,
)
from studies.elliott2015vision.stabilizers.load import CPU_TARGET, ENGINE_TARGET

FOR_S = 15
START_S = 3
"""Told apart from the rest: memory is touched for the first time, while frames are due."""
WIDTH, HEIGHT = 640, 360
SHOWN = ("--from", "4 s", "--to", "4500 ms")
"""Of the schedule of the first instance."""
CACHED = 60
"""Frames that each instance has in memory: 41 MB."""
GPU = "laxity-demo"
"""What names of soft GPUs begin with."""
ALONE_S = 3.0
"""How long the first few have for the clip before what a frame takes is measured."""


@dataclass(frozen=True)
class Way:
    """How to run all of them."""

    configuration: Configuration
    says: str

    @property
    def name(self) -> str:
        """On the page."""
        return "Laxity" if self.configuration.scheduler == "laxity" else f"SCHED_{self.configuration.scheduler.upper()}"


def ways() -> tuple[Way, ...]:
    """Plain Linux, its real-time class alone, and Laxity: so class and management are told apart.

    With rho f = m, and f = 1 (Elliott 2015, section 5.5.2).
    """
    return (
        Way(Configuration("other"), "What every program gets; operations on the GPU as they come."),
        Way(
            Configuration("fifo"),
            "Shorter periods have higher priorities, within a graph deeper nodes. Operations on the GPU as they come.",
        ),
        Way(
            Configuration("laxity", cpus(), 1, "priority"),
            "Laxity's own scheduler: the earliest deadline first, for the CPUs and, by the rules of GPUSync, for the "
            "GPU: as many tokens as CPUs, engine locks by deadline, and interrupts as urgent as the job that they are "
            "for.",
        ),
    )


def run(programs: Programs, out: Path) -> dict[str, Any]:
    """Runs all of them under each configuration and returns what `run.json` says of it. Raises children.FailedError."""
    folder = out / "video"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    stabilizers = Stabilizers(FOR_S, f"{WIDTH}x{HEIGHT}", cached=CACHED)
    try:
        return _all(programs, folder, stabilizers)
    except LaxityError as failure:
        raise children.FailedError(str(failure)) from failure


def _all(programs: Programs, folder: Path, stabilizers: Stabilizers) -> dict[str, Any]:
    print("  measuring what a frame takes", flush=True)
    began = time.monotonic()
    has_one_token = any(way.configuration.tokens == 1 for way in ways())
    load = measure_load(programs, stabilizers, folder, name=GPU, has_one_token=has_one_token, attempt=Attempt(ALONE_S))
    factor = load.factor(has_one_token=has_one_token)
    says = _load(load, factor)
    print(f"  {stabilizers.instances} stabilizers, periods times {factor:g}: {says}", flush=True)
    print(f"  ({time.monotonic() - began:.0f} s)", flush=True)
    instances = stabilizers.scaled(factor)
    periods_ms = sorted({one.period_us / 1e3 for one in instances})
    # At first all decode their frames on the same CPUs, which should take less than this. If it does not, the run is
    # tried again with more.
    attempt = Attempt(margin_s=2 + stabilizers.instances / cpus())
    demonstration = Demonstration(programs, folder, stabilizers, factor)
    configurations = []
    for way in ways():
        told, attempt = demonstration.run(way, attempt)
        configurations.append(told)
    return {
        "clip": programs.clip.name,
        "width": WIDTH,
        "height": HEIGHT,
        "duration_ns": FOR_S * 1_000_000_000,
        "start_ns": START_S * 1_000_000_000,
        "load": f"Periods are those of Table 5.2 of Elliott (2015), scaled to {periods_ms[0]:.1f} to "
        f"{periods_ms[-1]:.1f} ms: {says}. The GPU is soft: CPUs run its kernels, one at a time.",
        "instances": [{"name": one.name, "period_ns": 1_000 * one.period_us} for one in instances],
        "configurations": configurations,
    }


def _load(load: Load, factor: float) -> str:
    """How busy the machine should be, and why."""
    busy = load.busy(factor)
    # The loop's kernels were measured at another time, when the machine may have been slower.
    others_ms = load.engine_ms - load.kernels_ms
    of_which = f", {others_ms:.1f} ms of that for hand-overs between kernels" if others_ms > 0 else ""
    return (
        f"a frame takes {load.cpu_ms:.1f} ms of CPU time, and the GPU for {load.engine_ms:.1f} ms{of_which}. So all "
        f"together need {busy['CPUs']:.0%} of {load.cpus} CPUs (at most {CPU_TARGET:.0%}) and {busy['EE']:.0%} of the "
        f"GPU (at most {ENGINE_TARGET:.0%})"
    )


@dataclass(frozen=True)
class Demonstration:
    """What all ways have in common."""

    programs: Programs
    out: Path
    stabilizers: Stabilizers
    factor: float

    def run(self, way: Way, attempt: Attempt) -> tuple[dict[str, Any], Attempt]:
        """Runs one way, and says how that could be done."""
        folder = self.out / way.configuration.file_name
        folder.mkdir()
        trace = folder / f"{self.stabilizers.graphs[0][0]}.lxt"
        label = f"{self.stabilizers.instances} stabilizers, {way.name}"
        expected_s = attempt.margin_s + FOR_S
        meter = machine.Meter()

        def tick(elapsed_s: float) -> None:
            children.show(label, elapsed_s, expected_s)
            meter.look()

        def beside(processes: Processes, first: int) -> None:
            self._beside(processes, first, trace)

        name = f"{GPU}-{os.getpid()}-{way.configuration.file_name}"
        order = Order(
            self.programs, self.stabilizers, self.factor, way.configuration, folder, name, beside=beside, tick=tick
        )
        _, attempt = tried(order, attempt)
        children.show(label, expected_s, expected_s, is_last=True)
        within = f"{self.out.name}/{folder.name}"
        told = {
            "name": way.name,
            "says": f"{way.says} {cpus()} busy loops compete for the CPUs.",
            "folder": within,
            "cpu_time": meter.shares("the stabilizers"),
        }
        return told | (_schedule(self.programs.laxity, trace, within) if trace.exists() else {}), attempt

    def _beside(self, processes: Processes, first: int, trace: Path) -> None:
        """Starts busy loops, as on an idle machine every scheduler looks good, and a recorder of the first instance."""
        for number in range(cpus()):
            command = [sys.executable, "-c", children.BUSY]
            processes.start(f"busy-{number}", command, subprocess.DEVNULL, subprocess.DEVNULL, is_needed=False)
        record = [str(self.programs.laxity), "graph", "record", f"stabilizer-{first}", str(trace)]
        with trace.with_suffix(".err").open("wb") as errors:
            # Without it there is no trace, and no picture.
            processes.start("recorder", record, subprocess.DEVNULL, errors, is_needed=False)


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
