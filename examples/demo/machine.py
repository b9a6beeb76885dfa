"""What the demo ran on."""

from __future__ import annotations

import contextlib
import os
import platform
import resource
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from examples.demo import children
from studies.elliott2015vision.nodes import processor
from studies.elliott2015vision.stabilizers.processes import SERVER as PROGRAM
from studies.elliott2015vision.stabilizers.processes import cpu_seconds, machine_seconds

SERVER = "the soft GPU's server"
BUSY_LOOPS = "busy loops"
LOOK_EVERY_S = 0.2


def describe() -> dict[str, str | int]:
    """The machine, as `laxity.report` wants it."""
    return {
        "cpu": processor(),
        "cpus": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": platform.release(),
        "system": _system(),
        "load": f"load average {os.getloadavg()[0]:.1f} before the start",
    }


class Meter:
    """What uses the CPUs from now on. Servers of soft GPUs are not our children: `look` must see them alive."""

    def __init__(self) -> None:
        self._before = _Times.now()
        self._seen: dict[tuple[str, int], float] = {}
        self._first = dict(_processes())
        self._looked_s = 0.0

    def look(self) -> None:
        """Notes what servers and busy loops have used; may be called as often as one likes."""
        if time.monotonic() - self._looked_s > LOOK_EVERY_S:
            self._looked_s = time.monotonic()
            self._seen |= dict(_processes())

    def shares(self, ours: str) -> list[dict[str, str | float]]:
        """Of the time of all CPUs until now, as `laxity.report` wants it; `ours` are the programs that were started."""
        now, before = _Times.now(), self._before
        total_s = max(now.total_s - before.total_s, 1e-3)
        used = {BUSY_LOOPS: 0.0, SERVER: 0.0}
        for one, cpu_s in self._seen.items():
            # Servers and loops that were there before are not ours.
            used[one[0]] += cpu_s if one not in self._first else 0.0
        children_s = now.children_s - before.children_s
        others_s = now.busy_s - before.busy_s - children_s - used[SERVER]
        seconds = {
            ours: children_s - used[BUSY_LOOPS],
            SERVER: used[SERVER],
            BUSY_LOOPS: used[BUSY_LOOPS],
            "other programs": others_s,
            "the hypervisor, for other machines": now.stolen_s - before.stolen_s,
        }
        shares = {
            name: min(max(spent / total_s, 0.0), 1.0) for name, spent in seconds.items() if spent or name != SERVER
        }
        return [{"name": name, "share": share} for name, share in shares.items()]


class _Times(NamedTuple):
    """Seconds up to now."""

    total_s: float
    """Of all CPUs."""
    busy_s: float
    """Of CPU time, with anything."""
    stolen_s: float
    """By the hypervisor, for other machines: nothing that Linux schedules can run then."""
    children_s: float
    """Of CPU time, with programs that the demo started and that are over."""

    @classmethod
    def now(cls) -> _Times:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return cls(time.monotonic() * (os.cpu_count() or 1), *machine_seconds(), used.ru_utime + used.ru_stime)


def _processes() -> Iterator[tuple[tuple[str, int], float]]:
    """Servers of soft GPUs and busy loops that are there, with the CPU time that they have used."""
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if name := _name(words):
                process = int(folder.name)
                yield (name, process), cpu_seconds(process)


def _name(words: list[bytes]) -> str:
    if os.path.basename(os.fsdecode(words[0])) == PROGRAM:
        return SERVER
    return BUSY_LOOPS if children.BUSY.encode() in words else ""


def _system() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return "unknown distribution"
