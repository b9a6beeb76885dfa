"""The same observations on simulated and on live runs: which configuration plays which part of the paper's.

A live run has other CPUs than the paper's six, so other numbers of tokens (rho) are optimal. There C-EDF is
SCHED_DEADLINE. The paper's rho of 1 and 2, too few for its load, are one token. Its rho of 3 and 6, enough for its
load, are as many tokens as CPUs, m. Its rho = 3, the best, is the greatest rho between 1 and m that divides m, if one
does. On a virtual machine of six CPUs there are the paper's own (decision 106).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from studies.common.claims import UndecidableError
from studies.elliott2015vision.delays import Array, Delays
from studies.elliott2015vision.live_load import TAKEN_MAX, least_taken, token_busy, was_disturbed
from studies.elliott2015vision.results import Runs

DROPPED = 0.5
"""Percentage of frames from which a configuration counts as dropping frames: more than are under way at the end."""

Pair = tuple[str, str]
"""The same configuration with FIFO and with PRIO engine locks."""


def short(name: str) -> str:
    """A configuration as the paper's text has it."""
    return name.removeprefix("GPUSync").removeprefix("LITMUS ")


@dataclass(frozen=True)
class Parts:
    """Names of configurations, by the part that they play.

    Attributes:
        unmanaged: SCHED_OTHER, SCHED_FIFO and C-EDF without management of the GPU.
        managed: all that manage it under C-EDF.
        few: of these, those with too few tokens; of a virtual machine each FIFO before its PRIO.
        calibrated: further ones with too few tokens, to which a parameter was fitted: shown, and not judged.
        enough: those with enough tokens, by the configuration that is the same without management.
        middle: with the rho that the paper finds best; why there is none, where there is none.
    """

    unmanaged: tuple[str, str, str]
    managed: tuple[str, ...]
    few: tuple[str, ...]
    calibrated: tuple[str, ...]
    enough: dict[str, tuple[Pair, ...]]
    middle: Pair | str


def simulated_parts() -> Parts:
    """The paper's own. ``held`` was fitted to what (1,6,FIFO) drops, so that what rho = 1 drops proves nothing."""
    pairs = {rho: (f"GPUSync({rho},FIFO)", f"GPUSync({rho},PRIO)") for rho in ("1,6", "2,3", "3,2", "6,1")}
    unmanaged = ("SCHED_OTHER", "SCHED_FIFO", "LITMUS C-EDF")
    managed = tuple(name for pair in pairs.values() for name in pair)
    enough: dict[str, tuple[Pair, ...]] = {unmanaged[-1]: (pairs["3,2"], pairs["6,1"])}
    return Parts(unmanaged, managed, pairs["2,3"], pairs["1,6"], enough, pairs["3,2"])


def virtual_parts() -> Parts:
    """The paper's own, on a virtual machine. Nothing was fitted to what they drop, so that all of them are judged."""
    pairs = {rho: (f"C-EDF ({rho},FIFO)", f"C-EDF ({rho},PRIO)") for rho in ("1,6", "2,3", "3,2", "6,1")}
    unmanaged = ("SCHED_OTHER", "SCHED_FIFO", "C-EDF")
    every = tuple(name for pair in pairs.values() for name in pair)
    enough: dict[str, tuple[Pair, ...]] = {unmanaged[-1]: (pairs["3,2"], pairs["6,1"])}
    return Parts(unmanaged, every, (*pairs["1,6"], *pairs["2,3"]), (), enough, pairs["3,2"])


_PAPERS = {"simulated": simulated_parts, "virtual": virtual_parts}
"""Those with the paper's numbers of tokens."""


def live_parts(runs: Runs) -> Parts:
    """Those of the machine that the runs are of."""
    cpus = int(runs.run["cpus"])
    unmanaged = ("SCHED_OTHER", "SCHED_FIFO", "SCHED_DEADLINE")
    edf = unmanaged[-1]

    def pair(tokens: int, scheduler: str = edf) -> Pair:
        fifo, prio = (f"{scheduler} ({tokens},{cpus // tokens},{order})" for order in ("FIFO", "PRIO"))
        return fifo, prio

    between = [rho for rho in range(2, cpus) if cpus % rho == 0]
    why = (
        f"the observation sets rho = 3 apart from 1, 2 and 6; {cpus} CPUs have no rho between 1 and {cpus} that "
        "divides them"
    )
    return Parts(
        unmanaged,
        tuple(name for name in runs.configurations if name.startswith(f"{edf} (")),
        pair(1),
        (),
        {scheduler: (pair(cpus, scheduler),) for scheduler in unmanaged} if cpus > 1 else {},
        pair(between[-1]) if between else why,
    )


class View:
    """Runs, seen by the parts that configurations play.

    Raises UndecidableError where no configuration plays a part, or its runs were disturbed.

    Attributes:
        runs: the runs.
        parts: which configuration plays which part.
    """

    def __init__(self, runs: Runs) -> None:
        self.runs = runs
        self.parts = live_parts(runs) if runs.kind == "live" else _PAPERS[runs.kind]()

    @property
    def other(self) -> str:
        """SCHED_OTHER."""
        return self.parts.unmanaged[0]

    @property
    def fifo(self) -> str:
        """SCHED_FIFO."""
        return self.parts.unmanaged[1]

    @property
    def edf(self) -> str:
        """C-EDF, without management."""
        return self.parts.unmanaged[2]

    @property
    def all(self) -> tuple[str, ...]:
        """Those without management, and all that manage the GPU under C-EDF."""
        return (*self.parts.unmanaged, *self.parts.managed)

    @property
    def enough(self) -> dict[str, tuple[Pair, ...]]:
        """Those with enough tokens, by scheduler."""
        if not self.parts.enough:
            raise UndecidableError("one CPU has one token only")
        return self.parts.enough

    @property
    def many(self) -> tuple[str, ...]:
        """Those with enough tokens under C-EDF; each FIFO before its PRIO."""
        return tuple(name for pair in self.enough[self.edf] for name in pair)

    @property
    def middle(self) -> Pair:
        """Those with the rho that the paper finds best."""
        if isinstance(self.parts.middle, str):
            raise UndecidableError(self.parts.middle)
        return self.parts.middle

    def row(self, name: str) -> Delays:
        """Averages of a configuration; UndecidableError where they would not be of all graphs."""
        shown, whole = self.runs.graphs_shown(name), len(self.runs.graphs)
        if shown < whole:
            raise UndecidableError(
                f"only {shown} of {whole} graphs have completion delays under {name}, so that its averages are of "
                "other graphs than those of the rest"
            )
        return self._calm(name).averaged(name)

    def measured(self, measure: str, names: Iterable[str]) -> dict[str, float]:
        """A number of each configuration's averages."""
        return {name: float(getattr(self.row(name), measure)) for name in names}

    def dropped(self, names: Iterable[str]) -> dict[str, float]:
        """Percentages of all graphs' frames."""
        return {name: self._calm(name).averaged(name).dropped_percent for name in names}

    def delays(self, name: str) -> Array:
        """Normalized completion delays of all graphs."""
        return self._calm(name).delays(name)

    def latencies(self, name: str) -> Array:
        """Normalized latencies of all graphs."""
        return self._calm(name).latencies(name)

    def _calm(self, name: str) -> Runs:
        """The runs, if nothing else took the CPUs from this configuration's."""
        if self.runs.kind != "simulated" and was_disturbed(self.runs.run, name):
            raise UndecidableError(
                f"the host and other processes took {least_taken(self.runs.run, name):.1%} of the CPUs from {name}, "
                f"which tells of that as well; at most {TAKEN_MAX:.0%} are allowed"
            )
        return self.runs

    def overload(self) -> str:
        """For how long live runs need one token, as the end of a sentence; UndecidableError if one suffices.

        The load of simulations and of a virtual machine is the paper's, whatever tokens that takes.
        """
        if self.runs.kind != "live":
            return ""
        busy = token_busy(self.runs.run)
        if busy <= 1 and max(self.dropped(self.parts.few).values()) <= DROPPED:
            raise UndecidableError(
                f"one token suffices for the load of these runs: it would be held for {busy:.0%} of the time, and no "
                f"more than {DROPPED} % of the frames are dropped with it; the paper's one or two did not suffice"
            )
        return f"; one token would be held for {busy:.0%} of the time"

    def far_behind(self, names: Iterable[str], periods: int = 10) -> str:
        """Which graphs are so many periods late with a hundredth of their frames, and what share of all these have."""
        found = []
        for name in names:
            frames = {graph: self.runs.frames(name, graph) for graph in self.runs.graphs}
            counts = {graph: one.delays_count for graph, one in frames.items() if one.delays_count}
            late = [g for g in counts if np.percentile(frames[g].normalized_latencies, 99) > periods]
            if late:
                share = sum(counts[graph] for graph in late) / sum(counts.values())
                found.append(f"{short(name)} {', '.join(late)} ({share:.0%} of the frames)")
        return f"more than {periods} periods late with a hundredth of their frames: {'; '.join(found) or 'no graph'}"
