"""Proofs, explanations and better configurations, of small schedules that can be worked out by hand."""

import json
import subprocess
from pathlib import Path

import pytest

import laxity

ROOT = Path(__file__).parents[2]
WORKLOADS = ROOT / "examples" / "workloads"


def _command(*arguments):
    command = ROOT / "target" / "debug" / "laxity"
    if not command.exists():
        pytest.skip("target/debug/laxity is not built")
    return json.loads(subprocess.run([command, *arguments, "--json"], capture_output=True, check=False).stdout)


def test_check_bounds_response_times(pair):
    # Rate monotonic: `slow` needs 4 of the 8 ms that `fast` leaves half of.
    found = laxity.check(pair, "G-RM")
    assert found
    assert (found.workload, found.hard.status, found.refused) == ("pair", "schedulable", ())
    fast, slow = found.tasks.to_pylist()
    assert (fast["name"], fast["response_time_ns"], fast["laxity_ns"]) == ("fast", 2_000_000, 2_000_000)
    assert (slow["name"], slow["response_time_ns"], slow["laxity_ns"]) == ("slow", 8_000_000, 2_000_000)
    # At 1.11 times: 2.22 * 2 + 4.44 = 8.88, of which a third job of `fast` makes 11.1 > 10; at 1.0 it ends at 8.
    assert 1.0 <= found.growth < 1.12


def test_check_says_why_not(overloaded):
    found = laxity.check(overloaded, growth=False)
    assert not found
    assert found.hard.status == "infeasible"
    assert found.growth is None
    assert found.hard.failures
    with pytest.raises(ValueError, match='accounting="fair"'):
        laxity.check(overloaded, accounting="fair")


def test_check_is_that_of_the_command():
    path = WORKLOADS / "fusion.toml"
    found = laxity.check(laxity.load(path))
    assert found.report == _command("check", path)
    for row, chain in zip(found.chains.to_pylist(), found.report["chains"], strict=True):
        assert (row["data_age_ns"], row["data_age_max_ns"]) == (chain["data_age_ns"], chain["data_age_max_ns"])
        assert row["data_age_ns"] <= row["data_age_max_ns"]
    assert found.graphs.num_rows == len(found.report["graphs"])


def test_why_accounts_for_all_of_a_job(pair):
    trace = laxity.simulate(pair, "G-RM", duration="10 ms", trace=True).trace
    account = laxity.why(trace, "slow#0")
    #  ms     0 1 2 3 4 5 6 7 8
    #  slow   f f # # f f # #         f: `fast` has the CPU
    assert (account.job, account.task, account.index) == ("slow#0", "slow", 0)
    assert (account.time_ns, account.lateness_ns, account.completion_ns) == (8_000_000, -2_000_000, 8_000_000)
    assert sorted((part.cause, part.time_ns, part.pieces) for part in account.parts) == [
        ("execution", 4_000_000, 2), ("other_job", 4_000_000, 2),
    ]  # fmt: skip
    assert [piece["other_job"] for piece in account.pieces.to_pylist()] == ["fast#0", None, "fast#1", None]
    assert sum(account.pieces["time_ns"].to_pylist()) == account.time_ns


def test_why_finds_the_worst(overloaded):
    trace = laxity.simulate(overloaded, duration="10 ms", trace=True).trace
    # b.0 is 1 ms late; b.1 is pending at 10, when it is due.
    assert laxity.why(trace).job == "b#0"
    assert laxity.why(trace, "a", by="response").task == "a"
    worst = laxity.worst(trace, 2)
    assert [account.lateness_ns for account in worst] == sorted((a.lateness_ns for a in worst), reverse=True)
    with pytest.raises(ValueError, match="no task is called `c`"):
        laxity.why(trace, "c")
    with pytest.raises(laxity.TraceError, match="b#77 is not released"):
        laxity.why(trace, "b#77")
    with pytest.raises(ValueError, match='by="size"'):
        laxity.why(trace, by="size")


def test_tune_finds_a_configuration_that_is_proven():
    # By deadlines: the long one with the short deadline first. Rate monotonic, it comes second and is late.
    urgent = laxity.Task("urgent", wcet="3 ms", period="20 ms", deadline="4 ms")
    frequent = laxity.Task("frequent", wcet="3 ms", period="10 ms")
    late = laxity.workload("late", cpus=1, tasks=[urgent, frequent], policy="G-RM")
    assert not laxity.check(late)
    tuned = laxity.tune(late, within="30 s", seed=1)
    assert tuned.own.score.laxity_ppm is None
    assert tuned.own.score.missed > 0
    assert tuned.best[0].score.laxity_ppm > 0
    assert tuned.best[0].changes
    assert laxity.check(tuned.workload)
    assert tuned.growth >= 1.0
    assert [(effect.what, effect.to) for effect in tuned.effects] == list(tuned.best[0].changes)
    again = laxity.tune(late, within="30 s", seed=1, threads=1)
    assert (again.best, again.workload) == (tuned.best, tuned.workload)


def test_tune_names_what_must_shrink(overloaded):
    tuned = laxity.tune(overloaded, within="30 s", best=1)
    # 3 + 3 in every 5: one alone may shrink to 2 of 3.
    assert tuned.best[0].score.laxity_ppm is None
    assert tuned.bottlenecks == {"a": 0.666, "b": 0.666}
    half = laxity.tune(overloaded, load=0.5, within="30 s", best=1)
    assert half.workload.tasks["wcet_ns"].to_pylist() == [1_500_000] * 2
    assert half.best[0].score.laxity_ppm > 0
    with pytest.raises(ValueError, match="load=0"):
        laxity.tune(overloaded, load=0)
    for load in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match=f"load={load} is no factor; pass a number"):
            laxity.tune(overloaded, load=load)


def test_simulations_are_as_long_as_those_of_the_command(pair):
    slow = laxity.workload("slow", cpus=1, tasks=[laxity.Task("a", wcet="1 ms", period="2 s", phase="3 s")])
    assert laxity.simulate(slow).duration_ns == 23_000_000_000
    assert laxity.simulate(pair).duration_ns == 1_000_000_000
    assert laxity.simulate_many([slow, pair])["duration_ns"].to_pylist() == [23_000_000_000, 1_000_000_000]
