"""Many at once: the same results for any number of threads, other Python threads go on, and Ctrl-C works."""

import os
import signal
import sys
import threading
import time

import pyarrow as pa
import pytest

import laxity

# The longest span there is. Were it not interrupted, pytest's time limit would end the tests.
ENDLESS = "87600 h"


def _bytes(table):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize("per", ["workload", "task"])
def test_any_number_of_threads_yields_the_same_bytes(per):
    workloads = laxity.generate_many("uni-medium/short", 24, cap=3.5, seed=1, cpus=4)

    def table(threads):
        policies = ["G-EDF", "P-EDF", "CQm"]
        return _bytes(laxity.simulate_many(workloads, policies, duration="200 ms", seed=9, per=per, threads=threads))

    assert table(1) == table(2) == table(7) == table(None)


@pytest.fixture
def no_forced_switches():
    """No thread loses the GIL before it lets go of it."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1_000)
    yield
    sys.setswitchinterval(before)


def _simulate(workload, duration):
    return laxity.simulate(workload, duration=duration)


def _simulate_many(workload, duration):
    return laxity.simulate_many([workload] * 4, duration=duration)


@pytest.mark.usefixtures("no_forced_switches")
@pytest.mark.parametrize("call", [_simulate, _simulate_many])
def test_another_thread_runs_while_a_simulation_does(call, robot):
    turns = 0
    seen = []

    def simulate():
        before = turns
        call(robot, "300 s")
        seen.append(turns - before)

    thread = threading.Thread(target=simulate)
    thread.start()
    while thread.is_alive():
        turns += 1
        time.sleep(0)  # lets go of the GIL
    assert seen[0] > 0


def _generate_many(_, __):
    return laxity.generate_many("uni-light/short", 10**9, cap=1, seed=1)


@pytest.mark.usefixtures("no_forced_switches")
@pytest.mark.parametrize("call", [_simulate, _simulate_many, _generate_many])
def test_ctrl_c_ends_what_would_take_years(call, robot):
    gate = threading.Event()

    def interrupt():
        gate.wait()
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        # Between these two the main thread keeps the GIL: the signal comes while the call runs.
        gate.set()
        with pytest.raises(KeyboardInterrupt):
            call(robot, ENDLESS)
    finally:
        thread.join()


def test_a_signal_handler_of_ones_own_is_heard(pair):
    class EnoughError(Exception):
        pass

    def handler(*_):
        raise EnoughError

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(EnoughError):
            laxity.simulate(pair, duration=ENDLESS)
    finally:
        signal.signal(signal.SIGALRM, before)
