"""What Brandenburg & Anderson (RTSS 2009) say, asked of Laxity's scheduler in the kernel.

Six of the paper's twelve realizations were measured: those with a coarse queue. The paper's claims about the others
cannot be decided here. Reasons are those that the measured overheads show.
"""

from __future__ import annotations

from collections.abc import Callable

from studies.brandenburg2009gedf import claims as paper
from studies.brandenburg2009gedf.claims import MARGIN
from studies.brandenburg2009gedf_kernel.overheads import cost_us, paper_us
from studies.common.claims import Claim, Finding, UndecidableError, graded, yes
from studies.common.results import Results

TITLE = (
    "Brandenburg & Anderson (RTSS 2009) with the overheads of Laxity's scheduler in the kernel: emulated machine, "
    "instruction counts"
)
SOFT = ("G-EDF", "CEm", "CE1", "CQm", "CQ1")
HARD = (*SOFT, "S-CQm", "S-CQ1")
DEDICATED = (("CE1", "CEm"), ("CQ1", "CQm"))
MANY = 250
"""The most tasks that were measured."""

Check = Callable[[Results], Finding]


def _lacks(what: str) -> Check:
    """It cannot be decided, as no such queue was measured."""

    def check(_: Results) -> Finding:
        raise UndecidableError(
            f"{what} was not measured: in the lab no CPU waits for the lock, which is all that it could shorten "
            "(decision 154)"
        )

    return check


def _costs(source: str, *realizations: str) -> str:
    """What a source costs with many tasks, in words, and in the paper."""
    ours = ", ".join(f"{name} {cost_us(name, 'worst', source, MANY):.1f}" for name in realizations)
    theirs = ", ".join(f"{paper_us(name, 'worst', source, MANY):.1f}" for name in realizations)
    return f"{source.replace('_', ' ')} with {MANY} tasks, worst case in us: {ours} (the paper's: {theirs})"


def _dedicated(results: Results) -> Finding:
    cases = [case for case in paper.compared(results, ("hard", "soft"), DEDICATED) if "uni-heavy/long" not in case[0]]
    good = sum(gain > -MARGIN for _, gain in cases)
    better = sum(gain > MARGIN for _, gain in cases)
    worse = [f"{name} ({gain:+.3f})" for name, gain in cases if gain <= -MARGIN]
    why = f"worse in {paper.listed(worse)}; " if worse else ""
    ours = f"better in {better}, not worse in {good} of {len(cases)} cases"
    why += (
        "a dedicated CPU takes releases and re-arming from all others; where few tasks need whole CPUs, one CPU less "
        "costs more; "
    )
    return Finding(graded(good, len(cases)), ours, why + _costs("timer_rearming", "CEm", "CE1"))


def _less_pronounced(results: Results) -> Finding:
    def mean(period: str) -> float:
        cases = paper.compared(results, ("hard", "soft"), DEDICATED)
        chosen = [abs(gain) for name, gain in cases if f"/{period} " in name]
        return sum(chosen) / max(len(chosen), 1)

    moderate, long = mean("moderate"), mean("long")
    return Finding(yes(long < moderate), f"mean difference {long:.3f} for long, {moderate:.3f} for moderate periods")


def _only_global(results: Results) -> Finding:
    consistent = [
        scenario
        for scenario in results.scenarios
        if all(paper.gained(results, scenario, graph, m, one) > 0 for graph in ("hard", "soft") for one, m in DEDICATED)
    ]
    ours = f"global better in both pairs, hard and soft: {paper.listed(consistent)}"
    return Finding(yes(consistent == ["uni-heavy/long"]), ours, "of two pairs, as FEm and FE1 were not measured")


def _with(check: Check, *reasons: Callable[[], str]) -> Check:
    """A check of the paper's own tables, with reasons that the overheads here show."""

    def found(results: Results) -> Finding:
        finding = check(results)
        why = "; ".join(part for part in (finding.why, *(reason() for reason in reasons)) if part)
        return Finding(finding.verdict, finding.ours, why)

    return found


def _best(results: Results) -> Finding:
    names = {
        graph: {name: paper.mean_of(results, graph, name) for name in (HARD if graph == "hard" else SOFT)[1:]}
        for graph in ("hard", "soft")
    }
    best = {graph: max(means, key=lambda name: means[name]) for graph, means in names.items()}
    ours = "; ".join(f"{graph}: {paper.numbered(means)}" for graph, means in names.items())
    found = sum(name == "CE1" for name in best.values())
    return Finding(graded(found, 2, most=1.0, some=0.5), ours, "of those that the kernel has; FE1 is not there")


def _near_ideal(results: Results) -> Finding:
    panels = [("hard", u) for u in ("bimo-light", "bimo-medium", "uni-heavy", "bimo-heavy")]
    panels += [("soft", u) for u in ("uni-medium", "uni-heavy", "bimo-light", "bimo-medium", "bimo-heavy")]
    gaps = {
        f"{graph} {u}": paper.gained(results, f"{u}/moderate", graph, "G-EDF", "CE1")
        for graph, u in panels
        if f"{u}/moderate" in results.scenarios
    }
    near = sum(gap < 0.1 for gap in gaps.values())
    ours = "weighted schedulability lost to overheads by CE1: " + paper.numbered(gaps)
    return Finding(graded(near, len(gaps)), ours)


def _events() -> str:
    """Why quanta do not pay."""
    return (
        "quanta buy nothing here: a release that links no job costs little less than one that does, and on one CPU no "
        "decision waits for a lock; " + _costs("release", "CEm", "CQm") + "; " + _costs("scheduling", "CEm", "CQm")
    )


def _staggering() -> str:
    """Why staggered quanta do not pay."""
    return (
        "staggering takes up to a quantum more from each period, and saves no waiting for the lock where no CPU waits; "
        + _costs("tick", "CQm", "S-CQm")
        + "; "
        + _costs("scheduling", "CQm", "S-CQm")
    )


CLAIMS = (
    Claim("figure-5a", "Section 4.3, Fig. 5(a)",
          "The best-performing plugin (FE1) supports task systems of total utilization up to 26, whereas the "
          "worst-performing plugin (HEm) fails even for less than 5.", _lacks("a queue F or H")),
    Claim("dedicated", "Section 4.3",
          "In virtually all tested scenarios, global interrupt handling is inferior: CE1 outperforms CEm, FE1 "
          "outperforms FEm, and CQ1 outperforms CQm, in both the HRT and SRT cases.", _dedicated),
    Claim("dedicated-long", "Section 4.3", "Differences are less pronounced if periods are long.", _less_pronounced),
    Claim("global-only", "Section 4.3",
          "Long periods with heavy, uniform utilizations is the only scenario in which global interrupt handling is "
          "consistently preferable.", _only_global),
    Claim("staggered", "Section 4.3, Figs. 4(a,c,e)",
          "Staggered quanta are generally preferable to aligned quanta: S-CQm outperforms CQm and S-CQ1 outperforms "
          "CQ1 in most cases (HRT).",
          _with(paper.staggered, _staggering)),
    Claim("best-quantum", "Section 4.3",
          "S-CQ1 is the best-performing quantum-driven plugin (HRT).",
          _with(paper.best_quantum, _staggering)),
    Claim("quantum-hard", "Section 4.3",
          "HRT: CQm outperforms CEm only in the cases of uniform light utilizations and moderate or long periods, "
          "and medium utilizations with moderate periods.", _with(paper.quantum_hard, _events)),
    Claim("cq1-hard", "Section 4.3",
          "HRT: CQ1 is never preferable to CE1.", paper.never_better(("hard",), "CQ1", "CE1")),
    Claim("staggered-event", "Section 4.3",
          "S-CQm and S-CQ1 are inferior to CEm except for scenarios with many light tasks and long periods.",
          _with(paper.staggered_inferior, _events)),
    Claim("quantum-soft", "Section 4.3, Fig. 5",
          "SRT: CQm is clearly preferable to CEm in every inset but (b), and similarly for short periods; CEm "
          "remains superior for long periods.", _with(paper.quantum_soft, _events)),
    Claim("cq1-soft", "Section 4.3",
          "SRT: CE1 remains preferable to CQ1 for all period and utilization distributions.",
          paper.never_better(("soft",), "CQ1", "CE1")),
    Claim("hem-soft", "Section 4.3, Fig. 5",
          "In the SRT case, HEm is the worst-performing plugin in all tested scenarios.", _lacks("a queue H")),
    Claim("hem-hard", "Section 4.3, Fig. 4(f)", "HRT: HEm is never preferable to CEm.", _lacks("a queue H")),
    Claim("fem", "Section 4.3",
          "FEm is never preferable to CEm in any of the tested scenarios.", _lacks("a queue F")),
    Claim("fe1", "Section 4.3", "FE1 never performs worse than CE1.", _lacks("a queue F")),
    Claim("best", "Section 4.3", "Overall, the FE1 and CE1 plugins performed best.", _best),
    Claim("best-fe1", "Section 5",
          "The best performance was achieved in the majority of the tested scenarios by FE1.", _lacks("a queue F")),
    Claim("near-ideal", "Section 4.3, Figs. 4(b,d,e,f), 5(b-f)",
          "In many scenarios, FE1 and CE1 come close to the limit imposed by G-EDF schedulability analysis.",
          _near_ideal),
)  # fmt: skip
