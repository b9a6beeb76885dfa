"""Workloads that are analysed, simulated, and run under classes of Linux and under Laxity's own scheduler."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import laxity
from laxity import report

from examples.demo import children, machine

FOLDER = Path(__file__).parents[1] / "workloads"
FOR_S = 6
SHOWN = ("--from", "1 s", "--to", "2 s")
"""Of the schedule: a second, when everything has begun."""
MEASURE_S = 5
WORST = "p99"
"""What counts as the worst overhead: on a virtual machine the largest is when the host ran another machine."""


class Way(NamedTuple):
    """How to run a workload.

    Attributes:
        scheduler: a class of Linux, or Laxity's own.
        file: of the workload.
        is_bounded: whether the analysis is about this way.
        says: what this way is.
        management: of the GPU; empty where it is not managed.
    """

    scheduler: str
    file: Path
    is_bounded: bool
    says: str
    management: str = ""

    @property
    def name(self) -> str:
        """On the page: scheduler and management apart, as either makes a difference."""
        scheduler = "Laxity's scheduler" if self.scheduler == "laxity" else f"SCHED_{self.scheduler.upper()}"
        return " + ".join(part for part in (scheduler, self.management) if part)

    @property
    def file_name(self) -> str:
        """Of its files."""
        return "-".join(part for part in (self.scheduler, self.management.lower()) if part)


def rover(command: Path, out: Path) -> dict[str, Any]:
    """Tasks on CPUs, under the overheads of this machine. Returns what `run.json` says; raises FailedError."""
    file = FOLDER / "rover.toml"
    folder = _folder(out, file)
    overheads, says = _overheads(command, file, folder)
    ways = [
        Way("other", file, False, "What every program gets."),
        Way("fifo", file, True, "The scheduler of Linux, with priorities that Laxity sets by the workload's policy."),
        Way("laxity", file, True, "The simulator's policy, carried out by the threads to which something happens."),
    ]
    return _all(command, folder, ways, says, overheads)


def pipeline(command: Path, out: Path) -> dict[str, Any]:
    """A graph that no class of Linux schedules as its policy says. Returns what `run.json` says; raises FailedError."""
    file = FOLDER / "pipeline.toml"
    folder = _folder(out, file)
    ways = [
        Way("other", file, False, "What every program gets."),
        Way("laxity", file, True, "Global EDF on a stock kernel: the simulator's policy schedules the threads."),
    ]
    says = (
        "A graph with rates under global EDF. The deadline of one node is beyond its period, so SCHED_DEADLINE refuses "
        "it, and SCHED_FIFO has no deadlines: of Linux's classes only that of every program is left."
    )
    return _all(command, folder, ways, says)


def live_gpu(command: Path, out: Path) -> dict[str, Any]:
    """A pipeline on a soft GPU. Returns what `run.json` says; raises FailedError."""
    file = FOLDER / "live-gpu.toml"
    folder = _folder(out, file)
    unmanaged = folder / "unmanaged.toml"
    laxity.load(file).with_gpu_management(arbitration="driver", handling="linux").save(unmanaged)
    ways = [
        Way("other", unmanaged, False, "What every program gets; operations on the GPU as they come."),
        Way("fifo", unmanaged, False, "Priorities by the policy on the CPUs; operations on the GPU as they come."),
        Way(
            "fifo", file, True, "Priorities by the policy; Laxity hands out tokens and engine locks by them.", "GPUSync"
        ),
    ]
    says = (
        "A camera pipeline on a GPU, beside a control task and a recorder that copies much. The GPU is soft: its "
        "operations take the time that the file says, and each raises an interrupt that a thread handles."
    )
    return _all(command, folder, ways, says)


def _folder(out: Path, file: Path) -> Path:
    folder = out / "workloads" / file.stem
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _overheads(command: Path, file: Path, folder: Path) -> tuple[list[object], str]:
    """What to charge, as arguments, and why: what is measured here, unless that leaves nothing to prove."""
    measured = folder / "overheads.toml"
    with children.busy_loops(_cpus()):
        label = "laxity measure"
        arguments = ["--for", f"{MEASURE_S} s", "--worst", WORST, "--out", measured, "--quiet"]
        children.run_watched([command, "measure", *arguments], folder / "measure", label, MEASURE_S)
    checked = json.loads(children.output(command, "check", file, "--overheads", measured, "--json", may_end_with=(1,)))
    chosen = report.choose_overheads(checked, WORST)
    arguments = ["--overheads", measured] if chosen.are_measured else []
    return arguments, f"Five tasks on two CPUs; two of them share a lock. {chosen.says}"


def _all(command: Path, folder: Path, ways: list[Way], says: str, overheads: Sequence[object] = ()) -> dict[str, Any]:
    """Analyses and simulates the workload of the last way, and runs it in all."""
    file = ways[-1].file
    check, simulated = folder / "check.json", folder / "simulated.json"
    # 1 says that it proves nothing, which is an answer.
    check.write_text(children.output(command, "check", file, *overheads, "--json", may_end_with=(1,)))
    print(f"  laxity check: {json.loads(check.read_text())['hard']['status'].replace('_', ' ')}", flush=True)
    simulated.write_text(children.output(command, "simulate", file, *overheads, "--for", f"{FOR_S} s", "--json"))
    within = f"{folder.parent.name}/{folder.name}"
    return {
        "name": file.stem,
        "file": f"examples/workloads/{file.name}",
        "says": says,
        "check": f"{within}/{check.name}",
        "simulated": f"{within}/{simulated.name}",
        "runs": [_live(command, folder, within, way) for way in ways],
    }


def _live(command: Path, folder: Path, within: str, way: Way) -> dict[str, Any]:
    """Runs it one way, beside as many busy loops as there are CPUs: on an idle machine every scheduler looks good."""
    trace = folder / f"{way.file_name}.lxt"
    live = [command, "run", way.file, "--for", f"{FOR_S} s", "--scheduler", way.scheduler, "--trace", trace, "--json"]
    meter = machine.Meter()
    with children.busy_loops(_cpus()):
        children.run_watched(live, folder / way.file_name, f"laxity run, {way.name}", FOR_S, meter.look)
    cpu_time, stolen_ns = meter.shares("the workload"), meter.stolen_ns()
    gantt, perfetto = trace.with_suffix(".svg"), trace.with_suffix(".pftrace")
    children.output(command, "trace", trace, "gantt", *SHOWN, "--svg", gantt)
    children.output(command, "trace", trace, "export", "-o", perfetto)
    return {
        "name": way.name,
        "says": f"{way.says} {_cpus()} busy loops compete for the CPUs.",
        "measured": f"{within}/{way.file_name}/0.out",
        "is_bounded": way.is_bounded,
        "gantt": f"{within}/{gantt.name}",
        "trace": f"{within}/{trace.name}",
        "cpu_time": cpu_time,
        "stolen_ns": stolen_ns,
        "files": [
            {"name": "trace for Perfetto", "file": f"{within}/{perfetto.name}"},
            {"name": "trace for laxity", "file": f"{within}/{trace.name}"},
        ],
    }


def _cpus() -> int:
    return len(os.sched_getaffinity(0))
