"""Programs that know nothing of Laxity as tasks in the lab's kernel: a part of `make test-kernel-lab`."""

import json
import re
from pathlib import Path

import pytest
from test_kernel_lab import judged, lab, programs

__all__ = ["programs"]

GREEDY = """sh -c 'trap "exit 7" TERM; while :; do :; done'"""


def said_of(path: Path) -> dict:
    """What `laxity exec --json` said at the end, before that the program had failed."""
    return json.loads(next(line for line in path.read_text().splitlines() if line.startswith("{")))


@pytest.mark.parametrize("policy", ["G-EDF", "P-RM"])
def test_a_program_has_its_budget_and_no_more_beside_tasks_and_other_threads(policy, programs, tmp_path):
    script = f"""
    start --policy {policy} --trace /out/trace.lxt
    laxity bandwidth hog --compute --for 9s > /dev/null & hog=$!
    laxity exec --kernel --period 10ms --wcet 3ms --task greedy --json -- {GREEDY} 2> /out/greedy.txt & greedy=$!
    laxity exec --kernel --period 20ms --wcet 4ms --task modest --json -- \\
        sh -c 'for turn in $(seq 60); do usleep 20000; done; exit 5' 2> /out/modest.txt & modest=$!
    sleep 0.5
    laxity sched status
    laxity sched status --json > /out/status.json
    kernel-tasks seed=7 tasks=3 load=400 for=2000 || exit 1
    wait $modest
    echo "modest $?"
    kill $greedy
    wait $greedy
    echo "greedy $?"
    kill $hog
    laxity sched stop || exit 2
    ended
    """
    out = tmp_path / "out"
    said = lab(programs, out, script, smp=1)
    assert "modest 5" in said, said
    assert "greedy 7" in said, said
    assert all(late == "0" for late in re.findall(r" jobs=\d+ late=(\d+) ", said)), said
    tasks = {task["name"]: task for task in json.loads((out / "status.json").read_text())["status"]["tasks"]}
    assert {"greedy", "modest"} <= tasks.keys()
    greedy, modest = said_of(out / "greedy.txt"), said_of(out / "modest.txt")
    assert greedy["is_scheduled"]
    assert modest["is_scheduled"]
    # Each budget but the last was used up: it had 3 ms in each period, though another thread wanted all that is left.
    assert greedy["throttled"] > 100, greedy
    assert greedy["cpu_time_ns"] == pytest.approx(3e6 * greedy["throttled"], rel=0.02, abs=6e6), greedy
    assert modest["wake_ups"] >= 60, modest
    # The trace judges links and budgets without tolerance.
    claims = judged(out / "trace.lxt")
    assert claims[f"follows {policy}/CEm"] == "yes", claims


def test_a_program_outlives_the_scheduler_and_ends_with_its_keeper(programs, tmp_path):
    script = f"""
    start --policy C-EDF --cluster-size 1
    laxity exec --kernel --period 10ms --wcet 2ms --cluster 1 --json -- {GREEDY} 2> /out/first.txt & first=$!
    laxity exec --kernel --period 10ms --wcet 20us -- /no/such/program; echo "missing $?"
    laxity exec --kernel --period 10ms --wcet 2ms -- {GREEDY} & second=$!
    sleep 1
    laxity sched status
    kill -9 $second
    wait $second
    sleep 1
    laxity sched status --json > /out/status.json
    kill -9 $(pidof laxity-scheduler)
    wait $loader
    until grep -q disabled /sys/kernel/sched_ext/state; do sleep 0.1; done
    sleep 0.5
    kill $first
    wait $first
    echo "first $?"
    pidof sh | wc -w
    """
    out = tmp_path / "out"
    said = lab(programs, out, script, smp=2)
    assert "missing 2" in said, said
    assert "first 7" in said, said
    tasks = json.loads((out / "status.json").read_text())["status"]["tasks"]
    assert [(task["name"], task["cluster"]) for task in tasks] == [("sh", 1)], "the other one ended with its keeper"
    first = said_of(out / "first.txt")
    assert not first["is_scheduled"]
    # By Linux it had half a second whole.
    assert first["cpu_time_ns"] > 2e6 * first["throttled"] + 2e8, first
