"""The part of elliott2015vision that runs live on a virtual machine of six CPUs: decision 106 says what that can tell.

The paper's eleven configurations, with tokens and queues for six CPUs, on those that are there.
"""

from __future__ import annotations

import json
import math
import os
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from studies.common.store import write_atomically
from studies.elliott2015vision.live import GPU, Live, part
from studies.elliott2015vision.plan import STUDY
from studies.elliott2015vision.results import VIRTUAL
from studies.elliott2015vision.stabilizers import (
    Attempt,
    Configuration,
    FailedError,
    Order,
    Programs,
    Stabilizers,
    Virtual,
    cpus,
    managed,
    tried,
)
from studies.elliott2015vision.stabilizers.load import loop_nodes
from studies.elliott2015vision.workload import CPUS, ENGINE_LOAD

CPU_LOAD = 0.8
"""Share of the CPUs that frames need at a load of 100 %, Laxity and the soft GPU's server included. The paper's were
busier (96 %), but Linux keeps 5 % from real-time threads, and interrupts need some."""
LOADS = (75, 100, 125)
"""In percent: how many frames come. At 100 % CPUs are busy as above and the execution engine as the paper's; at 125 %
the CPUs have no time left."""
MAIN = 100
"""At this load all configurations run; at the others C-EDF, and GPUSync with FIFO engine locks."""
PROBES_S = (4.0, 12.0)
"""What frames took in the longer and not in the shorter one counts: in the first seconds memory is touched for the
first time, and what is used before frames come is not theirs."""
PROBED_FRAME = 4.0
"""How many times as long as in the plain loop a frame may take in the probe, for the CPUs to be half idle."""


@dataclass(frozen=True)
class Loaded:
    """A configuration at a load.

    Attributes:
        configuration: the configuration.
        load: in percent.
    """

    configuration: Configuration
    load: int = MAIN

    @property
    def options(self) -> str:
        """The load, as results are told apart by it."""
        return f"load={self.load}"

    @property
    def name(self) -> str:
        """The name on a page."""
        return self.configuration.name if self.load == MAIN else f"{self.configuration.name} at {self.load} %"

    @property
    def file_name(self) -> str:
        """The name of its files."""
        return f"{self.configuration.file_name}-{self.load}"


def planned(loads: Iterable[int] = LOADS) -> list[Loaded]:
    """What runs: at the load of the paper first, then at the others."""
    main = [Configuration("other"), Configuration("fifo"), Configuration("laxity"), *managed("laxity", CPUS)]
    others = [one for one in main if one.scheduler == "laxity" and one.engine_order == "fifo"]
    return [*(Loaded(one) for one in main), *(Loaded(one, load) for load in loads if load != MAIN for one in others)]


@dataclass(frozen=True)
class Scale:
    """How much there is to do at a load of 100 %.

    Attributes:
        factor: that multiplies the periods of Table 5.2.
        kernels_us: for each node for a GPU, how long its kernel takes the execution engine.
        cpu_ms: CPU time of a frame.
        loop_ms: of it, what the nodes take in a plain loop.
    """

    factor: float
    kernels_us: tuple[float, ...]
    cpu_ms: float
    loop_ms: float


def kernels_us(medians_us: Iterable[float], frames_per_ms: float) -> tuple[float, ...]:
    """Times of kernels with which the engine is as busy as the paper's, in proportion to their nodes' CPU times."""
    found = list(medians_us)
    share = ENGINE_LOAD / frames_per_ms * 1_000 / sum(found)
    return tuple(one * share for one in found)


class VirtualRuns(Live):
    """Live runs on a virtual machine in a folder, those that are there and those that are missing."""

    result = VIRTUAL
    label = f"{STUDY} virtual"

    @property
    def parts(self) -> Path:
        """Where the parts are."""
        return self.folder / "virtual"

    def _planned(self) -> list[Any]:
        return list(planned())

    def _identity(self) -> dict[str, Any]:
        return {**super()._identity(), "virtual_cpus": CPUS, "loads": list(LOADS), "cpu_load": CPU_LOAD}

    def _scale(self, scaled: float | None) -> float:
        """As for other runs; the times of kernels go with it."""
        if not self._record.exists():
            found = self._measured(scaled)
            how = {"periods_scaled": found.factor, "is_chosen": scaled is not None, "measured": vars(found)}
            write_atomically(self._record, json.dumps(how, indent=1).encode())
        return super()._scale(scaled)

    def _measured(self, scaled: float | None) -> Scale:
        print(f"{self.label}: measuring what a frame takes", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory(dir=self.parts) as scratch:
            return measure(self.programs, self.size, Path(scratch), self.attempt, scaled)

    def _order(self, one: Any, factor: float, scratch: Path, tick: Any) -> Order:
        measured = json.loads(self._record.read_text())["measured"]
        name = f"{GPU}-{os.getpid()}-{one.file_name}"
        return Order(
            self.programs,
            self.size,
            factor * MAIN / one.load,
            one.configuration,
            scratch,
            name,
            tick=tick,
            virtual=Virtual(CPUS, tuple(measured["kernels_us"])),
        )

    def _kept(self, ran: Any, one: Any) -> pa.Table:
        return part(ran, one.configuration, one.options)

    def _said(self, factor: float) -> dict[str, Any]:
        periods = {f"load={load}": factor * MAIN / load for load in LOADS}
        return {"options": f"load={MAIN}", "variants": [f"load={load}" for load in LOADS], "periods": periods}


def measure(
    programs: Programs, stabilizers: Stabilizers, folder: Path, attempt: Attempt, scaled: float | None = None
) -> Scale:
    """How long periods must be: by what a frame takes of the CPUs under C-EDF with (6,1,FIFO), half of them idle.

    By two probes, whose difference counts.

    Args:
        programs: to start.
        stabilizers: that are to run.
        folder: for what they write.
        attempt: how to start them.
        scaled: the periods of Table 5.2 times this; None: as measured.

    Raises:
        FailedError: if a program fails, or shows nothing.
    """
    nodes = loop_nodes(programs, stabilizers)
    medians = {str(node["name"]): float(node["cpu_median_us"]) for node in nodes}
    on_gpu = [str(node["name"]) for node in nodes if node["place"] == "GPU"]
    loop_ms = sum(medians.values()) / 1_000

    def kernels(factor: float) -> tuple[float, ...]:
        return kernels_us((medians[name] for name in on_gpu), stabilizers.frames_per_ms / factor)

    easy = stabilizers.frames_per_ms * PROBED_FRAME * loop_ms / cpus() / 0.5
    wide = Configuration("laxity", CPUS, 1)
    frames, used_s = [], []
    for seconds in PROBES_S:
        probed = Stabilizers(seconds, stabilizers.size, stabilizers.instances, stabilizers.cached)
        name = f"{GPU}-{os.getpid()}-probe-{seconds:g}"
        order = Order(programs, probed, easy, wide, folder, name, virtual=Virtual(CPUS, kernels(easy)))
        ran, attempt = tried(order, attempt)
        frames.append(ran.frames)
        used_s.append(ran.spent.own_s + ran.spent.server_s)
    if frames[1] <= frames[0]:
        raise FailedError(
            f"{wide.name}: probes of {PROBES_S[0]:g} and {PROBES_S[1]:g} s showed {frames[0]} and {frames[1]} frames; "
            "use smaller frames"
        )
    cpu_ms = 1_000 * (used_s[1] - used_s[0]) / (frames[1] - frames[0])
    needed = stabilizers.frames_per_ms * cpu_ms / cpus() / CPU_LOAD
    factor = scaled if scaled is not None else math.ceil(round(100 * needed, 6)) / 100
    return Scale(factor, kernels(factor), cpu_ms, loop_ms)
