"""Tests that were skipped, each with its reason: a pytest plugin that lists them, and a program that prints the list.

    PYTHONPATH=scripts pytest -p skipped ...     appends a line `file: test: reason` for each to the file LAXITY_SKIPPED
    skipped.py FILE                              prints how many FILE lists, by reason

The Rust tests append to the same file (`laxity_testing::skip`).
"""

import os
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def pytest_runtest_logreport(report: Any) -> None:
    """Notes a test, or a file of tests, that pytest skipped; a failure that is expected is no skipped test."""
    path = os.environ.get("LAXITY_SKIPPED")
    if not path or not report.skipped or hasattr(report, "wasxfail"):
        return
    _, _, reason = report.longrepr
    file, _, test = report.nodeid.partition("::")
    reason = " ".join(reason.removeprefix("Skipped: ").split())
    with open(path, "a") as listed:
        listed.write(f"{file}: {test or 'all tests'}: {reason}\n")


pytest_collectreport = pytest_runtest_logreport


def summary(lines: Iterable[str]) -> str:
    """What `make test` prints of a list."""
    tests = defaultdict(list)
    for line in lines:
        file, test, reason = line.rstrip("\n").split(": ", 2)
        tests[reason].append(f"{file}: {test}")
    count = len({test for named in tests.values() for test in named})
    if count == 0:
        return "no test was skipped"
    text = [f"skipped {count} {'test' if count == 1 else 'tests'}:"]
    for reason, named in sorted(tests.items()):
        text += [f"  {reason}", *(f"      {test}" for test in dict.fromkeys(named))]
    return "\n".join(text)


if __name__ == "__main__":
    path = Path(sys.argv[1])
    print(summary(path.read_text().splitlines() if path.exists() else []))
