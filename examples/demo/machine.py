"""What the demo ran on."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import NamedTuple


def describe() -> dict[str, str | int]:
    """The machine, as `laxity.report` wants it."""
    return {
        "cpu": _cpu(),
        "cpus": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": platform.release(),
        "system": _system(),
    }


class Times(NamedTuple):
    """CPU time since the machine started, in ticks: first line of /proc/stat, see proc_stat(5)."""

    total: int
    stolen: int
    """By the hypervisor, for other machines: nothing that Linux schedules can run then."""

    @classmethod
    def now(cls) -> Times:
        """Up to now."""
        line = Path("/proc/stat").read_text().splitlines()[0]
        # cpu user nice system idle iowait irq softirq steal guest guest_nice; the last two are part of the first two.
        ticks = [int(word) for word in line.split()[1:9]]
        return cls(sum(ticks), ticks[7])

    def stolen_since(self, before: Times) -> float:
        """Which part of all CPU time was stolen since then, 0 to 1."""
        return (self.stolen - before.stolen) / max(self.total - before.total, 1)


def _cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.machine()


def _system() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return "unknown distribution"
