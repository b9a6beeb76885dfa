"""The live part of elliott2015vision: seventeen stabilizers under each configuration of this machine, one by one."""

from __future__ import annotations

import datetime
import json
import os
import platform
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from laxity import LaxityError, __version__, nanos

from studies.common.progress import Progress
from studies.common.store import write_atomically
from studies.elliott2015vision.live_load import TAKEN_MAX
from studies.elliott2015vision.nodes import processor
from studies.elliott2015vision.plan import FRAMES, STUDY, frames_table
from studies.elliott2015vision.results import LIVE, LIVE_FORMAT
from studies.elliott2015vision.stabilizers import (
    Attempt,
    Configuration,
    Load,
    Order,
    Programs,
    Ran,
    Stabilizers,
    configurations,
    cpus,
    measure_load,
    tried,
)
from studies.elliott2015vision.stabilizers.run import collect_garbage

GPU = "laxity-study"
"""What names of soft GPUs begin with."""


@dataclass(frozen=True)
class Live:
    """Live runs in a folder, those that are there and those that are missing.

    Attributes:
        folder: of the study; live runs are in its folder "live".
        programs: what is started.
        size: of a run.
        attempt: how the first is tried.
    """

    folder: Path
    programs: Programs
    size: Stabilizers
    attempt: Attempt = field(default_factory=Attempt)
    result: ClassVar[str] = LIVE
    label: ClassVar[str] = f"{STUDY} live"

    @property
    def parts(self) -> Path:
        """Where the parts are."""
        return self.folder / "live"

    def run(self, scaled: float | None = None) -> Path:
        """Runs what is missing and returns the path of the result, a Parquet file beside that of the simulations.

        A run from which the host and other processes took too much is repeated (TAKEN_MAX).

        May be stopped at any moment; a later run goes on with the configuration that was not complete.

        Args:
            scaled: what the periods of Table 5.2 are multiplied by; None: what this machine's CPUs and engines allow.

        Raises:
            LaxityError: if the folder holds runs of another size or machine, or a program fails.
            KeyboardInterrupt: after Ctrl-C; no process is left.
        """
        self.programs.check()
        self.parts.mkdir(parents=True, exist_ok=True)
        self._claim()
        collect_garbage(self.programs.laxity)
        factor = self._scale(scaled)
        planned = self._planned()
        missing = [one for one in planned if not self._part(one).exists()]
        attempt = self._fill(missing, factor, self.attempt, self.label)
        disturbed = [one for one in planned if self._was_disturbed(one)]
        self._fill(disturbed, factor, attempt, f"{self.label}, again")
        return self._merge(planned, factor)

    def _planned(self) -> list[Any]:
        """What is to run: things with a name and a file name."""
        return list(configurations(cpus()))

    def _fill(self, wanted: list[Any], factor: float, attempt: Attempt, label: str) -> Attempt:
        """Runs all of these and keeps what counts of each; says how the last could be run."""
        if not wanted:
            return attempt
        each_s = attempt.margin_s + self.size.seconds
        progress = Progress(label, round(len(wanted) * each_s), "s")
        for place, configuration in enumerate(wanted):
            before_s = place * each_s

            def tick(elapsed_s: float, before_s: float = before_s) -> None:
                progress.reach(round(before_s + min(elapsed_s, each_s)))

            progress.label = f"{label}: {configuration.name}"
            table, attempt = self._measure(configuration, factor, attempt, tick)
            if self._part(configuration).exists():
                table = calmest(self._read(configuration), table)
            sink = pa.BufferOutputStream()
            pq.write_table(table, sink)
            write_atomically(self._part(configuration), sink.getvalue())
            progress.reach(round(before_s + each_s))
        progress.close()
        return attempt

    def _read(self, configuration: Any) -> pa.Table:
        return pq.ParquetFile(self._part(configuration)).read()

    def _was_disturbed(self, configuration: Any) -> bool:
        """Whether it ran once, and too much was taken from it."""
        shares = taken(self._read(configuration))
        return len(shares) == 1 and shares[0] > TAKEN_MAX

    def _part(self, configuration: Any) -> Path:
        return self.parts / f"{configuration.file_name}.parquet"

    def _identity(self) -> dict[str, Any]:
        """What the runs are: nothing that differs in it may be in one folder."""
        return {
            "format": LIVE_FORMAT,
            "seconds": self.size.seconds,
            "size": self.size.size,
            "instances": self.size.instances,
            "cpus": cpus(),
            "machine": processor(),
            "linux": platform.release(),
            "laxity": __version__,
        }

    def _claim(self) -> None:
        """Writes what the runs are, or checks that they are the same."""
        identity = self._identity()
        record = self.parts / "run.json"
        if not record.exists():
            return write_atomically(record, json.dumps(identity, indent=1).encode())
        found = json.loads(record.read_text())
        different = [key for key in identity if found.get(key) != identity[key]]
        if different:
            raise LaxityError(
                f"{self.parts} holds other runs, with different {', '.join(different)}; name another folder with "
                "--out, or delete this one"
            )
        return None

    # --- Scale --------------------------------------------------------------------------------------------------------

    @property
    def _record(self) -> Path:
        return self.parts / "scale.json"

    def _scale(self, scaled: float | None) -> float:
        """What periods are multiplied by, found once for all runs."""
        if self._record.exists():
            found = float(json.loads(self._record.read_text())["periods_scaled"])
            if scaled is not None and scaled != found:
                raise LaxityError(f"{self.parts} holds runs with periods times {found}, not {scaled}; see --out")
            return found
        measured = self._measure_load()
        factor = measured.factor(has_one_token=True) if scaled is None else scaled
        how = {"periods_scaled": factor, "is_chosen": scaled is not None, "measured": measured.to_json()}
        write_atomically(self._record, json.dumps(how, indent=1).encode())
        return factor

    def _measure_load(self) -> Load:
        def tell(what: str) -> None:
            print(f"{STUDY} live: measuring what a frame takes: {what}", file=sys.stderr, flush=True)

        return measure_load(self.programs, self.size, self.parts, name=GPU, attempt=self.attempt, tell=tell)

    # --- A run --------------------------------------------------------------------------------------------------------

    def _measure(self, one: Any, factor: float, attempt: Attempt, tick: Any = None) -> tuple[pa.Table, Attempt]:
        """Runs a configuration, and says how it could be run."""
        with tempfile.TemporaryDirectory(dir=self.parts) as scratch:
            ran, attempt = tried(self._order(one, factor, Path(scratch), tick), attempt)
        return self._kept(ran, one), attempt

    def _order(self, one: Any, factor: float, scratch: Path, tick: Any) -> Order:
        name = f"{GPU}-{os.getpid()}-{one.file_name}"
        return Order(self.programs, self.size, factor, one, scratch, name, tick=tick)

    def _kept(self, ran: Ran, one: Any) -> pa.Table:
        return part(ran, one)

    # --- The result ---------------------------------------------------------------------------------------------------

    def _merge(self, planned: list[Any], factor: float) -> Path:
        """Makes one table of all parts."""
        tables = [self._read(one) for one in planned]
        parts = {
            one.name: json.loads(table.schema.metadata[b"part"]) for one, table in zip(planned, tables, strict=True)
        }
        identity = json.loads((self.parts / "run.json").read_text())
        said = {
            "study": STUDY,
            **identity,
            **self._said(factor),
            "variant_seconds": self.size.seconds,
            "periods_scaled": factor,
            "machine": f"{identity['cpus']} CPUs of {identity['machine']}",
            "date": max(one["date"] for one in parts.values()),
            "scale": json.loads(self._record.read_text()),
            "parts": parts,
        }
        table = pa.concat_tables([one.replace_schema_metadata(None) for one in tables]).combine_chunks()
        sink = pa.BufferOutputStream()
        metadata = {"laxity.study": json.dumps(said, sort_keys=True)}
        pq.write_table(table.replace_schema_metadata(metadata), sink, compression="zstd")
        write_atomically(self.folder / self.result, sink.getvalue())
        return self.folder / self.result

    def _said(self, _factor: float) -> dict[str, Any]:
        """What tells runs of one configuration apart."""
        return {"options": ""}


def part(ran: Ran, configuration: Configuration, options: str = "") -> pa.Table:
    """What is kept of a run: rows of FRAMES that begin at the first frame; `options` tells it from others."""
    graphs = [name for name, one in ran.shown.items() for _ in one.frame]
    frame, release, completion = (
        np.concatenate([getattr(one, column) for one in ran.shown.values()])
        for column in ("frame", "release_ns", "completion_ns")
    )
    loads = {
        "CPU": ran.cpu_s / ran.seconds,
        "machine": ran.spent.machine_s / ran.seconds,
        "soft GPU server": ran.spent.server_s / ran.seconds,
        "other processes": ran.spent.others_s / ran.seconds,
        "kept by the host": ran.spent.stolen_s / ran.seconds,
    }
    table = frames_table(graphs, frame, release, completion, loads)
    shares = [(loads["other processes"] + loads["kept by the host"]) / cpus()]
    said = {"load": loads, "date": str(datetime.date.today()), "budget": ran.budget, "taken": shares}
    keys = {"options": options, "configuration": configuration.name}
    keyed = {name: pa.array([value] * len(table)) for name, value in keys.items()}
    whole = pa.table({**keyed, **{name: table[name] for name in table.column_names}}, schema=FRAMES)
    return whole.replace_schema_metadata({"part": json.dumps(said)})


def taken(table: pa.Table) -> list[float]:
    """The share of the CPUs that the host kept and other processes used, of each run of a part."""
    return list(json.loads(table.schema.metadata[b"part"])["taken"])


def calmest(before: pa.Table, again: pa.Table) -> pa.Table:
    """The part of two of a configuration from which less was taken; it says how much that was in each run."""
    shares = [*taken(before), *taken(again)]
    counts = min(before, again, key=taken)
    said = {**json.loads(counts.schema.metadata[b"part"]), "taken": shares}
    return counts.replace_schema_metadata({"part": json.dumps(said)})


def seconds(text: str) -> float:
    """A span as people write it, in seconds; ValueError for one shorter than a second."""
    found = nanos(text) / 1e9
    if found < 1:
        raise ValueError(f"{text} is too short for a run; write 1 s or more")
    return found
