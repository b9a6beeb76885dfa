"""How short periods may be on this machine: what a frame takes of CPUs, engines and tokens, and how busy they get so.

A soft GPU is not only busy with kernels. Between two of them the server wakes the process whose turn it is, and with an
arbitration tokens and engine locks change hands. So a frame takes more of the execution engine than its kernels take
in a plain loop; how much more is measured, with frames that come faster than they can be shown.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from studies.elliott2015vision.stabilizers.configuration import Configuration, Programs, Stabilizers, cpus
from studies.elliott2015vision.stabilizers.run import Attempt, FailedError, Order, tried

CPU_TARGET = 0.85
"""Of all CPUs at most. The paper's were busier (96 %, footnote 16), but Linux keeps 5 % from real-time threads, and
interrupts and the driver need some, too."""
ENGINE_TARGET = 0.66
"""Of each engine at most: the paper's execution engine (footnote 16). Likewise of a GPU's only token, as a frame that
holds it has all engines to itself: where a token is held nearly always, frames pile up as soon as the machine gets a
little slower, and then configurations are compared by what is late in an overload."""

PROBE_S = 5.0
PROBED = 4
"""Stabilizers in a probe: with nine frames under way each, engines always have the next one to do."""
PROBE_FASTER = 4.0
"""Frames of a probe come so many times as fast as a machine could show them that did nothing but compute."""

KERNELS = 7
COPIES = {"CE0": 2, "CE1": 2}
"""Operations of a frame: one engine copies in, the other out (the stabilizer's README)."""


@dataclass(frozen=True)
class Probe:
    """What stabilizers could do whose frames came faster than they could be shown.

    Attributes:
        configuration: its name.
        tokens: of the soft GPU; 0 without management.
        frames_per_s: that were shown.
        cpu_ms: CPU time of a frame, the soft GPU's server included.
    """

    configuration: str
    tokens: int
    frames_per_s: float
    cpu_ms: float

    @property
    def frame_ms(self) -> float:
        """From a frame to the next: how long each takes of what was short."""
        return 1_000 / self.frames_per_s

    @property
    def cpus_busy(self) -> float:
        """How many were."""
        return self.cpu_ms * self.frames_per_s / 1_000


@dataclass(frozen=True)
class Load:
    """What frames take here, and how busy that makes what they take it of.

    Attributes:
        loop_ms: CPU time of a frame in the plain loop.
        kernels_ms: of it, that of the GPU's kernels.
        copies_ms: of it, that of the nodes which copy whole frames, by copy engine.
        frames_per_ms: that come, before periods are scaled.
        cpus: of this process.
        probes: without management, with as many tokens as CPUs, and with one token if some run has one.
    """

    loop_ms: float
    kernels_ms: float
    copies_ms: dict[str, float]
    frames_per_ms: float
    cpus: int
    probes: tuple[Probe, ...]

    @property
    def cpu_ms(self) -> float:
        """CPU time of a frame: the most of any probe with as many tokens as CPUs, or none."""
        return max(probe.cpu_ms for probe in self._wide)

    @property
    def engine_ms(self) -> float:
        """For how long a frame takes the execution engine, its operations' overhead included."""
        return max(probe.frame_ms for probe in self._wide)

    @property
    def operation_ms(self) -> float:
        """Of it, what an operation takes beside its work."""
        return max(0.0, self.engine_ms - self.kernels_ms) / KERNELS

    @property
    def token_ms(self) -> float:
        """From a frame to the next where there is one token: how long each holds it."""
        return max(probe.frame_ms for probe in self.probes if probe.tokens == 1)

    @property
    def _wide(self) -> list[Probe]:
        """Those in which tokens are not what is short."""
        return [probe for probe in self.probes if probe.tokens in (0, self.cpus)]

    def busy(self, factor: float) -> dict[str, float]:
        """Shares of the CPUs and of each engine that frames take if periods are multiplied by a factor."""
        come = self.frames_per_ms / factor
        copies = {name: work + COPIES[name] * self.operation_ms for name, work in self.copies_ms.items()}
        taken = {"CPUs": self.cpu_ms / self.cpus, "EE": self.engine_ms, **copies}
        return {name: come * ms for name, ms in taken.items()}

    def token_busy(self, factor: float) -> float:
        """Share of the time for which a single token would be held; more than one if it cannot be held so long."""
        return self.frames_per_ms / factor * self.token_ms

    def factor(self, *, has_one_token: bool) -> float:
        """The smallest, in hundredths, with which nothing is busier than it should be.

        Args:
            has_one_token: whether there are to be runs in which the GPU has a single token.
        """
        most = {"CPUs": CPU_TARGET}
        needed = [busy / most.get(name, ENGINE_TARGET) for name, busy in self.busy(1.0).items()]
        if has_one_token:
            needed.append(self.token_busy(1.0) / ENGINE_TARGET)
        # Rounded up; a factor that is hundredths already stays as it is.
        return math.ceil(round(100 * max(needed), 6)) / 100

    def to_json(self) -> dict[str, Any]:
        """As JSON wants it."""
        probes = [vars(probe) for probe in self.probes]
        return {**vars(self), "probes": probes}

    @staticmethod
    def from_json(found: dict[str, Any]) -> Load:
        """What `to_json` made."""
        return Load(**{**found, "probes": tuple(Probe(**probe) for probe in found["probes"])})


def measure_load(
    programs: Programs,
    stabilizers: Stabilizers,
    folder: Path,
    *,
    name: str,
    has_one_token: bool = True,
    attempt: Attempt | None = None,
    tell: Callable[[str], None] | None = None,
) -> Load:
    """Measures the plain loop, then probes. Raises FailedError if a program fails, or shows nothing.

    Args:
        programs: to start.
        stabilizers: that are to run.
        folder: for what they write, which is removed.
        name: prefix of soft GPUs.
        has_one_token: whether there are to be runs in which the GPU has a single token; what that does is not measured
            otherwise.
        attempt: how to start them.
        tell: told before each measurement what comes.
    """
    tell = tell or (lambda _: None)
    tell("the plain loop")
    nodes = loop_nodes(programs, stabilizers)
    loop_ms = sum(_ms(node) for node in nodes)
    probed = replace(
        stabilizers, seconds=min(PROBE_S, stabilizers.seconds), instances=min(PROBED, stabilizers.instances)
    )
    factor = probed.frames_per_ms * loop_ms / cpus() / PROBE_FASTER
    probes = []
    for configuration in _probed(has_one_token):
        tell(configuration.name)
        with TemporaryDirectory(dir=folder) as scratch:
            wanted = f"{name}-{os.getpid()}-probe-{configuration.file_name}"
            order = Order(programs, probed, factor, configuration, Path(scratch), wanted)
            ran, _ = tried(order, attempt)
        if ran.frames == 0:
            raise FailedError(f"{configuration.name}: a probe of {ran.seconds:g} s showed no frame; use smaller frames")
        probes.append(
            Probe(configuration.name, configuration.tokens, ran.frames / ran.seconds, 1_000 * ran.cpu_s / ran.frames)
        )
    by_name = {str(node["name"]): _ms(node) for node in nodes}
    return Load(
        loop_ms=loop_ms,
        kernels_ms=sum(_ms(node) for node in nodes if node["place"] == "GPU"),
        copies_ms={"CE0": by_name.get("read_frame", 0.0), "CE1": by_name.get("display_stabilized_image", 0.0)},
        frames_per_ms=stabilizers.frames_per_ms,
        cpus=cpus(),
        probes=tuple(probes),
    )


def _probed(has_one_token: bool) -> list[Configuration]:
    """Under the scheduler that refuses no thread. One CPU has one token only."""
    tokens = dict.fromkeys((1, cpus()) if has_one_token else (cpus(),))
    return [Configuration("other"), *(Configuration("other", count, cpus() // count) for count in tokens)]


def loop_nodes(programs: Programs, stabilizers: Stabilizers) -> list[dict[str, Any]]:
    """The nodes of the plain loop, with their times."""
    frames = "60"
    how = ["--sequential", "--frames", frames, "--cache-frames", frames, "--size", stabilizers.size]
    command: list[str | Path] = [programs.stabilize, *how, "--summary", "json", programs.clip]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, check=False, stdin=subprocess.DEVNULL, env=environment)
    if done.returncode != 0:
        raise FailedError(f"{command[0]} ended with {done.returncode}: {done.stderr.decode().strip()}")
    return list(json.loads(done.stdout)["nodes"])


def _ms(node: dict[str, Any]) -> float:
    """CPU time of a node for a frame."""
    return float(node["cpu_median_us"]) / 1_000
