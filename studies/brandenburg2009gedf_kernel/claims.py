"""What Brandenburg & Anderson (RTSS 2009) say, asked of Laxity's scheduler in the kernel.

The paper's own checks decide. Reasons are those that the measured overheads show.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from studies.brandenburg2009gedf.claims import CLAIMS as PAPER
from studies.brandenburg2009gedf_kernel.overheads import Costs
from studies.common.claims import Claim, Finding
from studies.common.results import Results

REASONS: dict[str, list[tuple[str, ...]]] = {
    "figure-5a": [("release", "FE1", "HEm"), ("scheduling", "FE1", "HEm")],
    "dedicated": [("release", "CE1", "CEm"), ("timer_rearming", "CE1", "CEm")],
    "staggered": [("tick", "S-CQm", "CQm"), ("scheduling", "S-CQm", "CQm")],
    "best-quantum": [("tick", "S-CQ1", "CQ1"), ("scheduling", "S-CQ1", "CQ1")],
    "quantum-hard": [("release", "CQm", "CEm"), ("scheduling", "CQm", "CEm")],
    "staggered-event": [("release", "S-CQm", "CEm"), ("scheduling", "S-CQm", "CEm")],
    "quantum-soft": [("release", "CQm", "CEm"), ("scheduling", "CQm", "CEm")],
    "hem-soft": [("release", "HEm", "FEm", "CEm"), ("scheduling", "HEm", "FEm", "CEm")],
    "hem-hard": [("release", "HEm", "CEm"), ("scheduling", "HEm", "CEm")],
    "fem": [("release", "FEm", "CEm"), ("scheduling", "FEm", "CEm")],
    "fe1": [("release", "FE1", "CE1"), ("scheduling", "FE1", "CE1")],
    "best-fe1": [("release", "FE1", "CE1"), ("scheduling", "FE1", "CE1")],
}
"""The overheads that a claim turns on, each with the realizations to compare."""


def claims(costs: Costs) -> tuple[Claim, ...]:
    """The paper's claims, with what these costs have to do with the findings."""
    return tuple(replace(claim, check=_with(claim, costs)) for claim in PAPER)


def _with(claim: Claim, costs: Costs) -> Callable[[Results], Finding]:
    def found(results: Results) -> Finding:
        finding = claim.check(results)
        reasons = [costs.in_words(source, *names) for source, *names in REASONS.get(claim.key, ())]
        # The paper's hypotheses are about its own overheads.
        return Finding(finding.verdict, finding.ours, "; ".join(part for part in (finding.why, *reasons) if part))

    return found
