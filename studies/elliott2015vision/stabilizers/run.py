"""Stabilizers run at once: started together, waited for, and what they wrote down collected."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import re
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from laxity import LaxityError

from studies.elliott2015vision.stabilizers.configuration import (
    Configuration,
    Instance,
    Programs,
    Stabilizers,
    Virtual,
    arguments,
)
from studies.elliott2015vision.stabilizers.processes import (
    BETWEEN_LOOKS_S,
    Processes,
    cpu_seconds,
    end_server,
    machine_seconds,
    other_seconds,
    server_of,
)

MARGIN_S = 15.0
"""From the start of the processes to the first frame: clips must be in memory by then. Doubled if it was too short."""
MARGIN_MAX_S = 240.0
TO_DRAIN_S = 120.0
"""How long frames that are under way at the end may take."""
BUDGETS = (8.0, 6.0, 4.0, 3.0, 2.0, 1.5, 1.25, 1.0, 0.8, 0.6)
"""Of SCHED_DEADLINE, in medians of a node's CPU time: the largest that Linux admits for all. A thread that exceeds a
small one is throttled for periods, as Linux looks at ticks only (the stabilizer's README)."""

LATE = re.compile("start later")
NOT_ADMITTED = re.compile("EBUSY|[Bb]usy|admi")

Array = np.ndarray[Any, np.dtype[np.int64]]
Beside = Callable[[Processes, int], None]
"""Starts, when the first frame comes, what is to run beside them; the number is the process of the first."""
Tick = Callable[[float], None]
"""Told again and again how many seconds of a run are over, starting included."""


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
class Shown:
    """What a stabilizer showed in time. Arrays of equal length, in the order of its frames.

    Attributes:
        frame: number.
        release_ns: after the first frame of all.
        completion_ns: likewise.
    """

    frame: Array
    release_ns: Array
    completion_ns: Array


@dataclass(frozen=True)
class Spent:
    """CPU time, in seconds.

    Attributes:
        server_s: of the soft GPU's server.
        others_s: of processes that have nothing to do with the run.
        machine_s: of everything on the machine.
        stolen_s: that the host of a virtual machine kept from its CPUs.
        own_s: of the stabilizers.
    """

    server_s: float
    others_s: float
    machine_s: float
    stolen_s: float
    own_s: float = 0.0

    def __sub__(self, before: Spent) -> Spent:
        """What was spent since then."""
        return Spent(*(getattr(self, one.name) - getattr(before, one.name) for one in fields(self)))


@dataclass(frozen=True)
class Ran:
    """What is known of a run.

    Attributes:
        shown: by graph.
        late: likewise how many frames were under way at the end, and were shown after it.
        cpu_s: CPU time of the stabilizers and of the soft GPU's server.
        spent: while frames came.
        seconds: for how long frames came.
        budget: of SCHED_DEADLINE; None for the others.
    """

    shown: dict[str, Shown]
    late: dict[str, int]
    cpu_s: float
    spent: Spent
    seconds: float
    budget: float | None

    @property
    def frames(self) -> int:
        """That were shown in time."""
        return sum(len(one.frame) for one in self.shown.values())


@dataclass(frozen=True)
class Order:
    """A run that is wanted.

    Attributes:
        programs: that are started.
        stabilizers: all of them.
        factor: that multiplies their periods.
        configuration: to run under.
        folder: where they write; it exists, and is left as it is.
        name: of the run: its soft GPU's, and its arbitration's.
        beside: starts what else is to run.
        tick: told of the time.
        virtual: the machine for which this one stands, if it does.
    """

    programs: Programs
    stabilizers: Stabilizers
    factor: float
    configuration: Configuration
    folder: Path
    name: str
    beside: Beside | None = None
    tick: Tick | None = None
    virtual: Virtual | None = None


def tried(order: Order, attempt: Attempt | None = None) -> tuple[Ran, Attempt]:
    """Runs, later or with smaller budgets if it must be, and says how it could be run.

    Raises FailedError with what a process said that failed. Nothing is left, whatever happens.
    """
    attempt = attempt or Attempt()
    while True:
        try:
            return run(order, attempt), attempt
        except FailedError as error:
            following = _next(attempt, order.configuration, str(error))
            if following is None:
                raise
            attempt = following


def run(order: Order, attempt: Attempt) -> Ran:
    """Runs once. Raises FailedError; when it returns or raises, no process and no name in shared memory is left."""
    is_over = False
    try:
        # Threads of libraries would not be the graph's.
        with Processes({**os.environ, "OMP_NUM_THREADS": "1"}) as processes:
            ran = _Run(order, attempt, processes).measure()
        is_over = True
        return ran
    finally:
        end_server(order.name)
        if not is_over:
            collect_garbage(order.programs.laxity)


def collect_garbage(laxity: Path) -> None:
    """Removes what processes that were killed left in shared memory."""
    for what in ("gpu", "graph", "sched"):
        with contextlib.suppress(OSError):
            subprocess.run([laxity, what, "gc"], capture_output=True, check=False)


@dataclass(frozen=True)
class _Run:
    order: Order
    attempt: Attempt
    processes: Processes

    def measure(self) -> Ran:
        """Starts everything, waits, reads what was written."""
        began_ns = time.monotonic_ns()
        if self.order.configuration.has_arbitration:
            self._create_arbitration()
        instances = self.order.stabilizers.scaled(self.order.factor)
        start_ns = time.monotonic_ns() + round(self.attempt.margin_s * 1e9)
        first, *_ = [self._start(instance, start_ns) for instance in instances]
        self._wait_until(start_ns, began_ns)
        if self.order.beside is not None:
            self.order.beside(self.processes, first)
        before = self._spent()
        self._wait_until(start_ns + round(self.order.stabilizers.seconds * 1e9), began_ns)
        spent = self._spent() - before
        self._wait_for_all()
        return self._read(start_ns, spent)

    def _spent(self) -> Spent:
        """So far."""
        server = server_of(self.order.name)
        ours = {os.getpid(), *self.processes.numbers()} | ({server} if server is not None else set())
        own_s = sum(cpu_seconds(number) for number in self.processes.numbers())
        server_s = cpu_seconds(server) if server is not None else 0.0
        return Spent(server_s, other_seconds(ours), *machine_seconds(), own_s)

    def _create_arbitration(self) -> None:
        how = self.order.configuration.arbitration(self.order.name, self.order.stabilizers.instances)
        with self._file("arbitration.err").open("wb") as errors:
            command: list[str | Path] = [self.order.programs.laxity, *how]
            process = self.processes.start("arbitration", command, subprocess.PIPE, errors)
        assert process.stdout is not None, "it was asked for"
        with process.stdout as lines:
            said = lines.readline()
        if not said:
            process.wait()
            raise FailedError(f"laxity gpu create: {self._text('arbitration.err')}")

    def _start(self, instance: Instance, start_ns: int) -> int:
        """Starts a stabilizer and returns its process number."""
        order = self.order
        how = arguments(
            order.configuration,
            instance,
            order.stabilizers,
            gpu=order.name,
            start_ns=start_ns,
            virtual=order.virtual,
        )
        if order.configuration.scheduler == "deadline":
            how += ["--budget", str(BUDGETS[self.attempt.budget])]
        times_file = self._file(f"{instance.name}.csv")
        command: list[str | Path] = [order.programs.stabilize, *how, "--times", times_file, order.programs.clip]
        names = (self._file(f"{instance.name}.{suffix}") for suffix in ("json", "err"))
        with next(names).open("wb") as output, next(names).open("wb") as errors:
            return self.processes.start(instance.name, command, output, errors).pid

    def _wait_until(self, at_ns: int, began_ns: int) -> None:
        """Waits; FailedError as soon as a process fails."""
        while (left_ns := at_ns - (now_ns := time.monotonic_ns())) > 0:
            self._refuse_failures()
            if self.order.tick is not None:
                self.order.tick((now_ns - began_ns) / 1e9)
            time.sleep(min(BETWEEN_LOOKS_S, left_ns / 1e9))

    def _wait_for_all(self) -> None:
        """Waits until every instance has ended; FailedError if one fails, or takes too long."""
        name = self.order.configuration.name
        until = time.monotonic() + TO_DRAIN_S
        while not self.processes.are_over({graph for graph, _ in self.order.stabilizers.graphs}):
            self._refuse_failures()
            if time.monotonic() > until:
                raise FailedError(f"{name}: instances did not end within {TO_DRAIN_S:.0f} s of the end")
            time.sleep(BETWEEN_LOOKS_S)
        self._refuse_failures()

    def _refuse_failures(self) -> None:
        failed = self.processes.first_failure()
        if failed is not None:
            name, status = failed
            said = self._text(f"{name}.err")
            raise FailedError(f"{self.order.configuration.name}: {name} ended with {status}: {said}")

    def _read(self, start_ns: int, spent: Spent) -> Ran:
        """What was shown in time, and what it took."""
        seconds = self.order.stabilizers.seconds
        shown, late = {}, {}
        cpu_s = spent.server_s
        for name, _ in self.order.stabilizers.graphs:
            frame, release, completion = times(self._text(f"{name}.csv"), name)
            in_time = completion - start_ns <= seconds * 1e9
            shown[name] = Shown(frame[in_time], release[in_time] - start_ns, completion[in_time] - start_ns)
            late[name] = int(np.count_nonzero(~in_time))
            cpu_s += float(json.loads(self._text(f"{name}.json"))["cpu_s"])
        is_deadline = self.order.configuration.scheduler == "deadline"
        return Ran(shown, late, cpu_s, spent, seconds, BUDGETS[self.attempt.budget] if is_deadline else None)

    def _file(self, name: str) -> Path:
        return self.order.folder / name

    def _text(self, name: str) -> str:
        with contextlib.suppress(OSError):
            return self._file(name).read_text().strip()
        return ""


def times(text: str, name: str) -> tuple[Array, Array, Array]:
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


def _next(attempt: Attempt, configuration: Configuration, error: str) -> Attempt | None:
    """How to try again after an error, if another way may help."""
    if LATE.search(error) and attempt.margin_s < MARGIN_MAX_S:
        return replace(attempt, margin_s=2 * attempt.margin_s)
    if configuration.scheduler == "deadline" and NOT_ADMITTED.search(error) and attempt.budget + 1 < len(BUDGETS):
        return replace(attempt, budget=attempt.budget + 1)
    return None
