"""GPUs under the scheduler in the lab's kernel, beside the simulator: a part of `make test-kernel-lab`."""

import random
from pathlib import Path

import pytest
from kernel_lab_graphs import completed, events
from kernel_lab_interrupts import linked_beside_owner
from kernel_lab_workloads import OVERHEADS, apart_ms, simulated
from test_kernel_lab import judged, lab, programs

__all__ = ["programs"]

# What an operation's completion takes until its job goes on: the soft GPU's server, its interrupt and the wake-up.
HALVES = 'top_half = "100 us"\nbottom_half = "200 us"\n'

ARBITRATIONS = {
    "tokens": '{ protocol = "gpusync", tokens = 1, engine_order = "priority" }',
    "tokens2": '{ protocol = "gpusync", tokens = 2, engine_order = "fifo" }',
    "pool": '{ protocol = "gpusync", tokens = 1, engine_order = "priority" }',
    "fifo": '{ protocol = "gpusync", tokens = 1, fifo_length = 3, fifo_requests = 3 }',
    "kfmlp": '"k_fmlp"',
    "driver": '"driver"',
}


def ms(time: float) -> str:
    """A time that few sums of others hit."""
    return f"{round(time * 10) / 10 + 0.03:.2f} ms"


def drawn(rng: random.Random, policy: str, arbitration: str, handling: str = "preempt_rt_high") -> str:
    """A random workload for one CPU and a GPU or two; times are such that few things happen at one time."""
    count = rng.randint(4, 5)
    weights = [rng.uniform(1, 3) for _ in range(count)]
    lines = ["laxity = 1", 'name = "drawn"', "[platform]", "cpus = 1"]
    for gpu in range(2 if arbitration == "pool" else 1):
        lines += ["[[platform.gpu]]", f'name = "gpu{gpu}"', 'bandwidth = "1 GB/s"', "copy_engines = 1"]
    lines += ["[gpu_management]", f"arbitration = {ARBITRATIONS[arbitration]}", f'handling = "{handling}"']
    lines += [
        "[scheduler]",
        f'policy = "{policy}"',
        "[[resource]]",
        'name = "map"',
        'protocol = "priority-inheritance"',
    ]
    users = rng.sample(range(count), 3)
    for number, weight in enumerate(weights):
        period = rng.choice([40, 50, 80, 100])
        cost = period * 0.5 * weight / sum(weights)
        lines += [
            "[[task]]",
            f'name = "task{number}"',
            f'period = "{period} ms"',
            f'phase = "{rng.randint(0, 90) / 10} ms"',
        ]
        rest = '{ cpu = "630 us" }'
        half, third = f'{{ cpu = "{ms(cost / 2)}" }}', f'{{ cpu = "{ms(cost / 3)}" }}'
        critical = f'{{ critical = "map", body = [{third}] }}'
        if number in users:
            operations = [
                f'{{ copy_in = "{rng.randint(1, 30) * 100 + 37} kB" }}',
                f'{{ kernel = "{ms(rng.uniform(2, 9))}" }}',
            ]
            operations += rng.choice(
                [[], [third], [critical, '{ copy_out = "813 kB" }'], [third, '{ kernel = "1.27 ms" }']]
            )
            lines.append(f"body = [{third}, {{ gpu_section = [{', '.join(operations)}] }}, {rest}]")
        else:
            lines.append(f"body = [{half}, {rng.choice([critical, half])}, {rest}]")
    return "\n".join(lines) + "\n"


def grants(happened: list[dict]) -> dict[str, list[tuple[str, int]]]:
    """Of each lock the jobs that had it, in their order."""
    granted: dict[str, list[tuple[str, int]]] = {}
    for event in happened:
        if event["event"] == "grant":
            granted.setdefault(event["lock"], []).append((event["task_name"], event["job"]))
    return granted


def waited(happened: list[dict]) -> int:
    """How often a job was not granted a lock at once."""
    requests, late = {}, 0
    for event in happened:
        if event["event"] == "request":
            requests[event["task_name"], event["lock"]] = event["at_ns"]
        elif event["event"] == "grant":
            late += event["at_ns"] > requests[event["task_name"], event["lock"]]
    return late


# Of three tasks that want the GPU the most urgent one comes last, and there is one that computes for 100 ms.
CHAIN = """
laxity = 1
name = "chain"
[platform]
cpus = 1
[[platform.gpu]]
name = "gpu0"
bandwidth = "1 GB/s"
[gpu_management]
arbitration = ARBITRATION
handling = "preempt_rt_high"
[scheduler]
policy = "P-RM"
[[resource]]
name = "map"
[[task]]
name = "first"
period = "500 ms"
body = [{ cpu = "1 ms" }, { gpu_section = [{ kernel = "5.1 ms" }, { cpu = "10 ms" }] }]
[[task]]
name = "second"
period = "400 ms"
phase = "2 ms"
body = [{ cpu = "1 ms" }, { gpu_section = [{ kernel = "5.3 ms" }, { critical = "map", body = [{ cpu = "12 ms" }] }] }]
[[task]]
name = "urgent"
period = "200 ms"
phase = "4 ms"
body = [{ cpu = "1 ms" }, { gpu_section = [{ kernel = "1.2 ms" }] }, { cpu = "1 ms" }]
[[task]]
name = "long"
period = "300 ms"
phase = "25 ms"
wcet = "100 ms"
"""


def test_a_run_with_gpus_ends_by_a_signal_and_goes_on_under_linux_when_the_loader_is_killed(programs, tmp_path):
    klmirqd = CHAIN.replace("ARBITRATION", ARBITRATIONS["kfmlp"]).replace("preempt_rt_high", "klmirqd")
    (tmp_path / "chain.toml").write_text(klmirqd)
    (tmp_path / "driver.toml").write_text(klmirqd.replace(ARBITRATIONS["kfmlp"], ARBITRATIONS["driver"]))
    script = """
    begin() {
        start --policy P-RM
        laxity run /lab/chain.toml --scheduler kernel --for $1 > /out/$2.txt 2>&1 & run=$!
        until laxity sched status | grep -q urgent; do
            kill -0 $run || exit 1
            sleep 0.2
        done
        sleep 1
        laxity sched status > /out/status.txt
    }
    begin 60s stopped
    laxity run /lab/driver.toml --scheduler kernel 2> /out/driver.txt && exit 2
    kill -INT $run
    wait $run
    echo "interrupted $?"
    laxity sched stop || exit 3
    ended
    begin 3s ended
    kill -KILL $loader
    wait $run || exit 4
    ended
    """
    out = tmp_path / "out"
    said = lab([*programs, tmp_path / "chain.toml", tmp_path / "driver.toml"], out, script, smp=1)
    assert "interrupted 130" in said, said
    assert "Linux scheduled" in (out / "ended.txt").read_text()
    assert "klmirqd and arbitration driver" in (out / "driver.txt").read_text()


def test_the_next_holder_inherits_from_those_that_go_on_waiting(programs, tmp_path):
    names = ["tokens", "fifo", "kfmlp"]
    for name in names:
        (tmp_path / f"{name}.toml").write_text(CHAIN.replace("ARBITRATION", ARBITRATIONS[name]))
    script = """
    start --policy P-RM --trace /out/kernel.lxt
    for workload in /lab/*.toml; do
        trace=/out/$(basename $workload .toml).lxt
        timeout 60 laxity run $workload --scheduler kernel --for 180ms --trace $trace --quiet || exit 1
    done
    laxity sched stop || exit 2
    ended
    """
    out = tmp_path / "out"
    lab([*programs, *(tmp_path / f"{name}.toml" for name in names)], out, script, smp=1)
    assert judged(out / "kernel.lxt")["follows P-RM/CEm"] == "yes"
    for name in names:
        judged(out / f"{name}.lxt")
        live = completed(events(out / f"{name}.lxt"))
        expected = simulated(tmp_path / f"{name}.toml", tmp_path / f"{name}.lxt")
        # Without inheritance the second one, and with it an urgent one behind it, would wait for the long one.
        assert expected["urgent", 0] < 45_000_000 < expected["long", 0]
        assert apart_ms(live, expected) < 1, name


def stable(policy: str, count: int, folder: Path, handling: str) -> dict[str, dict[tuple[str, int], int]]:
    """When jobs of random workloads complete whose schedules do not hang on microseconds, which the simulator tells."""
    expected: dict[str, dict[tuple[str, int], int]] = {}
    # Left to the driver, a GPU has several owners at a time, and klmirqd is refused.
    for arbitration in [name for name in ARBITRATIONS if handling != "klmirqd" or name != "driver"]:
        found = 0
        for seed in range(300):
            if found == count:
                break
            name = f"{policy}-{arbitration}-{seed}"
            text = drawn(random.Random(name), policy, arbitration, handling)
            workload = folder / f"{name}.toml"
            slow = text.replace("cpus = 1\n", "cpus = 1\n" + OVERHEADS).replace(
                "[gpu_management]\n", "[gpu_management]\n" + HALVES
            )
            workload.write_text(slow)
            with_overheads = simulated(workload, folder / "overheads.lxt")
            workload.write_text(text)
            without = simulated(workload, folder / "simulated.lxt")
            if apart_ms(without, with_overheads) < 4:
                expected[name] = without
                found += 1
            else:
                workload.unlink()
        assert found == count, f"hardly any is stable: {arbitration}"
    return expected


def served(happened: list[dict]) -> tuple[int, int]:
    """How many interrupts were handled, in the scheduler's own trace, and how many of them for a job."""
    owners = [event for event in happened if event["event"] == "serve"]
    return len(owners), sum(event["owner"] is not None for event in owners)


@pytest.mark.parametrize(("policy", "handling"), [("G-EDF", "klmirqd"), ("P-RM", "preempt_rt_high")])
def test_random_workloads_with_gpus_run_as_they_are_simulated(programs, tmp_path, policy, handling):
    expected = stable(policy, 2, tmp_path, handling)
    script = f"""
    start --policy {policy} --trace /out/kernel.lxt
    for workload in /lab/*.toml; do
        trace=/out/$(basename $workload .toml).lxt
        timeout 60 laxity run $workload --scheduler kernel --for 1s --trace $trace --quiet || exit 1
    done
    laxity sched stop || exit 2
    ended
    """
    out = tmp_path / "out"
    said = lab([*programs, *(tmp_path / f"{name}.toml" for name in expected)], out, script, smp=1)
    assert "loader 0" in said
    assert "lost" not in said
    assert judged(out / "kernel.lxt")[f"follows {policy}/CEm"] == "yes"
    handled, owned = served(events(out / "kernel.lxt"))
    if handling == "klmirqd":
        # The first work of each is what it does when it begins.
        assert handled > 200, handled
        assert owned > 0.9 * handled, (handled, owned)
    else:
        assert handled == 0
    apart, contended = {}, 0
    for name, jobs in expected.items():
        judged(out / f"{name}.lxt")
        live, simulation = events(out / f"{name}.lxt"), tmp_path / f"{name}-simulated.lxt"
        simulated(tmp_path / f"{name}.toml", simulation)
        apart[name] = apart_ms(jobs, completed(live))
        happened = events(simulation)
        contended += waited(happened)
        in_order, found = grants(happened), grants(live)
        for lock, order in in_order.items():
            # One of both may have been cut off a little earlier.
            length = min(len(order), len(found[lock]))
            assert found[lock][:length] == order[:length], (name, lock)
            assert abs(len(order) - len(found[lock])) < 3, (name, lock)
    assert contended > 20, contended
    assert max(apart.values()) < 2, apart


def test_on_several_cpus_links_follow_the_policy_and_no_interrupt_is_handled_beside_its_owner(programs, tmp_path):
    names = [name for name in ARBITRATIONS if name != "driver"]
    for name in names:
        text = drawn(random.Random(name), "G-EDF", name, "klmirqd")
        (tmp_path / f"{name}.toml").write_text(text.replace("cpus = 1\n", "cpus = 2\n"))
    script = """
    start --policy G-EDF --trace /out/kernel.lxt
    for workload in /lab/*.toml; do
        trace=/out/$(basename $workload .toml).lxt
        timeout 120 laxity run $workload --scheduler kernel --for 600ms --trace $trace --quiet || exit 1
    done
    laxity sched stop || exit 2
    ended
    """
    out = tmp_path / "out"
    said = lab([*programs, *(tmp_path / f"{name}.toml" for name in names)], out, script, smp=2)
    assert "loader 0" in said
    assert judged(out / "kernel.lxt")["follows G-EDF/CEm"] == "yes"
    happened = events(out / "kernel.lxt")
    handled, owned = served(happened)
    assert owned > 0.9 * handled > 50, (handled, owned)
    assert linked_beside_owner(happened) == []
    for name in names:
        judged(out / f"{name}.lxt")


GRAPH = """
laxity = 1
name = "vision"
[platform]
cpus = 1
[[platform.gpu]]
name = "gpu0"
bandwidth = "1 GB/s"
[gpu_management]
arbitration = ARBITRATION
handling = "HANDLING"
[scheduler]
policy = "G-EDF"
[[resource]]
name = "map"
[[task]]
name = "recorder"
period = "90 ms"
phase = "1.3 ms"
body = [
    { cpu = "2.1 ms" },
    { gpu_section = [{ kernel = "11.3 ms" }, { cpu = "3.2 ms" }, { copy_out = "2 MB" }] },
    { cpu = "4.4 ms" },
]
[[graph]]
name = "vision"
edge = ["camera -> detect", "camera -> show", "detect -> show"]
[[graph.node]]
name = "camera"
period = "40 ms"
body = [
    { cpu = "1.4 ms" },
    { critical = "map", body = [{ cpu = "700 us" }] },
    { gpu_section = [{ copy_in = "1.6 MB" }] },
]
[[graph.node]]
name = "detect"
body = [
    { cpu = "1.1 ms" },
    { gpu_section = [{ kernel = "6.2 ms" }, { critical = "map", body = [{ cpu = "900 us" }] }] },
]
[[graph.node]]
name = "show"
body = [{ cpu = "2.3 ms" }, { gpu_section = [{ copy_out = "800 kB" }] }, { cpu = "600 us" }]
"""


def test_nodes_of_graphs_use_gpus(programs, tmp_path):
    cases = {"tokens": "preempt_rt_high", "fifo": "klmirqd", "kfmlp": "klmirqd", "driver": "preempt_rt_high"}
    for name, handling in cases.items():
        text = GRAPH.replace("ARBITRATION", ARBITRATIONS[name]).replace("HANDLING", handling)
        (tmp_path / f"{name}.toml").write_text(text)
    script = """
    start --policy G-EDF --trace /out/kernel.lxt
    for workload in /lab/*.toml; do
        trace=/out/$(basename $workload .toml).lxt
        timeout 60 laxity run $workload --scheduler kernel --for 500ms --trace $trace --quiet || exit 1
    done
    laxity graph run /lab/fifo.toml --scheduler kernel --for 300ms --trace /out/alone.lxt --quiet || exit 2
    laxity sched stop || exit 3
    ended
    """
    out = tmp_path / "out"
    said = lab([*programs, *(tmp_path / f"{name}.toml" for name in cases)], out, script, smp=1)
    assert "loader 0" in said
    assert judged(out / "kernel.lxt")["follows G-EDF/CEm"] == "yes"
    apart = {}
    for name in cases:
        judged(out / f"{name}.lxt")
        live = events(out / f"{name}.lxt")
        simulation = tmp_path / f"{name}-simulated.lxt"
        apart[name] = apart_ms(completed(live), simulated(tmp_path / f"{name}.toml", simulation))
        in_order, found = grants(events(simulation)), grants(live)
        for lock, order in found.items():
            assert order == in_order[lock][: len(order)], (name, lock)
    assert max(apart.values()) < 2, apart
    assert len(completed(events(out / "alone.lxt"))) > 3 * 7
