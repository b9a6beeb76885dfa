"""The live part of ali2018bwlock: a streaming kernel against memory hogs on this machine's real memory.

Like the engine of a soft GPU, the kernel is a thread on a CPU of its own. On the other CPUs run a program that streams
through memory, and for the Throttle Fair Scheduler one that computes beside it. All is done by `laxity bandwidth`: what
is measured is what a user of the command gets.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import platform
import re
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from laxity import LaxityError, __version__

from studies.ali2018bwlock.plan import STUDY
from studies.common.store import write_atomically
from studies.elliott2015vision.nodes import processor
from studies.elliott2015vision.stabilizers.processes import machine_seconds

LIVE = "live.json"
"""The file of the live runs, in the folder of the study."""

INTERFERENCE_MIN = 1.5
"""What the kernel must slow down beside unhindered hogs, for anything to be seen of its protection."""

SLOWDOWN_MAX = 1.1
"""What it may slow down under the threshold that is searched."""

SMALLEST = 1_000_000
"""No smaller budget is tried, in bytes a second."""

PUNISHMENTS = (0, 1, 3)

LOOSE = 0.4
"""With a budget of this part of what a hog has unhindered, TFS throttles 30 and 56 % less by formula 6 of the model."""

LEAD_S = 0.8
"""From the start of hogs, or of the regulation of their CPUs, until they stream."""

TAIL_S = 1.0
"""For which hogs outlast the kernel, whose start takes time; longer if that was not enough."""

TRIES = 4
LOOK_S = 0.05

TO_END_S = 20.0
RATE = re.compile(r"^([0-9.]+) (B|kB|MB|GB|TB)/s in ([0-9.]+) s, ([0-9.]+) s of them on a CPU")
FACTORS = {"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}


@dataclass(frozen=True)
class Shares:
    """What a TFS with one punishment gave.

    Attributes:
        slowdown: of the kernel, relative to alone.
        throttled: of the time for which the lock was held, how much the best-effort CPUs were throttled; 0 to 1.
        of_budget: what best-effort programs had of the budget they were allowed.
    """

    slowdown: float
    throttled: float
    of_budget: float


@dataclass(frozen=True)
class Observed:
    """What the live runs saw.

    Attributes:
        machine, linux, date, laxity: where and when.
        seconds: of a run of the kernel.
        repeats: runs of each kind, of which the median counts.
        cpus: best-effort CPUs.
        interference: times its time alone that the kernel took beside unhindered hogs, measured right before the rest.
        hog_rate: what one hog had then, in bytes a second.
        taken: of the CPUs, what other programs used and the host kept meanwhile; 0 to 1.
        skipped: why nothing but interference was measured; empty if all was.
        curve: slowdown by budget in bytes a second, in the order of the search.
        threshold: the largest budget at which the kernel is slowed down by no more than it may; None: there is none.
        of_budget: what hogs had of that.
        shares: under the threshold, by punishment; None where the machine does not permit TFS.
        loose: the same under a budget of `LOOSE` of `hog_rate`.
        no_shares: why there are none.
    """

    machine: str
    linux: str
    date: str
    laxity: str
    seconds: float
    repeats: int
    cpus: int
    interference: float
    hog_rate: float
    taken: float = 0.0
    skipped: str = ""
    curve: tuple[tuple[int, float], ...] = ()
    threshold: int | None = None
    of_budget: float | None = None
    shares: dict[int, Shares] | None = None
    loose: dict[int, Shares] | None = None
    no_shares: str = ""

    def write(self, folder: Path) -> Path:
        """Keeps them."""
        write_atomically(folder / LIVE, json.dumps(asdict(self), indent=1).encode())
        return folder / LIVE

    @classmethod
    def read(cls, folder: Path) -> Observed | None:
        """Those of a folder, if it has any."""
        if not (folder / LIVE).exists():
            return None
        found = json.loads((folder / LIVE).read_text())
        found["curve"] = tuple((budget, slowdown) for budget, slowdown in found["curve"])
        for name in ("shares", "loose"):
            if found.get(name) is not None:
                found[name] = {int(rho): Shares(**one) for rho, one in found[name].items()}
        return cls(**found)


class RefusedError(Exception):
    """The machine or its user may not do what a part needs; the text is what the command said."""


@dataclass
class Bench:
    """The programs.

    Attributes:
        laxity: the command.
        folder: where arbitrations have their names.
        seconds: of a run of the kernel.
        repeats: runs of each kind.
    """

    laxity: Path
    folder: Path
    seconds: float
    repeats: int = 3

    def __post_init__(self) -> None:
        usable = sorted(os.sched_getaffinity(0))
        if len(usable) < 2:
            raise LaxityError(f"{STUDY} needs two CPUs live: one for the kernel, one for the programs beside it")
        self.own, self.others = usable[0], usable[1:4]
        self.name = f"bwlock-study-{os.getpid()}"

    def observe(self) -> Observed:
        """Measures everything, or what there is to measure. Raises LaxityError if a program fails."""
        busy_s, stolen_s = machine_seconds()
        own_s, started = sum(os.times()[:4]), time.monotonic()
        tell("interference")
        ratios, rates = [], []
        for _ in range(self.repeats):
            alone = self.kernel()
            beside, hogs = self.beside(None)
            ratios.append(alone / beside)
            rates += [rate(one.communicate()[0]) for one in hogs]
        interference, hog_rate = statistics.median(ratios), statistics.median(rates)
        kept = self._kept(interference, hog_rate)
        span_s = (time.monotonic() - started) * (os.cpu_count() or 1)
        ours_s = sum(os.times()[:4]) - own_s
        now_busy_s, now_stolen_s = machine_seconds()
        others_s = max(now_busy_s - busy_s - ours_s, 0.0) + now_stolen_s - stolen_s
        return Observed(
            machine=f"{os.cpu_count()} CPUs of {processor()}",
            linux=platform.release(),
            date=str(datetime.date.today()),
            laxity=__version__,
            seconds=self.seconds,
            repeats=self.repeats,
            cpus=len(self.others),
            interference=interference,
            hog_rate=hog_rate,
            taken=min(others_s / span_s, 1.0),
            **kept,
        )

    def _kept(self, interference: float, hog_rate: float) -> dict[str, Any]:
        """What is seen of protection."""
        if interference < INTERFERENCE_MIN:
            why = (
                f"beside unhindered hogs the kernel took {interference:.2f} times as long, and {INTERFERENCE_MIN} are "
                "needed to see its protection: these CPUs do not interfere enough now"
            )
            return {"skipped": why}
        try:
            curve, of_budget = self._search(interference, hog_rate)
        except RefusedError as refused:
            return {"skipped": f"this machine cannot regulate: {refused}"}
        good = [budget for budget, slowdown in curve if slowdown <= SLOWDOWN_MAX]
        bad = [budget for budget, slowdown in curve if slowdown > SLOWDOWN_MAX]
        threshold = max((budget for budget in good if budget < min(bad, default=sys.maxsize)), default=None)
        kept: dict[str, Any] = {"curve": tuple(curve), "threshold": threshold}
        if threshold is None:
            return kept | {"no_shares": "no budget protects the kernel"}
        kept["of_budget"] = of_budget[threshold]
        try:
            kept["shares"] = {rho: self._shares(threshold, rho) for rho in PUNISHMENTS}
            kept["loose"] = {rho: self._shares(int(LOOSE * hog_rate), rho) for rho in PUNISHMENTS}
        except RefusedError as refused:
            kept["no_shares"] = str(refused)
        return kept

    def _search(self, interference: float, hog_rate: float) -> tuple[list[tuple[int, float]], dict[int, float]]:
        """The slowdown at budgets that are halved until one is small enough, and at one between that and the last."""
        loss = 1 - 1 / interference
        # BWLOCK's first guess: what a throttled hog may have of its time for the slowdown that is allowed.
        guess = hog_rate * (SLOWDOWN_MAX - 1) / SLOWDOWN_MAX / loss
        budget, curve, of_budget = int(4 * guess), [], {}
        while budget >= SMALLEST:
            slowdown, of_budget[budget] = self._locked(budget)
            curve.append((budget, slowdown))
            if slowdown <= SLOWDOWN_MAX:
                break
            budget //= 2
        if len(curve) > 1 and curve[-1][1] <= SLOWDOWN_MAX:
            middle = int((curve[-1][0] * curve[-2][0]) ** 0.5)
            slowdown, of_budget[middle] = self._locked(middle)
            curve.append((middle, slowdown))
        return curve, of_budget

    def _locked(self, budget: int) -> tuple[float, float]:
        """The kernel's slowdown beside hogs with a budget, and what they had of it: medians."""
        tell(f"a budget of {budget / 1e6:.0f} MB/s")
        ratios, parts = [], []
        for _ in range(self.repeats):
            alone = self.kernel()
            beside, hogs = self.beside(("0", False), budget)
            ratios.append(alone / beside)
            cpus = regulated(hogs[0])
            parts.append(sum(cpu["bytes"] for cpu in cpus) / max(sum(cpu["allowed_bytes"] for cpu in cpus), 1))
        return statistics.median(ratios), statistics.median(parts)

    def _shares(self, budget: int, punishment: int) -> Shares:
        """The same with a program that computes on each of the CPUs, and TFS."""
        tell(f"TFS with a punishment of {punishment}, {budget / 1e6:.0f} MB/s")
        ratios, throttled, parts = [], [], []
        for _ in range(self.repeats):
            alone = self.kernel()
            beside, hogs = self.beside((str(punishment), True), budget)
            ratios.append(alone / beside)
            cpus = regulated(hogs[0])
            spans = sum(cpu["periods"] * cpu["period_ns"] for cpu in cpus)
            throttled.append(sum(cpu["throttled_ns"] for cpu in cpus) / max(spans, 1))
            parts.append(sum(cpu["bytes"] for cpu in cpus) / max(sum(cpu["allowed_bytes"] for cpu in cpus), 1))
        return Shares(*(statistics.median(one) for one in (ratios, throttled, parts)))

    # --- Programs -----------------------------------------------------------------------------------------------------

    def kernel(self, budget: int | None = None) -> float:
        """Runs the kernel, under the lock if there is a budget. Bytes a second of its time on a CPU."""
        command = [*self._bandwidth("hog"), "--pattern", "copy", "--for", f"{self.seconds}s"]
        if budget is not None:
            command = [*self._bandwidth("lock"), self.name, "--budget", f"{budget} B/s", "--", *command]
        done = self._start(command, {self.own})
        said, error = done.communicate()
        if done.returncode:
            raise LaxityError(f"laxity bandwidth ended with {done.returncode}: {last(error)}")
        return rate(said)

    def beside(
        self, regulation: tuple[str, bool] | None, budget: int | None = None
    ) -> tuple[float, list[subprocess.Popen[str]]]:
        """The kernel beside hogs, as in `kernel` and `hogs`; hogs are over then, and did not end before the kernel."""
        tail_s = TAIL_S
        for _ in range(TRIES):
            with self.hogs(regulation, tail_s) as hogs:
                speed = self.kernel(budget)
                outlast = all(one.poll() is None for one in hogs)
            if outlast:
                return speed, hogs
            # What they said is of no use; reading it closes their pipes.
            for one in hogs:
                one.communicate()
            tail_s *= 3
        raise LaxityError(
            f"a kernel of {self.seconds:g} s took longer than its hogs, {TRIES} times: too busy a machine"
        )

    @contextlib.contextmanager
    def hogs(self, regulation: tuple[str, bool] | None, tail_s: float) -> Iterator[list[subprocess.Popen[str]]]:
        """Hogs that stream while the context lasts, and are over after it.

        Args:
            regulation: the punishment, and whether a program computes beside each; None: they are not regulated.
            tail_s: by how much they are to outlast a kernel.

        Raises:
            RefusedError: if their CPUs cannot be regulated.
        """
        span = f"{self.seconds + LEAD_S + tail_s}s"
        if regulation is None:
            hog = [*self._bandwidth("hog"), "--for", span]
            hogs = [self._start(hog, {cpu}) for cpu in self.others]
        else:
            punishment, computes = regulation
            lines = []
            for cpu in self.others:
                lines.append(f'taskset -c {cpu} "$@" hog --for {span} >/dev/null & ')
                lines += [f'taskset -c {cpu} "$@" hog --compute --for {span} >/dev/null & '] if computes else []
            cpus = ",".join(str(cpu) for cpu in self.others)
            command = [*self._bandwidth("regulate"), self.name, "--cpus", cpus, "--counter", "software", "--json"]
            command += ["--punishment", punishment] if computes else []
            command += ["--", "sh", "-c", "".join(lines) + "wait", "sh", *self._bandwidth()]
            hogs = [self._start(command, set(self.others) | {self.own})]
        try:
            if regulation is not None:
                self._wait_until_regulated(hogs[0])
            time.sleep(LEAD_S)
            yield hogs
        finally:
            for one in hogs:
                self._end(one)

    def _wait_until_regulated(self, program: subprocess.Popen[str]) -> None:
        """Raises RefusedError if the CPUs cannot be regulated."""
        while program.poll() is None:
            done = self._start([*self._bandwidth("status"), "--json"], {self.own})
            said, error = done.communicate()
            if done.returncode:
                raise LaxityError(f"laxity bandwidth status ended with {done.returncode}: {last(error)}")
            known = {one["arbitration"]: one["cpus"] for one in json.loads(said)["arbitrations"]}
            if len(known.get(self.name, [])) == len(self.others):
                return
            time.sleep(LOOK_S)
        if program.returncode:
            raise RefusedError(last(program.communicate()[1]))

    def _end(self, program: subprocess.Popen[str]) -> None:
        """Waits for a program that ends by itself; Ctrl-C ends it where the run failed."""
        if sys.exc_info()[0] is not None and program.poll() is None:
            program.send_signal(signal.SIGINT)
        try:
            program.wait(TO_END_S * TRIES + self.seconds)
        except subprocess.TimeoutExpired:
            program.kill()
            program.wait()

    def _start(self, command: list[str], cpus: set[int]) -> subprocess.Popen[str]:
        list_of_cpus = ",".join(str(cpu) for cpu in sorted(cpus))
        command = ["taskset", "-c", list_of_cpus, *command]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def _bandwidth(self, *words: str) -> list[str]:
        return [str(self.laxity), "bandwidth", "--folder", str(self.folder), *words]


def rate(said: str) -> float:
    """Bytes a second of a hog's time on a CPU, by what it prints in its end: what others had of the CPU is no slowdown.

    Raises LaxityError if it printed something else.
    """
    found = RATE.match(said)
    if not found:
        raise LaxityError(f"a hog printed no rate, but {said.strip()[:200]!r}")
    number, unit, wall, cpu = found.groups()
    return float(number) * FACTORS[unit] * float(wall) / max(float(cpu), 1e-9)


def regulated(program: subprocess.Popen[str]) -> list[dict[str, int]]:
    """What `laxity bandwidth regulate --json` says of its CPUs. Raises LaxityError if it failed."""
    said, error = program.communicate()
    if program.returncode:
        raise LaxityError(f"laxity bandwidth regulate ended with {program.returncode}: {last(error)}")
    cpus: list[dict[str, int]] = json.loads(said)["cpus"]
    return cpus


def last(said: str) -> str:
    """The last line of what a program said of its failure."""
    return (said.strip().splitlines() or ["it does not say why"])[-1].removeprefix("error: ")


def tell(what: str) -> None:
    """How far the runs are."""
    print(f"{STUDY} live: {what}", file=sys.stderr, flush=True)
