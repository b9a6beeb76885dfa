"""The live part of elliott2015vision: processes that run at once, what they wrote down, and what is kept of it."""

from __future__ import annotations

import contextlib
import csv
import datetime
import io
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from laxity._errors import LaxityError
from laxity._native import __version__
from laxity.studies._progress import Progress
from laxity.studies._store import write_atomically
from laxity.studies._vision_live_plan import (
    CPU_SHARE,
    LiveConfiguration,
    Programs,
    Size,
    arbitration,
    arguments,
    configurations,
    cpus,
    periods_scaled,
)
from laxity.studies._vision_nodes import NODES, processor
from laxity.studies._vision_plan import FRAMES, STUDY, frames_table
from laxity.studies._vision_processes import (
    BETWEEN_LOOKS_S,
    Processes,
    busy_seconds,
    cpu_seconds,
    end_server,
    server_of,
)
from laxity.studies._vision_results import LIVE

MARGIN_S = 15.0
"""From the start of the processes to the first frame: clips must be in memory by then. Doubled if it was too short."""
MARGIN_MAX_S = 240.0
TO_DRAIN_S = 120.0
"""How long frames that are under way at the end may take."""
BUDGETS = (2.0, 1.5, 1.25, 1.0, 0.8, 0.6)
"""Of SCHED_DEADLINE, in medians of a node's CPU time: the largest that Linux admits for all."""
PROBE_S = 5.0
PROBE_SLOWER = 3.0
"""The run that finds how much CPU time a frame takes: periods are that much longer than the plain loop asks for."""

LATE = re.compile("start later")
NOT_ADMITTED = re.compile("EBUSY|[Bb]usy|admi")


@dataclass(frozen=True)
class Attempt:
    """How a run is tried.

    Attributes:
        margin_s: from the start of the processes to the first frame.
        budget: of SCHED_DEADLINE, a place among BUDGETS.
    """

    margin_s: float = MARGIN_S
    budget: int = 0


class FailedError(LaxityError):
    """A process of a run failed."""


@dataclass(frozen=True)
class Live:
    """Live runs in a folder, those that are there and those that are missing.

    Attributes:
        folder: of the study; live runs are in its folder "live".
        programs: what is started.
        size: of a run.
    """

    folder: Path
    programs: Programs
    size: Size

    @property
    def parts(self) -> Path:
        """Where the parts are."""
        return self.folder / "live"

    def run(self, scaled: float | None = None) -> Path:
        """Runs what is missing and returns the path of the result, a Parquet file beside that of the simulations.

        May be stopped at any moment; a later run goes on with the configuration that was not complete.

        Args:
            scaled: what the periods of Table 5.2 are multiplied by; None: for a machine as busy as the paper's.

        Raises:
            LaxityError: if the folder holds runs of another size or machine, or a program fails.
            KeyboardInterrupt: after Ctrl-C; no process is left.
        """
        _check(self.programs)
        self.parts.mkdir(parents=True, exist_ok=True)
        self._claim()
        found = self._scale(scaled)
        planned = configurations(cpus())
        missing = [one for one in planned if not self._part(one).exists()]
        progress = Progress(f"{STUDY} live", round(len(missing) * self.size.seconds), "s")
        attempt = Attempt()
        for configuration in missing:
            table, attempt = self._measure(configuration, found, attempt)
            sink = pa.BufferOutputStream()
            pq.write_table(table, sink)
            write_atomically(self._part(configuration), sink.getvalue())
            progress.add(round(self.size.seconds))
        progress.close()
        return self._merge(planned, found)

    def _part(self, configuration: LiveConfiguration) -> Path:
        return self.parts / f"{configuration.file_name}.parquet"

    def _claim(self) -> None:
        """Writes what the runs are, or checks that they are the same."""
        identity = {
            "seconds": self.size.seconds,
            "size": self.size.size,
            "instances": self.size.instances,
            "cpus": cpus(),
            "machine": processor(),
            "linux": platform.release(),
            "laxity": __version__,
        }
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

    def _scale(self, scaled: float | None) -> float:
        """What periods are multiplied by, found once for all runs."""
        record = self.parts / "scale.json"
        if record.exists():
            found = float(json.loads(record.read_text())["periods_scaled"])
            if scaled is not None and scaled != found:
                raise LaxityError(f"{self.parts} holds runs with periods times {found}, not {scaled}; see --out")
            return found
        how = {"periods_scaled": scaled} if scaled is not None else self._probe()
        write_atomically(record, json.dumps(how, indent=1).encode())
        return float(how["periods_scaled"] or 0)

    def _probe(self) -> dict[str, Any]:
        """Measures the CPU time of a frame, with all instances and the soft GPU, at less load than wanted."""
        alone = self._cpu_ms_of_the_loop()
        slow = round(PROBE_SLOWER * periods_scaled(alone, cpus(), self.size.frames_per_ms), 2)
        short = replace(self, size=replace(self.size, seconds=min(PROBE_S, self.size.seconds)))
        table, _ = short._measure(LiveConfiguration("other"), slow, Attempt())
        loads = {row["resource"]: row["load"] for row in table.to_pylist() if row["resource"]}
        per_frame = loads["CPU"] * slow / self.size.frames_per_ms
        return {
            "cpu_ms_per_frame": per_frame,
            "cpu_ms_per_frame_of_the_loop": alone,
            "periods_scaled": periods_scaled(per_frame, cpus(), self.size.frames_per_ms),
        }

    def _cpu_ms_of_the_loop(self) -> float:
        """CPU time of a frame in the plain loop."""
        frames = "60"
        how = ["--sequential", "--frames", frames, "--cache-frames", frames, "--size", self.size.size]
        command: list[str | Path] = [self.programs.stabilize, *how, "--summary", "json", self.programs.clip]
        done = subprocess.run(command, capture_output=True, check=False, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise FailedError(f"{command[0]} ended with {done.returncode}: {done.stderr.decode().strip()}")
        return sum(float(node["cpu_median_us"]) for node in json.loads(done.stdout)["nodes"]) / 1_000

    # --- A run --------------------------------------------------------------------------------------------------------

    def _measure(self, configuration: LiveConfiguration, scaled: float, attempt: Attempt) -> tuple[pa.Table, Attempt]:
        """Runs a configuration, and says how it could be run."""
        while True:
            try:
                return self._try(configuration, scaled, attempt), attempt
            except FailedError as error:
                following = _next(attempt, configuration, str(error))
                if following is None:
                    raise
                attempt = following

    def _try(self, configuration: LiveConfiguration, scaled: float, attempt: Attempt) -> pa.Table:
        gpu = f"laxity-study-{os.getpid()}-{configuration.file_name}"
        is_over = False
        try:
            with tempfile.TemporaryDirectory(dir=self.parts) as scratch, Processes(self._environment()) as processes:
                run = _Run(self, configuration, scaled, attempt, gpu, Path(scratch), processes)
                table = run.measure()
            is_over = True
            return table
        finally:
            end_server(gpu)
            if not is_over:
                # Processes that were killed leave names in shared memory.
                for what in ("gpu", "graph"):
                    with contextlib.suppress(OSError):
                        subprocess.run([self.programs.laxity, what, "gc"], capture_output=True, check=False)

    def _environment(self) -> dict[str, str]:
        """That of the processes: threads of libraries would not be the graph's."""
        return {**os.environ, "OMP_NUM_THREADS": "1"}

    # --- The result ---------------------------------------------------------------------------------------------------

    def _merge(self, planned: list[LiveConfiguration], scaled: float) -> Path:
        """Makes one table of all parts."""
        tables = [pq.ParquetFile(self._part(one)).read() for one in planned]
        parts = {
            one.name: json.loads(table.schema.metadata[b"part"]) for one, table in zip(planned, tables, strict=True)
        }
        identity = json.loads((self.parts / "run.json").read_text())
        load = np.array([part["load"]["CPU"] for part in parts.values()])
        said = {
            "study": STUDY,
            **identity,
            "options": "",
            "variant_seconds": self.size.seconds,
            "periods_scaled": scaled,
            "machine": f"{identity['cpus']} CPUs of {identity['machine']}",
            "date": max(part["date"] for part in parts.values()),
            "load": f"processes and soft GPU used {load.min():.2f} to {load.max():.2f} CPUs of {identity['cpus']} "
            f"(aim: {CPU_SHARE:.0%} of them){_bottleneck(load.max(), identity['cpus'])}; budgets under SCHED_DEADLINE: "
            f"{_budgets(parts)} of a node's median CPU time",
            "parts": parts,
        }
        table = pa.concat_tables([one.replace_schema_metadata(None) for one in tables]).combine_chunks()
        sink = pa.BufferOutputStream()
        metadata = {"laxity.study": json.dumps(said, sort_keys=True)}
        pq.write_table(table.replace_schema_metadata(metadata), sink, compression="zstd")
        write_atomically(self.folder / LIVE, sink.getvalue())
        return self.folder / LIVE


@dataclass(frozen=True)
class _Run:
    """One run of a configuration."""

    live: Live
    configuration: LiveConfiguration
    scaled: float
    attempt: Attempt
    gpu: str
    scratch: Path
    processes: Processes

    def measure(self) -> pa.Table:
        """Starts everything, waits, reads what was written."""
        if self.configuration.tokens:
            self._create_arbitration()
        start_ns = time.monotonic_ns() + round(self.attempt.margin_s * 1e9)
        for graph in self.live.size.graphs:
            self._start(graph, start_ns)
        self._wait_until(start_ns)
        busy_before, server_before = busy_seconds(), self._server_seconds()
        self._wait_until(start_ns + round(self.live.size.seconds * 1e9))
        busy = busy_seconds() - busy_before
        server_s = self._server_seconds() - server_before
        self._wait_for_all()
        return self._read(start_ns, busy, server_s)

    def _server_seconds(self) -> float:
        """CPU time of the soft GPU's server so far."""
        server = server_of(self.gpu)
        return cpu_seconds(server) if server is not None else 0.0

    def _create_arbitration(self) -> None:
        clients = 2 * len(NODES) * self.live.size.instances
        command: list[str | Path] = [self.live.programs.laxity]
        command += arbitration(self.configuration, self.gpu, cpus(), clients)
        with self._file("arbitration.err", "wb") as errors:
            process = self.processes.start("arbitration", command, subprocess.PIPE, errors)
        assert process.stdout is not None, "it was asked for"
        with process.stdout as lines:
            said = lines.readline()
        if not said:
            process.wait()
            raise FailedError(f"laxity gpu create: {self._text('arbitration.err')}")

    def _start(self, graph: tuple[str, int], start_ns: int) -> None:
        name, period_ms = graph
        how = arguments(
            self.configuration, period_ms, self.live.size, scaled=self.scaled, gpu=self.gpu, start_ns=start_ns
        )
        if self.configuration.scheduler == "deadline":
            how += ["--budget", str(BUDGETS[self.attempt.budget])]
        programs = self.live.programs
        times_file = self.scratch / f"{name}.csv"
        command: list[str | Path] = [programs.stabilize, *how, "--times", times_file, programs.clip]
        with self._file(f"{name}.json", "wb") as output, self._file(f"{name}.err", "wb") as errors:
            self.processes.start(name, command, output, errors)

    def _wait_until(self, at_ns: int) -> None:
        """Waits; FailedError as soon as a process fails."""
        while (left_ns := at_ns - time.monotonic_ns()) > 0:
            self._refuse_failures()
            time.sleep(min(BETWEEN_LOOKS_S, left_ns / 1e9))

    def _wait_for_all(self) -> None:
        """Waits until every instance has ended; FailedError if one fails, or takes too long."""
        until = time.monotonic() + TO_DRAIN_S
        while not self.processes.are_over({name for name, _ in self.live.size.graphs}):
            self._refuse_failures()
            if time.monotonic() > until:
                raise FailedError(
                    f"{self.configuration.name}: instances did not end within {TO_DRAIN_S:.0f} s of the end"
                )
            time.sleep(BETWEEN_LOOKS_S)
        self._refuse_failures()

    def _refuse_failures(self) -> None:
        failed = self.processes.first_failure()
        if failed is not None:
            name, status = failed
            raise FailedError(f"{self.configuration.name}: {name} ended with {status}: {self._text(f'{name}.err')}")

    def _read(self, start_ns: int, busy: float, server_s: float) -> pa.Table:
        """What was shown in time, as rows of FRAMES that begin at the first frame."""
        seconds = self.live.size.seconds
        graphs: list[str] = []
        frames, releases, completions, cpu_s = [], [], [], server_s
        for name, _ in self.live.size.graphs:
            frame, release, completion = times(self._text(f"{name}.csv"), name)
            in_time = completion - start_ns <= seconds * 1e9
            graphs += [name] * int(in_time.sum())
            frames.append(frame[in_time])
            releases.append(release[in_time] - start_ns)
            completions.append(completion[in_time] - start_ns)
            cpu_s += float(json.loads(self._text(f"{name}.json"))["cpu_s"])
        loads = {"CPU": cpu_s / seconds, "machine": busy / seconds, "soft GPU server": server_s / seconds}
        columns = [np.concatenate(one) for one in (frames, releases, completions)]
        table = frames_table(graphs, columns[0], columns[1], columns[2], loads)
        part = {"load": loads, "date": str(datetime.date.today()), "budget": self._budget()}
        keys = {"options": "", "configuration": self.configuration.name}
        keyed = {name: pa.array([value] * len(table)) for name, value in keys.items()}
        whole = pa.table({**keyed, **{name: table[name] for name in table.column_names}}, schema=FRAMES)
        return whole.replace_schema_metadata({"part": json.dumps(part)})

    def _budget(self) -> float | None:
        return BUDGETS[self.attempt.budget] if self.configuration.scheduler == "deadline" else None

    def _file(self, name: str, mode: str) -> Any:
        return (self.scratch / name).open(mode)

    def _text(self, name: str) -> str:
        with contextlib.suppress(OSError):
            return (self.scratch / name).read_text().strip()
        return ""


def times(text: str, name: str) -> tuple[Any, Any, Any]:
    """Frames, their releases and completions in ns, from what ``stabilize --times`` writes; FailedError for else."""
    try:
        rows = [
            [int(row[key]) for key in ("frame", "release_us", "completion_us")]
            for row in csv.DictReader(io.StringIO(text))
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise FailedError(
            f"{name}: its --times are not numbers of frame, release_us, completion_us: {error!r}"
        ) from error
    frame, release, completion = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    return frame, release * 1_000, completion * 1_000


def _next(attempt: Attempt, configuration: LiveConfiguration, error: str) -> Attempt | None:
    """How to try again after an error, if another way may help."""
    if LATE.search(error) and attempt.margin_s < MARGIN_MAX_S:
        return replace(attempt, margin_s=2 * attempt.margin_s)
    if configuration.scheduler == "deadline" and NOT_ADMITTED.search(error) and attempt.budget + 1 < len(BUDGETS):
        return replace(attempt, budget=attempt.budget + 1)
    return None


def _bottleneck(used: float, cpus: int) -> str:
    """What it says about a load if the CPUs were never as busy as they were meant to be, so that something else was."""
    if used >= 0.8 * CPU_SHARE * cpus:
        return ""
    return (
        ", so that frames are dropped for want of the soft GPU and not of CPUs: the kernels of all graphs go one by "
        "one through its one execution engine, and so do the hand-overs between them; longer periods (--periods) would "
        "show less of an overload"
    )


def _budgets(parts: dict[str, Any]) -> str:
    found = sorted({part["budget"] for part in parts.values() if part["budget"] is not None})
    return ", ".join(f"{budget:g} times" for budget in found) or "none"


def _check(programs: Programs) -> None:
    """LaxityError for a program or clip that is not there, with the way to get it."""
    ways = {"stabilize": "`make vision` builds it", "laxity": "`make release` builds it", "clip": "apt: opencv-doc"}
    for name, way in ways.items():
        path = getattr(programs, name)
        if not path.exists():
            raise LaxityError(f"{path} is not there; {way}, or name another with --{name}")


def skipped(programs: Programs) -> str | None:
    """Why nothing can run live here; None if it can."""
    if sys.platform != "linux":
        return "live runs need Linux"
    try:
        _check(programs)
    except LaxityError as error:
        return str(error)
    return None
