"""What the paper and its artifact state: numbers in the text, for there are no tables of the figures."""

from __future__ import annotations

import csv
from functools import lru_cache
from importlib.resources import files


def _rows(name: str) -> list[dict[str, str]]:
    text = files("studies.ali2018bwlock").joinpath("data", f"{name}.csv").read_text()
    return list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))


@lru_cache(maxsize=1)
def benchmarks() -> dict[str, dict[str, int]]:
    """Table III: GPU kernel, copy and CPU time of each benchmark alone, in ms."""
    names = {"kernel": "gpu_kernel_ms", "copy": "gpu_copy_ms", "cpu": "cpu_compute_ms"}
    return {row["benchmark"]: {key: int(row[name]) for key, name in names.items()} for row in _rows("benchmarks")}


@lru_cache(maxsize=1)
def thresholds() -> dict[str, int]:
    """The artifact's budget of a CPU for each benchmark, in bytes a second: events of 64 B a ms."""
    return {row["benchmark"]: int(row["events_per_ms"]) * 64_000 for row in _rows("thresholds")}


@lru_cache(maxsize=1)
def throttled_less_percent() -> dict[int, float]:
    """Fig. 10: how much less CPUs are throttled under TFS than under CFS, mean of six benchmarks, by punishment."""
    return {int(row["rho"]): float(row["reduction_percent"]) for row in _rows("fig10") if row["rho"]}


@lru_cache(maxsize=1)
def two_co_runners() -> dict[str, float]:
    """The artifact's histo beside two co-runners on the same cluster: times its time alone, by lock."""
    rows = [row for row in _rows("two_co_runners") if row["cluster_of_co_runners"] == "cortex-a57"]
    return {row["bwlock"]: float(row["kernel_over_table3_solo"]) for row in rows}


SLOWDOWN_FIG1 = 3.3
"""Section I and Fig. 1: histo beside three co-runners, times its time alone."""

SHARES_FIG6 = {0: 0.75, 1: 0.5}
"""Section IV-C4 and Fig. 6: the memory task's share of periods under CFS, and with a punishment of 1 ("roughly")."""

OVERHEAD_US = 1.84
"""Section VI-F: a call of the lock."""
