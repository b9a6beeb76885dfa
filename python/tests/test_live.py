"""Live graphs between threads: messages in place, jobs that are complete or not begun, waits that end."""

import gc
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from laxity import live


@pytest.fixture
def pair(registry):
    """Nodes a and b, and a ring for two messages of 64 bytes from a to b."""
    edge = live.EdgeSpec("a", "b", live.Ring(message=64, capacity=2))
    spec = live.Spec("pair", [live.NodeSpec("a", period="10 ms"), "b"], [edge])
    with registry.create(spec) as graph, graph.claim("a") as a, graph.claim("b") as b:
        yield graph, a, b


@pytest.fixture
def events(registry):
    """Nodes a and b, and tokens alone between them."""
    spec = live.Spec("events", [live.NodeSpec("a", period="10 ms"), "b"], [live.EdgeSpec("a", "b")])
    with registry.create(spec) as graph, graph.claim("a") as a, graph.claim("b") as b:
        yield graph, a, b


def send(node, message=b""):
    with node.wait() as job:
        job.send(0, message)


def address(array):
    return array.__array_interface__["data"][0]


# --- messages --------------------------------------------------------------------------------------------------------


def test_arrays_are_written_and_read_in_place(pair):
    _, a, b = pair
    with a.wait() as job:
        sent = np.frombuffer(job.output("b"), np.float64)
        assert sent.shape == (8,)
        sent[:] = np.arange(8) / 3
        written_at = address(sent)
        del sent
    with b.wait() as job:
        received = np.frombuffer(job.input("a"), np.float64)
        assert address(received) == written_at, "nothing was copied"
        np.testing.assert_array_equal(received, np.arange(8) / 3)
        kept = received.copy()
        del received
    assert kept[3] == 1.0


def test_inputs_are_read_only_and_outputs_are_not(pair):
    _, a, b = pair
    with a.wait() as job:
        view = job.output("b")
        assert (view.readonly, view.format, view.shape) == (False, "B", (64,))
        view[:5] = b"hello"
        job.truncate("b", 5)
    with b.wait() as job:
        view = job.input("a")
        assert (view.readonly, view.tobytes()) == (True, b"hello")
        with pytest.raises(TypeError, match="read-only"):
            view[0] = 1
        array = np.frombuffer(view, np.uint8)
        assert not array.flags.writeable
        del array


def test_lengths_travel_and_what_is_not_written_is_empty(pair):
    _, a, b = pair
    floats = np.ones((2, 3), np.float32)
    for message in (b"x" * 64, b"", bytearray(b"abc"), memoryview(b"de"), floats, None):
        with a.wait() as job:
            if message is not None:
                job.send("b", message)
        with b.wait() as job:
            assert job.input("a") == (b"" if message is None else memoryview(message).cast("B"))


def test_a_window_of_messages_is_seen_at_once(registry):
    """Produce 3, consume 2, threshold 5, and 4 at the start, all zero."""
    edge = live.EdgeSpec("a", "b", live.Ring(message=4, capacity=11), produce=3, consume=2, threshold=5, initial=4)
    spec = live.Spec("window", [live.NodeSpec("a", period="10 ms"), "b"], [edge])
    with registry.create(spec) as graph, graph.claim("a") as a, graph.claim("b") as b:
        for first in (4, 7):
            with a.wait() as job:
                for number, message in enumerate(job.outputs("b")):
                    message[:] = (first + number).to_bytes(4, "little")
        windows = []
        a.terminate()
        for job in b:
            with job:
                windows.append([int.from_bytes(message, "little") for message in job.inputs("a")])
                with pytest.raises(live.MessageError, match=r"edge a -> b: a job has 5 messages, .* no number 5"):
                    job.input("a", 5)
    assert windows == [[0, 0, 0, 0, 4], [0, 0, 4, 5, 6], [4, 5, 6, 7, 8]]


def test_a_message_that_is_too_long_is_refused_and_the_job_goes_on(pair):
    _, a, b = pair
    with a.wait() as job:
        with pytest.raises(live.MessageError, match="edge a -> b: a message of 65 bytes exceeds its 64 bytes; enlarge"):
            job.send("b", bytes(65))
        with pytest.raises(live.MessageError, match="65 bytes"):
            job.truncate("b", 65)
        with pytest.raises(TypeError):
            job.send("b", "text")
        job.send("b", b"fits")
    with b.wait() as job:
        assert job.input("a") == b"fits"


def test_edges_are_named_by_their_other_end(registry):
    ring = live.Ring(message=1, capacity=1)
    edges = [live.EdgeSpec("a", "b", ring), live.EdgeSpec("a", "b", ring), live.EdgeSpec("a", "c")]
    spec = live.Spec("names", [live.NodeSpec("a", period="10 ms"), "b", "c"], edges)
    with registry.create(spec) as graph, graph.claim("a") as a:
        with a.wait() as job:
            with pytest.raises(live.UnknownError, match=r"node a: edge to b: there are 2; .* one of \[0, 1\]"):
                job.output("b")
            job.send(0, b"0")
            job.send(1, b"1")
            with pytest.raises(live.MessageError, match="edge a -> c carries tokens alone"):
                job.output("c")
            with pytest.raises(live.UnknownError, match=r"node a: edge from b does not exist; there is no edge"):
                job.input("b")
            with pytest.raises(live.UnknownError, match=r"edge 9 from node a does not exist; there is 0 \(a -> b\)"):
                job.output(9)
        with graph.claim("b") as b, b.wait() as job:
            assert (job.input(0), job.input(1)) == (b"0", b"1")
        assert graph.tokens(("a", "c")) == graph.tokens(2) == 1
        with pytest.raises(live.UnknownError, match="edge a -> b: there are 2"):
            graph.tokens(("a", "b"))


# --- the end of a job ------------------------------------------------------------------------------------------------


def test_memoryviews_end_with_their_job(pair):
    _, a, b = pair
    with a.wait() as job:
        sent = job.output("b")
        lender = sent.obj
    with pytest.raises(ValueError, match="released memoryview"):
        sent[0]
    with pytest.raises(BufferError, match="its job is complete, or has swapped messages"):
        memoryview(lender)
    with b.wait() as job:
        received = job.inputs("a")
    with pytest.raises(ValueError, match="released memoryview"):
        received[0].tobytes()


@pytest.mark.parametrize("look", [lambda view: np.frombuffer(view, np.uint8), lambda view: view[3:5]])
def test_a_job_is_not_complete_while_its_messages_are_in_use(pair, look):
    graph, a, _ = pair
    job = a.wait()
    array = look(job.output("b"))
    for end in (job.complete, lambda: job.__exit__(None, None, None)):
        with pytest.raises(
            BufferError, match=r"node a: 1 of its job's messages or objects are still in use, by numpy arrays"
        ):
            end()
    for end in (a.release, a.terminate):
        with pytest.raises(BufferError, match=r"before you (release|terminate) the node, delete them"):
            end()
    assert graph.status("a").completed == 0
    array[0] = 7
    del array
    job.complete()
    assert graph.status("a").completed == 1


def test_an_exception_leaves_the_job_for_the_next_wait(pair):
    _, a, b = pair
    send(a, b"hello")
    with pytest.raises(ZeroDivisionError), b.wait() as job:  # noqa: PT012 - in the job
        assert job.input("a") == b"hello"
        raise ZeroDivisionError
    with pytest.raises(live.UseError, match="node b: job 0 is over; wait for the next"):
        job.input("a")
    with b.wait() as again:
        assert (again.index, again.input("a").tobytes()) == (0, b"hello")
    with pytest.raises(live.TimedOutError):
        b.wait(timeout="0 ms")


def test_a_job_that_is_dropped_comes_again(pair):
    _, a, b = pair
    send(a, b"hello")
    b.wait()
    with b.wait() as job:
        assert (job.index, job.is_resumed) == (0, False)


def test_a_view_that_outlives_an_exception_keeps_its_memory_and_the_node(pair):
    """Until it is gone no other thread gets the job: the view would change under its reader."""
    graph, a, b = pair
    send(a, b"hello")
    kept = []
    with pytest.raises(ZeroDivisionError), b, b.wait() as job:  # noqa: PT012 - in the job
        kept.append(np.frombuffer(job.input("a"), np.uint8))
        raise ZeroDivisionError
    del job
    with pytest.raises(live.UseError, match="node b: it is released"):
        b.wait()
    with pytest.raises(live.ClaimError, match=r"node b: process .* has it") as claimed:
        graph.claim("b")
    assert (claimed.value.node, claimed.value.pid) == ("b", os.getpid())
    assert kept[0].tobytes() == b"hello"
    kept.clear()
    with graph.claim("b") as again:
        assert again.interrupted == 0
        with again.wait() as job:
            assert job.is_resumed
            assert job.input("a") == b"hello"


def test_an_array_outlives_graph_and_node(registry):
    edge = live.EdgeSpec("a", "b", live.Ring(message=8, capacity=1))
    spec = live.Spec("outlives", [live.NodeSpec("a", period="10 ms"), "b"], [edge])

    def lend():
        graph = registry.create(spec)
        return np.frombuffer(graph.claim("a").wait().output("b"), np.int64)

    array = lend()
    gc.collect()
    assert registry.is_in_use("outlives")
    array[0] = 2**40
    assert array[0] == 2**40
    del array
    assert registry.names() == []


def test_a_node_has_one_job_at_a_time_and_is_not_left_before_its_end(pair):
    graph, a, _ = pair
    job = a.wait()
    for use in (a.wait, a.terminate, a.release, lambda: a.__exit__(None, None, None)):
        with pytest.raises(live.UseError, match="node a: job 0 is not complete; end it with `with job:`"):
            use()
    job.complete()
    assert graph.status("a") == live.NodeStatus(
        pid=os.getpid(), is_lost=False, started=1, completed=1, has_terminated=False
    )


def test_jobs_and_nodes_that_are_over_say_so(pair):
    graph, a, b = pair
    job = a.wait()
    job.complete()
    for use in (job.complete, lambda: job.output("b"), job.__enter__):
        with pytest.raises(live.UseError, match="node a: job 0 is over"):
            use()
    b.release()
    b.release()
    for use in (b.wait, b.terminate, lambda: next(b), lambda: b.spin_for("1 us")):
        with pytest.raises(live.UseError, match="node b: it is released; claim it again"):
            use()
    graph.close()
    with pytest.raises(live.UseError, match="graph pair: it is closed; attach again"):
        graph.claim("b")


# --- waiting ---------------------------------------------------------------------------------------------------------


def test_a_hundred_thousand_tokens_come_in_order_between_two_threads(registry):
    """Each job makes ten of them."""
    edge = live.EdgeSpec("a", "b", live.Ring(message=8, capacity=1000), produce=10, consume=10)
    spec = live.Spec("many", [live.NodeSpec("a", period="10 ms"), "b"], [edge, live.EdgeSpec("a", "b")])

    def produce(node):
        for first in range(0, 100_000, 10):
            with node.wait() as job:
                for number, message in enumerate(job.outputs(0), first):
                    message[:] = number.to_bytes(8, "little")
        node.terminate()

    received = []
    with registry.create(spec) as graph, graph.claim("b") as b, ThreadPoolExecutor() as threads:
        done = threads.submit(produce, graph.claim("a"))
        for job in b:
            with job:
                received += [int.from_bytes(message, "little") for message in job.inputs(0)]
        done.result()
    assert received == list(range(100_000))


def test_a_wait_has_a_time_and_says_whose_it_was(events):
    _, _, b = events
    for timeout in ("0 ms", "1 ms", "120 ms"):
        with pytest.raises(live.TimedOutError, match="node b: no job in time") as over:
            b.wait(timeout=timeout)
        assert over.value.node == "b"
        assert isinstance(over.value, TimeoutError)
    with pytest.raises(ValueError, match='"5" has no unit'):
        b.wait(timeout="5")


def test_others_run_while_a_thread_waits(events):
    """The producer needs the GIL."""
    _, a, b = events
    b.spin_for("10 us")
    with ThreadPoolExecutor() as threads:
        waits = threads.submit(b.wait)
        time.sleep(0.01)
        send_token = a.wait()
        send_token.complete()
        with waits.result() as job:
            assert job.index == 0


def test_a_node_is_for_one_thread_at_a_time(events):
    _, a, b = events
    begins = threading.Event()

    def wait():
        begins.set()
        return b.wait()

    with ThreadPoolExecutor() as threads:
        waits = threads.submit(wait)
        begins.wait()
        while not waits.done():
            try:
                b.wait(timeout="0 ms")
            except live.TimedOutError:
                continue  # it was faster
            except live.UseError as error:
                assert "node b: another thread uses it" in str(error)  # noqa: PT017 - one of two ends
                a.wait().complete()
                break
        waits.result().complete()


def test_ctrl_c_ends_a_wait_and_loses_nothing(events):
    _, a, b = events
    threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        b.wait()
    a.wait().complete()
    with b.wait() as job:
        assert job.index == 0


def test_ctrl_c_ends_a_wait_for_a_graph(registry):
    threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        registry.attach("never", timeout=None)


def test_a_graph_may_be_attached_to_before_it_is_there(registry):
    spec = live.Spec("late", [live.NodeSpec("a", period="10 ms")])
    with ThreadPoolExecutor() as threads:
        attaches = threads.submit(registry.attach, "late", timeout="60 s")
        time.sleep(0.07)
        with registry.create(spec), attaches.result() as graph:
            assert graph.spec == spec
    with pytest.raises(live.GraphNotFoundError, match="graph late: does not exist; create it first") as missing:
        registry.attach("late", timeout="1 ms")
    assert missing.value.graph == "late"


# --- graphs and their nodes ------------------------------------------------------------------------------------------


def test_a_node_that_is_let_go_of_in_the_middle_of_a_job_is_lost(events):
    graph, a, b = events
    with pytest.raises(ZeroDivisionError), a, a.wait():
        raise ZeroDivisionError
    with pytest.raises(live.LostError, match="node a of edge a -> b was lost by process") as lost:
        b.wait()
    assert (lost.value.node, lost.value.edge, lost.value.pid) == ("a", ("a", "b"), os.getpid())
    with pytest.raises(live.TimedOutError):
        b.wait(timeout="0 ms")  # it is said once
    assert graph.status("a") == live.NodeStatus(pid=None, is_lost=True, started=1, completed=0, has_terminated=False)
    with graph.claim("a") as a, a.wait() as job:
        assert job.is_resumed
    b.wait().complete()


def test_the_end_of_a_node_reaches_its_consumers_after_its_tokens(events):
    graph, a, b = events
    for _ in range(3):
        send_token = a.wait()
        send_token.complete()
    graph.terminate("a")
    with pytest.raises(live.TerminatedError, match="node a was ended") as ended:
        a.wait()
    assert (ended.value.node, ended.value.edge) == ("a", None)
    used = 0
    for job in b:
        with job:
            used += 1
    assert used == 3
    with pytest.raises(live.TerminatedError) as ended:
        b.wait()
    assert ended.value.node in ("a", "b")
    assert graph.status("a").has_terminated


def test_ending_a_graph_ends_its_sources(events):
    graph, a, b = events
    graph.terminate()
    assert list(a) == []
    assert list(b) == []


def test_a_graph_says_what_its_nodes_do(events):
    graph, a, b = events
    a.wait().complete()
    assert graph.tokens(0) == 1
    job = b.wait()
    expected = live.NodeStatus(pid=os.getpid(), is_lost=False, started=1, completed=0, has_terminated=False)
    assert graph.status("b") == expected
    job.complete()
    assert graph.tokens(("a", "b")) == 0
    assert graph.memory > 0
    with pytest.raises(live.UnknownError, match="no node is called c; there is a, b"):
        graph.status("c")
    with pytest.raises(live.ClaimError, match=r"node a: process .* has it") as claimed:
        graph.claim("a")
    assert claimed.value.pid == os.getpid()
    with pytest.raises(live.ClaimError, match="every node is claimed") as claimed:
        graph.claim_any()
    assert (claimed.value.node, claimed.value.pid) == (None, None)
    b.release()
    with graph.claim_any() as b:
        assert b.name == "b"


def test_names_are_unique_and_found(registry):
    spec = live.Spec("g", [live.NodeSpec("a", period="10 ms")])
    with registry.create(spec) as graph:
        assert (registry.names(), registry.is_in_use("g"), graph.name) == (["g"], True, "g")
        with pytest.raises(live.GraphExistsError, match="graph g: exists and is in use; attach to it"):
            registry.create(spec)
        with registry.create_or_attach(spec) as again:
            assert again.spec == graph.spec == spec
        other = live.Spec("g", [live.NodeSpec("b", period="10 ms")])
        with pytest.raises(live.RegistryError, match="graph g: exists but is another graph"):
            registry.create_or_attach(other)
    assert (registry.names(), registry.gc()) == ([], [])
    with pytest.raises(live.RegistryError, match=r'graph name "a/b" has 3 bytes; use 1 to 200 without slash'):
        registry.attach("a/b")
    with pytest.raises(live.RegistryError):
        live.Registry("/nonexistent").names()
