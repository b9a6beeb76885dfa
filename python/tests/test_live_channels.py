"""Edges through Linux, and event loops that serve several nodes."""

import asyncio
import errno
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from laxity import live

LINKS = [
    live.Fifo(message=100, capacity=4),
    live.Queue(message=100, capacity=4),
    live.Stream(message=100, capacity=4),
]


def pair(channel, **edge):
    edges = [live.EdgeSpec("a", "b", channel, **edge)]
    return live.Spec("pair", [live.NodeSpec("a", period="10 ms"), "b"], edges)


def two_sources(channel=live.Counter()):  # noqa: B008 - it is immutable
    nodes = [live.NodeSpec("a", period="10 ms"), live.NodeSpec("b", period="10 ms"), "x", "y"]
    return live.Spec("sources", nodes, [live.EdgeSpec("a", "x", channel), live.EdgeSpec("b", "y", channel)])


@pytest.mark.parametrize("channel", LINKS, ids=lambda channel: type(channel).__name__)
def test_messages_of_every_kind_arrive_as_they_were_sent(registry, channel):
    def produce(node):
        with node:
            for number in range(20):
                with node.wait() as job:
                    job.send("b", np.full(number % 5, number, np.uint8))
            node.terminate()

    with registry.create(pair(channel)) as graph, graph.claim("b") as b, ThreadPoolExecutor() as threads:
        assert graph.spec.edges[0].channel == channel
        done = threads.submit(produce, graph.claim("a"))
        received = []
        for job in b:
            with job:
                received.append(job.input("a").tobytes())
        done.result()
    assert received == [bytes([number]) * (number % 5) for number in range(20)]


def test_an_address_is_checked_and_used_once(registry):
    with pytest.raises(live.SpecError, match="edge a -> b: somewhere is no address; write one like"):
        pair(live.Stream(message=1, capacity=1, address="somewhere"))
    stream = live.Stream(message=1, capacity=1, address="127.0.0.1:4711")
    nodes = [live.NodeSpec("a", period="10 ms"), "b", "c"]
    with pytest.raises(live.SpecError, match=r"edge a -> c: another edge listens at 127\.0\.0\.1:4711"):
        live.Spec("g", nodes, [live.EdgeSpec("a", "b", stream), live.EdgeSpec("a", "c", stream)])


def test_a_node_that_cannot_listen_is_not_claimed(registry):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with registry.create(pair(live.Stream(message=1, capacity=1, address=address))) as graph:
            with pytest.raises(live.ListenError, match=r"edge a -> b: cannot listen at 127\.0\.0\.1") as refused:
                graph.claim("b")
            assert (refused.value.edge, refused.value.errno) == (("a", "b"), errno.EADDRINUSE)
            assert graph.status("b").pid is None


def test_a_message_that_a_killed_consumer_took_along_is_lost_and_the_next_is_not(registry):
    """Whatever it saw went with it, as it had left the pipe."""
    with registry.create(pair(live.Fifo(message=8, capacity=4))) as graph, graph.claim("a") as a:
        for number in range(2):
            with a.wait() as job:
                job.send("b", bytes([number]))
        worker = [sys.executable, Path(__file__).with_name("live_worker.py"), "see", registry.directory]
        with subprocess.Popen(worker, stdout=subprocess.PIPE) as consumer:
            assert consumer.stdout.readline() == b"seen\n"
            os.kill(consumer.pid, signal.SIGKILL)
        with graph.claim("b") as b:
            with b.wait() as job:
                assert job.is_resumed
                with pytest.raises(live.MessageLostError, match="edge a -> b: message 0 was lost") as lost:
                    job.input("a")
                assert (lost.value.edge, lost.value.token) == (("a", "b"), 0)
            with b.wait() as job:
                assert job.input("a") == b"\1"


# --- event loops -----------------------------------------------------------------------------------------------------


def readable(node):
    return select.select([node], [], [], 0)[0] == [node]


def test_a_node_is_readable_until_a_wait_times_out(registry):
    with registry.create(two_sources()) as graph, graph.claim("a") as a, graph.claim("x") as x:
        assert readable(x), "at first, as no wait has looked at it"
        with pytest.raises(live.TimedOutError):
            x.wait("0 ms")
        assert not readable(x)
        a.wait().complete()
        assert readable(x)
        job = x.wait("0 ms")
        assert readable(x), "there may be more"
        job.complete()
        assert x.fileno() == x.fileno()
        with pytest.raises(live.TimedOutError):
            x.wait("0 ms")
        a.terminate()
        assert readable(x), "an end is news, too"
    with pytest.raises(live.UseError, match="node x: it is released"):
        x.fileno()


def take(node, indices):
    """Jobs that are there now; False once there will be none."""
    try:
        with node.wait("0 ms") as job:
            indices.append(job.index)
    except live.TimedOutError:
        pass
    except live.TerminatedError:
        return False
    return True


def produce(node, count):
    with node:
        for _ in range(count):
            node.wait().complete()
        node.terminate()


@pytest.mark.parametrize("channel", [live.Ring(message=8, capacity=1), *LINKS], ids=lambda kind: type(kind).__name__)
def test_one_selector_serves_two_nodes(registry, channel):
    taken = {"x": [], "y": []}
    with registry.create(two_sources(channel)) as graph, ThreadPoolExecutor() as threads:
        with selectors.DefaultSelector() as selector:
            for name in taken:
                selector.register(graph.claim(name), selectors.EVENT_READ)
            done = [threads.submit(produce, graph.claim(name), 50) for name in ("a", "b")]
            while selector.get_map():
                for key, _ in selector.select():
                    if not take(key.fileobj, taken[key.fileobj.name]):
                        selector.unregister(key.fileobj)
        for producer in done:
            producer.result()
    assert taken == {"x": list(range(50)), "y": list(range(50))}


def test_one_asyncio_loop_serves_two_nodes(registry):
    taken = {"x": [], "y": []}

    async def serve(node):
        loop, over = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(node, lambda: take(node, taken[node.name]) or over.set())
        await over.wait()
        loop.remove_reader(node)

    async def serve_both(graph):
        with graph.claim("x") as x, graph.claim("y") as y:
            done = [asyncio.to_thread(produce, graph.claim(name), 50) for name in ("a", "b")]
            await asyncio.gather(serve(x), serve(y), *done)

    with registry.create(two_sources()) as graph:
        asyncio.run(serve_both(graph))
    assert taken == {"x": list(range(50)), "y": list(range(50))}
