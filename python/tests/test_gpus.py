"""Workloads with GPUs: how they are managed, and what is measured of them."""

from pathlib import Path

import pytest

import laxity

WORKLOADS = Path(__file__).parents[2] / "examples" / "workloads"
HANDLINGS = ["linux", "preempt_rt_low", "preempt_rt_high", "pai", "klmirqd"]


@pytest.fixture(scope="module")
def interrupts():
    """Three tasks on two CPUs, two of which share a GPU by the k-FMLP."""
    return laxity.load(WORKLOADS / "interrupts.toml")


@pytest.fixture(scope="module")
def pedestrians():
    """A graph on two GPUs under GPUSync and klmirqd."""
    return laxity.simulate(laxity.load(WORKLOADS / "pedestrians.toml"), duration="500 ms", trace=True)


def test_the_management_is_the_workloads_unless_named(interrupts):
    result = laxity.simulate(interrupts, duration="50 ms")
    assert (result.arbitration, result.handling) == ("k_fmlp", "klmirqd")
    assert result.summary["gpu_management"] == {"arbitration": "k_fmlp", "handling": "klmirqd"}
    other = laxity.simulate(interrupts, duration="50 ms", arbitration="driver", handling="pai")
    assert (other.arbitration, other.handling) == ("driver", "pai")
    changed = interrupts.with_gpu_management(arbitration="driver", handling="pai")
    assert (changed.arbitration, changed.handling) == ("driver", "pai")
    assert laxity.simulate(changed, duration="50 ms").summary == other.summary
    assert interrupts.handling == "klmirqd"


@pytest.mark.parametrize("what", ["arbitration", "handling"])
def test_an_unknown_name_is_refused_with_those_that_there_are(interrupts, what):
    with pytest.raises(ValueError, match=rf'no {what} "irqd"; there are .*(gpusync|klmirqd)'):
        laxity.simulate(interrupts, **{what: "irqd"})


@pytest.mark.parametrize("handling", HANDLINGS)
def test_no_handling_breaks_a_rule(interrupts, handling):
    result = laxity.simulate(interrupts, duration="200 ms", handling=handling, trace=True)
    assert result.trace.check() == []


def test_klmirqd_leaves_no_bottom_half_beside_its_owner(interrupts):
    def rows(handling):
        inversions = laxity.simulate(interrupts, duration="1 s", handling=handling).inversions
        return {row["kind"]: row for row in inversions.to_pylist()}

    linux, klmirqd = rows("linux"), rows("klmirqd")
    assert linux["all"]["count"] > 0
    assert linux["all"]["max_ns"] >= linux["all"]["p50_ns"] > 0
    assert klmirqd["co_scheduled"]["count"] == 0
    assert klmirqd["co_scheduled"]["max_ns"] is None


def test_tables_tell_what_jobs_waited_for_and_what_engines_did(pedestrians):
    causes = {(row["task_name"], row["cause"]) for row in pedestrians.waits.to_pylist()}
    assert ("lanes", "token") in causes
    assert ("detector/detect", "gpu_operation") in causes
    engines = pedestrians.engines.to_pylist()
    assert [(row["gpu_name"], row["engine"]) for row in engines[:3]] == [
        ("left", "EE"),
        ("left", "CE0"),
        ("left", "CE1"),
    ]
    assert all(row["busy_ns"] <= pedestrians.duration_ns for row in engines)
    names = [row["name"] for row in pedestrians.threads.to_pylist()]
    assert names == ["klmirqd/left", "klmirqd/right"]
    assert not set(names) & set(pedestrians.tasks["name"].to_pylist())


def test_a_graph_has_latencies_from_end_to_end(pedestrians):
    (detector,) = pedestrians.graphs.to_pylist()
    assert detector["name"] == "detector"
    assert detector["count"] > 10
    # At least the work on its longest path.
    assert detector["p50_ns"] > 20_000_000
    assert pedestrians.trace.check() == []


def test_without_gpus_the_tables_are_empty(pair):
    result = laxity.simulate(pair, duration="20 ms")
    tables = (result.inversions, result.waits, result.engines, result.threads, result.graphs, result.chains)
    assert [table.num_rows for table in tables] == [0] * 6
    assert "gpu_management" not in result.summary
