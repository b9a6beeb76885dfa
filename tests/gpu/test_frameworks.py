"""Frameworks that know nothing of Laxity, on this machine's GPU, under arbitration: bit-equal results, legal traces.

`make test-gpu` runs it. Where there is no GPU, or a framework is not installed, tests are skipped by name.
"""

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LAXITY = Path(os.environ.get("LAXITY", ROOT / "target" / "release" / "laxity"))
# Whose frameworks: the python3 that programs here would use.
PYTHON = os.environ.get("LAXITY_CUDA_PYTHON", sys.executable)
HANG_S = 300

pytestmark = pytest.mark.skipif(not Path("/dev/nvidiactl").exists(), reason="no NVIDIA GPU on this machine")

FRAMEWORKS = ["torch", "cupy", "jax", "triton"]


def program(name: str, *arguments: object) -> list[str]:
    """A program of that framework."""
    found = subprocess.run(
        [PYTHON, "-c", f"import importlib.util as u; exit(u.find_spec('{name}') is None)"], check=False
    )
    if found.returncode != 0:
        pytest.skip(f"{name} is not installed for {PYTHON}")
    return [PYTHON, str(Path(__file__).with_name(f"with_{name}.py")), *map(str, arguments)]


def run(command: list[str]) -> str:
    """What it prints, if it succeeds."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stderr[-4000:]}"
    return done.stdout


def laxity(*arguments: object) -> str:
    """What the command prints."""
    return run([str(LAXITY), *map(str, arguments)])


def arbitrated(log: Path, command: list[str], *options: str) -> list[str]:
    """The program under arbitration, with a log."""
    return [str(LAXITY), "gpu", "exec", "--only", "cuda", "--log", str(log), *options, "--", *command]


def check(log: Path, trace: Path) -> dict:
    """The metrics of a trace, which is legal."""
    laxity("gpu", "trace", log, "-o", trace)
    laxity("trace", trace, "check")
    return json.loads(laxity("trace", trace, "metrics", "--json"))


@pytest.fixture(scope="module")
def alone() -> dict[str, str]:
    """What each program printed without Laxity."""
    return {}


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *((name, ()) for name in FRAMEWORKS),
        ("torch", ("--chunk", "64 KiB", "--token", "job")),
        ("torch", ("--suspend", "--batch", "1")),
    ],
)
def test_results_are_bit_equal_and_the_trace_is_legal(name, options, alone, tmp_path):
    """Whatever the settings."""
    command = program(name)
    if name not in alone:
        alone[name] = run(command)
        assert alone[name].endswith("end\n")
    assert run(arbitrated(tmp_path / "log", command, *options)) == alone[name]
    check(tmp_path / "log", tmp_path / "run.lxt")


def test_two_programs_at_a_time_have_the_results_that_each_has_alone(tmp_path):
    """And no engine does two operations at once: the trace says so."""
    commands = [program("torch", 30), program("cupy", 200)]
    wanted = [run(command) for command in commands]
    running = [
        subprocess.Popen(
            arbitrated(tmp_path / "log", command, "--priority", priority), stdout=subprocess.PIPE, text=True
        )
        for command, priority in zip(commands, ["50", "10"], strict=True)
    ]
    said = [child.communicate(timeout=HANG_S)[0] for child in running]
    assert said == wanted
    check(tmp_path / "log", tmp_path / "run.lxt")


@pytest.fixture
def arbitration():
    """The name of an arbitration that outlives its programs."""
    name = f"killed-{uuid.uuid4().hex[:8]}"
    rules = ["--gpus", "1", "--engine-order", "priority", "--fifo-length", "1"]
    keeper = subprocess.Popen(
        [LAXITY, "gpu", "create", name, *rules], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    wait_until(lambda: name in laxity("gpu", "list"))
    yield name
    keeper.send_signal(signal.SIGINT)
    assert keeper.wait(HANG_S) in (0, 130)


def wait_until(is_so) -> None:
    """Or fails, after a long time."""
    deadline = time.monotonic() + HANG_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_a_program_that_is_killed_in_the_middle_holds_nothing(arbitration, tmp_path):
    """The next one has its results, and then no client is left."""
    victim, next_one = program("torch", 1_000_000), program("cupy", 2)
    wanted = run(next_one)
    for _ in range(3):
        child = subprocess.Popen(
            arbitrated(tmp_path / "log", victim, "--name", arbitration),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        wait_until(lambda: "with_torch" in laxity("gpu", "top", arbitration, "--once"))
        time.sleep(0.5)
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        assert run(arbitrated(tmp_path / "log", next_one, "--name", arbitration)) == wanted
    wait_until(lambda: "with_" not in laxity("gpu", "top", arbitration, "--once"))


def test_the_gpu_and_its_interrupts_are_found():
    """As the kernel's files show them."""
    found = json.loads(laxity("gpu", "irq", "--json"))
    assert any(gpu["driver"] == "nvidia" for gpu in found["gpus"]), found
