"""Threads that are no tasks of the scheduler in the lab's kernel: their shares, and regulators that throttle them there
(paper 004). A part of `make test-kernel-lab`."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from test_kernel_lab import LAXITY, judged, lab, programs

__all__ = ["programs"]

# CPU time of some processes, in ns.
SNAP = """
snap() { for process in "$@"; do cut -d' ' -f1 /proc/$process/schedstat; done; }
spin() { exec sh -c "renice -n $1 -p \\$\\$ > /dev/null; exec laxity bandwidth hog --compute --for $2"; }
"""


def numbers(path: Path) -> list[int]:
    return [int(word) for word in path.read_text().split()]


def others(path: Path) -> dict[str, int]:
    """What threads that are no tasks had on the lab's CPU, as `laxity sched status --json` says."""
    return next(it for it in json.loads(path.read_text())["status"]["others"] if it["cpu"] == 0)


def test_threads_share_by_their_niceness_and_jobs_are_not_delayed(programs, tmp_path):
    script = f"""
    {SNAP}
    start --policy G-EDF --trace /out/trace.lxt
    for nice in 0 5 10; do spin $nice 9s > /out/spin$nice & echo $! >> /out/spinning; done
    sleep 0.5
    snap $(cat /out/spinning) > /out/before
    kernel-tasks seed=7 tasks=3 load=400 for=3000 || exit 1
    sleep 2
    snap $(cat /out/spinning) > /out/after
    wait $(cat /out/spinning)
    laxity sched stop || exit 2
    ended
    """
    out = tmp_path / "out"
    lab(programs, out, script, smp=1)
    had = [after - before for before, after in zip(numbers(out / "before"), numbers(out / "after"), strict=True)]
    # Linux's weights.
    for weight, part in zip([1024, 335, 110], had, strict=True):
        assert part / sum(had) == pytest.approx(weight / 1469, rel=0.04), had
    claims = judged(out / "trace.lxt")
    assert claims["follows G-EDF/CEm"] == "yes"
    assert claims["deadlines met"] == "yes"


def test_bound_threads_starve_on_no_cpu(programs, tmp_path):
    # The first CPU has two bound threads, the second one a light one, whose virtual time grows many times as fast. New
    # threads that are bound to the first one come soon, wherever the clock of all of them is, and so does the loader's.
    script = f"""
    {SNAP}
    start --policy G-EDF
    for nice in 0 5; do spin $nice 12s > /dev/null & echo $! >> /out/first; done
    for process in $(cat /out/first); do taskset -p 1 $process > /dev/null; done
    spin 19 12s > /dev/null & taskset -p 2 $! > /dev/null
    sleep 3
    for turn in $(seq 25); do taskset 1 sh -c 'usleep 20000' || exit 1; done
    snap $(cat /out/first) > /out/had
    laxity sched stop || exit 2
    ended
    """
    out = tmp_path / "out"
    said = lab(programs, out, script, smp=2)
    assert "loader 0" in said
    assert all(had > 1_000_000_000 for had in numbers(out / "had"))


BUDGET = 330_000_000

WORKLOAD = """
laxity = 1
name = "throttled"
scheduler = "P-FP"
best_effort_scheduler = {{ rule = "TFS", punishment = {punishment}.0 }}
[platform]
cpus = 2
[platform.memory.regulator]
latency = "12 us"
heed = "at_once"
[[platform.gpu]]
name = "gpu"
bandwidth = "1 GB/s"
[gpu_management]
arbitration = "driver_spinning"
bandwidth_lock = {{ budget = "{budget} B/s" }}
[[task]]
name = "protected"
period = "10 s"
cluster = 0
priority = 1
body = [{{ cpu = "1 us" }}, {{ kernel = "9 s", interrupts = 0 }}]
[[best_effort]]
name = "memory"
cpu = 1
memory_demand = "{demand} B/s"
[[best_effort]]
name = "compute"
cpu = 1
"""


def simulated(folder: Path, punishment: int, demand: int) -> tuple[float, float]:
    """The share of the throttled time, and of the thread that computes, in 3 s of the same scenario."""
    workload, trace = folder / f"tfs{punishment}.toml", folder / f"tfs{punishment}.lxt"
    workload.write_text(WORKLOAD.format(punishment=punishment, budget=BUDGET, demand=demand))
    subprocess.run([LAXITY, "simulate", workload, "--for", "3s", "--trace", trace, "--quiet"], check=True)
    command = [LAXITY, "trace", trace, "metrics", "--json"]
    metrics = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    memory, compute = metrics["memory"]["best_effort"]
    return memory["throttled_ns"] / 3e9, compute["execution_ns"] / 3e9


def test_a_throttled_thread_is_punished_as_in_the_simulation(programs, tmp_path):
    # A program that counts its traffic has three times its budget; another one computes, for 3 s while the first one is
    # there. The regulator occupies no CPU: the kernel throttles it.
    script = f"""
    start --policy G-EDF
    laxity bandwidth hog --for 500ms > /out/alone
    regulate="laxity bandwidth regulate car --cpus 0 --counter software --throttle kernel --json"
    for punishment in 0 1 3; do
        export punishment
        laxity bandwidth lock car --budget '{BUDGET} B/s' -- $regulate --punishment $punishment -- sh -c '
            laxity bandwidth hog --for 4s > /out/memory$punishment &
            sleep 0.5
            laxity sched status --json > /out/before$punishment
            laxity bandwidth hog --compute --for 3s > /out/compute$punishment
            laxity sched status --json > /out/after$punishment
            wait
        ' > /out/regulated$punishment || exit 1
    done
    laxity sched status
    laxity sched stop || exit 2
    ended
    """
    out = tmp_path / "out"
    said = lab(programs, out, script, smp=1)
    assert "punished" in said
    demand = round(float(re.match(r"([\d.]+) MB/s", (out / "alone").read_text()).group(1)) * 1e6)
    before = None
    for punishment in [0, 1, 3]:
        first, last = (others(out / f"{name}{punishment}") for name in ["before", "after"])
        span = {key: last[key] - first[key] for key in first}
        throttled = span["throttled"] / 3e9
        computed = float(re.search(r"([\d.]+) s of them", (out / f"compute{punishment}").read_text()).group(1)) / 3
        expected = simulated(tmp_path, punishment, demand)
        assert throttled == pytest.approx(expected[0], abs=0.03)
        assert computed == pytest.approx(expected[1], abs=0.03)
        # Equation 3.
        assert span["punished"] == pytest.approx(punishment * span["throttled"], abs=span["throttles"])
        if before:
            assert throttled < before[0] - 0.1
            assert computed > before[1] + 0.1
        before = (throttled, computed)
        report = json.loads((out / f"regulated{punishment}").read_text())["cpus"][0]
        assert report["let_run"] == 0
        # What counts late, by a chunk, or until the regulator runs.
        assert report["bytes"] / (report["periods"] / 1e3) < 1.06 * BUDGET


def test_a_regulator_that_is_killed_leaves_no_cpu_throttled(programs, tmp_path):
    script = """
    start --policy G-EDF --trace /out/trace.lxt
    laxity bandwidth lock car --budget '50 MB/s' -- sleep 60 & lock=$!
    for turn in 1 2 3; do
        laxity bandwidth regulate car --cpus 0 --counter software --throttle kernel --punishment 3 -- \\
            laxity bandwidth hog --for 3s > /out/regulated$turn & regulator=$!
        sleep 1.$turn$turn
        kill -KILL $regulator
        laxity sched status --json > /out/before$turn
        laxity bandwidth hog --compute --for 1s > /out/compute$turn
        laxity sched status --json > /out/after$turn
        # The program goes on without it.
        sleep 1
    done
    kill $lock
    # Jobs are never throttled, and a regulator hears of the end of the scheduler, which takes a while: the loader has
    # what the throttled CPU leaves.
    laxity bandwidth lock car --budget '50 MB/s' -- laxity bandwidth regulate car --cpus 0 --counter software \\
        --throttle kernel -- laxity bandwidth hog --for 25s > /out/last 2>&1 & last=$!
    sleep 1
    kernel-tasks seed=7 tasks=4 load=600 for=2000 || exit 1
    cat /proc/uptime
    laxity sched stop || exit 2
    cat /proc/uptime
    ended
    wait $last; cat /proc/uptime /out/last
    laxity bandwidth regulate car --cpus 0 --counter software --throttle kernel -- true; echo "without: $?"
    """
    out = tmp_path / "out"
    said = lab(programs, out, script, smp=1)
    for turn in [1, 2, 3]:
        before, after = (others(out / f"{name}{turn}") for name in ["before", "after"])
        assert before["throttles"] > 100 * turn
        assert after["throttles"] == before["throttles"]
    claims = judged(out / "trace.lxt")
    assert claims["follows G-EDF/CEm"] == "yes"
    assert claims["deadlines met"] == "yes"
    assert "the regulator of CPU 0 ended: Laxity's scheduler is not in the kernel" in said
    assert "without: 1" in said


def test_links_are_those_of_the_policy_beside_cpus_that_are_throttled(programs, tmp_path):
    # Two CPUs, with a program of much traffic on each, and time that other threads are owed.
    script = """
    start --policy G-EDF --others 1ms/20ms --trace /out/trace.lxt
    laxity bandwidth lock car --budget '20 MB/s' -- laxity bandwidth regulate car --cpus 0-1 --counter software \\
        --throttle kernel --punishment 1 -- sh -c '
            laxity bandwidth hog --for 4s & laxity bandwidth hog --for 4s & wait' > /out/regulated & regulator=$!
    until laxity sched status --json | grep -q '"throttles": [1-9]'; do kill -0 $regulator || exit 1; sleep 0.2; done
    kernel-tasks seed=5 tasks=6 load=1300 for=1500 suspend=25 section=20 || exit 2
    wait $regulator || exit 3
    laxity sched status
    laxity sched stop || exit 4
    ended
    """
    out = tmp_path / "out"
    said = lab(programs, out, script, smp=2)
    assert "state disabled" in said
    assert "0 records are lost" in said, said
    assert judged(out / "trace.lxt")["follows G-EDF/CEm"] == "yes"
