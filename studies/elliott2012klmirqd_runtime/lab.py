"""What the kernel lab showed of section V: Laxity's scheduler in Linux, interrupts of devices, an emulated machine.

    python -m studies.elliott2012klmirqd_runtime.lab FOLDER    measures anew (`make study-klmirqd-lab`), in some minutes

FOLDER has laxity, laxity-scheduler and examples of laxity-scx. scripts/kernel_inversions.py has the tasks, and finds
the inversions. The numbers are kept in data/.
"""

from __future__ import annotations

import argparse
import csv
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from studies.common.claims import csv_text
from studies.common.results import Array

SCRIPTS = Path(__file__).parents[2] / "scripts"
DATA = Path(__file__).parent / "data"
INVERSIONS, RUNS = "lab_inversions.csv", "lab_runs.csv"

SETS = (1, 2, 3, 4, 5)
"""Seeds of the task sets that one CPU has."""

SPAN_MS = 2_000
TWO_CPU_SETS, TWO_CPU_SPAN_MS = (1, 2), 1_000
"""With two CPUs only whether a bottom half executes beside its owner is meant."""

HANDLINGS = ("ordinary", "threaded", "klmirqd")
KINDS = ("waiting_bottom_half", "overtaken")


@dataclass(frozen=True)
class LabRuns:
    """The runs of all task sets under one handling, together; times in microseconds.

    Attributes:
        lengths_us: of the inversions, the shortest first.
        kinds: how many inversions began so, and how long they are together.
        seconds: how long the task sets ran.
        interrupts: how many there were.
        top_halves_us: what their top halves took of jobs more urgent than their owners; no part of the inversions.
        bottom_halves_us: how long bottom halves executed.
        co_scheduled_us: of that, while their owner executed on another CPU.
    """

    lengths_us: Array
    kinds: dict[str, tuple[int, float]]
    seconds: float
    interrupts: int
    top_halves_us: float
    bottom_halves_us: float
    co_scheduled_us: float

    @property
    def total_us(self) -> float:
        """How long all inversions are together."""
        return float(self.lengths_us.sum())

    @property
    def longest_us(self) -> float:
        """The longest."""
        return float(self.lengths_us[-1]) if len(self.lengths_us) else 0.0

    def percentile_us(self, percent: float) -> float:
        """So many percent of the inversions are at most that long; nan without inversions."""
        count = len(self.lengths_us)
        return float(self.lengths_us[max(int(np.ceil(count * percent / 100)) - 1, 0)]) if count else float("nan")

    def beyond(self, length_us: float) -> float:
        """The share of the sum that is of inversions longer than that."""
        return float(self.lengths_us[self.lengths_us > length_us].sum()) / max(self.total_us, 1e-9)


@dataclass(frozen=True)
class Lab:
    """What was measured, by handling: with one CPU, and with two."""

    linux: str
    one: dict[str, LabRuns]
    two: dict[str, LabRuns]

    @classmethod
    def read(cls, folder: Path = DATA) -> Lab | None:
        """That of a folder, if it has any."""
        if not (folder / RUNS).exists():
            return None
        runs, inversions = (
            list(csv.DictReader((folder / name).read_text().splitlines())) for name in (RUNS, INVERSIONS)
        )

        def of(cpus: str) -> dict[str, LabRuns]:
            return {
                handling: _together(
                    *(
                        [row for row in rows if (row["cpus"], row["handling"]) == (cpus, handling)]
                        for rows in (runs, inversions)
                    )
                )
                for handling in HANDLINGS
            }

        return cls(runs[0]["linux"], of("1"), of("2"))


def _together(runs: list[dict[str, str]], inversions: list[dict[str, str]]) -> LabRuns:
    def total(column: str) -> int:
        return sum(int(run[column]) for run in runs)

    lengths = {kind: [int(row["length_ns"]) / 1e3 for row in inversions if row["kind"] == kind] for kind in KINDS}
    return LabRuns(
        np.sort(np.array([length for kind in KINDS for length in lengths[kind]])),
        {kind: (len(found), sum(found)) for kind, found in lengths.items()},
        total("span_ms") / 1e3,
        total("interrupts"),
        *(total(f"{name}_ns") / 1e3 for name in ("top_halves", "bottom_halves", "co_scheduled")),
    )


def tabulated(measured: Iterable[tuple[int, int, str, dict[int, Any]]], linux: str) -> dict[str, str]:
    """CSV files by name, of what kernel_inversions found: CPUs, length of a run in ms, handling, and by set."""
    inversions = [["cpus", "handling", "set", "task", "since_ns", "kind", "length_ns"]]
    numbers = ("interrupts", "top_halves_ns", "bottom_halves_ns", "co_scheduled_ns")
    runs = [["linux", "cpus", "handling", "set", "span_ms", *numbers]]
    for cpus, span_ms, handling, sets in measured:
        for seed, found in sets.items():
            head = [str(cpus), handling, str(seed)]
            runs.append([linux, *head, str(span_ms), *(str(getattr(found, name)) for name in numbers)])
            for one in found.inversions:
                inversions.append([*head, one.task, str(one.since_ns), one.kind, str(one.length_ns)])
    return {INVERSIONS: csv_text(inversions), RUNS: csv_text(runs)}


def main() -> int:
    """Measures, and writes what the repository keeps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, default=DATA)
    args = parser.parse_args()
    sys.path.insert(0, str(SCRIPTS))
    import kernel_inversions  # noqa: PLC0415 (found once its folder is on the path)
    import kernel_lab  # noqa: PLC0415

    scheduler = args.folder / "laxity-scheduler"
    programs = [args.folder / "laxity", scheduler, scheduler.with_suffix(".bpf.o")]
    programs.append(args.folder / "examples" / "kernel-network")
    measured = []
    try:
        linux = kernel_lab.fetch_kernel().parent.name.removeprefix("linux-image-")
        for cpus, sets, span_ms in ((1, SETS, SPAN_MS), (2, TWO_CPU_SETS, TWO_CPU_SPAN_MS)):
            for handling in HANDLINGS:
                print(f"{cpus} CPUs, {handling}", flush=True)
                with tempfile.TemporaryDirectory() as out:
                    found = kernel_inversions.run(handling, list(sets), programs, Path(out), span_ms=span_ms, smp=cpus)
                measured.append((cpus, span_ms, handling, found))
    except (kernel_lab.MissingError, kernel_lab.FailedError) as reason:
        print(f"the kernel lab: {reason}", file=sys.stderr)
        return 1
    args.out.mkdir(parents=True, exist_ok=True)
    for name, text in tabulated(measured, linux).items():
        (args.out / name).write_text(text)
        print(args.out / name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
