"""What is run: stabilizers, under a scheduler of Linux, on a soft GPU that is managed or not."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from laxity import LaxityError

Scheduler = Literal["other", "fifo", "deadline", "laxity"]
"""Of Linux, or Laxity's own, by the policy of the configurations of section 5.5.2: earliest deadline first."""
SCHEDULERS: tuple[Scheduler, ...] = ("other", "fifo", "deadline")

PERIODS_MS = (20, 20, 30, 30, 40, 40, 60, 60, 60, 60, 60, 80, 80, 80, 80, 100, 100)
"""Table 5.2 of paper 003, by graph."""
BASE_PRIORITY = {20: 75, 30: 60, 40: 45, 60: 30, 80: 15, 100: 1}
"""Table 5.2, by period in ms: for SCHED_FIFO, where the larger number is the higher priority."""

CLIENTS = 22
"""Of an arbitration, for each stabilizer: twice its nodes."""


@dataclass(frozen=True)
class Configuration:
    """A configuration of this machine.

    Attributes:
        scheduler: for the threads of the nodes.
        tokens: of the soft GPU (rho); 0: it is not managed, and operations go in the order in which they are issued.
        fifo_length: of a token's queue (f).
        engine_order: of the engine locks.
    """

    scheduler: Scheduler
    tokens: int = 0
    fifo_length: int = 0
    engine_order: Literal["fifo", "priority"] = "fifo"

    @property
    def name(self) -> str:
        """The name on a page."""
        scheduler = "C-EDF" if self.scheduler == "laxity" else f"SCHED_{self.scheduler.upper()}"
        order = {"fifo": "FIFO", "priority": "PRIO"}[self.engine_order]
        return f"{scheduler} ({self.tokens},{self.fifo_length},{order})" if self.tokens else scheduler

    @property
    def file_name(self) -> str:
        """The name of its files."""
        return (
            f"{self.scheduler}-{self.tokens}-{self.fifo_length}-{self.engine_order}" if self.tokens else self.scheduler
        )

    @property
    def has_arbitration(self) -> bool:
        """Whether `laxity gpu create` makes what manages the GPU; a system of Laxity's scheduler does so by itself."""
        return self.tokens > 0 and self.scheduler != "laxity"

    def arbitration(self, name: str, stabilizers: int) -> list[str]:
        """Arguments of ``laxity`` that create its arbitration, for as long as the process lives."""
        return [
            *("gpu", "create", name, "--gpus", "1", "--cpus", str(cpus()), "--copy-engines", "2"),
            *("--tokens", str(self.tokens), "--fifo-length", str(self.fifo_length)),
            *("--fifo-requests", str(cpus()), "--engine-order", self.engine_order),
            *("--chunk", "2 MiB", "--clients", str(CLIENTS * stabilizers)),
        ]


def configurations(on_cpus: int) -> list[Configuration]:
    """Each scheduler without management, and with each that is optimal for so many CPUs."""
    return [
        configuration
        for scheduler in SCHEDULERS
        for configuration in [Configuration(scheduler), *managed(scheduler, on_cpus)]
    ]


def managed(scheduler: Scheduler, on_cpus: int) -> list[Configuration]:
    """Each way to manage the GPU that is optimal for so many CPUs: rho f = m (section 5.5.2)."""
    splits = [(tokens, on_cpus // tokens) for tokens in range(1, on_cpus + 1) if on_cpus % tokens == 0]
    orders: tuple[Literal["fifo", "priority"], ...] = ("fifo", "priority")
    return [Configuration(scheduler, tokens, length, order) for tokens, length in splits for order in orders]


@dataclass(frozen=True)
class Virtual:
    """A machine for which this one stands (decision 106).

    Tokens and queues are as if there were its CPUs. Operations of the GPU only take time, so that kernels need no CPU.

    Attributes:
        cpus: of it.
        kernels_us: for each node for a GPU, in the order of the graph, how long its kernel takes the execution engine.
    """

    cpus: int
    kernels_us: tuple[float, ...]


@dataclass(frozen=True)
class Instance:
    """A stabilizer.

    Attributes:
        name: of its graph.
        period_us: of its frames.
        priority: of its first node under SCHED_FIFO; deeper ones have more.
    """

    name: str
    period_us: int
    priority: int


@dataclass(frozen=True)
class Stabilizers:
    """Those of Table 5.2, or the first of them.

    Attributes:
        seconds: for how long frames come.
        size: of the frames, as WIDTHxHEIGHT.
        instances: how many.
        cached: frames of the clip in memory, which come again and again.
    """

    seconds: float
    size: str
    instances: int = len(PERIODS_MS)
    cached: int = 100

    @property
    def graphs(self) -> list[tuple[str, int]]:
        """Names and periods in ms, before they are scaled."""
        return [(f"G{number}", period) for number, period in enumerate(PERIODS_MS, start=1)][: self.instances]

    @property
    def frames_per_ms(self) -> float:
        """That come, before periods are scaled."""
        return sum(1 / period for _, period in self.graphs)

    def scaled(self, factor: float) -> list[Instance]:
        """All of them, with periods so many times those of the table."""
        return [
            Instance(name, max(1, round(1_000 * factor * period)), BASE_PRIORITY[period])
            for name, period in self.graphs
        ]


@dataclass(frozen=True)
class Programs:
    """What is started.

    Attributes:
        stabilize: the stabilizer.
        laxity: the command, for arbitrations.
        clip: that all instances stabilize.
    """

    stabilize: Path
    laxity: Path
    clip: Path

    def check(self) -> None:
        """LaxityError for a program or clip that is not there, with the way to get it."""
        ways = {"stabilize": "`make vision` builds it", "laxity": "`make release` builds it", "clip": "apt: opencv-doc"}
        for name, way in ways.items():
            path = getattr(self, name)
            if not path.exists():
                raise LaxityError(f"{path} is not there; {way}, or name another with --{name}")


def cpus() -> int:
    """CPUs of this process, and so of all that it starts."""
    return len(os.sched_getaffinity(0))


def arguments(
    configuration: Configuration,
    instance: Instance,
    stabilizers: Stabilizers,
    *,
    gpu: str,
    start_ns: int,
    virtual: Virtual | None = None,
) -> list[str]:
    """Of a stabilizer, but for the files that it writes and the clip.

    Args:
        configuration: to run under.
        instance: which of them it is.
        stabilizers: all of them.
        gpu: name of the soft GPU, and of its arbitration, or of the system, where there is one.
        start_ns: when the first frame comes, on CLOCK_MONOTONIC.
        virtual: the machine for which this one stands, if it does.
    """
    found = ["--period", f"{instance.period_us}us", "--duration", f"{round(stabilizers.seconds * 1_000)}ms"]
    found += ["--size", stabilizers.size, "--cache-frames", str(stabilizers.cached)]
    found += ["--start-at", str(start_ns), "--scheduler", configuration.scheduler]
    if configuration.scheduler == "fifo":
        found += ["--base-priority", str(instance.priority)]
    found += ["--gpu", f"soft:{gpu}"]
    if configuration.has_arbitration:
        found += ["--arbitration", gpu]
    if configuration.scheduler == "laxity":
        found += ["--system", gpu, *_tokens(configuration, virtual)]
    if virtual is not None:
        found += ["--kernels", ",".join(f"{max(1, round(1_000 * us))}ns" for us in virtual.kernels_us)]
    return [*found, "--summary", "json"]


def _tokens(configuration: Configuration, virtual: Virtual | None) -> list[str]:
    """How a system manages the GPU."""
    if not configuration.tokens:
        return []
    found = ["--tokens", str(configuration.tokens), "--fifo-length", str(configuration.fifo_length)]
    found += ["--engine-order", configuration.engine_order]
    return found if virtual is None else [*found, "--virtual-cpus", str(virtual.cpus)]
