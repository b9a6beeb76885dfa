"""Vision graphs whose kernels are callables: what they compute, how they end, and what other threads may see."""

import inspect
import random
import re
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from laxity import live, vx

FRAMES = 25


@pytest.fixture
def folder(tmp_path):
    return tmp_path


def motion(folder, frames, compare=None):
    """Images that get brighter, what of them differs from two frames ago, and a list of that."""
    graph = vx.Graph("motion", folder)
    image = graph.object("image", (4, 6), np.uint8)
    gray = graph.delay("gray", (4, 6), np.float32, slots=3, initial=7)
    moving = graph.object("moving", (2,), np.int64)
    results = []

    def read(job):
        job.write(image)[:] = job.index
        return job.index < frames

    def brighten(job):
        job.write(image)[:] += 1

    def convert(job):
        np.divide(job.read(image), 2, out=job.write(gray))

    def difference(job):
        job.write(moving)[:] = job.index, np.count_nonzero(job.read(gray) != job.read(gray, 2))

    graph.input([vx.output(image)], read)
    graph.node("brighten", [vx.inout(image)], brighten)
    graph.node("convert", [vx.input(image), vx.output(gray)], convert)
    graph.node("compare", [vx.input(gray), vx.past(gray, 2), vx.output(moving)], compare or difference)
    graph.output([vx.input(moving)], lambda job: results.append(tuple(job.read(moving))))
    return graph.verify(), results


def test_a_graph_computes_what_a_loop_computes(folder):
    graph, results = motion(folder, FRAMES)
    assert graph.depth == 5, "the callbacks use objects, and count"
    for replicas in [None, 1, 2]:
        results.clear()
        with graph.spawn("300 us", replicas=replicas) as run:
            assert run.wait()
            times = run.times()
        assert results == [(frame, 24) for frame in range(FRAMES)]
        assert (times.begun, times.completed) == (FRAMES, FRAMES)
        assert (np.diff(times.release_ns) == times.period_ns).all()
        assert (times.latency_ns >= 0).all()
        assert times.completion_delay_ns.shape == (FRAMES - 1,)


@pytest.mark.parametrize("false", [False, np.bool_(False)])
def test_an_input_callback_ends_the_graph_by_false_and_kernels_may_answer_anything(folder, false):
    graph = vx.Graph("ends", folder)
    image = graph.object("image", (4,), np.uint8)
    seen = []
    graph.input([vx.output(image)], lambda job: true_until_two(job.index, false))
    graph.node("fill", [vx.inout(image)], lambda job: np.add(job.write(image), 1, out=job.write(image)))
    graph.output([vx.input(image)], lambda job: seen.append(job.index) or 0)
    with graph.verify().spawn("300 us") as run:
        assert run.wait("10 s")
    assert seen == [0, 1, 2]


def true_until_two(index, false):
    return None if index == 0 else np.bool_(True) if index <= 2 else false


@pytest.mark.parametrize("seed", range(4))
def test_random_graphs_with_pauses_compute_what_a_loop_computes(folder, seed):
    rng = random.Random(seed)
    nodes = rng.randint(2, 4)
    reads = [[other for other in range(node) if rng.random() < 0.7] for node in range(nodes)]
    pasts = [[(other, rng.randint(1, 2)) for other in range(nodes) if rng.random() < 0.5] for _ in range(nodes)]

    def work(frame, node, inputs):
        return (sum(inputs) * 31 + 7 * frame + node) % 1_000_003

    values = {}
    for frame in range(FRAMES):
        for node in range(nodes):
            inputs = [values[other, frame] for other in reads[node]]
            inputs += [values.get((other, frame - ago), 5) for other, ago in pasts[node]]
            values[node, frame] = work(frame, node, inputs)

    graph = vx.Graph("random", folder)
    objects = [graph.delay(f"o{node}", 1, np.int64, slots=3, initial=5) for node in range(nodes)]
    found = {}

    def kernel(node, pauses):
        def run(job):
            if pauses.random() < 0.3:
                time.sleep(0.001)
            inputs = [int(job.read(objects[other])[0]) for other in reads[node]]
            inputs += [int(job.read(objects[other], ago)[0]) for other, ago in pasts[node]]
            found[node, job.index] = job.write(objects[node])[0] = work(job.index, node, inputs)

        return run

    for node in range(nodes):
        parameters = [vx.input(objects[other]) for other in reads[node]]
        parameters += [vx.past(objects[other], ago) for other, ago in set(pasts[node])]
        graph.node(f"n{node}", [*parameters, vx.output(objects[node])], kernel(node, random.Random(seed + node)))
    with graph.verify().spawn("200 us", frames=FRAMES, replicas=rng.randint(1, 4)) as run:
        run.wait()
    assert found == values


def test_what_a_kernel_raises_is_the_cause(folder):
    def compare(job):
        if job.index == 3:
            msg = "no such face"
            raise LookupError(msg)

    graph, _ = motion(folder, FRAMES, compare)
    with graph.spawn("300 us") as run, pytest.raises(vx.GraphFailedError, match="node compare, frame 3") as failed:
        run.wait()
    assert (failed.value.node, failed.value.frame) == ("compare", 3)
    assert failed.value.status == "VX_ERROR_GRAPH_ABANDONED"
    assert isinstance(failed.value.__cause__, LookupError)


def test_a_kernel_that_keeps_an_array_fails_and_the_array_stays_readable(folder):
    kept = []
    graph = vx.Graph("keeper", folder)
    image = graph.object("image", 1000, np.uint8)
    graph.node("writer", [vx.output(image)], lambda job: job.write(image).fill(7))
    graph.node("keeper", [vx.input(image)], lambda job: kept.append(job.read(image)))
    with (
        graph.verify().spawn("300 us") as run,
        pytest.raises(vx.GraphFailedError, match="copy what must live") as failed,
    ):
        run.wait()
    assert failed.value.node == "keeper"
    del run
    assert (kept[0] == 7).all()
    assert list(folder.iterdir()) == []


def test_a_kept_array_does_not_keep_the_name_of_its_graph(folder):
    kept = []

    def run(keep):
        graph = vx.Graph("keeper", folder)
        image = graph.object("image", 1000, np.uint8)
        graph.node("keeper", [vx.output(image)], lambda job: kept.append(job.write(image)) if keep else None)
        with graph.verify().spawn("300 us", frames=3) as run:
            run.wait()

    for _ in range(2):
        with pytest.raises(vx.GraphFailedError, match="copy what must live"):
            run(keep=True)
        run(keep=False)
    kept.clear()
    run(keep=False)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("use", ["wait", "wait_for_frames", "close", "__exit__"])
def test_a_kernel_cannot_wait_for_its_own_run(folder, use):
    arguments = {"wait_for_frames": (9,), "__exit__": (None, None, None)}.get(use, ())
    runs, told = [], []

    def kernel(job):
        while not runs:
            time.sleep(0.001)
        assert not runs[0].wait("0 s"), "to look is no wait"
        with pytest.raises(vx.UseError, match=r"a kernel of the run cannot .* wait for itself") as refused:
            getattr(runs[0], use)(*arguments)
        told.append(str(refused.value))

    graph = vx.Graph("inside", folder)
    image = graph.object("image", 10, np.uint8)
    graph.node("n", [vx.output(image)], kernel)
    with graph.verify().spawn("300 us", frames=3) as run:
        runs.append(run)
        assert run.wait("20 s")
    assert len(told) == 3, "the run went on"


def test_a_kernel_may_drop_the_last_reference_to_its_run(folder):
    runs, dropped = [], threading.Event()

    def kernel(job):
        while not runs and not dropped.is_set():
            time.sleep(0.001)
        runs.clear()
        dropped.set()

    graph = vx.Graph("dropped", folder)
    image = graph.object("image", 10, np.uint8)
    graph.node("n", [vx.output(image)], kernel)
    runs.append(graph.verify().spawn("300 us"))
    assert dropped.wait(20)
    until = time.monotonic() + 20
    while list(folder.iterdir()) and time.monotonic() < until:
        time.sleep(0.01)
    assert list(folder.iterdir()) == [], "the graph has ended"


def test_a_graph_that_was_verified_tells_that(folder):
    graph = vx.Graph("once", folder)
    image = graph.object("image", 10, np.uint8)
    graph.node("n", [vx.output(image)], lambda job: None)
    graph.verify()
    for change in [graph.verify, lambda: graph.object("more", 1, np.uint8)]:
        with pytest.raises(RuntimeError, match="its description is used up; spawn what `verify` returned"):
            change()


def test_buffers_of_a_job_that_is_over_cannot_be_had(folder):
    jobs = []
    graph = vx.Graph("over", folder)
    image = graph.object("image", 10, np.uint8)
    graph.node("writer", [vx.output(image)], jobs.append)
    with graph.verify().spawn("300 us", frames=2) as run:
        run.wait()
    with pytest.raises((BufferError, ValueError)):
        jobs[0].write(image)


def test_arrays_are_read_only_where_they_are_read_and_undeclared_ones_are_not_there(folder):
    seen = {}
    graph = vx.Graph("access", folder)
    image = graph.object("image", (2, 3), np.float64)
    other = graph.object("other", 1, np.uint8)
    graph.node("writer", [vx.output(image), vx.output(other)], lambda _: None)

    def reader(job):
        array = job.read(image)
        seen["shape"], seen["writeable"] = array.shape, array.flags.writeable
        for name, use in {"write": job.write, "read": lambda _: job.read(other)}.items():
            with pytest.raises(ValueError, match="the node does not"):
                use(image)
            seen[name] = True

    graph.node("reader", [vx.input(image)], reader)
    with graph.verify().spawn("300 us", frames=1) as run:
        run.wait()
    assert seen == {"shape": (2, 3), "writeable": False, "write": True, "read": True}


def test_stopping_completes_what_was_begun_and_the_graph_can_run_again(folder):
    graph, _ = motion(folder, 10**9)
    for _ in range(2):
        with graph.spawn("300 us") as run:
            assert run.wait_for_frames(3) >= 3
            assert not run.wait("1 us")
            with pytest.raises(vx.SpawnError, match="it runs") as running:
                graph.spawn("300 us")
            assert running.value.status == "VX_ERROR_GRAPH_SCHEDULED"
            run.stop()
            assert run.wait()
            assert run.has_ended
            assert run.times().begun == run.times().completed


def test_what_cannot_be_is_refused_as_openvx_would(folder):
    graph = vx.Graph("two", folder)
    image = graph.object("image", 1, np.uint8)
    for name in ["one", "other"]:
        graph.node(name, [vx.output(image)], lambda _: None)
    with pytest.raises(vx.VerifyError, match="both write it") as refused:
        graph.verify()
    assert refused.value.status == "VX_ERROR_MULTIPLE_WRITERS"
    with pytest.raises(vx.VerifyError, match="another graph"):
        vx.Graph("other", folder).node("n", [vx.input(image)], lambda _: None)
    with pytest.raises(ValueError, match="references"):
        vx.Graph("other", folder).object("o", 1, object)
    assert "needs a budget" in _refused(folder, vx.deadline())
    assert "between 1 and 97" in _refused(folder, vx.fifo(97))
    assert "period" in _refused(folder, vx.other(), period="0 s")


def _refused(folder, policy, period="1 ms"):
    graph, _ = motion(folder, 1)
    with pytest.raises(vx.SpawnError) as refused:
        graph.spawn(period, policy)
    return str(refused.value)


def test_dependencies_are_those_of_the_paper(folder):
    """Paper 003, Example 5.1."""
    graph = vx.Graph("V", folder)
    a = graph.object("A", 1, np.uint8)
    for name, parameter in {"V1": vx.output(a), "V2": vx.inout(a), "V3": vx.input(a)}.items():
        graph.node(name, [parameter], lambda _: None)
    verified = graph.verify()
    found = {(d.producer, d.consumer, d.initial) for d in verified.dependencies() if d.kind == "feedback"}
    assert {("V2", "V1", 3), ("V3", "V1", 3), ("V3", "V2", 3)} <= found
    assert verified.dot().startswith("digraph")


def test_a_run_can_be_recorded_and_its_nodes_watched(folder):
    graph, _ = motion(folder, 10**9)
    with graph.spawn("300 us") as run, run.graph() as shared:
        assert isinstance(shared, live.Graph)
        with shared.record() as recording:
            run.wait_for_frames(5)
            run.stop()
            run.wait()
        assert recording is not None
        assert shared.status("compare").completed >= 5


def test_every_node_has_a_thread(folder):
    names = set()
    graph = vx.Graph("threads", folder)
    for name in ["left", "right"]:
        graph.node(name, [], lambda _: names.add(threading.get_native_id()))
    with graph.verify().spawn("300 us", frames=3) as run:
        run.wait()
    assert len(names) == 2


def test_python_ends_while_a_graph_runs(folder):
    """Threads that run Python end before it does."""
    program = f"""
from laxity import vx
graph = vx.Graph("left", {str(folder)!r})
graph.node("n", [], lambda job: None)
run = graph.verify().spawn("200 us")
run.wait_for_frames(3)
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def shown(code, folder, **names):
    """What `code` defines; its graphs are those of the test."""
    exec(code.replace('vx.Graph("motion")', f'vx.Graph("motion", {str(folder)!r})'), names)
    return names


def test_the_guide_sees_what_moves(folder, capsys):
    guide = (Path(__file__).parents[2] / "docs" / "guides" / "python.md").read_text()
    section = guide.split("## Vision graphs")[1].split("\n## ")[0]
    found = shown(re.findall(r"```python\n(.*?)```", section, re.DOTALL)[0], folder)["found"]
    assert found == [480, 480, *[960] * 28]
    assert capsys.readouterr().out.startswith("[480, 480, 960")


def test_the_documentation_of_the_module_sees_what_moves(folder, capsys):
    text = inspect.getdoc(vx)
    code = textwrap.dedent(text[text.index("    import numpy") : text.index("Which node waits")])
    images = iter(range(300))
    shown(code.replace("33 ms", "300 us"), folder, camera=lambda: next(images) // 100)
    counts = capsys.readouterr().out.split()
    assert [counts.count("0"), counts.count(str(480 * 640))] == [296, 4]


@pytest.mark.parametrize("leave", ["run.close(); os._exit(0)", "del run; gc.collect(); os._exit(0)", "sys.exit(0)"])
def test_a_forked_child_ends_and_its_parents_graph_does_not(folder, leave):
    program = f"""
        import gc, os, sys, time, warnings
        import numpy as np
        from laxity import vx

        warnings.simplefilter("ignore", DeprecationWarning)
        graph = vx.Graph("forked", {str(folder)!r})
        image = graph.object("image", 4, np.uint8)
        graph.input([vx.output(image)], lambda job: None)
        graph.node("n", [vx.input(image)], lambda job: None)
        with graph.verify().spawn("5 ms") as run:
            run.wait_for_frames(2)
            child = os.fork()
            if child == 0:
                uses = [run.wait, run.stop, run.terminate, run.times, run.graph, lambda: run.has_ended]
                for use in [*uses, lambda: run.wait_for_frames(1)]:
                    try:
                        use()
                    except vx.UseError as error:
                        assert "forked" in str(error)
                    else:
                        os._exit(9)
                {leave}
            until = time.monotonic() + 20
            while time.monotonic() < until and not (ended := os.waitpid(child, os.WNOHANG))[0]:
                time.sleep(0.01)
            print(ended[1] if ended[0] else os.kill(child, 9), run.has_ended)
            done = run.times().completed
            print(run.wait_for_frames(done + 3, "5 s") >= done + 3)
    """
    program = textwrap.dedent(program)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout.split()) == (0, ["0", "False", "True"]), ended
    assert list(folder.iterdir()) == []
