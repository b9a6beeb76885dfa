"""The published overheads of Brandenburg & Anderson, RTSS 2009 (Tables 2 to 13), for drawing."""

from __future__ import annotations

import numpy as np
from laxity._native import _overhead_points

from studies.common.results import Array


def overhead_us(source: str, quanta: str, statistic: str, plugin: str) -> tuple[Array, Array]:
    """Numbers of tasks, and the overhead in microseconds at each.

    Args:
        source: "release", "scheduling", "context_switch", "ipi_latency", "tick" or "timer_rearming".
        quanta: "aligned" or "staggered".
        statistic: "worst" or "average".
        plugin: such as "CEm".
    """
    tasks, picoseconds = zip(*_overhead_points(f"brandenburg2009-{plugin}-{statistic}-{quanta}", source), strict=True)
    return np.array(tasks, np.float64), np.array(picoseconds, np.float64) / 1e6
