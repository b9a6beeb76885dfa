"""`laxity run` under the scheduler in the lab's kernel, beside the simulator: a part of `make test-kernel-lab`."""

import json
import random
import subprocess
from pathlib import Path

from test_kernel_lab import LAXITY, judged, lab, programs

__all__ = ["programs"]


def completions(trace: Path) -> dict[tuple[str, int], int]:
    """When each job of a trace completed, in ns after the first release."""
    command = [LAXITY, "trace", trace, "export", "--table", "events", "--format", "json", "-o", "-"]
    events = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    start = next(event["at_ns"] for event in events if event["event"] == "release")
    done = (event for event in events if event["event"] == "complete")
    return {(event["task_name"], event["job"]): event["at_ns"] - start for event in done}


# No job of `greedy` ends with a budget: whether it needs a microsecond of the next one would decide over a period.
WORKLOAD = """
laxity = 1
name = "in-kernel"
[platform]
cpus = 1
[scheduler]
policy = "G-EDF"
[[resource]]
name = "map"
protocol = "priority-inheritance"
[[task]]
name = "control"
period = "10 ms"
body = [{ cpu = "1 ms" }, { critical = "map", body = [{ cpu = "500 us" }] }, { nonpreemptive = "300 us" }]
[[task]]
name = "camera"
period = "40 ms"
phase = "3 ms"
body = [{ cpu = "4 ms" }, { suspend = "5 ms" }, { cpu = "3 ms" }]
[[task]]
name = "planner"
period = "100 ms"
body = [{ cpu = "17 ms" }, { critical = "map", body = [{ cpu = "4 ms" }] }, { cpu = "9 ms" }]
[[task]]
name = "greedy"
period = "50 ms"
wcet = "20 ms"
actual = "17.9 ms"
budget = "10 ms"
"""


def test_a_workload_runs_under_the_scheduler_in_the_kernel(programs, tmp_path):
    script = f"""
    cat > /out/workload.toml <<'END'
{WORKLOAD}
END
    laxity run /out/workload.toml --scheduler kernel 2> /out/none.txt && exit 1
    start --policy P-RM
    laxity run /out/workload.toml --scheduler kernel 2> /out/other.txt && exit 2
    laxity sched stop || exit 3
    ended
    start --policy G-EDF --trace /out/kernel.lxt
    laxity run /out/workload.toml --for 2s --trace /out/run.lxt --json > /out/run.json || exit 4
    laxity sched stop || exit 5
    ended
    start --policy G-EDF
    laxity run /out/workload.toml --for 60s > /out/stopped.txt 2>&1 & run=$!
    until laxity sched status | grep -q greedy; do kill -0 $run || exit 6; sleep 0.2; done
    kill -INT $run
    wait $run
    echo "interrupted $?"
    laxity run /out/workload.toml --for 3s > /out/ended.txt 2>&1 & run=$!
    until laxity sched status | grep -q greedy; do kill -0 $run || exit 7; sleep 0.2; done
    sleep 1
    kill -KILL $loader
    wait $run || exit 8
    ended
    """
    out = tmp_path / "out"
    said = lab(programs, out, script, smp=1)
    assert "is not in the kernel" in (out / "none.txt").read_text()
    other = (out / "other.txt").read_text()
    assert "laxity sched start --policy G-EDF --cpus 0`" in other, other
    assert "interrupted 130" in said, said
    assert "Linux scheduled" in (out / "ended.txt").read_text()
    # The kernel's own trace follows the policy, and knows the jobs of the run.
    assert judged(out / "kernel.lxt")["follows G-EDF/CEm"] == "yes"
    run = json.loads((out / "run.json").read_text())
    released = {task["name"]: task["released"] for task in run["tasks"]}
    assert released == {"control": 200, "camera": 50, "planner": 20, "greedy": 40}
    # Each job completes as late as when it is simulated, but for what the kernel and the emulated machine take.
    simulate = [LAXITY, "simulate", out / "workload.toml", "--for", "2s", "--trace", out / "simulated.lxt", "--quiet"]
    subprocess.run(simulate, check=True)
    simulated, live, kernel = (completions(out / f"{name}.lxt") for name in ["simulated", "run", "kernel"])
    assert len(live) == len(kernel) == 200 + 50 + 20 + 40
    assert len(simulated) > 200 + 50 + 20 + 20
    later_us = {job: (live[job] - at) / 1_000 for job, at in simulated.items()}
    assert max(map(abs, later_us.values())) < 1_000, later_us
    assert judged(out / "run.lxt")


def test_locks_on_several_cpus_go_to_the_most_urgent_job_that_waits(programs, tmp_path):
    # A job that is unlocked and asks again at once: it would have the lock before those that were woken for it.
    tasks = "\n".join(
        f"""[[task]]
name = "t{number}"
period = "{8 + 3 * number} ms"
body = [{", ".join(['{ critical = "map", body = [{ cpu = "400 us" }] }'] * 3)}]"""
        for number in range(5)
    )
    (out := tmp_path / "out").mkdir()
    head = 'laxity = 1\nname = "shared"\nscheduler = "G-EDF"\nplatform = { cpus = 4 }\n[[resource]]\nname = "map"\n'
    script = f"""
    cat > /out/workload.toml <<'END'
{head}{tasks}
END
    start --policy G-EDF --trace /out/kernel.lxt
    laxity run /out/workload.toml --for 1s --trace /out/run.lxt || exit 1
    laxity sched stop || exit 2
    ended
    """
    lab(programs, out, script, smp=4)
    # No job waits for a lock that is free, and none less urgent has it before.
    judged(out / "run.lxt")
    assert judged(out / "kernel.lxt")["follows G-EDF/CEm"] == "yes"


OVERHEADS = 'overheads = { name = "guess", release = "10 us", scheduling = "20 us", context_switch = "15 us" }\n'


def drawn(rng: random.Random, policy: str) -> str:
    """A random workload for one CPU; times are such that few jobs become ready or complete at one time."""

    def ms(tenths: float) -> str:
        return f"{round(tenths * 10) / 10 + 0.03:.2f} ms"

    count = rng.randint(3, 5)
    weights = [rng.uniform(1, 3) for _ in range(count)]
    lines = ["laxity = 1", 'name = "drawn"', "[platform]", "cpus = 1", "[scheduler]", f'policy = "{policy}"']
    lines += ["[[resource]]", 'name = "map"', 'protocol = "priority-inheritance"']
    for number, weight in enumerate(weights):
        period = rng.choice([20, 25, 40, 50, 80, 100])
        cost = period * 0.65 * weight / sum(weights)
        lines += [
            "[[task]]",
            f'name = "task{number}"',
            f'period = "{period} ms"',
            f'phase = "{rng.randint(0, 90) / 10} ms"',
        ]
        kind = rng.choice(["plain", "suspends", "locks", "sections", "budget", "sporadic", "jitter"])
        # A job that is complete with a section is preempted just before live.
        rest = '{ cpu = "630 us" }'
        half = f'{{ cpu = "{ms(cost / 2)}" }}'
        match kind:
            case "suspends":
                lines.append(f'body = [{half}, {{ suspend = "{ms(period / 8)}" }}, {half}]')
            case "locks":
                lines.append(f'body = [{half}, {{ critical = "map", body = [{half}] }}, {rest}]')
            case "sections":
                lines.append(f'body = [{half}, {{ nonpreemptive = "{ms(min(cost / 2, 6))}" }}, {rest}]')
            case "budget":
                # Enough: a few microseconds decide whether one that is used up was just enough.
                lines += [f'wcet = "{ms(cost)}"', f'budget = "{ms(cost * 1.3)}"']
            case "sporadic":
                lines += [f'wcet = "{ms(cost)}"', 'arrival = "sporadic"', 'gap = { uniform = ["0 ms", "9 ms"] }']
            case "jitter":
                lines += [f'wcet = "{ms(cost)}"', 'jitter = "3 ms"']
            case _:
                lines.append(f'wcet = "{ms(cost)}"')
    return "\n".join(lines) + "\n"


def simulated(workload: Path, trace: Path) -> dict[tuple[str, int], int]:
    """When its jobs complete in the simulator."""
    command = [LAXITY, "simulate", workload, "--for", "1s", "--trace", trace, "--quiet"]
    subprocess.run(command, check=True, capture_output=True)
    return completions(trace)


def apart_ms(some: dict[tuple[str, int], int], others: dict[tuple[str, int], int]) -> float:
    """The largest difference of those that both have."""
    return max(abs(at - others[job]) for job, at in some.items() if job in others) / 1e6


def test_twenty_random_workloads_run_as_they_are_simulated(programs, tmp_path):
    # A schedule that hangs on microseconds is none to compare: such workloads are left out, which the simulator tells.
    expected, seed = {}, 0
    for policy in ["G-EDF", "P-RM"]:
        while sum(name.startswith(policy) for name in expected) < 10:
            seed += 1
            assert seed < 200, "hardly any is stable"
            text = drawn(random.Random(seed), policy)
            workload = tmp_path / f"{policy}-{seed}.toml"
            workload.write_text(text.replace("cpus = 1\n", "cpus = 1\n" + OVERHEADS))
            with_overheads = simulated(workload, tmp_path / "overheads.lxt")
            workload.write_text(text)
            without = simulated(workload, tmp_path / "simulated.lxt")
            if apart_ms(without, with_overheads) < 0.5:
                expected[workload.stem] = without
    texts = [(tmp_path / f"{name}.toml").read_text() for name in expected]
    for feature in ["suspend", "critical", "nonpreemptive", "budget", "sporadic", "jitter"]:
        assert any(feature in text for text in texts), feature
    script = """
    for policy in G-EDF P-RM; do
        start --policy $policy --trace /out/$policy.lxt
        for workload in /lab/$policy-*.toml; do
            timeout 60 laxity run $workload --for 1s --trace /out/$(basename $workload .toml).lxt --quiet || exit 1
        done
        laxity sched stop || exit 2
        ended
    done
    """
    out = tmp_path / "out"
    said = lab([*programs, *(tmp_path / f"{name}.toml" for name in expected)], out, script, smp=1)
    assert said.count("loader 0") == 2
    for policy in ["G-EDF", "P-RM"]:
        assert judged(out / f"{policy}.lxt")[f"follows {policy}/CEm"] == "yes"
    found = {name: apart_ms(jobs, completions(out / f"{name}.lxt")) for name, jobs in expected.items()}
    assert max(found.values()) < 1, found
