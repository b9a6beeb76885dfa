"""Live GPU arbitration: threads and processes that share GPUs by context managers."""

import contextlib
import gc
import os
import pickle
import re
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from pathlib import Path

import polars as pl
import pytest
from waiting import wait_until

from laxity import gpu

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples" / "python"


@pytest.fixture
def folder():
    """A folder of its own, where no test leaves anything."""
    with tempfile.TemporaryDirectory(prefix="laxity-python-gpu-", dir="/dev/shm") as path:
        yield path
        gc.collect()
        assert os.listdir(path) == [], "the last one out takes the arbitration along"


@pytest.fixture
def car(folder):
    """One GPU with one token, which is all that threads need to wait for each other."""
    with gpu.Arbitration.create("car", gpus=1, cpus=2, chunk="64 KiB", directory=folder) as car:
        yield car


def rows(car, **conditions):
    """What the snapshot says, as dictionaries."""
    found = car.snapshot().to_pylist()
    return [row for row in found if all(row[key] == value for key, value in conditions.items())]


@contextlib.contextmanager
def in_thread(work):
    """Does `work` in another thread; what that raises is raised at the end."""
    raised = []

    def run():
        try:
            work()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield thread
    finally:
        thread.join()
    if raised:
        raise raised[0]


# --- tokens and engines ----------------------------------------------------------------------------------------------


def test_a_job_holds_a_token_and_engines_while_it_says_so(car):
    with car.client("detector", priority=30) as me:
        assert (me.name, repr(me)) == ("detector", f'<laxity.gpu.Client {me.id} "detector">')
        with me.token(timeout="1 s", length="2 ms") as token:
            assert (token.gpu, token.replica) == (0, 0)
            with token.execution_engine() as engine:
                assert (engine.gpu, engine.name) == (0, "EE")
                assert rows(car, lock="EE")[0]["name"] == "detector"
            with token.copy_engine("h2d") as into, token.copy_engine("d2h") as out:
                assert (into.name, out.name) == ("CE0", "CE1")
                assert len(rows(car, state="holds")) == 3
        assert [row["name"] for row in rows(car, state="idle")] == ["detector"]
        me.rebase(deadline_ns=10**12)
        assert rows(car, state="idle")[0]["deadline_ns"] == 10**12
    assert car.snapshot().num_rows == 4
    assert "1 GPUs, 0 clients, 0 waiting" in str(car)


def test_the_last_reference_unlocks_and_a_token_takes_its_engines_along(car):
    with car.client("a") as me:
        me.token()
        token = me.token()
        engine = token.execution_engine()
        token.copy_engine("d2h")
        assert len(rows(car, state="holds")) == 2, "the copy engine is free: no reference to it is left"
        token.release()
        assert not rows(car, state="holds")
        engine.release()
        token.release()
        with pytest.raises(gpu.UseError, match="was let go of"), token:
            pass
        with pytest.raises(gpu.UseError, match="was let go of"):
            token.execution_engine()


def test_what_was_let_go_of_is_not_entered(car):
    with car.client("detector", priority=30) as me:
        with me.token() as token:
            released, taken_along = token.execution_engine(), token.copy_engine("h2d")
            released.release()
            with pytest.raises(gpu.UseError, match="the engine was let go of; ask the token for it again"), released:
                pytest.fail("entered without the engine")
        with pytest.raises(gpu.UseError, match="the engine was let go of"), taken_along:
            pytest.fail("entered without the token")
        with pytest.raises(gpu.UseError, match="the token was let go of"), token:
            pytest.fail("entered without the token")


def test_a_job_that_waits_without_budget_is_withdrawn_and_asks_again_behind_the_others(folder):
    budgets, granted = {}, []

    def job(car, name):
        with car.client(name) as me:
            budgets[name] = me.budget()
            with me.token():
                granted.append(name)

    # As many CPUs as there are places in the queue of its only token.
    with gpu.Arbitration.create("car", gpus=1, cpus=4, directory=folder) as car:
        with car.client("holder") as me, me.token() as token, in_thread(lambda: job(car, "first")):
            wait_until(lambda: rows(car, name="first", state="waits"))
            with in_thread(lambda: job(car, "second")):
                wait_until(lambda: rows(car, name="second", state="waits"))
                budgets["first"].exhaust()
                budgets["first"].exhaust()
                assert not rows(car, name="first", state="waits")
                budgets["first"].replenish()
                assert [row["position"] for row in rows(car, name="first", state="waits")] == [2]
                token.release()
        assert granted == ["second", "first"]
        # Of a client that is gone: nothing.
        budgets["first"].exhaust()
        assert repr(budgets["first"]) == '<laxity.gpu.Budget of "first">'
        budgets.clear()


def test_a_holder_without_budget_is_told_and_keeps_its_token_until_it_lets_go(car):
    with car.client("holder") as me:
        budget = me.budget()
        with me.token():
            assert not me.is_exhausted
            with in_thread(budget.exhaust):
                pass
            assert me.is_exhausted
            assert rows(car, name="holder", state="holds")
        budget.replenish()
        assert not me.is_exhausted
        with pytest.raises(gpu.UseError, match="another thread"), in_thread(me.budget):
            pass
    with pytest.raises(gpu.UseError, match="released"):
        me.budget()


def test_a_copy_is_broken_into_chunks_that_each_hold_the_engine(car):
    with car.client("a") as me, me.token() as token:
        found = []
        for chunk in token.copy_chunks("h2d", 150_000):
            found.append((chunk.start, chunk.stop))
            assert rows(car, lock="CE0", state="holds")
        assert found == [(0, 65_536), (65_536, 131_072), (131_072, 150_000)]
        assert not rows(car, lock="CE0", state="holds")
        assert list(token.copy_chunks("d2h", 0)) == []
        for _ in token.copy_chunks("d2h", 150_000):
            break
        assert not rows(car, lock="CE1", state="holds"), "after break no reference to the copy is left"


def test_wrong_order_and_wrong_arguments_are_refused_with_the_way_out(car, folder):
    with car.client("a", 1) as me, me.token() as token:
        with pytest.raises(gpu.OrderError, match="take a token, then engines"):
            me.token()
        with pytest.raises(gpu.OrderError, match="between jobs"):
            me.rebase(7)
        with token.copy_engine("h2d"), pytest.raises(gpu.OrderError):
            token.execution_engine()
        with pytest.raises(gpu.ConfigError, match='"h2d"'):
            token.copy_engine("up")
        with pytest.raises(ValueError, match="unit"):
            token.execution_engine(timeout="5")
    with car.client("b") as me, pytest.raises(gpu.UnknownGpuError, match="GPU 1"):
        me.token(1)
    with pytest.raises(gpu.ConfigError, match="priority 100"):
        car.client("c", 100)
    with pytest.raises(gpu.ConfigError, match="one of them"):
        car.client("c", 1, deadline_ns=1)
    with pytest.raises(gpu.ConfigError, match='"prio"'):
        gpu.Arbitration.create("x", gpus=1, engines="priority", directory=folder)
    with pytest.raises(gpu.ConfigError, match="GPUs"):
        gpu.Arbitration.create("x", gpus=0, directory=folder)


# --- names -----------------------------------------------------------------------------------------------------------


def test_processes_that_say_the_same_meet_by_name(folder):
    rules = {"gpus": 2, "cpus": 4, "tokens": 2, "fifo": 3, "engines": "prio", "directory": folder}
    with pytest.raises(gpu.ArbitrationNotFoundError, match="car"):
        gpu.Arbitration.attach("car", directory=folder)
    with gpu.Arbitration.create_or_attach("car", **rules) as car:
        assert (car.name, car.gpus, car.inherits in {True, False}) == ("car", 2, True)
        assert gpu.names(directory=folder) == ["car"]
        with gpu.Arbitration.create_or_attach("car", **rules) as again:
            assert again.gpus == 2
        with pytest.raises(gpu.DifferentError):
            gpu.Arbitration.create_or_attach("car", **rules | {"tokens": 1})
        with pytest.raises(gpu.ArbitrationExistsError):
            gpu.Arbitration.create("car", **rules)
        assert gpu.gc(directory=folder) == []
        assert gpu.look("car", directory=folder).num_rows == 2 * (2 + 3)
    with pytest.raises(gpu.UseError, match="closed"):
        car.client("late")
    fifo = gpu.Arbitration.create("fifo", gpus=1, protocol="k_fmlp", clients=1, directory=folder)
    with fifo, fifo.client("a"), pytest.raises(gpu.FullError):
        fifo.client("b")


def test_errors_survive_a_trip_between_processes():
    error = gpu.TimedOutError("a token of any GPU: not granted in time")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert isinstance(error, TimeoutError)


# --- threads ---------------------------------------------------------------------------------------------------------


def test_other_threads_run_while_one_waits_and_the_holder_inherits_from_the_most_urgent(car):
    order = []

    def wait(name, priority):
        def work():
            with car.client(name, priority) as me, me.token():
                order.append(name)

        return work

    with car.client("holder", 1) as me, contextlib.ExitStack() as threads:
        token = me.token()
        for name, priority in [("first", 10), ("second", 20), ("third", 30)]:
            threads.enter_context(in_thread(wait(name, priority)))
            wait_until(lambda name=name: rows(car, name=name, lock="token"))
        table = pl.from_arrow(car.snapshot())
        holder = table.filter(pl.col("state") == "holds")
        assert holder["name"].to_list() == ["holder"]
        assert holder["effective_priority"].to_list() == [30], "it inherits"
        assert table.filter(pl.col("name") == "third")["client"].to_list() == holder["inherits_from"].to_list()
        token.release()
    assert (order[0], sorted(order)) == ("first", ["first", "second", "third"]), "it came first into the queue"


def test_a_wait_ends_after_its_timeout_and_leaves_no_trace(car):
    def work():
        with car.client("late") as me:
            with pytest.raises(gpu.TimedOutError, match="not granted in time"):
                me.token(timeout="5 ms")
            with pytest.raises(gpu.TimedOutError):
                me.token(timeout="0 s")

    with car.client("holder") as me, me.token(), in_thread(work):
        pass
    assert not rows(car, name="late")


def test_a_client_is_for_its_thread_alone_and_ends_with_it(car):
    kept = []

    def work():
        me = car.client("elsewhere")
        kept.extend([me, me.token()])

    with in_thread(work):
        pass
    # A thread's locks are unlocked when it ends, which is after `join` has returned.
    wait_until(lambda: not rows(car, state="holds"))
    me, token = kept
    for use in (me.token, me.release, token.release, token.execution_engine, lambda: me.rebase(3)):
        with pytest.raises(gpu.UseError, match="client elsewhere: another thread registered it"):
            use()


def test_a_client_that_is_released_lets_go_of_everything(car):
    with car.client("a") as me:
        token = me.token()
        token.execution_engine()
    assert not rows(car, state="holds")
    token.release()
    me.release()
    with pytest.raises(gpu.UseError, match="it is released"):
        me.token()


# --- signals ---------------------------------------------------------------------------------------------------------


def test_ctrl_c_ends_a_wait_in_its_place(car):
    holds, over = threading.Event(), threading.Event()

    def hold():
        with car.client("holder") as me, me.token():
            holds.set()
            over.wait()

    def interrupt():
        wait_until(lambda: rows(car, name="main", state="waits"))
        signal.raise_signal(signal.SIGINT)

    with in_thread(hold):
        holds.wait()
        with car.client("main") as me:
            with in_thread(interrupt), pytest.raises(KeyboardInterrupt):
                me.token()
            assert not rows(car, name="main", state="waits")
            over.set()
            me.token().release()


def test_a_handler_that_raises_nothing_does_not_cost_the_place_in_the_queue(car):
    holds, over, handled = threading.Event(), threading.Event(), []

    def hold():
        with car.client("holder") as me, me.token():
            holds.set()
            over.wait()

    def signals():
        wait_until(lambda: rows(car, name="main", state="waits"))
        signal.raise_signal(signal.SIGUSR1)
        wait_until(lambda: handled)
        assert rows(car, name="main", state="waits"), "it still waits"
        over.set()

    def handle(*_):
        with pytest.raises(gpu.UseError, match="signal interrupted"):
            me.token()
        handled.append(True)

    before = signal.signal(signal.SIGUSR1, handle)
    try:
        with in_thread(hold):
            holds.wait()
            with car.client("main") as me, in_thread(signals), me.token():
                assert handled
    finally:
        signal.signal(signal.SIGUSR1, before)


# --- processes -------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def victim(what, folder):
    """A process that holds something until it is killed."""
    command = [sys.executable, HERE / "gpu_worker.py", what, folder]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "holds\n"
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("what", ["token", "engine"])
def test_what_a_killed_process_held_goes_to_the_next(car, folder, what):
    with victim(what, folder) as process:
        assert rows(car, lock="token")[0]["pid"] == process.pid

        def kill():
            wait_until(lambda: rows(car, name="next", state="waits"))
            process.kill()

        with car.client("next", 50) as me, in_thread(kill), me.token() as token:
            token.execution_engine(timeout="60 s").release()
            assert not rows(car, name="victim")


def test_what_killed_processes_leave_is_collected(folder):
    car = gpu.Arbitration.create("car", gpus=1, directory=folder)
    with victim("token", folder):
        car.close()
        assert gpu.gc(directory=folder) == []
        assert gpu.look("car", directory=folder)["name"].to_pylist()[0] == "victim"
    assert gpu.gc(directory=folder) == ["car"]


def test_a_forked_child_cannot_use_what_its_parent_has(car):
    with car.client("parent") as me, me.token() as token:
        with warnings.catch_warnings():
            # Later versions of Python warn of forks beside threads, which is what this is about.
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            code = 1
            try:
                for use in (me.token, token.execution_engine, token.release, lambda: car.client("child")):
                    with pytest.raises(gpu.UseError, match="forked"):
                        use()
                code = 0
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        assert rows(car, lock="token", state="holds")[0]["name"] == "parent"


# --- the guide -------------------------------------------------------------------------------------------------------


def test_the_guide_shows_what_works(folder):
    text = (EXAMPLES.parents[1] / "docs" / "guides" / "python.md").read_text()
    section = text.split("\n## Live GPUs\n")[1].split("\n## ")[0]
    shown = {}
    for block in re.findall(r"```python\n(.*?)```", section, re.DOTALL):
        exec(block, shown)
    launched, waiting = [], []

    def launch(on, data):
        launched.append((on, data))
        waiting.append(shown["waiting"]("car", directory=folder))

    table = shown["detect"]([b"12", b"345"], launch, directory=folder)
    assert launched == [(0, b"12"), (0, None), (0, b"345"), (0, None)]
    assert list(table["state"]) == ["free"] * 5
    assert all(len(rows) == 0 and list(rows) == ["lock", "position", "name", "priority"] for rows in waiting)


# --- examples --------------------------------------------------------------------------------------------------------


def test_two_processes_share_a_gpu_in_either_order_of_start(folder):
    environment = os.environ | {"LAXITY_DIRECTORY": folder}
    commands = [[sys.executable, EXAMPLES / "gpu_share.py", role, "20"] for role in ("urgent", "patient")]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) for command in commands]
    assert [process.communicate()[0] for process in processes] == ["urgent: 20 jobs\n", "patient: 20 jobs\n"]
    done = subprocess.run([*commands[0][:2], "greedy", "1"], capture_output=True, text=True, check=False)
    assert "usage: gpu_share.py urgent|patient JOBS" in done.stderr
