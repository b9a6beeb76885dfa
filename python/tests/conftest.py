"""What several tests use."""

import gc
import os
import signal
import tempfile
from pathlib import Path

import matplotlib as mpl
import pytest

import laxity
from laxity import live

mpl.use("Agg")

WORKLOADS = Path(__file__).parents[2] / "examples" / "workloads"


@pytest.fixture(autouse=True, scope="session")
def interruptible():
    """Ctrl-C is heard even where a shell started the tests in its background, which ignores it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def robot():
    """The quickstart example: eight tasks on four CPUs, with overheads and random execution times."""
    return laxity.load(WORKLOADS / "quickstart.toml")


@pytest.fixture(scope="session")
def pair():
    """Two tasks on one CPU.

    ms     0 1 2 3 4 5 6 7 8
    fast   # # . . # # . . #      2 every 4
    slow       # #     # #        4 every 10, preempted at 4
    """
    fast = laxity.Task("fast", wcet="2 ms", period="4 ms")
    slow = laxity.Task("slow", wcet="4 ms", period="10 ms")
    return laxity.workload("pair", cpus=1, tasks=[fast, slow])


@pytest.fixture(scope="session")
def overloaded():
    """Both tasks want a CPU of their own; the second job of each misses."""
    tasks = [laxity.Task(name, wcet="3 ms", period="5 ms") for name in ("a", "b")]
    return laxity.workload("overloaded", cpus=1, tasks=tasks)


@pytest.fixture(scope="session")
def robot_trace(robot):
    return laxity.simulate(robot, duration="2 s", seed=1, trace=True).trace


@pytest.fixture
def registry():
    """Live graphs in a folder of their own, where no test leaves anything."""
    with tempfile.TemporaryDirectory(prefix="laxity-python-", dir="/dev/shm") as folder:
        yield live.Registry(folder)
        # Exceptions that a test has caught refer to its variables.
        gc.collect()
        assert os.listdir(folder) == [], "the last one out takes the graph along"
