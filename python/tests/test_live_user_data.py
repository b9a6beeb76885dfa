"""What users keep with nodes and edges, and messages that are handed on without a copy."""

import multiprocessing
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from laxity import live


def described(name="data"):
    ring = live.Ring(message=64, capacity=2)
    edges = [live.EdgeSpec("a", "b", ring), live.EdgeSpec("b", "c", ring), live.EdgeSpec("a", "c")]
    return live.Spec(name, [live.NodeSpec("a", period="1 ms"), "b", "c"], edges)


def write_elsewhere(directory):
    """Another process."""
    with live.Registry(directory).attach("data") as graph:
        graph.node_data("b").write(np.arange(4, dtype=np.float64))


def test_user_data_is_what_any_process_wrote(registry):
    spec = described().with_node_data("b", 32).with_edge_data(("a", "b"), 3)
    assert (spec.node_data, spec.edge_data) == ({"b": 32}, {0: 3})
    with registry.create(spec) as graph:
        assert graph.spec == spec
        data, edge = graph.node_data("b"), graph.edge_data(0)
        assert (len(data), data.read(), data.version) == (32, bytes(32), 0)
        process = multiprocessing.get_context("spawn").Process(target=write_elsewhere, args=(registry.directory,))
        process.start()
        process.join()
        assert process.exitcode == 0
        assert np.frombuffer(data.read()).tolist() == [0, 1, 2, 3]
        edge.write(b"abc")
        assert graph.edge_data(("a", "b")).read_versioned() == (1, b"abc")
        assert len(graph.node_data("a")) == 0
        with pytest.raises(ValueError, match="node b: 1 bytes for its 32 bytes of user data"):
            data.write(b"x")
        with pytest.raises(live.UnknownError):
            graph.node_data("d")
    with pytest.raises(live.UnknownError):
        spec.with_node_data("d", 1)


def test_of_several_writers_of_the_same_value_all_but_one_try_again(registry):
    with registry.create(described().with_node_data("a", 8)) as graph:

        def add(_):
            data = graph.node_data("a")
            while True:
                version, value = data.read_versioned()
                if data.write_if(version, np.frombuffer(value, np.uint64) + np.uint64(1)):
                    return

        with ThreadPoolExecutor(4) as threads:
            list(threads.map(add, range(200)))
        assert np.frombuffer(graph.node_data("a").read(), np.uint64)[0] == 200
        assert graph.node_data("a").version == 200


def test_a_message_is_handed_on_where_it_is(registry):
    spec = described().with_swapping([("a", "b"), ("b", "c")])
    assert spec.swapping == [[0, 1]]
    with registry.create(spec) as graph, graph.claim("a") as a, graph.claim("b") as b, graph.claim("c") as c:
        for number in range(6):
            with a.wait("0 s") as job:
                job.send("b", bytes([number, 2, 3]))
            with b.wait("0 s") as job:
                came = job.input("a")
                kept = came.obj
                job.swap("a", "c")
                with pytest.raises(ValueError, match="released"):
                    came[0]
                with pytest.raises(BufferError, match="swapped"):
                    memoryview(kept)
                job.output("c")[1] += 40
                job.truncate("c", 3)
            with c.wait("0 s") as job:
                assert bytes(job.input("b")) == bytes([number, 42, 3])


def test_messages_are_not_swapped_while_arrays_show_them_or_where_the_graph_does_not_say_so(registry):
    with registry.create(described().with_swapping([0, 1])) as graph, graph.claim("a") as a, graph.claim("b") as b:
        with a.wait("0 s") as job:
            job.send("b", b"x")
        job = b.wait("0 s")
        shown = np.frombuffer(job.input("a"), np.uint8)
        with pytest.raises(BufferError, match="before you swap messages"):
            job.swap("a", "c")
        assert shown[0] == ord("x")
        del shown
        with pytest.raises(live.MessageError, match="there is no number 1"):
            job.swap("a", "c", 0, 1)
        job.swap("a", "c")
        job.complete()
    with registry.create(described("apart")) as graph, graph.claim("a") as a, graph.claim("b") as b:
        with a.wait("0 s") as job:
            job.send("b", b"x")
        with pytest.raises(live.MessageError, match="exchange no buffers"), b.wait("0 s") as job:
            job.swap("a", "c")
    with pytest.raises(live.SpecError, match="its messages are not in shared memory"):
        described().with_swapping([("a", "c")])


def test_the_status_of_a_node_says_that_it_waits(registry):
    with registry.create(described()) as graph, graph.claim("b") as node, ThreadPoolExecutor(1) as thread:
        assert not graph.status("b").is_waiting
        assert not graph.status("b").is_sending
        waiting = thread.submit(lambda: node.wait("20 s"))
        while not graph.status("b").is_waiting:
            assert not waiting.done()
        graph.terminate("b")
        with pytest.raises(live.TerminatedError):
            waiting.result()
