"""Workloads under classes of Linux and Laxity's own scheduler: `laxity report` makes a part of the page of each."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import laxity

from examples.demo import children, machine

FOLDER = Path(__file__).parents[1] / "workloads"
FOR_S = 6
MEASURE_S = 5
CHARGED = {
    "max": "Analysis and simulation charge the longest overheads that were measured here right before: the bounds are "
    "about this machine, as far as it was seen.",
    "p99": "With the longest overheads that were measured here right before fewer tasks have a bound (where a host "
    "takes the CPUs away now and then, these are long), so that analysis and simulation charge what 99 of 100 took: a "
    "rarer one may take a job beyond its bound.",
}
"""What counts as the worst overhead, the safest first, and what the page says of it."""

UNBOUNDED = (
    "No task has a bound, whatever scheduling costs; analysis and simulation charge what 99 of 100 of the overheads "
    "took that were measured here right before."
)
UNBOUNDED_OF_THE_FILE = (
    "No task has a bound, whatever scheduling costs. With what 99 of 100 of the overheads took that were measured here "
    "right before more simulated jobs would be late than with those of the file (other work on this machine makes them "
    "long), so that the simulation charges those of the file: it is about a machine that costs no more than that."
)
OF_THE_FILE = (
    "With the overheads that were measured here right before fewer tasks have a bound, so that analysis and simulation "
    "charge those of the file: its bounds are about a machine that costs no more than that, and not about this one."
)


class Costs:
    """What scheduling costs here: measured once, beside busy loops as the runs are."""

    def __init__(self, command: Path, out: Path) -> None:
        self._command, self._folder = command, out / "measured"
        self._profiles: dict[str, Path] = {}

    def charge(self, file: Path) -> tuple[list[object], str]:
        """The safest overheads with which as many tasks have a bound as with the file's, as arguments, and which."""
        own = self._bounds(file, [])
        if own == 0:
            measured: list[object] = ["--overheads", self._measured("p99")]
            if self._late(file, measured) > self._late(file, []):
                return [], UNBOUNDED_OF_THE_FILE
            return measured, UNBOUNDED
        for statistic, says in CHARGED.items():
            arguments: list[object] = ["--overheads", self._measured(statistic)]
            if self._bounds(file, arguments) >= own:
                return arguments, says
        return [], OF_THE_FILE

    def _bounds(self, file: Path, overheads: list[object]) -> int:
        """How many tasks have a bound with these overheads."""
        # 1 says that deadlines are not proven: there may be bounds all the same.
        answer = children.output(self._command, "check", file, *overheads, "--json", may_end_with=(1,))
        return sum(task.get("response_time_ns") is not None for task in json.loads(answer)["tasks"])

    def _late(self, file: Path, overheads: list[object]) -> int:
        """How many simulated jobs are late with these overheads."""
        answer = children.output(self._command, "simulate", file, *overheads, "--for", f"{FOR_S} s", "--json")
        return sum(task["missed"] for task in json.loads(answer)["tasks"])

    def _measured(self, statistic: str) -> Path:
        if statistic in self._profiles:
            return self._profiles[statistic]
        self._folder.mkdir(parents=True, exist_ok=True)
        profile = self._folder / f"{statistic}.toml"
        arguments = ["--for", f"{MEASURE_S} s", "--worst", statistic, "--out", profile, "--quiet"]
        with children.busy_loops(_cpus()):
            label = f"laxity measure --worst {statistic}"
            children.run_watched([self._command, "measure", *arguments], self._folder / statistic, label, MEASURE_S)
        self._profiles[statistic] = profile
        return profile


class Way(NamedTuple):
    """How to run a workload.

    Attributes:
        scheduler: a class of Linux, or Laxity's own.
        file: of the workload.
        says: what this way is.
        management: of the GPU; empty where it is not managed.
    """

    scheduler: str
    file: Path
    says: str
    management: str = ""

    @property
    def name(self) -> str:
        """On the page, and of its files: scheduler and management apart, as either makes a difference."""
        scheduler = "Laxity" if self.scheduler == "laxity" else f"SCHED_{self.scheduler.upper()}"
        return "+".join(part for part in (scheduler, self.management) if part)

    @property
    def watched(self) -> list[str]:
        """Whether CPUs that the hypervisor takes are to be seen: a thread of the highest priority looks."""
        return [] if self.scheduler == "other" else ["--watch-cpus"]


def rover(command: Path, out: Path, costs: Costs) -> dict[str, Any]:
    """Tasks on CPUs. Returns what `run.json` says; raises FailedError."""
    file = FOLDER / "rover.toml"
    ways = [
        Way("other", file, "What every program gets."),
        Way("fifo", file, "The scheduler of Linux, with priorities that Laxity sets by the workload's policy."),
        Way("laxity", file, "The simulator's policy, carried out by the threads to which something happens."),
    ]
    return _all(command, out, ways, "Five tasks on two CPUs; two of them share a lock.", costs)


def pipeline(command: Path, out: Path, costs: Costs) -> dict[str, Any]:
    """A graph that no class of Linux schedules as its policy says. Returns what `run.json` says; raises FailedError."""
    file = FOLDER / "pipeline.toml"
    ways = [
        Way("other", file, "What every program gets."),
        Way("laxity", file, "Global EDF on a stock kernel: the simulator's policy schedules the threads."),
    ]
    says = (
        "A graph with rates under global EDF. The deadline of one node is beyond its period, so SCHED_DEADLINE refuses "
        "it, and SCHED_FIFO has no deadlines: of Linux's classes only that of every program is left."
    )
    return _all(command, out, ways, says, costs)


def live_gpu(command: Path, out: Path, costs: Costs) -> dict[str, Any]:
    """A pipeline on a soft GPU. Returns what `run.json` says; raises FailedError."""
    file = FOLDER / "live-gpu.toml"
    unmanaged = _folder(out, file) / "unmanaged.toml"
    laxity.load(file).with_gpu_management(arbitration="driver", handling="linux").save(unmanaged)
    ways = [
        Way("other", unmanaged, "What every program gets; operations on the GPU as they come."),
        Way("fifo", unmanaged, "Priorities by the policy on the CPUs; operations on the GPU as they come."),
        Way("fifo", file, "Priorities by the policy; Laxity hands out tokens and engine locks by them.", "GPUSync"),
    ]
    says = (
        "A camera pipeline on a GPU, beside a control task and a recorder that copies much. The GPU is soft: its "
        "operations take the time that the file says, and each raises an interrupt that a thread handles."
    )
    return _all(command, out, ways, says, costs)


def _folder(out: Path, file: Path) -> Path:
    folder = out / "workloads" / file.stem
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _all(command: Path, out: Path, ways: list[Way], says: str, costs: Costs) -> dict[str, Any]:
    """Runs the workload in all ways, and has `laxity report` set them beside proof and simulation of the last."""
    file = ways[-1].file
    folder = _folder(out, file)
    overheads, charged = costs.charge(file)
    within = f"{folder.parent.name}/{folder.name}"
    runs = [_live(command, folder, within, way) for way in ways]
    part = folder / "part.html"
    traces = [_trace(folder, way) for way in ways]
    arguments = [file, *traces, *overheads, "--for", f"{FOR_S} s", "--part", "-o", part]
    verdict = " ".join(children.output(command, "report", *arguments).splitlines())
    print(f"  {verdict}", flush=True)
    return {
        "name": file.stem,
        "file": f"examples/workloads/{file.name}",
        "says": f"{says} {charged}",
        "verdict": verdict,
        "part": f"{within}/{part.name}",
        "runs": runs,
    }


def _trace(folder: Path, way: Way) -> Path:
    return folder / f"{way.name}.lxt"


def _live(command: Path, folder: Path, within: str, way: Way) -> dict[str, Any]:
    """Runs it one way, beside as many busy loops as there are CPUs: on an idle machine every scheduler looks good."""
    trace = _trace(folder, way)
    arguments = ["--for", f"{FOR_S} s", "--scheduler", way.scheduler, *way.watched, "--trace", trace, "--quiet"]
    meter = machine.Meter()
    with children.busy_loops(_cpus()):
        label = f"laxity run, {way.name}"
        children.run_watched([command, "run", way.file, *arguments], folder / way.name, label, FOR_S, meter.look)
    cpu_time = meter.shares("the workload")
    perfetto = trace.with_suffix(".pftrace")
    children.output(command, "trace", trace, "export", "-o", perfetto)
    return {
        "name": way.name,
        "says": f"{way.says} {_cpus()} busy loops compete for the CPUs.",
        "cpu_time": cpu_time,
        "files": [
            {"name": "trace for Perfetto", "file": f"{within}/{perfetto.name}"},
            {"name": "trace for laxity", "file": f"{within}/{trace.name}"},
        ],
    }


def _cpus() -> int:
    return len(os.sched_getaffinity(0))
