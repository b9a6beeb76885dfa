"""Arguments of the wrong type or size: one line, in words of Python."""

import re
import resource

import numpy as np
import pytest

import laxity
from laxity import gpu, live, vx


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: live.Spec("s", nodes=[5]), "expected a node: its name, or a laxity.live.NodeSpec, got int 5"),
        (lambda: live.Spec("s", nodes=[live.NodeSpec("a", period=5)]), "period: 'int' object"),
        (lambda: live.Spec("s", nodes=["a"], edges=[5]), "expected an edge: a laxity.live.EdgeSpec, got int 5"),
        (
            lambda: live.Pipeline("p", period="1 ms").node("n", output=5),
            "expected a name, or a list of names, got int 5",
        ),
        (lambda: laxity.simulate_many([], 5), "expected the name of a policy, or a list of names, got int 5"),
        (lambda: laxity.simulate(_workload(), overheads=5), "expected the name of a profile, or the path of a file"),
        (lambda: gpu.Device("d", handling=2.5), 'handling: expected "owners", "as_is", or a priority from 1 to 99'),
        (lambda: _graph().spawn("2 ms", frames="x"), "^frames: 'str' object"),
    ],
)
def test_what_is_of_the_wrong_type_is_named_and_what_to_pass(call, words):
    with pytest.raises((TypeError, ValueError), match=words) as raised:
        call()
    text = str(raised.value)
    assert not re.search(r"failed to extract|Parts|Options|Policies|EdgeOf|Names|\bSome\b", text), text
    assert "\n" not in text


def test_too_many_cpus_are_refused_before_memory_is_taken_for_them():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for cpus in (0, 1025, 10**7, 10**15):
        for generate in (laxity.generate, lambda line, **of: laxity.generate_many(line, 3, **of)):
            with pytest.raises(ValueError, match=rf"^`cpus` is {cpus}; write a whole number from 1 to 1024$"):
                generate("uni-medium/moderate", seed=1, cap=3.5, cpus=cpus)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


def test_the_utilization_of_graphs_alone_has_no_sign():
    graph = {"name": "g", "node": [{"name": "n", "period": "10 ms", "wcet": "1 ms"}]}
    assert "-0" not in repr(laxity.workload("w", cpus=1, graphs=[graph]))


def test_no_worst_jobs_are_asked_for_and_none_are_answered():
    trace = laxity.simulate(_workload(), duration="50 ms", trace=True).trace
    assert laxity.worst(trace, 0) == []
    with pytest.raises(laxity.TraceError, match="record for longer"):
        laxity.worst(laxity.simulate(_workload(), duration="0 s", trace=True).trace, 0)


def _workload():
    return laxity.workload("w", cpus=1, tasks=[laxity.Task("a", wcet="1 ms", period="10 ms")])


def _graph():
    graph = vx.Graph("arguments")
    image = graph.object("image", 4, np.uint8)
    graph.input([vx.output(image)], lambda job: None)
    graph.node("n", [vx.input(image)], lambda job: None)
    return graph.verify()
