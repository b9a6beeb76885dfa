"""Live graphs leave traces like simulated ones, and their jobs have releases and deadlines."""

import errno
import itertools
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from live_worker import SPEC

import laxity
from laxity import live

MS = 1_000_000


def chain(period="2 ms"):
    """Node b after a, which is a source."""
    nodes = [live.NodeSpec("a", period=period), live.NodeSpec("b", deadline="5 ms")]
    return live.Spec("chain", nodes, [live.EdgeSpec("a", "b")])


@pytest.fixture
def ends(registry):
    with registry.create(chain()) as graph, graph.claim("a") as a, graph.claim("b") as b:
        yield graph, a, b


def run(*nodes, jobs=1):
    for _ in range(jobs):
        for node in nodes:
            node.wait().complete()


# --- traces ----------------------------------------------------------------------------------------------------------


def test_a_recording_is_a_trace_like_any_other(ends):
    graph, a, b = ends
    with graph.record() as recording:
        run(a, b, jobs=10)
    trace = recording.trace
    assert (trace.workload, trace.origin, trace.damage) == ("chain", "live", None)
    assert trace.task_names == ["chain/a", "chain/b"]
    assert trace.check() == []
    jobs = trace.jobs().to_pylist()
    assert [(job["task"], job["job"]) for job in jobs if job["completion_ns"] is not None] == [
        (task, job) for job in range(10) for task in (0, 1)
    ]
    happened = trace.events().column("event").to_pylist()
    assert (happened.count("produce"), happened.count("consume"), happened[-1]) == (10, 10, "end")
    assert trace.metrics()["total"]["completed"] == 20
    assert "chain/a" in trace.gantt_svg()
    assert "a" in trace.gantt_text()
    assert recording.finish().records == len(trace), "it was finished, and is"


def test_a_recording_in_a_file_is_what_the_command_reads(ends, tmp_path):
    graph, a, b = ends
    path = tmp_path / "run.lxt"
    with graph.record(path) as recording:
        run(a, b, jobs=5)
        with pytest.raises(live.UseError, match="the recording goes on; finish it"):
            _ = recording.trace
    trace = laxity.read_trace(path)
    assert trace.to_bytes() == recording.trace.to_bytes() == path.read_bytes()
    assert trace.metrics()["total"]["completed"] == 10


def test_times_of_a_trace_count_from_its_origin(ends):
    graph, a, _ = ends
    with graph.record() as recording:
        before = time.monotonic_ns()
        with a.wait() as job:
            release = job.release_ns
        after = time.monotonic_ns()
    (row,) = recording.trace.jobs().to_pylist()
    assert before <= recording.origin_ns + row["completion_ns"] <= after
    assert recording.origin_ns + row["release_ns"] == release


def test_a_thread_collects_more_than_the_graph_remembers(registry):
    """A hundred jobs of a graph that remembers four: each waits until its predecessor was collected.

    Both nodes run: what comes after the release of a job that does not begin is held back.
    """
    with registry.create(chain().with_recorder(4)) as graph, graph.claim("a") as a, graph.claim("b") as b:
        with graph.record(every="1 ms") as recording:
            for _ in range(100):
                before = recording.collected.records
                run(a, b)
                while recording.collected.records == before:
                    time.sleep(0.001)
        done = recording.finish()
        assert (done.missed, done.lost) == (0, 0)
    assert recording.trace.metrics()["total"]["completed"] == 200


def test_what_was_forgotten_is_counted_and_the_trace_is_cut_off(registry, tmp_path):
    with registry.create(chain().with_recorder(4)) as graph, graph.claim("a") as a:
        run(a, jobs=10)
        recordings = [graph.record(path, every=None) for path in (None, tmp_path / "run.lxt")]
        run(a, jobs=20)
        assert [recording.collected.records for recording in recordings] == [0, 0], "no thread collects by itself"
        for recording in recordings:
            done = recording.finish()
            assert (done.missed, done.lost) == (6, 20)
            assert "cut off" in recording.trace.damage
    with pytest.raises(laxity.TraceError, match="cut off"):
        laxity.read_trace(tmp_path / "run.lxt")


def test_a_dead_process_is_in_the_trace_of_the_others(registry):
    """The recorder is in the graph's memory and not in the process."""
    with registry.create(SPEC) as graph:
        worker = [sys.executable, Path(__file__).with_name("live_worker.py"), "hang", registry.directory]
        with subprocess.Popen(worker, stdout=subprocess.PIPE) as producer:
            assert producer.stdout.readline() == b"begun\n"
            os.kill(producer.pid, signal.SIGKILL)
        with graph.record() as recording:
            pass
    (job,) = recording.trace.jobs().to_pylist()
    assert (job["task_name"], job["job"], job["completion_ns"]) == ("pair/a", 0, None)


def test_what_cannot_be_recorded_says_why(registry, tmp_path):
    with registry.create(chain().with_recorder(0)) as graph, graph.claim("a") as a:
        assert graph.spec.recorder == 0
        with pytest.raises(live.RecorderError, match="graph chain: it has no recorder") as refused:
            graph.record()
        assert refused.value.graph == "chain"
        with pytest.raises(live.RecorderError):
            a.releasing = "on_time"
        assert a.releasing == "early"
        with a.wait() as job:
            assert (job.release_ns, job.deadline_ns) == (None, None)
    with registry.create(chain()) as graph:
        with pytest.raises(FileNotFoundError, match="nowhere"):
            graph.record(tmp_path / "nowhere" / "run.lxt")
        with pytest.raises(ValueError, match="every is nothing"):
            graph.record(every="0 ms")
        with pytest.raises(OSError, match="No space left"):
            graph.record("/dev/full")
    with pytest.raises(live.SpecError, match="1048577 jobs a node exceeds 1048576"):
        chain().with_recorder((1 << 20) + 1)


def recorders():
    """Threads that collect."""
    return [task for task in Path("/proc/self/task").iterdir() if (task / "comm").read_text() == "laxity-recorder\n"]


def test_a_recording_that_is_dropped_ends(registry):
    with registry.create(chain()) as graph:
        recording = graph.record()
        while not recorders():
            time.sleep(0.001)
        del recording
        while recorders():
            time.sleep(0.001)
    assert registry.names() == [], "no recording keeps the graph"


# --- releases and deadlines ------------------------------------------------------------------------------------------


def test_releases_and_deadlines_follow_from_periods_and_tokens(ends):
    graph, a, b = ends
    start = graph.start(time.monotonic_ns() - 50 * MS)
    assert graph.start() == graph.start(7) == start, "the first counts"
    released = []
    for number in range(3):
        with a.wait() as job:
            assert job.release_ns == start + number * 2 * MS
            assert job.deadline_ns == job.release_ns + 2 * MS
        with b.wait() as job:
            released.append(job.release_ns)
            assert job.deadline_ns == job.release_ns + 5 * MS
    assert released[0] >= start
    assert all(later >= earlier + 2 * MS for earlier, later in itertools.pairwise(released))


def test_on_time_a_wait_ends_no_sooner_than_the_release(ends):
    graph, a, _ = ends
    assert a.releasing == "early"
    before = time.monotonic_ns()
    a.releasing = "on_time"
    assert a.releasing == "on_time"
    start = graph.start()
    assert before <= start <= time.monotonic_ns()
    for number in range(5):
        with a.wait() as job:
            assert job.release_ns == start + number * 2 * MS <= time.monotonic_ns()
    with pytest.raises(ValueError, match='releasing is "late"; use "early" or "on_time"'):
        a.releasing = "late"


def test_on_time_a_wait_may_time_out_before_the_release(registry):
    with registry.create(chain(period="1 h")) as graph, graph.claim("a") as a:
        a.releasing = "on_time"
        run(a)
        for timeout in ("0 ms", "1 ms", "60 ms"):
            with pytest.raises(live.TimedOutError):
                a.wait(timeout)
        a.releasing = "early"
        with a.wait() as job:
            assert job.release_ns > time.monotonic_ns()


# --- schedulers ------------------------------------------------------------------------------------------------------


def in_a_thread(work):
    """A thread of its own, as it stays scheduled as it was asked to be."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(work).result()


def test_priorities_rise_along_the_graph(registry):
    def priority(node):
        node.schedule_fifo(10)
        run(node)
        return os.sched_getscheduler(0), os.sched_getparam(0).sched_priority

    with registry.create(chain()) as graph:
        for name, expected in [("a", 10), ("b", 11)]:
            with graph.claim(name) as node:
                try:
                    found = in_a_thread(lambda node=node: priority(node))
                except live.ScheduleError as error:
                    assert (error.node, error.errno) == (name, errno.EPERM)  # noqa: PT017 - as the user may
                    run(node)
                else:
                    assert found == (os.SCHED_FIFO, expected)


def test_what_linux_refuses_is_said_and_the_thread_runs_on_as_before(registry):
    with registry.create(chain()) as graph, graph.claim("a") as a:
        with pytest.raises(
            ValueError, match="base priority 97 gives the deepest node 98; all must lie between 1 and 97"
        ):
            a.schedule_fifo(97)
        with pytest.raises(ValueError, match="raise the base"):
            a.schedule_fifo(0)
        with pytest.raises(ValueError, match="no unit"):
            a.schedule_deadline("3")
        with pytest.raises(live.ScheduleError, match="node a: Linux does not schedule it by SCHED_DEADLINE") as refused:
            in_a_thread(lambda: a.schedule_deadline("3 ms"))  # of 2 ms
        assert (refused.value.node, refused.value.errno) in [("a", errno.EINVAL), ("a", errno.EPERM)]
        run(a)
