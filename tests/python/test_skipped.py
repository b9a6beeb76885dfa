"""What scripts/skipped.py lists of tests that pytest skips, and what it prints of a list."""

import os
import subprocess
import sys
from pathlib import Path

SCRIPTS = Path(__file__).parents[2] / "scripts"
TESTS = """
import pytest

def test_that_passes():
    pass

def test_that_is_skipped():
    pytest.skip("no GPU,\\nnor a soft one")

@pytest.mark.skipif(True, reason="too old")
def test_that_is_skipped_by_a_mark():
    pass

@pytest.mark.xfail
def test_that_is_expected_to_fail():
    assert False
"""


def run(*command, **environment):
    environment = os.environ | {"PYTHONPATH": str(SCRIPTS)} | environment
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, check=True, env=environment
    ).stdout


def test_every_skipped_test_is_listed_with_its_reason_and_no_other_test(tmp_path):
    (tmp_path / "test_some.py").write_text(TESTS)
    (tmp_path / "test_module.py").write_text(
        'import pytest\npytest.importorskip("laxity_none", reason="no such module")'
    )
    listed = tmp_path / "skipped.txt"
    run("-m", "pytest", "-p", "skipped", "--rootdir", tmp_path, tmp_path, LAXITY_SKIPPED=str(listed))
    assert listed.read_text().splitlines() == [
        "test_module.py: all tests: no such module",
        "test_some.py: test_that_is_skipped: no GPU, nor a soft one",
        "test_some.py: test_that_is_skipped_by_a_mark: too old",
    ]
    assert run(SCRIPTS / "skipped.py", listed).startswith(
        "skipped 3 tests:\n  no GPU, nor a soft one\n      test_some.py: "
    )


def test_without_a_list_nothing_is_written(tmp_path):
    (tmp_path / "test_some.py").write_text(TESTS)
    run("-m", "pytest", "-p", "skipped", "--rootdir", tmp_path, tmp_path, LAXITY_SKIPPED="")
    assert run(SCRIPTS / "skipped.py", tmp_path / "skipped.txt") == "no test was skipped\n"


def test_a_test_that_was_skipped_in_two_parts_counts_once(tmp_path):
    listed = tmp_path / "skipped.txt"
    listed.write_text("a.rs: one: no FIFO: denied\na.rs: one: too busy\nb.rs: two: no FIFO: denied\n")
    assert run(SCRIPTS / "skipped.py", listed).splitlines() == [
        "skipped 2 tests:",
        "  no FIFO: denied",
        "      a.rs: one",
        "      b.rs: two",
        "  too busy",
        "      a.rs: one",
    ]
