"""Measures what the study has of the kernel lab: `make study-klmirqd-lab`, some minutes.

    python -m studies.elliott2012klmirqd_runtime.measure FOLDER [--out FOLDER]

FOLDER has laxity, laxity-scheduler and examples of laxity-scx. scripts/kernel_inversions.py has the tasks, and finds
the inversions.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from importlib import import_module
from pathlib import Path

from studies.elliott2012klmirqd_runtime.lab import DATA, HANDLINGS, tabulated

SCRIPTS = Path(__file__).parents[2] / "scripts"

SETS = (1, 2, 3, 4, 5)
"""Seeds of the task sets that one CPU has."""

SPAN_MS = 2_000
TWO_CPU_SETS, TWO_CPU_SPAN_MS = (1, 2), 1_000
"""With two CPUs only whether a bottom half executes beside its owner is meant."""


def main() -> int:
    """Measures, and writes what the repository keeps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, default=DATA)
    args = parser.parse_args()
    sys.path.insert(0, str(SCRIPTS))
    kernel_inversions, kernel_lab = import_module("kernel_inversions"), import_module("kernel_lab")

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
