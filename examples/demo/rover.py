"""A workload that is analysed, simulated, and run under plain Linux and under Laxity."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import children
import machine

FILE = Path(__file__).parents[1] / "workloads" / "rover.toml"
FOR_S = 6
SHOWN = ("1 s", "2 s")
"""Of the schedule: a second, when everything has begun."""


class Way(NamedTuple):
    """How to run it."""

    name: str
    scheduler: str
    is_bounded: bool
    """Whether the analysis is about this way."""
    says: str


WAYS = (
    Way("plain Linux", "other", False, "SCHED_OTHER, what every program gets."),
    Way("Laxity", "fifo", True, "SCHED_FIFO with the priorities of the workload's policy."),
)


def run(laxity: Path, out: Path) -> dict[str, Any]:
    """Does all of it in `out`/workload and returns what `run.json` says of it. Raises children.FailedError."""
    folder = out / "workload"
    folder.mkdir(parents=True, exist_ok=True)
    check = folder / "check.json"
    check.write_text(children.output(laxity, "check", FILE, "--json"))
    print(f"  laxity check: {_status(check)}", flush=True)
    simulated = folder / "simulated.json"
    simulated.write_text(children.output(laxity, "simulate", FILE, "--for", f"{FOR_S} s", "--json"))
    runs = [_live(laxity, folder, way) for way in WAYS]
    return {
        "name": FILE.stem,
        "file": f"examples/workloads/{FILE.name}",
        "check": f"{folder.name}/{check.name}",
        "simulated": f"{folder.name}/{simulated.name}",
        "runs": runs,
    }


def _live(laxity: Path, folder: Path, way: Way) -> dict[str, Any]:
    """Runs it one way, beside as many busy loops as there are CPUs: on an idle machine every scheduler looks good."""
    cpus = len(os.sched_getaffinity(0))
    trace = folder / f"{way.scheduler}.lxt"
    command = [laxity, "run", FILE, "--for", f"{FOR_S} s", "--scheduler", way.scheduler, "--trace", trace, "--json"]
    before = machine.Times.now()
    with children.busy_loops(cpus):
        children.run_together([command], folder / way.scheduler, f"laxity run, {way.name}", FOR_S)
    others = machine.Times.now().since(before)
    measured = folder / way.scheduler / "0.out"
    gantt, perfetto = trace.with_suffix(".svg"), trace.with_suffix(".pftrace")
    children.output(laxity, "trace", trace, "gantt", "--from", SHOWN[0], "--to", SHOWN[1], "--svg", gantt)
    children.output(laxity, "trace", trace, "export", "-o", perfetto)
    return {
        "name": way.name,
        "says": f"{way.says} {cpus} busy loops compete for the CPUs. {others}",
        "measured": f"{folder.name}/{way.scheduler}/{measured.name}",
        "is_bounded": way.is_bounded,
        "gantt": f"{folder.name}/{gantt.name}",
        "files": [
            {"name": "trace for Perfetto", "file": f"{folder.name}/{perfetto.name}"},
            {"name": "trace for laxity", "file": f"{folder.name}/{trace.name}"},
        ],
    }


def _status(check: Path) -> str:
    return str(json.loads(check.read_text())["hard"]["status"]).replace("_", " ")
