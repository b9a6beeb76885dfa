"""The workload of paper 003, section 5.5.2: seventeen stabilizers on six CPUs and a GPU, as a workload file."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from laxity import Workload

from studies.elliott2015vision.nodes import EDGES, NODES, OBJECTS, REPLICAS, Node, node_times
from studies.elliott2015vision.stabilizers.configuration import BASE_PRIORITY, PERIODS_MS

GRAPHS = tuple(f"G{number}" for number in range(1, len(PERIODS_MS) + 1))
FRAMES_PER_MS = sum(1 / period for period in PERIODS_MS)

CPUS = 6
CPU_LOAD = 5.76
"""CPUs that were busy: footnote 16, which is of all that ran, so with interrupts and the scheduler."""
ENGINE_LOAD = 0.66
"""How busy the execution engine was: footnote 16."""
CHUNK = "2 MiB"
FIFO_MAX_PRIORITY = 99


@dataclass(frozen=True)
class Configuration:
    """A system configuration of section 5.5.2.

    Attributes:
        name: as in Table 5.14.
        table: that has its completion delays.
        figure: that has their density.
        policy: the simulator's, of the CPUs.
        tokens: of the GPU (rho); 0 without GPUSync. FIFO queues have places for CPUS / tokens (f).
        engine_order: of the engine locks.
    """

    name: str
    table: str
    figure: int
    policy: str
    tokens: int = 0
    engine_order: Literal["fifo", "priority"] = "fifo"


CONFIGURATIONS = (
    Configuration("SCHED_OTHER", "5.3", 10, "C-CFS"),
    Configuration("SCHED_FIFO", "5.4", 11, "C-FP"),
    Configuration("LITMUS C-EDF", "5.5", 12, "C-EDF"),
    Configuration("GPUSync(1,6,FIFO)", "5.6", 13, "C-EDF", 1, "fifo"),
    Configuration("GPUSync(1,6,PRIO)", "5.7", 14, "C-EDF", 1, "priority"),
    Configuration("GPUSync(2,3,FIFO)", "5.8", 15, "C-EDF", 2, "fifo"),
    Configuration("GPUSync(2,3,PRIO)", "5.9", 16, "C-EDF", 2, "priority"),
    Configuration("GPUSync(3,2,FIFO)", "5.10", 17, "C-EDF", 3, "fifo"),
    Configuration("GPUSync(3,2,PRIO)", "5.11", 18, "C-EDF", 3, "priority"),
    Configuration("GPUSync(6,1,FIFO)", "5.12", 19, "C-EDF", 6, "fifo"),
    Configuration("GPUSync(6,1,PRIO)", "5.13", 20, "C-EDF", 6, "priority"),
)


@dataclass(frozen=True)
class Options:
    """What the paper leaves open.

    Attributes:
        held: how much of a GPU node's CPU time comes after its first GPU operation, that is while it holds its token
            (Fig. 5.7), in thousandths.
        callback_us: of the run-time library's thread that follows each bottom half (section 5.4.3).
        waiting: what jobs without GPUSync do until their operation is complete.
        replicas: of each data object.
    """

    held: int = 50
    callback_us: int = 30
    waiting: Literal["suspend", "spin"] = "suspend"
    replicas: int = REPLICAS

    def __str__(self) -> str:
        return " ".join(f"{field.name}={getattr(self, field.name)}" for field in fields(self))


LIMITS = {"held": (0, 1_000), "callback_us": (0, 1_000), "replicas": (1, 1_000)}


def options(text: str = "", base: Options | None = None) -> Options:
    """Options as people write them, ``"held=0 replicas=3"``; ValueError for one that is not there or cannot be."""
    found = base or Options()
    for word in text.split():
        name, equals, value = word.partition("=")
        if name == "waiting" and value in ("suspend", "spin"):
            found = replace(found, waiting="spin" if value == "spin" else "suspend")
            continue
        low, high = LIMITS.get(name, (0, -1))
        if not equals or not value.isdigit() or not low <= int(value) <= high:
            known = ", ".join(f"{name}={low}..{high}" for name, (low, high) in LIMITS.items())
            raise ValueError(f"{word!r} is no option of this study; there are {known} and waiting=suspend|spin")
        number: Any = {name: int(value)}
        found = replace(found, **number)
    return found


# --- Scale ------------------------------------------------------------------------------------------------------------

MACHINE_US = 250.0
"""CPU time for each frame of what is neither node nor callback: interrupts, bottom halves, scheduler. As simulated
under GPUSync(3,2,FIFO); a test compares the load that results with CPU_LOAD."""


@dataclass(frozen=True)
class Scale:
    """What the measured time of a node is multiplied by.

    A node of ours needs a few ms of CPU time for a frame, one of the paper's several times that, and its GPU nodes need
    CPU *and* GPU. So both follow from the measured time: the CPU's share such that the CPUs are as busy as the paper's,
    the GPU's such that the execution engine is.

    Attributes:
        cpu: for the CPU time of every node.
        engine: for the GPU kernel of a GPU node.
    """

    cpu: float
    engine: float


def scale(chosen: Options) -> Scale:
    """The scale at which the loads are those of footnote 16."""
    us = node_times().us
    on_gpu = [index for index, node in enumerate(NODES) if node.place == "gpu"]
    callbacks_us = chosen.callback_us * sum(operations(node) for node in NODES)
    cpu_us = CPU_LOAD / FRAMES_PER_MS * 1_000 - MACHINE_US - callbacks_us
    engine_us = ENGINE_LOAD / FRAMES_PER_MS * 1_000
    return Scale(float(cpu_us / us.sum(axis=1).mean()), float(engine_us / us[:, on_gpu].sum(axis=1).mean()))


def operations(node: Node) -> int:
    """GPU operations of a job: each raises an interrupt."""
    return (node.place == "gpu") + (node.copy_in > 0) + (node.copy_out > 0)


# --- The file ---------------------------------------------------------------------------------------------------------


def workload(configuration: Configuration, chosen: Options) -> Workload:
    """The workload under a configuration."""
    spinning = chosen.waiting == "spin" and configuration.tokens == 0
    file = {
        "laxity": 1,
        "name": "elliott2015vision",
        "scheduler": configuration.policy,
        "platform": {
            "cpus": CPUS,
            "clusters": 1,
            "overheads": "elliott2012-klmirqd",
            # A bus of that time; the paper does not give its speed.
            "gpu": [{"name": "gpu", "copy_engines": 2, "bandwidth": "6 GB/s", "latency": "10 us"}],
        },
        "gpu_management": {
            "arbitration": _arbitration(configuration, spinning=spinning),
            # GPUSync schedules interrupt threads and callbacks as it does their owners; else Linux handles them. A job
            # that spins sees itself that its operation is complete.
            "handling": "klmirqd" if configuration.tokens else "linux",
            **({} if spinning or not chosen.callback_us else {"callback": f"{chosen.callback_us} us"}),
        },
        "graph": [_graph(name, period, chosen) for name, period in zip(GRAPHS, PERIODS_MS, strict=True)],
    }
    return Workload.from_json(json.dumps(file))


def _arbitration(configuration: Configuration, *, spinning: bool) -> Any:
    if not configuration.tokens:
        return "driver_spinning" if spinning else "driver"
    return {
        "protocol": "gpusync",
        "tokens": configuration.tokens,
        "fifo_length": CPUS // configuration.tokens,
        "engine_order": configuration.engine_order,
        "chunk": CHUNK,
    }


def _graph(name: str, period_ms: int, chosen: Options) -> dict[str, Any]:
    nodes = [
        {
            "name": node.name,
            # A smaller number is a higher priority in a file.
            "priority": FIFO_MAX_PRIORITY - BASE_PRIORITY[period_ms] - node.depth,
            "body": body,
        }
        for node, body in zip(NODES, _bodies(chosen), strict=True)
    ]
    nodes[0]["period"] = f"{period_ms} ms"
    objects = [{"name": one.name, "nodes": list(one.nodes), "delay": one.delay} for one in OBJECTS]
    return {"name": name, "replicas": chosen.replicas, "object": objects, "edge": list(EDGES), "node": nodes}


@lru_cache(maxsize=4)
def _bodies(chosen: Options) -> list[list[dict[str, Any]]]:
    """The steps of each node. A GPU node prepares, uses the GPU, and goes on with what that gave."""
    by, us = scale(chosen), node_times().us
    return [_body(node, us[:, index], by, chosen.held / 1_000) for index, node in enumerate(NODES)]


def _body(node: Node, us: np.ndarray[Any, Any], by: Scale, held: float) -> list[dict[str, Any]]:
    copy_in = [{"copy_in": f"{node.copy_in} B"}] if node.copy_in else []
    copy_out = [{"copy_out": f"{node.copy_out} B"}] if node.copy_out else []
    if node.place == "cpu":
        # The source copies what it has read; the sink shows what it has copied (Fig. 5.7).
        return [*copy_out, _step("cpu", us * by.cpu), *copy_in]
    before = [_step("cpu", us * by.cpu * (1 - held))] if held < 1 else []
    after = [_step("cpu", us * by.cpu * held)] if held > 0 else []
    return [*before, *copy_in, _step("kernel", us * by.engine), *copy_out, *after]


def _step(kind: str, us: np.ndarray[Any, Any]) -> dict[str, Any]:
    """A step that takes in turn what was measured."""
    spans = np.maximum(np.rint(us * 1_000), 1).astype(np.int64)
    return {kind: f"{spans.max()} ns", "actual": {"recorded": [f"{span} ns" for span in spans.tolist()]}}
