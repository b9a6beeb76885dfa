"""What the live part of elliott2015vision consists of: seventeen processes under each configuration of this machine."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from laxity._native import nanos
from laxity.studies._vision_workload import BASE_PRIORITY, CPU_LOAD, CPUS, FRAMES_PER_MS, GRAPHS, PERIODS_MS

Scheduler = Literal["other", "fifo", "deadline"]
SCHEDULERS: tuple[Scheduler, ...] = ("other", "fifo", "deadline")

CACHE_FRAMES = "100"
"""Of the clip, again and again: as many as seventeen processes decode in seconds."""

CPU_SHARE = CPU_LOAD / CPUS
"""How busy the CPUs are to be: as in the paper, 96 %."""


@dataclass(frozen=True)
class LiveConfiguration:
    """A configuration of this machine.

    Attributes:
        scheduler: of Linux, for the threads of the nodes.
        tokens: of the soft GPU (rho); 0: nobody manages it, and operations go in the order in which they are issued.
        fifo_length: of a token's queue (f).
        engine_order: of the engine locks.
    """

    scheduler: Scheduler
    tokens: int = 0
    fifo_length: int = 0
    engine_order: Literal["fifo", "priority"] = "fifo"

    @property
    def name(self) -> str:
        """The name on the page."""
        scheduler = f"SCHED_{self.scheduler.upper()}"
        order = {"fifo": "FIFO", "priority": "PRIO"}[self.engine_order]
        return f"{scheduler} ({self.tokens},{self.fifo_length},{order})" if self.tokens else scheduler

    @property
    def file_name(self) -> str:
        """The name of its files."""
        return (
            f"{self.scheduler}-{self.tokens}-{self.fifo_length}-{self.engine_order}" if self.tokens else self.scheduler
        )


def configurations(cpus: int) -> list[LiveConfiguration]:
    """Each scheduler without management, and with each that is optimal for so many CPUs: rho f = m (section 5.5.2)."""
    splits = [(tokens, cpus // tokens) for tokens in range(1, cpus + 1) if cpus % tokens == 0]
    orders: tuple[Literal["fifo", "priority"], ...] = ("fifo", "priority")
    managed = [(tokens, length, order) for tokens, length in splits for order in orders]
    return [
        configuration
        for scheduler in SCHEDULERS
        for configuration in [
            LiveConfiguration(scheduler),
            *(LiveConfiguration(scheduler, *management) for management in managed),
        ]
    ]


@dataclass(frozen=True)
class Programs:
    """What the driver starts.

    Attributes:
        stabilize: the stabilizer.
        laxity: the command, for arbitrations.
        clip: that all instances stabilize.
    """

    stabilize: Path
    laxity: Path
    clip: Path


@dataclass(frozen=True)
class Size:
    """How large a run is.

    Attributes:
        seconds: for how long frames come.
        size: of the frames, as WIDTHxHEIGHT.
        instances: how many of the seventeen graphs; the first of them.
    """

    seconds: float = 60.0
    size: str = "320x240"
    instances: int = len(GRAPHS)

    @property
    def graphs(self) -> list[tuple[str, int]]:
        """Names and periods in ms, before they are scaled."""
        return list(zip(GRAPHS, PERIODS_MS, strict=True))[: self.instances]

    @property
    def frames_per_ms(self) -> float:
        """That come, before periods are scaled."""
        return sum(1 / period for _, period in self.graphs)


def seconds(text: str) -> float:
    """A span as people write it, in seconds; ValueError for one shorter than a second."""
    found = nanos(text) / 1e9
    if found < 1:
        raise ValueError(f"{text} is too short for a run; write 1 s or more")
    return found


def cpus() -> int:
    """CPUs of this process, and so of all that it starts."""
    return len(os.sched_getaffinity(0))


def periods_scaled(cpu_ms_per_frame: float, on_cpus: int, frames_per_ms: float = FRAMES_PER_MS) -> float:
    """What periods must be multiplied by so that the CPUs are as busy as the paper's; hundredths, rounded up."""
    return math.ceil(100 * frames_per_ms * cpu_ms_per_frame / (CPU_SHARE * on_cpus)) / 100


def arguments(
    configuration: LiveConfiguration, period_ms: int, size: Size, *, scaled: float, gpu: str, start_ns: int
) -> list[str]:
    """Of an instance of the stabilizer, but for the files that it writes and the clip.

    Args:
        configuration: to run under.
        period_ms: of its graph in Table 5.2.
        size: of the run.
        scaled: what the period is multiplied by.
        gpu: name of the soft GPU, and of its arbitration where there is one.
        start_ns: when the first frame comes, on CLOCK_MONOTONIC.
    """
    found = ["--period", f"{round(period_ms * scaled * 1_000)}us", "--duration", f"{round(size.seconds * 1_000)}ms"]
    found += ["--size", size.size, "--cache-frames", CACHE_FRAMES]
    found += ["--start-at", str(start_ns), "--scheduler", configuration.scheduler]
    if configuration.scheduler == "fifo":
        found += ["--base-priority", str(BASE_PRIORITY[period_ms])]
    found += ["--gpu", f"soft:{gpu}"]
    if configuration.tokens:
        found += ["--arbitration", gpu]
    return [*found, "--summary", "json"]


def arbitration(configuration: LiveConfiguration, name: str, on_cpus: int, clients: int) -> list[str]:
    """Arguments of ``laxity`` that create the configuration's arbitration, for as long as the process lives."""
    return [
        *("gpu", "create", name, "--gpus", "1", "--cpus", str(on_cpus), "--copy-engines", "2"),
        *("--tokens", str(configuration.tokens), "--fifo-length", str(configuration.fifo_length)),
        *("--fifo-requests", str(on_cpus), "--engine-order", configuration.engine_order),
        *("--chunk", "2 MiB", "--clients", str(clients)),
    ]
