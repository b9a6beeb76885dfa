"""Latest-value edges: the newest complete value, in place, and none before the first."""

import pytest

import laxity
from laxity import live


@pytest.fixture
def spec():
    nodes = [live.NodeSpec("camera", period="33 ms"), live.NodeSpec("fusion", period="50 ms")]
    return live.Spec("fusion", nodes, latest=[("camera", "fusion", 16)])


def test_a_job_reads_what_the_newest_complete_job_wrote(registry, spec):
    with registry.create(spec) as graph, graph.claim("camera") as camera, graph.claim("fusion") as fusion:
        with fusion.wait("0 ms") as job:
            assert job.latest("camera") is None
        for number in range(5):
            with camera.wait("0 ms") as job:
                job.write_latest("fusion", bytes([97 + number]) * 7)
        with fusion.wait("0 ms") as reading:
            value, writer = reading.latest("camera")
            assert (bytes(value), writer, value.readonly) == (b"eeeeeee", 4, True)
            # It stays, however many follow.
            for _ in range(3):
                with camera.wait("0 ms") as job:
                    job.latest_output("fusion", 2)[:2] = b"zz"
            assert bytes(value) == b"eeeeeee"
            assert bytes(reading.latest("camera")[0]) == b"eeeeeee"
        with fusion.wait("0 ms") as job:
            assert bytes(job.latest("camera")[0]) == b"zz"
        # One that is not asked for is empty, and one as long as can be has all.
        with camera.wait("0 ms"):
            pass
        with fusion.wait("0 ms") as job:
            assert (len(job.latest("camera")[0]), job.latest("camera")[1]) == (0, 8)
        with camera.wait("0 ms") as job:
            assert len(job.latest_output("fusion")) == 16
        with fusion.wait("0 ms") as job:
            assert len(job.latest("camera")[0]) == 16


def test_what_does_not_fit_or_is_not_there_is_refused(registry, spec):
    with registry.create(spec) as graph, graph.claim("camera") as camera, camera.wait("0 ms") as job:
        with pytest.raises(live.MessageError, match="camera -> fusion: a value of 17 bytes exceeds its 16 bytes"):
            job.write_latest("fusion", bytes(17))
        with pytest.raises(live.UnknownError, match="node camera: there is no latest-value edge to radar"):
            job.latest_output("radar")
        with pytest.raises(live.UnknownError, match="there is no latest-value edge from fusion"):
            job.latest("fusion")
    with pytest.raises(live.UnknownError, match="no node is called radar"):
        live.Spec("g", [live.NodeSpec("a", period="1 ms")], latest=[("a", "radar", 1)])


def test_a_graph_of_a_workload_says_how_long_values_are():
    nodes = [{"name": name, "period": "10 ms", "wcet": "1 ms"} for name in ("camera", "planner")]
    graph = {"name": "car", "node": nodes, "latest": ["camera -> planner"]}
    spec = live.Spec.from_workload(laxity.workload("w", cpus=1, graphs=[graph]))
    assert spec.latest == [("camera", "planner", 0)]
    assert spec.with_latest("camera", "planner", 640).latest == [("camera", "planner", 640)]
    with pytest.raises(live.UnknownError, match="no latest-value edge from planner to camera"):
        spec.with_latest("planner", "camera", 1)
