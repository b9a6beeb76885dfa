"""Tasks of Laxity's scheduler in the lab's kernel that are Python: a part of `make test-kernel-lab`."""

import json
import os
import py_compile
import re
import subprocess
import sys
from importlib.util import cache_from_source
from pathlib import Path

import kernel_lab
import pytest
from test_kernel_lab import LAXITY, ROOT, judged, lab, programs

__all__ = ["programs"]

PROGRAMS = [ROOT / "tests" / "python" / "kernel_python_tasks.py", ROOT / "examples" / "python" / "in_kernel.py"]
# Prints the modules that the programs import, and what they are made of.
IMPORTS = """
import runpy, sys
for program in sys.argv[1:]:
    runpy.run_path(program, run_name="imported")
import encodings.idna, os, traceback
for module in list(sys.modules.values()):
    for path in [getattr(module, "__file__", None)]:
        if path and path != "<stdin>":
            print(path)
"""


@pytest.fixture(scope="module")
def machine(tmp_path_factory) -> kernel_lab.Machine:
    """A machine with this Python, as far as the programs need it, and with bytecode, which takes the lab long."""
    interpreter = Path(os.path.realpath(sys.executable))
    command = [sys.executable, "-c", IMPORTS, *PROGRAMS]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    found = [Path(path) for path in dict.fromkeys(done.stdout.split())]
    files = {str(path): path for path in [interpreter, *found]}
    folder = tmp_path_factory.mktemp("bytecode")
    for number, path in enumerate(path for path in [*found, *PROGRAMS] if path.suffix == ".py"):
        compiled = folder / f"{number}.pyc"
        mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
        py_compile.compile(str(path), str(compiled), dfile=str(path), doraise=True, invalidation_mode=mode)
        files[cache_from_source(str(path))] = compiled
    return kernel_lab.Machine(files=files)


# The package is where maturin built it.
PRELUDE = f"""
export PYTHONPATH={ROOT / "python"}
in_python() {{ {os.path.realpath(sys.executable)} -s /lab/"$@"; }}
"""


def python(programs, machine, out: Path, script: str, smp: int = 1) -> str:
    """What a script says in the lab."""
    return lab([*programs, *PROGRAMS], out, PRELUDE + script, smp, machine=machine)


def numbers(said: str, name: str) -> dict[str, int]:
    """What one task printed."""
    (line,) = re.findall(rf"^{name} (\w+=.*)$", said, re.MULTILINE)
    return {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", line)}


@pytest.mark.parametrize(("smp", "policy"), [(1, "P-EDF"), (1, "G-RM"), (3, "G-EDF/CE1")])
def test_jobs_are_released_once_a_period_at_events_and_when_threads_say(programs, machine, tmp_path, smp, policy):
    script = f"""
    start --policy {policy} --trace /out/trace.lxt
    in_python kernel_python_tasks.py of_all_kinds || exit 1
    in_python in_kernel.py || exit 2
    laxity sched stop || exit 3
    ended
    in_python in_kernel.py && exit 4
    true
    """
    said = python(programs, machine, tmp_path / "out", script, smp)
    assert "loader 0" in said
    assert "lost" not in said
    assert {name: numbers(said, name) for name in ["fast", "slow", "source"]} == {
        "fast": {"jobs": 20, "by_linux": 0},
        "slow": {"jobs": 5, "by_linux": 0},
        "source": {"jobs": 12, "by_linux": 0},
    }
    # A job for each message, and others see a sporadic task.
    assert numbers(said, "consumer") == {"jobs": 48, "by_linux": 0, "close": 0}
    assert "consumer: 50 jobs, 50 by Laxity" in said
    assert "producer: 50 jobs, 50 by Laxity" in said
    assert "is not in the kernel; `laxity sched start`, as root, loads it" in said
    claims = judged(tmp_path / "out" / "trace.lxt")
    assert claims[f"follows {policy if '/' in policy else f'{policy}/CEm'}"] == "yes"


def test_the_holder_of_a_lock_has_the_priority_of_the_task_that_waits(programs, machine, tmp_path):
    script = """
    start --policy G-FP --trace /out/trace.lxt
    in_python kernel_python_tasks.py inversion || exit 1
    laxity sched stop || exit 2
    ended
    """
    said = python(programs, machine, tmp_path / "out", script)
    trace = tmp_path / "out" / "trace.lxt"
    assert judged(trace)["follows G-FP/CEm"] == "yes"
    (hold_us,) = map(int, re.findall(r"hold_us=(\d+)", said))
    response_us = {name: int(us) for name, us in re.findall(r"(\w+) response_us=(\d+)", said)}
    # The most urgent one waits for the rest of the least urgent one's section, and not for the 300 ms of the third.
    assert 3_000 < hold_us < 200_000, said
    assert hold_us / 4 < response_us["high"] < hold_us + 10_000, said
    assert response_us["middle"] > 300_000, said
    assert response_us["low"] > response_us["middle"], said
    command = [LAXITY, "trace", trace, "export", "--table", "events", "--format", "json", "-o", "-"]
    events = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert any(event["event"] == "priority" and event["of_task"] != event["task"] for event in events), "it inherited"


def test_a_section_is_not_preempted(programs, machine, tmp_path):
    script = """
    start --policy G-EDF --trace /out/trace.lxt
    in_python kernel_python_tasks.py section || exit 1
    laxity sched stop || exit 2
    ended
    """
    said = python(programs, machine, tmp_path / "out", script)
    assert judged(tmp_path / "out" / "trace.lxt")["follows G-EDF/CEm"] == "yes"
    section, urgent = numbers(said, "section"), numbers(said, "urgent")
    # It was released 3 ms before the end of the section, and takes 2 ms before the other one goes on.
    assert section["end_us"] >= 3_000, said
    assert section["end_us"] <= urgent["began_us"], said
    assert section["after_us"] >= urgent["began_us"] + 2_000, said


@pytest.mark.parametrize("end", ["kill -KILL $loader", "laxity sched stop"])
def test_tasks_go_on_under_linux_when_the_scheduler_ends(programs, machine, tmp_path, end):
    script = f"""
    start --policy G-EDF
    in_python kernel_python_tasks.py until_the_end & tasks=$!
    until laxity sched status | grep -q slow; do kill -0 $tasks || exit 1; sleep 0.2; done
    sleep 0.5
    {end} || exit 2
    wait $tasks || exit 3
    ended
    """
    said = python(programs, machine, tmp_path / "out", script)
    assert "state disabled" in said
    for name in ["fast", "slow"]:
        found = numbers(said, name)
        assert found["by_linux"] == 5 < found["jobs"], said


def test_signals_end_each_wait_however_far_away_the_next_release_is(programs, machine, tmp_path):
    # Kept until then, a thread would have Linux's watchdog end the scheduler after half a minute.
    script = """
    start --policy G-EDF --trace /out/trace.lxt
    in_python kernel_python_tasks.py interrupted || exit 1
    sleep 35
    laxity sched stop || exit 2
    ended
    """
    said = python(programs, machine, tmp_path / "out", script)
    assert "loader 0" in said
    assert judged(tmp_path / "out" / "trace.lxt")["follows G-EDF/CEm"] == "yes"
    for name in ["period", "first", "event", "held"]:
        assert 700 <= numbers(said, name)["after_ms"] < 1_500, said
    handled = numbers(said, "handled")
    assert handled["after_us"] < 100_000, said
    assert handled["began_us"] < 5_000, said


def test_what_cannot_be_is_refused(programs, machine, tmp_path):
    script = """
    start --policy G-EDF --trace /out/trace.lxt
    in_python kernel_python_tasks.py misused || exit 1
    laxity sched stop || exit 2
    ended
    """
    said = python(programs, machine, tmp_path / "out", script)
    assert said.startswith("ok\n")
    assert judged(tmp_path / "out" / "trace.lxt")["follows G-EDF/CEm"] == "yes"
