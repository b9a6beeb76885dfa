"""How the load of the runs on a virtual machine was chosen, for people."""

from __future__ import annotations

from typing import Any

from studies.elliott2015vision.live_load import least_taken


def describe(run: dict[str, Any]) -> str:
    """The machine, its load, and what it stands for."""
    measured, factor = run["scale"]["measured"], float(run["periods_scaled"])
    kernels_ms = sum(measured["kernels_us"]) / 1_000
    why = "chosen by hand" if run["scale"]["is_chosen"] else f"with which frames need {run['cpu_load']:.0%} of the CPUs"
    most = max(least_taken(run, name) for name in run["parts"])
    return (
        f"the paper's machine of {run['virtual_cpus']} CPUs, for which {run['machine']} stand, Linux {run['linux']}, "
        f"{run['date']}; {run['seconds']} s each. C-EDF is Laxity's own scheduler. Tokens, queues and graphs are the "
        f"paper's; CPUs compute frames of {run['size']}, and kernels only occupy the GPU. Periods of Table 5.2 times "
        f"{factor:g}, {why}: a frame takes {measured['cpu_ms']:.2f} ms of them, {measured['loop_ms']:.2f} ms in a "
        f"plain loop, and the execution engine for {kernels_ms:.2f} ms, as large a share as in the paper's footnote "
        f"16. Of the CPUs at most {most:.1%} were taken from a run that counts. Loads in percent of that: "
        f"{', '.join(map(str, run['loads']))}"
    )
