"""Prints the README's table of speed, from the last lines of the benchmarks in out/bench/*.txt.

    make bench-sim bench-analysis bench-gpu bench-graph bench-sched && python3 scripts/speed.py

The last line of a benchmark is its name and `key=value` pairs; `-` stands for what could not be measured. A figure that
no file has is left out.
"""

import os
import platform
import re
import sys
from datetime import date
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "out" / "bench"

# Benchmark, key, what it is, how it is written.
FIGURES = [
    ("simulator", "jobs_per_cpu_s", "simulated jobs a second of CPU time, 100 tasks on 12 CPUs", "{:,.0f}"),
    ("simulator", "traced_jobs_per_cpu_s", "the same with a trace written", "{:,.0f}"),
    ("simulator", "ratio_to_simso", "faster than SimSo 0.8.5, the least of three workloads", "{:,.0f} times"),
    ("analysis", "geomean_us_all_five", "five tests of global EDF on one task set", "{:,.0f} µs"),
    (
        "analysis",
        "growth_8000_to_1000",
        "`check` of 8,000 tasks, against eight times that of 1,000, the worst of four schedulers",
        "{:.1f} times",
    ),
    ("gpu", "uncontended_ns", "an uncontended lock and unlock of a GPU's token or engine", "{:,.0f} ns"),
    ("gpu", "handoff_ratio", "a hand-over between processes, against that of a raw futex", "{:.2f} times"),
    ("gpu", "run_overhead_percent", "CPU time that arbitration costs the video stabilizer", "{:+.1f} %"),
    ("graph", "same_core_ratio", "a round trip through a live graph, against a raw futex, one CPU", "{:.2f} times"),
    ("graph", "cross_core_ratio", "the same across two CPUs", "{:.2f} times"),
    ("graph", "counter_tokens_per_s", "tokens a second through an edge", "{:,.0f}"),
    ("graph", "ring64_per_s", "messages of 64 B a second through an edge", "{:,.0f}"),
    ("graph", "zero_copy_1MiB_ratio", "a message of 1 MiB, against one of 64 B", "{:.2f} times"),
    ("sched", "release_ratio_fifo", "Laxity's scheduler: release to instruction, against SCHED_FIFO", "{:.2f} times"),
    (
        "sched",
        "preemption_ratio_fifo",
        "a preemption by it, from the last instruction to the first, the same",
        "{:.2f} times",
    ),
    ("sched", "decision_us", "a decision of it, before system calls carry it out", "{:.1f} µs"),
    ("bandwidth", "lock_ns", "an uncontended bandwidth lock and unlock", "{:,.0f} ns"),
    ("bandwidth", "stop_us", "from a budget used up to the CPU's standstill, median", "{:,.0f} µs"),
    ("interpose", "opencl_call_ns", "a call passed through the OpenCL layer", "{:,.1f} ns"),
    ("interpose", "opencl_kernel_us", "a launch under arbitration that is free, OpenCL", "{:.1f} µs"),
    ("interpose", "cuda_call_ns", "a call passed through the CUDA layer", "{:,.1f} ns"),
    ("interpose", "cuda_kernel_us", "a launch under arbitration that is free, CUDA", "{:.1f} µs"),
]


def results(text: str) -> tuple[str, dict[str, float]]:
    """Name and values of a benchmark's last line."""
    name, *pairs = text.strip().splitlines()[-1].split(" ")
    values = dict(pair.split("=") for pair in pairs)
    return name, {key: float(value) for key, value in values.items() if value != "-"}


def machine() -> str:
    """What it was measured on."""
    cpus = Path("/proc/cpuinfo").read_text()
    model = re.search(r"^model name\s*: (.*)$", cpus, re.MULTILINE)
    name = model[1] if model else platform.machine()
    return f"{name}, {os.cpu_count()} CPUs, Linux {platform.release().split('-')[0]}"


def table(values: dict[str, dict[str, float]], where: str, when: date) -> str:
    """The table in Markdown."""
    rows = [
        f"| {what} | {form.format(values[name][key])} |"
        for name, key, what, form in FIGURES
        if key in values.get(name, {})
    ]
    return "\n".join(["| | |", "| --- | ---: |", *rows, "", f"Measured on {when.isoformat()}: {where}."])


if __name__ == "__main__":
    files = sorted(FOLDER.glob("*.txt"))
    if not files:
        sys.exit(f"{FOLDER} is empty: run make bench-sim bench-analysis first")
    latest = date.fromtimestamp(max(file.stat().st_mtime for file in files))
    print(table(dict(results(file.read_text()) for file in files), machine(), latest))
