"""Live graphs between processes: killed, forked, spawned, and the examples as people start them."""

import contextlib
import gc
import multiprocessing
import os
import subprocess
import sys
import warnings
from pathlib import Path

import live_worker
import pytest

from laxity import live

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples" / "python"


@contextlib.contextmanager
def worker(work, registry):
    """A process that does `work` until it is killed."""
    command = [sys.executable, HERE / "live_worker.py", work, registry.directory]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def numbers(node):
    """What node b receives, until something else happens."""
    for job in node:
        with job:
            received = int.from_bytes(job.input("a"), "little")
        yield received


# --- death -----------------------------------------------------------------------------------------------------------


def test_a_producer_that_is_killed_is_reported_and_its_successor_goes_on(registry):
    expected = 0
    with registry.create(live_worker.SPEC) as graph, graph.claim("b") as b:
        for _ in range(3):
            with worker("number", registry) as producer:
                with pytest.raises(live.LostError) as lost:  # noqa: PT012 - wherever it is
                    for received in numbers(b):
                        assert received == expected, "nothing is lost and nothing comes twice"
                        expected += 1
                        if received % 500 == 499:
                            producer.kill()
                error = lost.value
                assert (error.node, error.edge, error.pid) == ("a", ("a", "b"), producer.pid)
                assert f"node a of edge a -> b was lost by process {producer.pid}; claim it again" in str(error)
                assert graph.status("a").is_lost
                assert graph.status("a").completed == expected
    assert expected >= 1500


def test_the_next_owner_of_a_dead_process_node_gets_the_job_that_it_had_begun(registry):
    with registry.create(live_worker.SPEC) as graph, graph.claim("b") as b:
        with worker("hang", registry) as producer:
            assert producer.stdout.readline() == "begun\n"
            with pytest.raises(live.ClaimError) as claimed:
                graph.claim("a")
            assert claimed.value.pid == producer.pid
        with pytest.raises(live.LostError):
            b.wait()
        with graph.claim("a") as a:
            assert a.interrupted == 0
            with a.wait() as job:
                assert (job.index, job.is_resumed) == (0, True)
                job.send("b", b"whole")
            assert a.interrupted is None
        with b.wait() as job:
            assert job.input("a") == b"whole"


def test_what_killed_processes_leave_is_collected(registry):
    graph = registry.create(live_worker.SPEC)
    with worker("hang", registry) as producer:
        assert producer.stdout.readline() == "begun\n"
        graph.close()
        assert registry.is_in_use("pair")
        assert registry.gc() == []
    assert not registry.is_in_use("pair")
    assert registry.names() == registry.gc() == ["pair"]
    assert registry.names() == []


# --- children --------------------------------------------------------------------------------------------------------


def in_child(work):
    """Forks, does `work` in the child, and answers whether that raised nothing."""
    with warnings.catch_warnings():
        # Later versions of Python warn of forks beside threads, which is what this is about.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) == 0


def test_a_forked_child_cannot_use_or_end_what_its_parent_has(registry):
    graph = registry.create(live_worker.SPEC)
    a, b = graph.claim("a"), graph.claim("b")
    job = a.wait()

    def misuse():
        uses = [
            lambda: a.wait(timeout="0 ms"),
            lambda: graph.claim("b"),
            lambda: graph.terminate("a"),
            lambda: graph.status("a"),
            lambda: job.send("b", b"child"),
            job.complete,
            a.terminate,
            a.release,
        ]
        for use in uses:
            with pytest.raises(live.UseError, match=r"this process was forked from the one that"):
                use()
        a.__exit__(None, None, None)
        graph.close()

    def destroy():
        nonlocal graph, a, b, job
        del graph, a, b, job
        gc.collect()

    for work in (misuse, destroy):
        assert in_child(work)
    assert registry.is_in_use("pair")
    assert graph.status("a").pid == graph.status("b").pid == os.getpid()
    assert not graph.status("a").has_terminated
    with job:
        job.send("b", b"parent")
    with b, b.wait() as received:
        assert received.input("a") == b"parent"
    a.release()
    graph.close()


def test_a_forked_child_takes_part_when_it_attaches_itself(registry):
    kept = []

    def produce():
        node = live.Registry(registry.directory).attach("pair").claim("a")
        live_worker.number(node, end=5)
        kept.append(node)  # It leaves without a word.

    received = []
    with registry.create(live_worker.SPEC) as graph, graph.claim("b") as b:
        assert in_child(produce)
        with pytest.raises(live.LostError):
            received.extend(numbers(b))
        assert graph.status("a").completed == 5


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_worker_processes_of_multiprocessing_take_part(registry, method):
    child = multiprocessing.get_context(method).Process(
        target=live_worker.count_to_hundred, args=(registry.directory,), daemon=True
    )
    with registry.create(live_worker.SPEC) as graph, graph.claim("b") as b:
        child.start()
        assert list(numbers(b)) == list(range(100))
        child.join()
    assert child.exitcode == 0


# --- examples --------------------------------------------------------------------------------------------------------


def said(program, roles, registry):
    """What processes of an example say together, one for each role, started in this order."""
    environment = os.environ | {"LAXITY_DIRECTORY": registry.directory}
    commands = [[sys.executable, EXAMPLES / program, *role] for role in roles]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) for command in commands]
    outputs = [process.communicate()[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(roles)
    return "".join(outputs)


@pytest.mark.parametrize("roles", [["camera", "filter", "display"], ["display", "filter", "camera"]])
def test_the_pipeline_filters_every_image_in_any_order_of_start(registry, roles):
    text = said("pipeline.py", [[role] for role in roles], registry)
    assert text == "10 images, 45 is the sum of their first pixels, doubled: 90\n"


@pytest.mark.parametrize("roles", [["split", "join"], ["join", "split"]])
def test_fork_and_join_are_processes_that_start_in_any_order(registry, roles):
    text = said("fork_join.py", [[role] for role in roles], registry)
    assert text == "joined 25 times: sum 4950, count 100\n"


def test_what_is_fed_back_comes_two_jobs_later(registry):
    """The same loop without a graph."""
    temperature, ordered, expected = 0, [0, 0], []
    for step in range(20):
        temperature += ordered[step]
        ordered.append(int((200 - temperature) / 4))
        expected.append(str(temperature))
    assert said("feedback.py", [[]], registry).split() == expected


def test_a_role_that_does_not_exist_is_refused():
    command = [sys.executable, EXAMPLES / "pipeline.py", "cinema"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "usage: pipeline.py camera|filter|display" in done.stderr
