"""The results of elliott2015vision: what was simulated, and what ran on a machine."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from laxity import LaxityError

from studies.common.claims import UndecidableError, csv_text
from studies.common.results import NotRunError
from studies.elliott2015vision import virtual_load
from studies.elliott2015vision.delays import MEASURES, Array, Delays, averaged, delays_ms, summary
from studies.elliott2015vision.live_load import describe
from studies.elliott2015vision.nodes import node_times
from studies.elliott2015vision.plan import SECONDS
from studies.elliott2015vision.published import published
from studies.elliott2015vision.stabilizers.configuration import PERIODS_MS
from studies.elliott2015vision.workload import CPU_LOAD, ENGINE_LOAD, GRAPHS, options, scale

LIVE = "live.parquet"
"""Beside the result of the simulations, where there is one."""

VIRTUAL = "virtual.parquet"
"""Likewise of live runs on a virtual machine."""

LIVE_FORMAT = 2
"""Of the files of live runs. Those of format 1, which do not name it, lack what was taken from a run."""

Kind = Literal["simulated", "live", "virtual"]


@dataclass(frozen=True)
class Frames:
    """What a graph showed.

    Attributes:
        release_ns: when each frame that was shown came, at the source.
        completion_ns: when it was shown.
        seconds: how long the graph ran.
        period_ms: of the graph.
    """

    release_ns: Array
    completion_ns: Array
    seconds: float
    period_ms: float

    @property
    def delays(self) -> Delays:
        """Its row of a table, in ms."""
        return summary(self.completion_ns, round(self.seconds * 1_000 / self.period_ms))

    @property
    def delays_count(self) -> int:
        """How many delays its row is of."""
        return max(0, len(self.completion_ns) - 1)

    @property
    def normalized_delays(self) -> Array:
        """Completion delays in periods."""
        return delays_ms(self.completion_ns) / self.period_ms

    @property
    def normalized_latencies(self) -> Array:
        """Latencies from end to end in periods: from the release at the source to the completion at the sink."""
        return (self.completion_ns - self.release_ns) / 1e6 / self.period_ms


class Runs:
    """Runs of one kind: graphs under configurations.

    Attributes:
        kind: simulated, live, or live on a virtual machine.
        run: what was run, as the file says.

    Raises:
        LaxityError: for live runs in another format.
    """

    def __init__(self, path: Path, kind: Kind) -> None:
        table = pq.read_table(path)
        self.kind: Kind = kind
        self.run: dict[str, Any] = json.loads(table.schema.metadata[b"laxity.study"])
        if kind != "simulated" and (found := self.run.get("format", 1)) != LIVE_FORMAT:
            raise LaxityError(
                f"{path} is of format {found}, and this Laxity reads format {LIVE_FORMAT}; report with the Laxity that "
                "ran it, or run it again with --live and another --out"
            )
        self._loads: dict[tuple[str, str], dict[str, float]] = {}
        self._frames: dict[tuple[str, str], dict[str, tuple[Array, Array]]] = {}
        for key in _keys(table):
            self._take(key, table)

    def _take(self, key: tuple[str, str], table: pa.Table) -> None:
        of = (np.array(table["options"]) == key[0]) & (np.array(table["configuration"]) == key[1])
        rows = table.filter(pa.array(of))
        loads = rows.filter(pc.is_valid(rows["resource"]))
        self._loads[key] = dict(zip(loads["resource"].to_pylist(), loads["load"].to_pylist(), strict=True))
        frames = rows.filter(pc.is_null(rows["resource"]))
        graphs = np.array(frames["graph"])
        release, completion = frames["release_ns"].to_numpy(), frames["completion_ns"].to_numpy()
        self._frames[key] = {name: (release[graphs == name], completion[graphs == name]) for name in GRAPHS}

    @property
    def configurations(self) -> list[str]:
        """Those that ran with the study's own options, in the order in which they are told."""
        return [configuration for chosen, configuration in self._frames if chosen == self.run["options"]]

    def _key(self, configuration: str, variant: str) -> tuple[str, str]:
        key = (variant or self.run["options"], configuration)
        if key not in self._frames:
            raise NotRunError(f"{configuration} {variant} was not run".replace("  ", " "))
        return key

    def has(self, configuration: str, variant: str) -> bool:
        """Whether a configuration ran with these options."""
        return (variant, configuration) in self._frames

    def frames(self, configuration: str, graph: str, variant: str = "") -> Frames:
        """What a graph showed under a configuration; NotRunError if that was not run.

        Args:
            configuration: its name.
            graph: its name.
            variant: complete options; empty: the study's own.
        """
        key = self._key(configuration, variant)
        release, completion = self._frames[key][graph]
        scaled = self.run.get("periods", {}).get(key[0], self.run.get("periods_scaled", 1.0))
        period = PERIODS_MS[GRAPHS.index(graph)] * float(scaled)
        return Frames(release, completion, self.seconds(variant), period)

    def seconds(self, variant: str = "") -> float:
        """How long a run was."""
        return float(self.run["seconds"] if not variant else self.run["variant_seconds"])

    def all_frames(self, configuration: str, variant: str = "") -> list[Frames]:
        """What all graphs showed."""
        return [self.frames(configuration, graph, variant) for graph in self.graphs]

    @property
    def graphs(self) -> tuple[str, ...]:
        """The graphs that ran."""
        return GRAPHS[: int(self.run.get("instances", len(GRAPHS)))]

    def averaged(self, configuration: str, variant: str = "") -> Delays:
        """The configuration's row of Table 5.14."""
        return averaged([(one.delays, one.period_ms) for one in self.all_frames(configuration, variant)])

    def graphs_shown(self, configuration: str) -> int:
        """How many graphs have completion delays under a configuration."""
        return sum(one.delays_count > 0 for one in self.all_frames(configuration))

    def delays(self, configuration: str) -> Array:
        """Normalized completion delays of all graphs; NotRunError if there are none."""
        return self._some(configuration, [one.normalized_delays for one in self.all_frames(configuration)])

    def latencies(self, configuration: str, variant: str = "") -> Array:
        """Normalized latencies of all graphs; NotRunError if there are none."""
        return self._some(configuration, [one.normalized_latencies for one in self.all_frames(configuration, variant)])

    def _some(self, configuration: str, parts: list[Array]) -> Array:
        whole = np.concatenate(parts)
        if not len(whole):
            raise UndecidableError(f"no graph showed two frames under {configuration}")
        return whole

    @property
    def shown(self) -> list[str]:
        """The configurations under which there are completion delays."""
        return [one for one in self.configurations if self.graphs_shown(one)]

    def load(self, configuration: str) -> dict[str, float]:
        """How busy CPUs (how many of them) and engines (a share) were."""
        return self._loads[self._key(configuration, "")]


def _keys(table: pa.Table) -> list[tuple[str, str]]:
    """Options and configurations in the order of the file."""
    pairs = zip(table["options"].to_pylist(), table["configuration"].to_pylist(), strict=True)
    return list(dict.fromkeys(pairs))


class VisionResults:
    """Everything the page of elliott2015vision is made of.

    Attributes:
        path: of the result of the simulations.
        simulated: its runs.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.simulated = Runs(path, "simulated")
        self.run = self.simulated.run
        beside: dict[Kind, Path] = {"live": path.parent / LIVE, "virtual": path.parent / VIRTUAL}
        found = {kind: Runs(file, kind) for kind, file in beside.items() if file.exists()}
        self._live, self._virtual = found.get("live"), found.get("virtual")

    @property
    def live(self) -> Runs:
        """What ran on a machine; NotRunError if nothing did."""
        if self._live is None:
            raise NotRunError("nothing ran live")
        return self._live

    @property
    def has_live(self) -> bool:
        """Whether something ran live."""
        return self._live is not None

    @property
    def virtual(self) -> Runs:
        """What ran on a virtual machine; NotRunError if nothing did."""
        if self._virtual is None:
            raise NotRunError("nothing ran on a virtual machine")
        return self._virtual

    @property
    def has_virtual(self) -> bool:
        """Whether something ran on a virtual machine."""
        return self._virtual is not None

    def caption(self) -> str:
        """What the data of figures of simulations is, in one line."""
        return f"Simulated. Laxity {self.run['laxity']}, {self.run['seconds']} s; {self.run['options']}."

    def live_caption(self) -> str:
        """What the data of figures of live runs is, in one line."""
        run = self.live.run
        return f"Live on {run['machine']}, soft GPU, Linux {run['linux']}, {run['date']}; {run['seconds']} s."

    def facts(self) -> list[tuple[str, str]]:
        """What was run, for people."""
        factor = scale(options(self.run["options"]))
        size = f"{len(self.simulated.configurations)} configurations, {self.run['seconds']} s each"
        if self.run["seconds"] < SECONDS:
            size += f". A reduced run: a full one has {SECONDS} s"
        found = [
            ("Options", self.run["options"]),
            ("Simulated", size),
            (
                "Load",
                f"times of nodes measured here ({node_times().source}) times {factor.cpu:.2f} on the CPU, and times "
                f"{factor.engine:.3f} for GPU kernels, so that {CPU_LOAD} CPUs and {ENGINE_LOAD:.0%} of the execution "
                "engine are busy as in the paper's footnote 16",
            ),
            ("Versions", f"laxity {self.run['laxity']}"),
        ]
        found += self._live_facts() if self.has_live else [("Live", "not run")]
        virtual = virtual_load.describe(self.virtual.run) if self.has_virtual else "not run"
        return [*found, ("Live, on a virtual machine", virtual)]

    def _live_facts(self) -> list[tuple[str, str]]:
        run = self.live.run
        return [
            (
                "Live",
                f"{len(self.live.configurations)} configurations, {run['seconds']} s each, on {run['machine']}, Linux "
                f"{run['linux']}, {run['date']}; the GPU is a soft one, whose work those CPUs do, too",
            ),
            ("Load, live", describe(run)),
        ]

    def published(self) -> dict[str, str]:
        """What a repository keeps of the numbers: CSV files by name."""
        every = [self.simulated, *(runs for runs in (self._live, self._virtual) if runs is not None)]
        head = ["source", "configuration", "graph", "period_ms", "delays", *(f"{name}_ms" for name in MEASURES)]
        head[5] = MEASURES[0]
        delays = [head]
        for (configuration, graph), row in published().items():
            period = str(PERIODS_MS[GRAPHS.index(graph)])
            delays.append(["published", configuration, graph, period, "", *_numbers(row)])
        percents = (50, 90, 95, 99, 99.9, 100)
        latencies = [["source", "configuration", "frames", *(f"p{percent}_periods" for percent in percents)]]
        for runs in every:
            for configuration in runs.configurations:
                for graph in runs.graphs:
                    one = runs.frames(configuration, graph)
                    key = [runs.kind, configuration, graph, f"{one.period_ms:g}", str(one.delays_count)]
                    delays.append([*key, *_numbers(one.delays)])
                if configuration in runs.shown:
                    found = runs.latencies(configuration)
                    values = (f"{value:.3f}" for value in np.percentile(found, percents))
                    latencies.append([runs.kind, configuration, str(len(found)), *values])
        return {"completion_delays.csv": csv_text(delays), "latencies.csv": csv_text(latencies)}


def _numbers(row: Delays) -> list[str]:
    """Of a row; empty where there is none."""
    values = (getattr(row, name) for name in MEASURES)
    return ["" if np.isnan(value) else f"{value:.2f}" for value in values]
