"""The paper's systems as workloads.

The model is calibrated with two published numbers, the *fit set*: under CFS a memory task uses 75 % of the periods
(Fig. 6), from which it follows that it uses a budget up in a third of a period, and three of them make histo take 3.3
times as long (Fig. 1), which is one point of a linear contention curve. All other numbers, the *held-out set*, are
predicted.
"""

from __future__ import annotations

import json
from typing import Any

from laxity import Workload

from studies.ali2018bwlock.published import OVERHEAD_US, SLOWDOWN_FIG1

READINGS = {"A": 100_000_000, "B": 1_048_576_000}
"""The budget of Figs. 5 and 6 in bytes a second: A is the text's, B the artifact's (16,384 events of 64 B a ms)."""

CPUS = 4
TICK_MS = 4
"""Four Cortex-A57; the artifact's CONFIG_HZ is 250."""


def demand(reading: str) -> int:
    """The traffic of a memory task: its budget of Fig. 6 lasts for a third of a period."""
    return 3 * READINGS[reading]


def kernel_workload(reading: str, corunners: int, budget: int | None, *, staggered: bool = False) -> dict[str, Any]:
    """A kernel of 1 s like histo's beside so many memory tasks, each on a CPU of its own."""
    hogs = [
        {"name": f"hog {cpu}", "cpu": cpu, "memory_demand": f"{demand(reading)} B/s"} for cpu in range(1, corunners + 1)
    ]
    return _workload(reading, hogs, budget, body=_kernel("1 s"), staggered=staggered)


def pairs_workload(reading: str, budget: int, punishment: int, seconds: int, cpus: int) -> dict[str, Any]:
    """A memory and a CPU task on each of so many CPUs, beside a kernel of so many seconds."""
    tasks = []
    for cpu in range(1, cpus + 1):
        tasks.append({"name": f"memory {cpu}", "cpu": cpu, "memory_demand": f"{demand(reading)} B/s"})
        tasks.append({"name": f"cpu {cpu}", "cpu": cpu})
    workload = _workload(reading, tasks, budget, body=_kernel(f"{seconds} s"))
    if punishment:
        workload["best_effort_scheduler"] = {"rule": "TFS", "punishment": punishment}
    return workload


def figure_4(punishment: int) -> dict[str, Any]:
    """Table II and Fig. 4: a tick of 1 ms at which the task of least virtual time goes on."""
    tasks = [{"name": "cpu", "cpu": 1, "work": "4 ms"}]
    tasks.append({"name": "mem", "cpu": 1, "work": "4 ms", "memory_demand": f"{demand('A')} B/s"})
    body: list[dict[str, Any]] = [{"cpu": "1 us"}, {"kernel": "4.5 ms", "interrupts": 0}]
    workload = _workload("A", tasks, READINGS["A"], body=body, call=False)
    workload["platform"] |= {"tick": "1 ms", "cpus": 2}
    rule = {"rule": "TFS", "punishment": punishment} if punishment else {"rule": "CFS"}
    workload["best_effort_scheduler"] = rule | {"latency": "1 ms", "min_granularity": "500 us"}
    return workload


def read(workload: dict[str, Any]) -> Workload:
    """It, validated."""
    return Workload.from_json(json.dumps(workload))


def _kernel(length: str) -> list[dict[str, Any]]:
    return [{"cpu": "1 us"}, {"kernel": length, "memory": 1, "interrupts": 0}]


def _workload(
    reading: str,
    best_effort: list[dict[str, Any]],
    budget: int | None,
    *,
    body: list[dict[str, Any]],
    staggered: bool = False,
    call: bool = True,
) -> dict[str, Any]:
    management: dict[str, Any] = {"arbitration": "driver_spinning"}
    if budget is not None:
        management["bandwidth_lock"] = {"budget": f"{budget} B/s"} | ({"call": f"{OVERHEAD_US} us"} if call else {})
    contention = [["0 B/s", 1], [f"{3 * demand(reading)} B/s", SLOWDOWN_FIG1]]
    return {
        "laxity": 1,
        "name": "bwlock",
        "scheduler": "P-FP",
        "platform": {
            "cpus": CPUS,
            "tick": f"{TICK_MS} ms",
            "memory": {"contention": contention, "regulator": {"phase": "staggered" if staggered else "aligned"}},
            "gpu": [{"name": "gpu", "bandwidth": "1 GB/s"}],
        },
        "gpu_management": management,
        "task": [{"name": "rt", "period": "100 s", "cluster": 0, "priority": 1, "body": body}],
        "best_effort": best_effort,
    }
