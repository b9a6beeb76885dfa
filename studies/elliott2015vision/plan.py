"""What a run of the simulated part of elliott2015vision consists of: a simulation for each configuration."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from laxity import Result, __version__, simulate
from laxity._native import StudyStop

from studies.common.study import Choices
from studies.elliott2015vision.nodes import SINK, node_times
from studies.elliott2015vision.stabilizers.configuration import PERIODS_MS
from studies.elliott2015vision.workload import (
    CONFIGURATIONS,
    GRAPHS,
    Configuration,
    Options,
    options,
    scale,
    workload,
)

STUDY = "elliott2015vision"
SECONDS = 400
"""Section 5.5.2: how long each configuration ran."""


VARIANTS = ("held=0", "held=300", "callback_us=0", "callback_us=60", "waiting=spin", "replicas=3")
"""What else the paper may leave open: one at a time, for a shorter time."""
VARIANT_SECONDS = 20

FRAMES = pa.schema(
    [
        ("options", pa.string()),
        ("configuration", pa.string()),
        ("graph", pa.string()),
        ("frame", pa.uint32()),
        ("release_ns", pa.int64()),
        ("completion_ns", pa.int64()),
        ("resource", pa.string()),
        ("load", pa.float64()),
    ]
)
"""A row for each frame that a sink completed, with neither resource nor load; and a row for each resource."""


@dataclass(frozen=True, order=True)
class Simulation:
    """One simulation.

    Attributes:
        variant: place among the plan's options; 0: the study's own.
        configuration: place among CONFIGURATIONS.
        count: simulated seconds.
    """

    variant: int
    configuration: int
    count: int

    @property
    def name(self) -> str:
        """The name of its part file."""
        return f"v{self.variant:02}-{self.configuration:02}"


@dataclass(frozen=True)
class VisionPlan:
    """The simulated part with its options.

    Attributes:
        options: the study's own, then those of the variants.
        seconds: simulated time of a run.
    """

    options: tuple[Options, ...]
    seconds: int
    study: ClassVar[str] = STUDY
    unit: ClassVar[str] = "simulated s"

    def chunks(self) -> list[Simulation]:
        """All simulations, in the order of the result."""
        own = [Simulation(0, number, self.seconds) for number in range(len(CONFIGURATIONS))]
        length = min(self.seconds, VARIANT_SECONDS)
        variants = [
            Simulation(variant, number, length)
            for variant in range(1, len(self.options))
            for number, configuration in enumerate(CONFIGURATIONS)
            if _differs(configuration, self.options[variant], self.options[0])
        ]
        return own + variants

    def identity(self) -> dict[str, Any]:
        """Everything the results depend on, for JSON."""
        return {
            "study": self.study,
            "options": str(self.options[0]),
            "variants": [str(variant) for variant in self.options[1:]],
            "seconds": self.seconds,
            "variant_seconds": min(self.seconds, VARIANT_SECONDS),
            "nodes": node_times().source,
            "laxity": __version__,
        }

    def evaluate(self, chunk: Simulation, stop: StudyStop | None = None) -> pa.Table | None:
        """Simulates; None if told to stop."""
        configuration = CONFIGURATIONS[chunk.configuration]
        sinks = [f"{graph}/{SINK}" for graph in GRAPHS]
        file = workload(configuration, self.options[chunk.variant])
        try:
            result = simulate(file, duration=f"{chunk.count} s", completions=sinks, stop=stop)
        except KeyboardInterrupt:
            return None
        return measured(result)

    def result(self, parts: Iterable[tuple[Simulation, pa.Table]]) -> pa.Table:
        """All that was measured, in the order of ``chunks``."""
        tables = dict(parts)
        return pa.concat_tables([self._keyed(run, tables[run]) for run in self.chunks()]).combine_chunks()

    def _keyed(self, run: Simulation, table: pa.Table) -> pa.Table:
        """The table of a simulation with what tells it from others."""
        keys = {"options": str(self.options[run.variant]), "configuration": CONFIGURATIONS[run.configuration].name}
        columns = {name: pa.array([value] * len(table)) for name, value in keys.items()}
        return pa.table({**columns, **{name: table[name] for name in table.column_names}}, schema=FRAMES)


def measured(result: Result) -> pa.Table:
    """What is kept of a simulation: a row for each frame that was shown, and the load of CPUs and engines."""
    found = result.completions
    graph = np.array([GRAPHS.index(name.partition("/")[0]) for name in found["task_name"].to_pylist()], dtype=np.intp)
    frame = found["job"].to_numpy().astype(np.int64)
    release = frame * (np.array(PERIODS_MS, dtype=np.int64) * 1_000_000)[graph]
    order = np.lexsort((frame, graph))
    loads = {"CPU": float(np.sum(result.cpus["utilization"].to_numpy()))}
    loads |= {row["engine"]: row["utilization"] for row in result.engines.to_pylist()}
    return frames_table(
        [GRAPHS[number] for number in graph[order]],
        frame[order],
        release[order],
        found["completion_ns"].to_numpy()[order],
        loads,
    )


def frames_table(
    graphs: list[str], frame: Any, release_ns: Any, completion_ns: Any, loads: dict[str, float]
) -> pa.Table:
    """Frames and loads as rows of FRAMES, without the keys."""
    schema = pa.schema([field for field in FRAMES if field.name not in ("options", "configuration")])
    rows, others = len(graphs), len(loads)

    def column(values: Any, more: list[Any], name: str) -> pa.ChunkedArray:
        kind = schema.field(name).type
        return pa.chunked_array([pa.array(values, kind), pa.array(more, kind)])

    none, missing = [None] * others, [None] * rows
    return pa.table(
        {
            "graph": column(graphs, none, "graph"),
            "frame": column(frame, none, "frame"),
            "release_ns": column(release_ns, none, "release_ns"),
            "completion_ns": column(completion_ns, none, "completion_ns"),
            "resource": column(missing, list(loads), "resource"),
            "load": column(missing, list(loads.values()), "load"),
        },
        schema=schema,
    )


def _differs(configuration: Configuration, variant: Options, own: Options) -> bool:
    """Whether the variant is another workload under the configuration."""
    if variant == own:
        return False
    if variant.waiting != own.waiting:
        return configuration.tokens == 0
    return True


def vision_plan(text: str = "", *, seconds: int | None = None) -> VisionPlan:
    """A plan of the whole simulated part, or of a shorter one.

    Args:
        text: what differs from its default options.
        seconds: simulated time of a run; None: as long as the paper's.

    Raises:
        ValueError: for an unknown option, or a number that cannot be.
    """
    own = options(text)
    length = SECONDS if seconds is None else seconds
    if not 1 <= length <= 3_600:
        raise ValueError(f"seconds is {length}; it must be 1 to 3600")
    scales = scale(own)
    if min(scales.cpu, scales.engine) <= 0:
        raise ValueError(f"with {own} callbacks alone use all CPUs; choose a smaller callback_us")
    return VisionPlan((own, *(options(variant, own) for variant in VARIANTS)), length)


def chosen(choices: Choices) -> VisionPlan:
    """A plan of what was chosen. Raises ValueError as ``vision_plan`` does, and for what the study does not have."""
    choices.refuse(STUDY, "scenarios", "step", "replicates", "chunk")
    return vision_plan(choices.options, seconds=choices.seconds)
