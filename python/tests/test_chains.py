"""Chains: data age and reaction time, as read off the sums of a schedule without contention."""

import pytest

import laxity


@pytest.fixture
def fusion():
    """A camera whose newest value a slower planner uses, each alone on a CPU."""
    node = lambda name, period, wcet: {"name": name, "period": period, "wcet": wcet}  # noqa: E731
    nodes = [node("camera", "10 ms", "2 ms"), node("planner", "30 ms", "5 ms")]
    graph = {"name": "car", "node": nodes, "latest": ["camera -> planner"]}
    chain = {"name": "steer", "path": ["car/camera", "car/planner"], "data_age_max": "14 ms"}
    return laxity.workload("fusion", cpus=2, graphs=[graph], chains=[chain])


def test_a_chain_has_a_row_for_each_measure(fusion):
    result = laxity.simulate(fusion, duration="100 ms", trace=True)
    rows = {row["measure"]: row for row in result.chains.to_pylist()}
    assert list(rows) == ["data_age", "data_age_first", "reaction_time", "reaction_time_last"]
    # The planner begins at 30, 60 and 90 ms, with the sample of 10 ms before, and takes 5 ms.
    age, reaction = rows["data_age"], rows["reaction_time"]
    assert (age["chain"], age["outputs"], age["count"], age["max_ns"]) == ("steer", 3, 3, 15_000_000)
    assert (age["deadline_ns"], age["missed"]) == (14_000_000, 3)
    # From just after the sample that the output before used, 30 ms earlier.
    assert (reaction["count"], reaction["max_ns"], reaction["deadline_ns"]) == (2, 45_000_000, None)
    assert result.summary["chains"][0]["missed"] == 3
    assert result.trace.check() == []


def test_the_path_is_checked(fusion):
    chain = {"name": "c", "path": ["car/planner", "car/camera"]}
    graph = {"name": "car", "node": [{"name": n, "period": "9 ms", "wcet": "1 ms"} for n in ("camera", "planner")]}
    with pytest.raises(laxity.WorkloadError, match="no edge leads from there"):
        laxity.workload("w", cpus=1, graphs=[graph], chains=[chain])
