"""Graphs under the scheduler in the lab's kernel, beside the simulator: a part of `make test-kernel-lab`."""

import json
import random
import re
import subprocess
from fractions import Fraction
from pathlib import Path

import pytest
from kernel_lab_workloads import OVERHEADS, apart_ms, simulated
from test_kernel_lab import LAXITY, judged, lab, programs

__all__ = ["programs"]

EXAMPLES = Path(__file__).parents[2] / "examples" / "workloads"


def events(trace: Path) -> list[dict]:
    """All that a trace has, in its order."""
    command = [LAXITY, "trace", trace, "export", "--table", "events", "--format", "json", "-o", "-"]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def completed(happened: list[dict]) -> dict[tuple[str, int], int]:
    """When each job completed, in ns after the first release."""
    start = next(event["at_ns"] for event in happened if event["event"] == "release")
    done = (event for event in happened if event["event"] == "complete")
    return {(event["task_name"], event["job"]): event["at_ns"] - start for event in done}


def due(happened: list[dict]) -> dict[str, list[int]]:
    """When the jobs of each task are due."""
    deadlines: dict[str, list[int]] = {}
    for event in happened:
        if event["event"] == "release":
            deadlines.setdefault(event["task_name"], []).append(event["deadline_ns"])
    return deadlines


def due_apart_us(live: dict[str, list[int]], kernel: dict[str, list[int]], source: str) -> float:
    """
    The largest difference between deadlines of the run's trace, which counts tokens by the rules of the simulator, and
    those by which the scheduler ranked. There the first job of a node that waits for tokens is its thread's way to it,
    and the last one may be how it learned that no more come.
    """
    offset = kernel[source][0] - live[source][0]
    found = 0
    for name, expected in live.items():
        ranked = [at - offset for at in kernel[name]]
        ranked = ranked if abs(ranked[0] - expected[0]) < 1_000_000 else ranked[1:]
        assert len(ranked) - len(expected) in (0, 1), f"{name}: jobs that no token released"
        found = max(found, *(abs(at - by) for at, by in zip(ranked, expected, strict=False)))
    return found / 1_000


def ms(time: float) -> str:
    """A time that few sums of others hit."""
    return f"{round(time * 10) / 10 + 0.03:.2f} ms"


FORMS = {
    "chain": ["A -> B", "B -> C"],
    "fork": ["A -> C", "A -> B", "A -> D"],
    "diamond": ["A -> C", "A -> B", "B -> D", "C -> D"],
    "cycle": ["A -> B", "B -> C", '{ from = "C", to = "A", back_edge = true, initial = 1 }'],
    "object": ["A -> B", "B -> C"],
    "messages": ['{ from = "A", to = "B", message = "64 B" }', '{ from = "B", to = "C", message = "4 kB" }'],
    "rates": [],
    "two sources": ["A -> C", "B -> D"],
}


def drawn(rng: random.Random, policy: str, form: str, name: str, *, cpus: int = 1, load: float = 0.62) -> str:
    """A random graph beside a task; times are such that few jobs become ready or complete at one time."""
    period = rng.choice([20, 24, 30, 40])
    edges = list(FORMS[form])
    rates = {"A": Fraction(1, period)}
    if form == "rates":
        for start, end in ["AB", "BC"]:
            produce, consume = rng.choice([(3, 1), (1, 2), (2, 3), (4, 7), (1, 3), (3, 2)])
            threshold = consume + rng.randint(0, 1)
            of = f"produce = {produce}, consume = {consume}, threshold = {threshold}, initial = {rng.randint(0, 1)}"
            edges.append(f'{{ from = "{start}", to = "{end}", {of} }}')
            rates[end] = rates[start] * produce / consume
    nodes = sorted(set(re.findall(r"\b[A-D]\b", " ".join(edges))))
    sources = {"A": period}
    if form == "two sources":
        sources["B"] = rng.choice([15, 25, 50])
        rates |= {"B": Fraction(1, sources["B"])}
        rates |= {"C": rates["A"], "D": rates["B"]}
    weights = {node: rng.uniform(1, 3) for node in [*nodes, "task"]}
    share = {node: load * weight / sum(weights.values()) for node, weight in weights.items()}
    lines = ["laxity = 1", f'name = "{name}"', "[platform]", f"cpus = {cpus}", "[scheduler]", f'policy = "{policy}"']
    lines += ["[[resource]]", 'name = "map"', 'protocol = "priority-inheritance"']
    other = rng.choice([35, 50, 90])
    lines += ["[[task]]", 'name = "task"', f'period = "{other} ms"', f'phase = "{rng.randint(0, 90) / 10} ms"']
    half, rest = f'{{ cpu = "{ms(share["task"] * other / 2)}" }}', '{ cpu = "630 us" }'
    # A job that is complete with a section is preempted just before live. Of several CPUs one may take a lock before
    # the one that woke for it.
    locked = f'{{ critical = "map", body = [{half}] }}' if cpus == 1 else half
    lines.append(f"body = [{half}, {locked}, {rest}]")
    lines += ["[[graph]]", f'name = "{name}"']
    lines.append(f"edge = [{', '.join(edge if edge.startswith('{') else chr(34) + edge + chr(34) for edge in edges)}]")
    if form == "object":
        lines += ['object = [{ name = "frame", nodes = ["A", "B", "C"] }]', f"replicas = {rng.randint(1, 2)}"]
    for node in nodes:
        cost = share[node] / float(rates.get(node, rates["A"]))
        lines += ["[[graph.node]]", f'name = "{node}"']
        if node in sources:
            lines += [f'period = "{sources[node]} ms"', f'phase = "{rng.randint(0, 90) / 10} ms"']
        if rng.random() < 0.4:
            lines.append(f'deadline = "{ms(rng.uniform(1.2, 2.5) * max(cost, 4) + 3)}"')
        half = f'{{ cpu = "{ms(cost / 2)}" }}'
        match rng.choice(["plain", "plain", "suspends", "sections", *(["locks"] if cpus == 1 else [])]):
            case "suspends":
                lines.append(f'body = [{half}, {{ suspend = "{ms(rng.uniform(0.5, 2))}" }}, {half}]')
            case "locks":
                lines.append(f'body = [{half}, {{ critical = "map", body = [{half}] }}, {rest}]')
            case "sections":
                lines.append(f'body = [{half}, {{ nonpreemptive = "{ms(cost / 2)}" }}, {rest}]')
            case _:
                lines.append(f'wcet = "{ms(cost)}"')
    return "\n".join(lines) + "\n"


def stable(policy: str, form: str, count: int, folder: Path) -> dict[str, dict[tuple[str, int], int]]:
    """When jobs of random workloads complete whose schedules do not hang on microseconds, which the simulator tells."""
    expected: dict[str, dict[tuple[str, int], int]] = {}
    for seed in range(200):
        if len(expected) == count:
            return expected
        name = f"{policy}-{form.replace(' ', '-')}-{seed}"
        text = drawn(random.Random(name), policy, form, name)
        workload = folder / f"{name}.toml"
        workload.write_text(text.replace("cpus = 1\n", "cpus = 1\n" + OVERHEADS))
        with_overheads = simulated(workload, folder / "overheads.lxt")
        workload.write_text(text)
        without = simulated(workload, folder / "simulated.lxt")
        if apart_ms(without, with_overheads) < 0.5:
            expected[name] = without
    raise AssertionError("hardly any is stable")


@pytest.mark.parametrize("policy", ["G-EDF", "P-RM"])
def test_random_graphs_run_as_they_are_simulated(programs, tmp_path, policy):
    expected = {}
    for form in FORMS:
        expected |= stable(policy, form, 2, tmp_path)
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
    # Names of tasks are those of all runs; those of nodes begin with the name of the graph.
    kernel = due(events(out / "kernel.lxt"))
    apart, due_apart, due_live = {}, {}, {}
    for name, jobs in expected.items():
        live, simulation = events(out / f"{name}.lxt"), tmp_path / f"{name}-simulated.lxt"
        judged(out / f"{name}.lxt")
        simulated(tmp_path / f"{name}.toml", simulation)
        of_graph = {task: deadlines for task, deadlines in due(live).items() if task != "task"}
        apart[name] = apart_ms(jobs, completed(live))
        due_live[name] = due_apart_us(of_graph, kernel, f"{name}/A")
        due_simulated = due(events(simulation))
        due_apart[name] = max(
            abs(at - by) / 1e6
            for task, deadlines in of_graph.items()
            for at, by in zip(deadlines, due_simulated[task], strict=False)
        )
        assert len(jobs) > 20, name
    assert max(apart.values()) < 1, apart
    assert max(due_apart.values()) < 1, due_apart
    assert max(due_live.values()) < 50, due_live


@pytest.mark.parametrize(
    ("smp", "policy", "example"),
    [
        (2, "G-EDF", "pipeline"),
        (2, "P-RM", "fusion"),
        (4, "G-EDF", None),
        (3, "G-EDF/CE1", None),
        (2, "C-EDF/CQm", None),
    ],
)
def test_graphs_on_several_cpus_follow_the_policy(programs, tmp_path, smp, policy, example):
    workloads = [EXAMPLES / f"{example}.toml"] if example else []
    for form in ["fork", "diamond", "rates", "cycle"]:
        name = f"{smp}-{form}"
        # Partitioned, no CPU is to have too much; and one is dedicated.
        load = 0.35 * smp if policy.startswith("P-") else 0.5 * (smp - policy.endswith("1"))
        workloads.append(tmp_path / f"{name}.toml")
        workloads[-1].write_text(drawn(random.Random(name), policy, form, name, cpus=smp, load=load))
    size = f" --cluster-size {smp}" if policy.startswith("C-") else ""
    # On all CPUs, and no job before its release.
    alone = (
        "laxity graph run /lab/pipeline.toml --scheduler kernel --on-time --jobs 40 --trace /out/alone.lxt || exit 3"
    )
    alone = alone if example == "pipeline" else ""
    script = f"""
    start --policy {policy}{size} --trace /out/kernel.lxt
    for workload in /lab/*.toml; do
        out=/out/$(basename $workload .toml)
        timeout 60 laxity run $workload --scheduler kernel --for 1s --trace $out.lxt --json > $out.json || exit 1
    done
    {alone}
    laxity sched stop || exit 2
    ended
    """
    out = tmp_path / "out"
    said = lab([*programs, *workloads], out, script, smp=smp)
    assert "loader 0" in said
    assert "lost" not in said
    realization = policy if "/" in policy else f"{policy}/CEm"
    assert judged(out / "kernel.lxt")[f"follows {realization}"] == "yes"
    for workload in workloads:
        judged(out / f"{workload.stem}.lxt")
        run = json.loads((out / f"{workload.stem}.json").read_text())
        assert all(task["released"] == task["completed"] > 5 for task in run["tasks"]), run["tasks"]
    if alone:
        judged(out / "alone.lxt")
