"""Processes that end when we do: those of a live run, and the server of its soft GPU."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from laxity import LaxityError

SERVER = "laxity-softgpu-server"
TO_END_S = 10.0
"""How long a process may take to end when it is asked to."""
BETWEEN_LOOKS_S = 0.05


class Processes:
    """Processes, started one by one. Leaving the context ends all of them that are not over.

    They get no Ctrl-C of the terminal: our process decides when they end. If it is killed, Linux ends them.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = dict(environment)
        self._all: list[tuple[str, subprocess.Popen[bytes]]] = []
        self._needed: list[tuple[str, subprocess.Popen[bytes]]] = []

    def start(
        self,
        name: str,
        command: Sequence[str | Path],
        output: int | IO[bytes],
        errors: int | IO[bytes],
        *,
        is_needed: bool = True,
    ) -> subprocess.Popen[bytes]:
        """Starts one, whose failure counts if it is needed. LaxityError if there is no such program."""
        if shutil.which(command[0], path=self.environment.get("PATH")) is None:
            raise LaxityError(f"{command[0]} cannot be started: it is not there, or no program")
        try:
            process = subprocess.Popen(
                [*_ended_with_us(), *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                env=self.environment,
                start_new_session=True,
            )
        except OSError as error:
            raise LaxityError(f"{command[0]} cannot be started: {error.strerror}") from error
        self._all.append((name, process))
        if is_needed:
            self._needed.append((name, process))
        return process

    def numbers(self) -> set[int]:
        """Of all processes that were started, ended ones too."""
        return {process.pid for _, process in self._all}

    def first_failure(self) -> tuple[str, int] | None:
        """A process that ended with another status than 0, and that status."""
        ended = ((name, process.poll()) for name, process in self._needed)
        return next(((name, status) for name, status in ended if status not in (None, 0)), None)

    def are_over(self, names: set[str]) -> bool:
        """Whether all of these have ended."""
        return all(process.poll() is not None for name, process in self._all if name in names)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for signal_number in (signal.SIGTERM, signal.SIGKILL):
            for _, process in self._all:
                if process.poll() is None:
                    process.send_signal(signal_number)
            until = time.monotonic() + TO_END_S
            for _, process in self._all:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(max(0.0, until - time.monotonic()))


def _ended_with_us() -> list[str]:
    """What a command begins with so that it gets a SIGTERM when our process ends: prctl(2), PR_SET_PDEATHSIG."""
    program = shutil.which("setpriv")
    return [program, "--pdeathsig", "TERM", "--"] if program else []


def server_of(gpu: str) -> int | None:
    """The process number of a soft GPU's server, while there is one."""
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if len(words) > 1 and Path(os.fsdecode(words[0])).name == SERVER and words[1] == gpu.encode():
                return int(folder.name)
    return None


def cpu_seconds(process: int) -> float:
    """CPU time of a process and its threads; 0 for one that is gone."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return 0.0
    return sum(_ticks(stat)[:2]) / os.sysconf("SC_CLK_TCK")


def _ticks(stat: str) -> list[int]:
    """Of CPU time in /proc/PID/stat: in user mode and in the kernel, then the same of its ended children."""
    # The name, in parentheses, may contain anything; what is wanted are fields 14 to 17.
    return [int(field) for field in stat.rpartition(")")[2].split()[11:15]]


def other_seconds(ours: set[int]) -> float:
    """CPU time so far of all processes of this machine but these, their ended children's included."""
    total = 0.0
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) not in ours:
            with contextlib.suppress(OSError):
                total += sum(_ticks((folder / "stat").read_text()))
    return total / os.sysconf("SC_CLK_TCK")


def machine_seconds() -> tuple[float, float]:
    """CPU time of everything that ran on this machine since it started, and what its host kept from it (steal)."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    user, nice, system, _idle, _io_wait, irq, soft_irq, steal, *_ = (int(field) for field in fields)
    ticks = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + irq + soft_irq) / ticks, steal / ticks


def end_server(gpu: str) -> None:
    """Ends the server of a soft GPU that no process uses any more, if it has not ended by itself."""
    server = server_of(gpu)
    if server is None:
        return
    with contextlib.suppress(ProcessLookupError):
        os.kill(server, signal.SIGTERM)
    until = time.monotonic() + TO_END_S
    while server_of(gpu) is not None and time.monotonic() < until:
        time.sleep(BETWEEN_LOOKS_S)
