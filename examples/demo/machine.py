"""What the demo ran on."""

from __future__ import annotations

import os
import platform
import resource
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
        "load": f"load average {os.getloadavg()[0]:.1f} before the start",
    }


class Times(NamedTuple):
    """CPU time since the machine started, in ticks: first line of /proc/stat, see proc_stat(5)."""

    total: int
    stolen: int
    """By the hypervisor, for other machines: nothing that Linux schedules can run then."""
    busy: int
    """With anything."""
    ours: int
    """With programs that the demo started and that are over."""

    @classmethod
    def now(cls) -> Times:
        """Up to now."""
        line = Path("/proc/stat").read_text().splitlines()[0]
        # cpu user nice system idle iowait irq softirq steal guest guest_nice; the last two are part of the first two.
        user, nice, system, idle, iowait, irq, softirq, stolen = (int(word) for word in line.split()[1:9])
        busy = user + nice + system + irq + softirq
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        ours = round((used.ru_utime + used.ru_stime) * os.sysconf("SC_CLK_TCK"))
        return cls(busy + idle + iowait + stolen, stolen, busy, ours)

    def since(self, before: Times) -> str:
        """What else than our programs had the CPUs."""
        total = max(self.total - before.total, 1)
        others = max(0, self.busy - before.busy - (self.ours - before.ours)) / total
        stolen = (self.stolen - before.stolen) / total
        return f"Other programs had {others:.0%} of the CPU time, the hypervisor {stolen:.1%}."


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
