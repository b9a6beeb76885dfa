"""How the load of live runs was scaled to the machine, for people."""

from __future__ import annotations

from typing import Any

from studies.common.claims import Table
from studies.elliott2015vision.stabilizers.load import CPU_TARGET, ENGINE_TARGET, KERNELS, PROBED, Load

NAMES = {"EE": "execution engine", "CE0": "copy engine, in", "CE1": "copy engine, out"}

TAKEN_MAX = 0.03
"""Of the CPUs that the host of a virtual machine may keep from a run and other processes use, together. A host keeps
them for seconds at a time, in which what was scaled to the machine does not fit, and a run from which more was taken
tells of that rather than of its configuration: it is run again, once, after the others, and the one from which less was
taken counts. Of what is taken from twice nothing is concluded."""


def measured(run: dict[str, Any]) -> Load:
    """What was measured before the runs."""
    return Load.from_json(run["scale"]["measured"])


def token_busy(run: dict[str, Any]) -> float:
    """The share of the time for which a single token would be held, to serve all frames."""
    return measured(run).token_busy(float(run["periods_scaled"]))


def least_taken(run: dict[str, Any], configuration: str) -> float:
    """The share of the CPUs that was taken from the run of a configuration that counts."""
    return float(min(run["parts"][configuration]["taken"]))


def was_disturbed(run: dict[str, Any], configuration: str) -> bool:
    """Whether too much was taken from a configuration in each of its runs."""
    return least_taken(run, configuration) > TAKEN_MAX


def describe(run: dict[str, Any]) -> str:
    """Periods, why they are such, and what was used then."""
    factor = float(run["periods_scaled"])
    aim = f"CPUs at most {CPU_TARGET:.0%}, each engine and a single token at most {ENGINE_TARGET:.0%} busy"
    why = f"chosen by hand; {aim} would be {measured(run).factor(has_one_token=True):g}"
    if not run["scale"]["is_chosen"]:
        why = f"the smallest factor with {aim}, by what a frame takes here"
    busy = ", ".join(f"{NAMES.get(name, name)} {share:.0%}" for name, share in measured(run).busy(factor).items())
    used = [part["load"]["CPU"] for part in run["parts"].values()]
    budgets = sorted({part["budget"] for part in run["parts"].values() if part["budget"] is not None})
    return (
        f"frames of {run['size']}, periods of Table 5.2 times {factor:g}: {why}. So there is work for {busy}; a single "
        f"token would be held for {token_busy(run):.0%} of the time. In the runs processes and soft GPU used "
        f"{min(used):.2f} to {max(used):.2f} of {run['cpus']} CPUs; budgets under SCHED_DEADLINE were "
        f"{', '.join(f'{budget:g}' for budget in budgets) or 'no'} times a node's median CPU time{_taken(run)}"
    )


def _taken(run: dict[str, Any]) -> str:
    """What was taken from the runs; what ran twice, and why."""
    most = max(least_taken(run, name) for name in run["parts"])
    again = {name: part["taken"] for name, part in run["parts"].items() if len(part["taken"]) > 1}
    said = (
        f". The host of a virtual machine keeps CPU time, and other processes use some: at most {most:.1%} of the CPUs "
        "in a run that counts"
    )
    if not again:
        return said
    shares = "; ".join(f"{name}: {' and '.join(f'{share:.1%}' for share in each)}" for name, each in again.items())
    decided = "; nothing is concluded from one above that limit" if most > TAKEN_MAX else ""
    return (
        f"{said}. Those from which more than {TAKEN_MAX:.0%} were taken ran twice, and the run from which less was "
        f"taken counts{decided}. Taken: {shares}"
    )


def table(run: dict[str, Any]) -> Table:
    """What a frame takes of each resource, and how busy that makes it."""
    found, factor = measured(run), float(run["periods_scaled"])
    per_frame = {
        name: share / found.frames_per_ms * (found.cpus if name == "CPUs" else 1)
        for name, share in found.busy(1.0).items()
    }
    rows = [
        [NAMES.get(name, name), f"{per_frame[name]:.2f}", f"{share:.0%}", f"{_target(name):.0%}"]
        for name, share in found.busy(factor).items()
    ]
    rows.append(["a single token", f"{found.token_ms:.2f}", f"{token_busy(run):.0%}", f"{ENGINE_TARGET:.0%}"])
    text = (
        f"A frame's kernels take {found.kernels_ms:.2f} ms in a plain loop. {PROBED} graphs whose frames came faster "
        f"than they could be shown had one every {found.engine_ms:.2f} ms, so that each of its {KERNELS} kernels takes "
        f"the execution engine {found.operation_ms:.2f} ms longer than it computes: for hand-overs from process to "
        "process, for tokens and engine locks. Copies are charged as much."
    )
    return Table("Load scaled to the machine", text, ["", "ms a frame", "busy", "at most"], rows)


def probes(run: dict[str, Any]) -> Table:
    """The measurements behind it."""
    rows = [
        [
            probe.configuration,
            f"{probe.frames_per_s:.0f}",
            f"{probe.frame_ms:.2f}",
            f"{probe.cpu_ms:.2f}",
            f"{probe.cpus_busy:.2f}",
        ]
        for probe in measured(run).probes
    ]
    text = "Frames that came faster than they could be shown."
    return Table("Frames at most", text, ["", "frames/s", "ms a frame", "CPU ms a frame", "CPUs busy"], rows)


def _target(name: str) -> float:
    return CPU_TARGET if name == "CPUs" else ENGINE_TARGET
