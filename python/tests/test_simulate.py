"""Simulations: what they yield, and what they refuse."""

import re
from pathlib import Path

import pytest

import laxity
from laxity._native import StudyStop

ROOT = Path(__file__).parents[2]
WORKLOADS = ROOT / "examples" / "workloads"


def test_the_schedule_of_two_tasks_is_the_one_drawn(pair):
    result = laxity.simulate(pair, duration="20 ms", trace=True)
    total = result.total
    assert (total["released"], total["completed"], total["missed"]) == (7, 7, 0)
    assert (total["preemptions"], total["migrations"]) == (2, 0)
    executions = [
        (row["task_name"], row["from_ns"] // 1_000_000, row["to_ns"] // 1_000_000)
        for row in result.trace.intervals().to_pylist()
        if row["activity"] == "execution"
    ]
    # The drawing of `pair`, twice: at 10 the second job of `slow` waits for nothing.
    assert executions[:5] == [("fast", 0, 2), ("slow", 2, 4), ("fast", 4, 6), ("slow", 6, 8), ("fast", 8, 10)]


def test_late_and_unfinished_jobs_are_missed(overloaded):
    #  ms  0  1  2  3  4  5  6  7  8  9  10       both want 3 of every 5
    #  a   #  #  #           #  #  #
    #  b            #  #  #           #  #        b.0 is due at 5 and ends at 6; b.1 is unfinished at 10
    result = laxity.simulate(overloaded, duration="10 ms")
    a, b = result.tasks.to_pylist()
    assert (a["released"], a["completed"], a["missed"]) == (2, 2, 0)
    assert (b["released"], b["completed"], b["missed"], b["missed_incomplete"]) == (2, 1, 2, 1)
    assert (b["tardiness_max_ns"], b["lateness_max_ns"], b["laxity_min_ns"]) == (1_000_000, 1_000_000, -1_000_000)


def test_a_result_says_where_it_comes_from(robot):
    result = laxity.simulate(robot, "CQ1", duration="1.5 s", seed=2**64 - 1, overheads="brandenburg2009-average")
    assert (result.workload, result.scheduler, result.seed) == ("quickstart", "G-EDF/CQ1", 2**64 - 1)
    assert (result.overheads, result.duration_ns) == ("brandenburg2009-CQ1-average-aligned", 1_500_000_000)
    summary = result.summary
    assert (summary["laxity"], summary["origin"]) == (laxity.__version__, "simulated")
    assert (summary["simulated_ns"], summary["interrupted"]) == (1_500_000_000, False)
    assert summary["overheads"]["profile"] == "brandenburg2009-CQ1-average-aligned"
    assert summary["overheads"]["costs_ns"]["tick"] > 0
    assert summary["tasks"][1]["deadline_ns"] == 6_000_000
    assert (summary["total"], summary["seed"]) == (result.total, 2**64 - 1)
    assert result.tasks.schema.metadata[b"origin"] == b"simulated"
    assert result.tasks.schema.metadata[b"scheduler"] == b"G-EDF/CQ1"


def test_the_summary_has_the_fields_that_the_reference_describes(robot):
    """Those that the `laxity` command prints."""
    simulate = (ROOT / "docs" / "reference" / "json.md").read_text().split("\n# ")[0]
    top, gpus, jobs, cpu_time = simulate.split("\n## ")
    summary = laxity.simulate(robot, duration="100 ms").summary

    def described(section):
        rows = [row.split("|")[1] for row in section.splitlines() if row.startswith("| `")]
        return {name.split(".")[0] for row in rows for name in re.findall(r"`([a-z_.0-9]+)`", row)}

    assert set(summary) == described(top)
    pedestrians = laxity.load(WORKLOADS / "pedestrians.toml")
    only_there = described(gpus)
    assert set(laxity.simulate(pedestrians, duration="100 ms").summary) == described(top) | only_there - {"chains"}
    fusion = laxity.load(WORKLOADS / "fusion.toml")
    assert {"chains", "graphs"} <= only_there
    assert set(laxity.simulate(fusion, duration="100 ms").summary) == described(top) | {"chains", "graphs"}
    assert set(summary["total"]) == described(jobs)
    own = {"task", "name", "period_ns", "deadline_ns", "wcet_ns"}
    assert set(summary["tasks"][0]) == described(jobs) | own
    assert set(summary["machine"]) == described(cpu_time) - {"best_effort_ns"}
    protected = laxity.simulate(laxity.load(WORKLOADS / "protected.toml"), duration="100 ms").summary
    assert set(protected["machine"]) - {"spin_ns"} == described(cpu_time) - {"spin_ns"}
    assert set(summary["cpus"][0]) == (described(cpu_time) - {"best_effort_ns"}) | {"cpu"}


def test_the_workloads_own_scheduler_runs_unless_another_is_named(robot):
    own = robot.with_scheduler("P-DM")
    assert laxity.simulate(own, duration="10 ms").scheduler == "P-DM/CEm"
    assert laxity.simulate(own, "G-EDF", duration="10 ms").scheduler == "G-EDF/CEm"


def test_tables_and_dicts_say_the_same(robot):
    result = laxity.simulate(robot, duration="2 s", seed=3)
    tasks, cpus = result.tasks, result.cpus
    assert tasks.num_rows == 8
    assert cpus.num_rows == 4
    for count in ("released", "completed", "missed", "preemptions", "migrations"):
        assert sum(tasks[count].to_pylist()) == result.total[count]
        assert tasks[count].to_pylist() == [task[count] for task in result.summary["tasks"]]
    for row, task in zip(tasks.to_pylist(), result.summary["tasks"], strict=True):
        assert row["response_time_p99_ns"] == task["response_time_ns"]["p99"]
    for row, cpu in zip(cpus.to_pylist(), result.summary["cpus"], strict=True):
        assert row["tick_count"] == cpu["overheads"]["tick"]["count"] > 0
        assert row["busy_ns"] + row["overhead_ns"] + row["lock_wait_ns"] + row["idle_ns"] == 2_000_000_000


def test_a_task_without_completed_jobs_has_no_response_time():
    late = laxity.workload("late", cpus=1, tasks=[laxity.Task("a", wcet="1 ms", period="5 ms", phase="1 s")])
    (row,) = laxity.simulate(late, duration="10 ms").tasks.to_pylist()
    assert (row["released"], row["response_time_max_ns"], row["laxity_min_ns"]) == (0, None, None)


def test_the_seed_decides_and_nothing_else(robot):
    def trace(seed):
        return laxity.simulate(robot, duration="3 s", seed=seed, trace=True).trace.to_bytes()

    assert trace(1) == trace(1)
    assert trace(1) != trace(2)


def test_what_cannot_be_simulated_is_refused_by_name():
    with pytest.raises(laxity.SimulationError) as raised:
        laxity.simulate(laxity.load(WORKLOADS / "stabilizer.toml"), policy="SCHED_OTHER")
    assert any('best-effort task "video-encoder"' in reason for reason in raised.value.reasons)
    assert str(raised.value) == "\n".join(raised.value.reasons)


def test_arguments_that_cannot_be_read_are_refused_with_the_way_out(pair):
    with pytest.raises(ValueError, match="unknown scheduler `EDF-G`"):
        laxity.simulate(pair, "EDF-G")
    with pytest.raises(ValueError, match="has no unit"):
        laxity.simulate(pair, duration="60")
    with pytest.raises(ValueError, match="unknown overhead profile `low`"):
        laxity.simulate(pair, overheads="low")
    with pytest.raises(laxity.LaxityError, match="trace=True"):
        _ = laxity.simulate(pair, duration="1 ms").trace


MEASURED = """
laxity = 1
[worst]
name = "board-worst"
release = "100 us"
[average]
name = "board-average"
release = "1 us"
"""


def test_overheads_are_those_of_a_measured_machine(pair, tmp_path):
    """As `laxity simulate --overheads` reads what `laxity measure` wrote."""
    path = tmp_path / "board.toml"
    path.write_text(MEASURED)
    for overheads, name in [
        (path, "worst"),
        (str(path), "worst"),
        (f"{path}:worst", "worst"),
        (f"{path}:average", "average"),
    ]:
        result = laxity.simulate(pair, duration="40 ms", overheads=overheads)
        assert result.overheads == f"board-{name}"
        assert pair.with_overheads(overheads).overheads == f"board-{name}"
        assert laxity.simulate_many([pair], overheads=overheads)["overheads"].to_pylist() == [f"board-{name}"]
        # The first job of the one waits for the releases of both.
        release_ns = {"worst": 100_000, "average": 1_000}[name]
        assert result.tasks["response_time_max_ns"].to_pylist()[0] >= 2_000_000 + release_ns


def test_overheads_that_are_no_measurement_are_refused(pair, tmp_path):
    path = tmp_path / "board.toml"
    with pytest.raises(FileNotFoundError, match=r"board\.toml"):
        laxity.simulate(pair, overheads=path)
    path.write_text(pair.to_toml())
    with pytest.raises(laxity.WorkloadError, match="`worst` is missing"):
        laxity.simulate(pair, overheads=str(path))


def test_the_same_as_one_by_one(robot, pair):
    table = laxity.simulate_many([robot, pair], ["G-EDF", "CQm"], duration="1 s", seed=4)
    rows = table.to_pylist()
    assert [(row["workload"], row["workload_name"], row["scheduler"]) for row in rows] == [
        (0, "quickstart", "G-EDF/CEm"), (0, "quickstart", "G-EDF/CQm"), (1, "pair", "G-EDF/CEm"),
        (1, "pair", "G-EDF/CQm"),
    ]  # fmt: skip
    one = laxity.simulate(robot, "CQm", duration="1 s", seed=4)
    assert rows[1]["completed"] == one.total["completed"]
    assert rows[1]["response_time_max_ns"] == one.total["response_time_ns"]["max"]
    assert rows[1]["tick_ns"] == sum(one.cpus["tick_ns"].to_pylist())
    tasks = laxity.simulate_many([robot, pair], duration="1 s", seed=4, per="task")
    assert tasks.num_rows == 10
    assert tasks["task_name"].to_pylist()[8:] == ["fast", "slow"]
    shared = [name for name in one.tasks.column_names if name not in ("task", "name")]
    whole = laxity.simulate(robot, duration="1 s", seed=4).tasks
    assert tasks.select(shared).slice(0, 8).to_pylist() == whole.select(shared).to_pylist()


def test_many_are_refused_before_any_is_simulated(robot):
    stabilizer = laxity.load(WORKLOADS / "stabilizer.toml")
    with pytest.raises(laxity.SimulationError, match=r'workload 1 "stabilizer": best-effort task'):
        laxity.simulate_many([robot, stabilizer], duration="87600 h", policy="SCHED_OTHER")
    with pytest.raises(ValueError, match='per="job" is unknown'):
        laxity.simulate_many([robot], per="job")
    assert laxity.simulate_many([]).num_rows == 0


def test_completions_of_an_unknown_task_are_refused(pair):
    with pytest.raises(ValueError, match='there is no task "slower"'):
        laxity.simulate(pair, completions=["slower"])
    assert laxity.simulate(pair).completions.num_rows == 0


def test_a_simulation_can_be_told_to_stop(pair):
    stop = StudyStop()
    stop.set()
    with pytest.raises(KeyboardInterrupt):
        laxity.simulate(pair, duration="10 min", stop=stop)
