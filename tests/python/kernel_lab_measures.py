"""How long the scheduler in the lab's kernel takes, in traces and as profiles: a part of `make test-kernel-lab`."""

import subprocess
import tomllib
from collections import Counter
from pathlib import Path

import pytest
from kernel_lab_realizations import events
from test_kernel_lab import LAXITY, ROOT, judged, lab, programs

__all__ = ["programs"]

KINDS = ["release", "scheduling", "context_switch", "tick", "timer_rearming"]


def points_us(table: object) -> dict[int, float]:
    """An overhead of a profile's file, in us, by the number of tasks."""

    def us(text: str) -> float:
        number, unit = text.split()
        return float(number) * {"ns": 1e-3, "us": 1.0, "ms": 1e3}[unit]

    if isinstance(table, str):
        return {0: us(table)}
    return {int(tasks): us(cost) for tasks, cost in table}


def test_a_profile_has_all_sources_and_is_taken_by_check(programs, tmp_path):
    script = """
    laxity sched measure --realization CEm,S-CQm --tasks 5,10 --for 1s --load 20 --label emulated \\
        --out /out/overheads || exit 1
    laxity sched status && exit 2
    echo "state $(cat /sys/kernel/sched_ext/state)"
    ps > /out/left.txt
    """
    out = tmp_path / "out"
    said = lab(programs, out, script, smp=1)
    assert "state disabled" in said
    assert "laxity-scheduler" not in (out / "left.txt").read_text()
    # With one CPU no other one is interrupted, and that is said.
    assert "the IPI latency is not known" in said, said
    for name in ["CEm", "S-CQm"]:
        path = out / "overheads" / f"{name}.toml"
        file = tomllib.loads(path.read_text())
        assert "(emulated)" in file["machine"]["processor"]
        assert f"G-EDF/{name}" in file["machine"]["scheduler"]
        for kind in KINDS:
            worst, average = (points_us(file[statistic][kind]) for statistic in ["worst", "average"])
            # In event-driven scheduling a tick is Linux's own, whatever the number of tasks.
            assert sorted(worst) == ([0] if (name, kind) == ("CEm", "tick") else [5, 10]), (name, kind)
            for tasks, cost in worst.items():
                # A wrong unit or clock would be far off; on one CPU nothing else delays these.
                assert 0.1 < average[tasks] <= cost < 1_000, (name, kind, tasks)
        counts = {quantity["name"]: quantity["count"] for quantity in file["quantity"]}
        # Each job is decided about twice, when it begins and when it is complete.
        assert 1.5 < counts["scheduling_10"] / counts["switch_10"] < 2.5, counts
        assert counts["rearming_10"] > 10, counts
        assert ("tick_handler_10" in counts) == (name == "S-CQm")
        workload = ROOT / "examples" / "workloads" / "camera.toml"
        check = [LAXITY, "check", workload, "--overheads", path, "--json"]
        done = subprocess.run(check, capture_output=True, text=True, check=False)
        assert done.returncode in (0, 1), done.stderr
        assert f"kernel-{name}-worst" in done.stdout


@pytest.mark.parametrize(("policy", "smp"), [("G-EDF/CEm", 2), ("P-EDF/S-CQm", 1), ("G-EDF/CE1", 3)])
def test_a_trace_shows_how_long_the_scheduler_takes_and_is_judged_as_before(programs, tmp_path, policy, smp):
    script = f"""
    start --policy {policy} --trace /out/trace.lxt --overheads
    kernel-tasks seed=41 tasks=8 load=500 for=1000 suspend=15 section=10 lock=10 || exit 1
    laxity sched stop || exit 2
    ended
    """
    said = lab(programs, tmp_path / "out", script, smp)
    assert "lost" not in said, said
    trace = tmp_path / "out" / "trace.lxt"
    assert judged(trace)[f"follows {policy}"] == "yes"
    recorded = events(trace)
    spans = [(event["kind"], event["duration_ns"]) for event in recorded if event["event"] == "overhead"]
    count = Counter(kind for kind, span in spans if span > 0)
    assert count["scheduling"] > 200, count
    assert count["context_switch"] > 100, count
    assert count["release"] > 50 or "CQ" in policy, count
    assert (count["timer_rearming"] > 50) == policy.endswith("m"), count
    assert (count["tick"] > 50) == ("CQ" in policy), count
    assert any(event["event"] == "ipi" for event in recorded) == (smp > 1)


def test_an_interrupt_leaves_nothing_behind(programs, tmp_path):
    script = """
    laxity sched measure --realization CEm --tasks 5 --for 60s --out /out/overheads > /out/said.txt 2>&1 & measuring=$!
    until laxity sched status 2> /dev/null | grep -q task4; do sleep 0.5; done
    kill -INT $measuring
    wait $measuring
    echo "rc $?"
    echo "state $(cat /sys/kernel/sched_ext/state)"
    ps > /out/left.txt
    ls /out/overheads
    laxity sched measure --tasks 5,5 2>&1 && exit 2
    laxity sched measure --tasks 300 2>&1 && exit 3
    laxity sched measure --realization FEm 2>&1 && exit 4
    laxity sched measure --realization CE1 2>&1 && exit 5
    true
    """
    out = tmp_path / "out"
    said = lab(programs, out, script, smp=1)
    assert "rc 130" in said, said + (out / "said.txt").read_text()
    assert "state disabled" in said
    left = (out / "left.txt").read_text()
    assert "laxity-scheduler" not in left
    assert "--worker" not in left
    assert not list((out / "overheads").iterdir())
    assert "each number larger than the one before" in said
    assert "255 at most" in said
    assert "--realization FEm: there are" in said
    assert "leaves none for jobs" in said


def test_without_such_a_kernel_it_says_what_is_missing(tmp_path):
    if Path("/sys/kernel/sched_ext").exists():
        pytest.skip("this machine's kernel has sched_ext")
    if not LAXITY.exists():
        pytest.skip("target/debug/laxity is not built")
    command = [LAXITY, "sched", "measure", "--realization", "CEm", "--out", tmp_path / "overheads"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "laxity sched doctor" in done.stderr, done.stderr
    assert not (tmp_path / "overheads").exists()
