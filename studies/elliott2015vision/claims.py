"""The claims of paper 003: its tables, and each observation twice, of simulated and of live runs."""

from __future__ import annotations

from studies.common.claims import Claim, Finding, partly
from studies.elliott2015vision.delays import MEASURES
from studies.elliott2015vision.observations import NEAR, NO_MACHINE, OBSERVATIONS
from studies.elliott2015vision.published import published_summary
from studies.elliott2015vision.results import VisionResults


def _table_14(results: VisionResults) -> Finding:
    paper = published_summary()
    names = [name for name in results.simulated.configurations if name.startswith("GPUSync")]
    rows = {name: results.simulated.averaged(name) for name in names}
    dropped = max(abs(rows[n].dropped_percent - paper[n].dropped_percent) for n in names)
    near = sum(
        abs(getattr(rows[n], m) - getattr(paper[n], m)) <= NEAR * getattr(paper[n], m)
        for n in names
        for m in MEASURES[4:6]
    )
    ranges = []
    for of in (rows, paper):
        greatest = [of[name].max for name in names]
        ranges.append(f"{min(greatest):.1f} to {max(greatest):.1f}")
    text = (
        f"frames dropped under GPUSync differ by at most {dropped:.1f} points; medians and means of {near} of "
        f"{2 * len(names)} are within {NEAR:.0%}; greatest delays {ranges[0]} periods, in the paper {ranges[1]}"
    )
    return Finding(partly(False, near >= len(names)), text, "greatest delays and deviations are less here", NO_MACHINE)


CLAIMS = (
    Claim("table-5.14", "Tables 5.6 to 5.14", "The numbers of the eight GPUSync configurations.", _table_14),
    *(one.claim("simulated") for one in OBSERVATIONS),
    *(one.claim("live") for one in OBSERVATIONS),
)
