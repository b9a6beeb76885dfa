"""Pipelines of data objects: they compute what a loop computes, in place, whatever the number of replicas."""

import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from laxity import live

WORDS = 4
JOBS = 40


def tracker(**initial):
    """A camera, a tracker that remembers, a display that draws into the image."""
    return (
        live.Pipeline("tracker", period="33 ms")
        .object("image", 64)
        .delay("points", 8 * WORDS, 1, **initial)
        .node("camera", output="image")
        .node("tracker", input="image", past={"points": 1}, output="points")
        .node("display", input=["points"], inout="image")
    )


# --- random pipelines against a loop ---------------------------------------------------------------------------------


class Described:
    """A random pipeline: which node uses what, for the graph and for a loop of plain Python."""

    def __init__(self, seed):
        rng = random.Random(seed)
        self.replicas = rng.randint(1, 4)
        names = [f"n{number}" for number in range(rng.randint(2, 5))]
        # Each node writes one object; about half of them are delays.
        self.depths = {f"o{name}": rng.choice([0, 0, 1, 2]) for name in names}
        self.uses = {}
        for place, name in enumerate(names):
            earlier = [f"o{other}" for other in names[:place]]
            changed = [o for o in earlier if self.depths[o] == 0 and rng.random() < 0.25]
            read = [o for o in earlier if o not in changed and rng.random() < 0.6]
            # Of any node, also of a later one.
            past = {o: rng.randint(1, depth) for o, depth in self.depths.items() if depth and rng.random() < 0.5}
            self.uses[name] = {"output": [f"o{name}"], "input": read, "inout": changed, "past": past}
        self.initial = {o: np.frombuffer(rng.randbytes(8 * WORDS), np.uint64) for o in self.depths}

    def pipeline(self):
        pipeline = live.Pipeline("random", period="10 ms")
        for name, depth in self.depths.items():
            if depth:
                pipeline.delay(name, 8 * WORDS, depth, self.initial[name])
            else:
                pipeline.object(name, 8 * WORDS)
        for name, uses in self.uses.items():
            pipeline.node(name, **uses)
        return pipeline

    def work(self, name, job, read, past, write):
        """The work of one job: what it finds, mixed, into what it writes. Answers with what it found."""
        uses = self.uses[name]
        found = np.uint64(job + 1) * np.arange(1, WORDS + 1, dtype=np.uint64)
        for number, seen in enumerate([*map(read, uses["input"]), *(past(o, ago) for o, ago in uses["past"].items())]):
            found = found * np.uint64(31) + seen + np.uint64(number)
        for o in uses["inout"]:
            changed = write(o)
            changed += found
            found = found + changed
        for o in uses["output"]:
            write(o)[:] = found
        return found.tolist()

    def loop(self):
        """One node after the other."""
        values = [{o: np.zeros(WORDS, np.uint64) for o in self.depths} for _ in range(JOBS)]

        def past(job):
            return lambda o, ago: values[job - ago][o] if ago <= job else self.initial[o]

        found = {name: [] for name in self.uses}
        for job in range(JOBS):
            for name in self.uses:
                found[name].append(self.work(name, job, values[job].get, past(job), values[job].get))
        return found

    def live(self, graph):
        """A thread a node."""

        def array(view):
            return np.frombuffer(view, np.uint64)

        def run_job(name, job):
            return self.work(
                name,
                job.index,
                lambda o: array(job.read(o)),
                lambda o, ago: array(job.read_past(o, ago)),
                lambda o: array(job.write(o)),
            )

        def run(node):
            try:
                return run_all(node)
            except BaseException:
                # Its exception keeps views of its objects and so the node: the others would not hear that it is lost.
                for name in self.uses:
                    graph.terminate(name)
                raise

        def run_all(node):
            found = []
            with node:
                for _ in range(JOBS):
                    with node.wait() as job:
                        found.append(run_job(node.name, job))
                node.terminate()
            return found

        with ThreadPoolExecutor(len(self.uses)) as threads:
            done = {name: threads.submit(run, graph.claim(name)) for name in self.uses}
            return {name: found.result() for name, found in done.items()}


@pytest.mark.parametrize("seed", range(25))
def test_a_pipeline_computes_what_a_loop_computes(registry, seed):
    described = Described(seed)
    with registry.create(described.pipeline().build(described.replicas)) as graph:
        assert described.live(graph) == described.loop()


# --- objects of a job ------------------------------------------------------------------------------------------------


def test_objects_are_read_and_written_in_place(registry):
    initial = np.arange(WORDS, dtype=np.float64)
    with (
        registry.create(tracker(initial=initial).build(2)) as graph,
        graph.claim("camera") as camera,
        graph.claim("tracker") as track,
        graph.claim("display") as display,
    ):
        with camera.wait() as job:
            image = job.write("image")
            assert (image.readonly, image.format, image.shape) == (False, "B", (64,))
            image[:] = bytes(range(64))
            address = np.frombuffer(image, np.uint8).__array_interface__["data"][0]
        with track.wait() as job:
            seen = np.frombuffer(job.read("image"), np.uint8)
            assert seen.__array_interface__["data"][0] == address, "nothing was copied"
            assert not seen.flags.writeable
            before = np.frombuffer(job.read_past("points", 1), np.float64)
            np.testing.assert_array_equal(before, initial)
            np.frombuffer(job.write("points"), np.float64)[:] = before * 2
            del seen, before
        with display.wait() as job:
            points = np.frombuffer(job.read("points"), np.float64)
            np.testing.assert_array_equal(points, initial * 2)
            assert job.write("image")[:3] == b"\0\1\2"
            del points


def test_objects_end_with_their_job(registry):
    with registry.create(tracker().build(1)) as graph, graph.claim("camera") as camera:
        job = camera.wait()
        view = job.write("image")
        array = np.frombuffer(view, np.uint8)
        with pytest.raises(BufferError, match="node camera: 1 of its job's messages or objects are still in use"):
            job.complete()
        del array
        job.complete()
        with pytest.raises(ValueError, match="released memoryview"):
            view[0]
        with pytest.raises(live.UseError, match="node camera: job 0 is over"):
            job.write("image")


def test_a_node_uses_what_it_declares(registry):
    with registry.create(tracker().build(1)) as graph:
        with graph.claim("camera") as camera, camera.wait() as job:
            with pytest.raises(live.AccessError, match="node camera does not read object points; declare it"):
                job.read("points")
            with pytest.raises(live.AccessError, match="node camera does not read object points of 1 jobs ago"):
                job.read_past("points", 1)
            with pytest.raises(live.AccessError, match="node camera does not write object points"):
                job.write("points")
            with pytest.raises(live.UnknownError, match="node camera: the graph has no object film"):
                job.write("film")
        with graph.claim("tracker") as track:
            track.wait().complete()
        changed = "node display changes object image; get it as what it writes"
        with (
            graph.claim("display") as display,
            display.wait() as job,
            pytest.raises(live.AccessError, match=changed),
        ):
            job.read("image")


# --- descriptions ----------------------------------------------------------------------------------------------------


def test_edges_follow_from_objects_after_those_that_were_declared():
    pipeline = tracker().edge("camera", "display", live.Ring(message=8, capacity=2))
    assert (pipeline.name, pipeline.depth()) == ("tracker", 3)
    spec = pipeline.build(2)
    ends = [(edge.producer, edge.consumer) for edge in spec.edges]
    assert ends[0] == ("camera", "display")
    assert spec.edges[0].channel == live.Ring(message=8, capacity=2)
    assert {("camera", "tracker"), ("tracker", "display")} <= set(ends)
    assert spec == pipeline.build(2)
    assert spec != pipeline.build(3)


def test_replicas_follow_from_response_times():
    """Three nodes one after the other, 10 ms each, are one image every 33 ms at a time, or two if they take 12 ms."""
    bounds = dict.fromkeys(["camera", "tracker", "display"], "10 ms")
    assert tracker().replicas_needed(bounds) == 1
    assert tracker().replicas_needed(bounds | {"display": "20 ms"}) == 2
    with pytest.raises(live.SpecError, match="node camera: its response time is missing"):
        tracker().replicas_needed({"tracker": "1 ms", "display": "1 ms"})
    with pytest.raises(live.UnknownError, match="graph tracker: no node is called lens"):
        tracker().replicas_needed(bounds | {"lens": "1 ms"})
    with pytest.raises(ValueError, match="no unit"):
        tracker().replicas_needed(bounds | {"camera": "1"})


@pytest.mark.parametrize(
    ("pipeline", "text"),
    [
        (live.Pipeline("g", "1 s").object("o", 1).node("a", input="o"), "node a"),
        (live.Pipeline("g", "1 s").object("o", 1).node("a", output="o").node("b", output="o"), "object o"),
        (live.Pipeline("g", "1 s").node("a", input="o"), "node a"),
        (live.Pipeline("g", "1 s").delay("o", 1, 1).node("a", output="o", past={"o": 2}), "node a"),
        (live.Pipeline("g", "1 s").node("a").edge("a", "b"), "edge a -> b"),
        (live.Pipeline("g", "1 s"), "the graph has no node"),
    ],
    ids=["unwritten", "written-twice", "undeclared", "too-old", "no-node", "empty"],
)
def test_what_cannot_be_is_refused_by_name(pipeline, text):
    with pytest.raises(live.SpecError, match=text):
        pipeline.build(1)
    if text != "the graph has no node":
        with pytest.raises(live.SpecError, match=text):
            pipeline.depth()


def test_descriptions_are_checked_where_they_are_made():
    with pytest.raises(ValueError, match="no unit"):
        live.Pipeline("g", period="33")
    with pytest.raises(live.SpecError, match="object d: 8 bytes, but its initial value has 2; give as many"):
        live.Pipeline("g", period="33 ms").delay("d", 8, 1, initial=b"ab")
    with pytest.raises(live.SpecError, match="edge a -> b: no channel is a str"):
        live.Pipeline("g", period="33 ms").edge("a", "b", "ring")
