"""Descriptions of live graphs: read back as they were written, asked for their shape, and refused with the way out."""

import pickle
from pathlib import Path

import pytest

import laxity
from laxity import live

WORKLOADS = Path(__file__).parents[2] / "examples" / "workloads"

RING = live.Ring(message=8, capacity=16)


def diamond():
    """A source, two ways, and a sink, which tells the source when to go on."""
    nodes = [live.NodeSpec("a", period="10 ms", phase="1 ms", deadline="8 ms", priority=3, cluster=1), "b", "c", "d"]
    edges = [
        live.EdgeSpec("a", "b", RING, produce=2, consume=2, threshold=4),
        live.EdgeSpec("a", "c"),
        live.EdgeSpec("b", "d"),
        live.EdgeSpec("c", "d", RING),
        live.EdgeSpec("d", "a", initial=3, back_edge=True),
    ]
    return live.Spec("diamond", nodes, edges)


def test_a_spec_is_read_back_as_it_was_written():
    spec = diamond()
    assert (spec.name, repr(spec)) == ("diamond", '<laxity.live.Spec "diamond": 4 nodes, 5 edges>')
    assert spec.nodes[0] == live.NodeSpec("a", period="10 ms", phase="1 ms", deadline="8 ms", priority=3, cluster=1)
    assert spec.nodes[1] == live.NodeSpec("b")
    assert spec.edges[0] == live.EdgeSpec("a", "b", RING, produce=2, consume=2, threshold=4)
    assert spec.edges[1].channel == live.Counter()
    assert spec.edges[4].back_edge
    assert live.Spec(spec.name, spec.nodes, spec.edges) == spec
    assert live.Spec("other", spec.nodes, spec.edges) != spec


def test_the_shape_of_a_graph_can_be_asked():
    spec = diamond()
    assert spec.predecessors("d") == ["b", "c"]
    assert spec.successors("a") == ["b", "c"]
    assert spec.predecessors("a") == ["d"], "back-edges are edges"
    assert spec.is_child("b", "a")
    assert not spec.is_child("d", "a")
    assert spec.is_descendant("d", "a")
    assert not spec.is_descendant("a", "d"), "back-edges make no node an ancestor"
    assert not spec.is_dag()
    assert spec.depths("d") == (3, 3)
    assert spec.depths("d", {"b": 10, "c": 20}) == (12, 22)
    assert 'label="2:2:4"' in spec.dot()
    with pytest.raises(live.UnknownError, match="graph diamond: no node is called e; there is a, b, c, d"):
        spec.successors("e")
    with pytest.raises(live.UnknownError, match="no node is called e"):
        spec.depths("d", {"e": 1})


def test_the_graph_of_a_workload_is_taken_with_channels_of_choice():
    workload = laxity.load(WORKLOADS / "pipeline.toml")
    spec = live.Spec.from_workload(workload, channels={("A", "B"): live.Ring(message=8, capacity=32)})
    assert [node.name for node in spec.nodes] == ["A", "B", "C"]
    assert spec.edges[0] == live.EdgeSpec(
        "A", "B", live.Ring(message=8, capacity=32), produce=4, consume=7, threshold=7
    )
    assert spec.edges[1].channel == live.Counter()
    ring = live.Ring(message=8, capacity=32)
    everywhere = live.Spec.from_workload(workload, spec.name, channels=ring)
    assert [edge.channel for edge in everywhere.edges] == [ring, ring]
    with pytest.raises(live.SpecError, match=f"no graph is called none; there is {spec.name}"):
        live.Spec.from_workload(workload, "none")
    with pytest.raises(live.UnknownError, match=r"edge B -> A does not exist; there is 0 \(A -> B\), 1 \(B -> C\)"):
        live.Spec.from_workload(workload, channels={("B", "A"): ring})
    with pytest.raises(live.SpecError, match="workload quickstart: 0 graphs; say which, of none"):
        live.Spec.from_workload(laxity.load(WORKLOADS / "quickstart.toml"))


SOURCE = live.NodeSpec("a", period="10 ms")


@pytest.mark.parametrize(
    ("nodes", "edges", "message"),
    [
        ([], [], "the graph has no node; add one"),
        ([SOURCE, "a"], [], "two nodes are called a; rename one"),
        ([live.NodeSpec("a", period="10")], [], 'node a: period "10" has no unit'),
        ([live.NodeSpec("a", period="0 ms")], [], "node a: its period is 0 .*; use more than nothing"),
        ([SOURCE, "b"], [live.EdgeSpec("a", "B")], "edge a -> B: no node is called B; names match exactly"),
        ([SOURCE, "b"], [live.EdgeSpec("a", "b", produce=-1)], "edge a -> b: produce is -1; use a whole number from 0"),
        ([SOURCE, "b"], [live.EdgeSpec("a", "b", initial=2**32)], "initial is 4294967296; use a whole number"),
        ([SOURCE, "b"], [live.EdgeSpec("a", "b", live.Ring(message=8, capacity=1.5))], "capacity is 1.5; use a whole"),
        ([SOURCE, "b"], [live.EdgeSpec("a", "b", "ring")], "no channel is a str; use Counter, Ring, Fifo"),
        ([SOURCE, "b"], [live.EdgeSpec("a", "b", live.Ring(message=8, capacity=0))], "0 messages fit but 1 must"),
        ([SOURCE, "b"], [live.EdgeSpec("a", "b"), live.EdgeSpec("b", "a")], "cycle"),
    ],
)
def test_what_cannot_be_is_refused_with_the_way_out(nodes, edges, message):
    with pytest.raises(live.SpecError, match=message):
        live.Spec("g", nodes, edges)


def test_exceptions_survive_a_trip_from_a_worker_process():
    for error in (
        live.SpecError("text"),
        live.GraphNotFoundError("text", "g"),
        live.ClaimError("text", "a", 7),
        live.TimedOutError("text", "a"),
        live.LostError("text", "a", ("a", "b"), 7),
        live.TerminatedError("text", "a", None),
        live.UnreachableError("text", "a", ("a", "b"), 111),
        live.ListenError("text", ("a", "b"), 98),
        live.MessageLostError("text", ("a", "b"), 3),
        live.RecorderError("text", "g"),
        live.ScheduleError("text", "a", 1),
        live.AccessError("text"),
    ):
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), vars(again)) == (type(error), "text", vars(error))
        assert isinstance(again, laxity.LaxityError)
