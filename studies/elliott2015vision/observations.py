"""Observations 28 to 44 of paper 003: what each says, when it counts as reproduced, and what finds that.

The criteria are those that were written down for the live runs before these ran, three of them stricter since (decision
40). They judge simulations alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from studies.common.claims import Claim, Finding, UndecidableError, graded, partly
from studies.common.results import NotRunError
from studies.elliott2015vision.delays import Array
from studies.elliott2015vision.results import Kind, VisionResults
from studies.elliott2015vision.views import DROPPED, View, short

MEASURES = ("max", "p99_9", "p99", "std")
NEAR = 0.1
"""In periods: how far from one period a completion delay may be to be called near it."""
BURST = 0.25
"""In periods: a shorter completion delay belongs to a burst; the paper's mode is near 0.05."""
ALIKE = 0.2
"""Of their mean, that percentiles may differ to be alike."""
POOR = 1_000
"""In periods: the paper's word for latencies with few tokens."""

Judge = Callable[[View], Finding]
Case = TypeVar("Case")
Found = TypeVar("Found")


@dataclass(frozen=True)
class Observation:
    """An observation of the paper.

    Attributes:
        number: the paper's.
        where: tables, figures or section.
        says: what the paper says, nearly in its words.
        criterion: when it counts as reproduced, and as partly reproduced.
        judge: finds it in runs.
        hypothesis: what may be the reason if it is not reproduced, for runs of each kind; nothing here tests it.
    """

    number: int
    where: str
    says: str
    criterion: str
    judge: Judge
    hypothesis: dict[Kind, str]

    def claim(self, kind: Kind) -> Claim:
        """The claim that it makes of runs of this kind."""
        key, where = ("live", "live") if kind == "live" else ("observation", self.where)

        def check(results: VisionResults) -> Finding:
            if kind == "live":
                return self._live(results)
            return self._explained(self.judge(View(results.simulated)), kind)

        name = f"Observation {self.number}, {where}"
        return Claim(f"{key}-{self.number}", name, self.says, check, f"Criterion: {self.criterion}")

    def _live(self, results: VisionResults) -> Finding:
        """By the machine's own runs; where these cannot tell, by those in which it stands for the paper's."""
        try:
            return self._explained(self.judge(View(results.live)), "live")
        except (UndecidableError, NotRunError) as error:
            if not results.has_virtual:
                raise
            found = self._explained(self.judge(View(results.virtual)), "virtual")
            cpus, own = results.virtual.run["virtual_cpus"], f"the machine's own runs cannot tell: {error}"
            return replace(found, ours=f"on a virtual machine of {cpus} CPUs: {found.ours} ({own})")

    def _explained(self, found: Finding, kind: Kind) -> Finding:
        if found.verdict == "reproduced":
            return replace(found, why="")
        return replace(found, hypothesis=self.hypothesis.get(kind, ""))


# --- What several observations need -----------------------------------------------------------------------------------


def numbers(values: dict[str, float], digits: int = 2, unit: str = "") -> str:
    """Names with numbers, for people."""
    return ", ".join(f"{short(name)} {value:.{digits}f}{unit}" for name, value in values.items())


def above(values: Array, limit: float) -> float:
    """Percentage of values above a limit."""
    return 100 * float(np.mean(values > limit))


def width(latencies: Array) -> float:
    """From the 0.1th to the 99.9th percentile: where nearly all are."""
    return float(np.subtract(*np.percentile(latencies, (99.9, 0.1))))


def flatness(latencies: Array) -> float:
    """How far the CCDF goes to the right between 7 % and 1 %, in medians: long where it is flat."""
    middle, low, high = np.percentile(latencies, (50, 93, 99))
    return float((high - low) / middle)


def tail(latencies: Array) -> float:
    """99.9th by 90th percentile."""
    return float(np.divide(*np.percentile(latencies, (99.9, 90))))


def _least(values: dict[str, float]) -> str:
    return min(values, key=lambda name: values[name])


def _of_each(cases: Iterable[Case], judge: Callable[[Case], Found]) -> tuple[list[Found], list[str]]:
    """What is found in each case, and why nothing can be said of the others; UndecidableError if of none."""
    found, left_out = [], []
    for case in cases:
        try:
            found.append(judge(case))
        except UndecidableError as error:
            left_out.append(str(error))
    if not found:
        raise UndecidableError("; ".join(left_out))
    return found, left_out


def _has_least(measures: Sequence[str], among: Callable[[View], Sequence[str]], most: int, winners: slice) -> Judge:
    """Whether configurations with the paper's best rho have the least of so many measures; partly: of one."""

    def judge(view: View) -> Finding:
        wins, names = view.middle[winners], among(view)
        by = {measure: view.measured(measure, names) for measure in measures}
        best = {measure: _least(values) for measure, values in by.items()}
        count = sum(name in wins for name in best.values())
        text = "least: " + ", ".join(f"{m} {short(name)} {by[m][name]:.2f}" for m, name in best.items())
        steady = [name for name, dropped in view.dropped(names).items() if dropped <= DROPPED]
        of_these = sum(_least({name: by[m][name] for name in steady}) in wins for m in measures) if steady else 0
        why = f"of the configurations that drop no frames they have the least in {of_these} of {len(measures)}"
        return Finding(partly(count >= most, count >= 1), text, why)

    return judge


def _is_least(what: str, value: Callable[[Array], float], digits: int) -> Judge:
    """Whether the paper's best has the least of a value of latencies; partly: one of the three least."""

    def judge(view: View) -> Finding:
        best = view.middle[0]
        values = {name: value(view.latencies(name)) for name in (view.other, view.edf, *view.parts.managed)}
        order = sorted(values, key=lambda name: values[name])
        why = f"{short(order[0])} has the least; {view.far_behind((view.edf, *view.many))}"
        return Finding(partly(order[0] == best, best in order[:3]), f"{what}: {numbers(values, digits)}", why)

    return judge


def _orders(what: str, value: Callable[[Array], float], is_so: Callable[[float, float], tuple[bool, bool]]) -> Judge:
    """Whether a value of latencies is so, and nearly so, of FIFO and PRIO engine locks with enough tokens."""

    def judge(view: View) -> Finding:
        values = {name: value(view.latencies(name)) for name in view.many}
        found = [is_so(values[fifo], values[prio]) for fifo, prio in view.enough[view.edf]]
        verdict = partly(all(well for well, _ in found), all(nearly for _, nearly in found))
        return Finding(verdict, f"{what}: {numbers(values)}", view.far_behind(view.many))

    return judge


# --- Completion delays ------------------------------------------------------------------------------------------------


def _28(view: View) -> Finding:
    few, rest = (view.fifo, *view.parts.few), (view.edf, *view.many)
    dropped = view.dropped((*few, *view.parts.calibrated, *rest))
    held = view.overload()
    good = all(dropped[name] > DROPPED for name in few) and all(dropped[name] <= DROPPED for name in rest)
    some = min(dropped[name] for name in view.parts.few) > max(dropped[name] for name in view.many)
    return Finding(partly(good, some), f"dropped: {numbers(dropped, unit=' %')}{held}")


def _29(view: View) -> Finding:
    def improved(scheduler: str) -> tuple[int, int, str]:
        base, managed = view.row(scheduler), {name: view.row(name) for pair in view.enough[scheduler] for name in pair}
        better = sum(getattr(row, m) < getattr(base, m) for row in managed.values() for m in MEASURES)
        std = numbers({scheduler: base.std} | {name: row.std for name, row in managed.items()})
        return better, len(managed) * len(MEASURES), f"std: {std}"

    found, left_out = _of_each(view.enough, improved)
    better, total = (sum(counts) for counts in list(zip(*found, strict=True))[:2])
    text = f"{better} of {total} numbers are below those without management"
    return Finding(graded(better, total), "; ".join([text, *(std for _, _, std in found), *left_out]))


def _30(view: View) -> Finding:
    rows = {name: view.row(name) for name in view.parts.unmanaged}
    text = "; ".join(
        f"{short(name)}: dropped {row.dropped_percent:.2f} %, max {row.max:.2f}, std {row.std:.2f}"
        for name, row in rows.items()
    )
    other, *rest = rows.values()
    better = [other.std < row.std and other.dropped_percent <= row.dropped_percent for row in rest]
    return Finding(partly(all(better), any(better)), text)


def _32(view: View) -> Finding:
    enough = [pair for pairs in view.enough.values() for pair in pairs]
    pairs = [view.parts.few, *enough] if view.parts.calibrated else enough
    found, left_out = _of_each(pairs, lambda pair: (pair[0], view.row(pair[0]).std, view.row(pair[1]).std))
    good = sum(fifo <= prio for _, fifo, prio in found)
    said = [f"{short(name)} {fifo:.3f}, PRIO {prio:.3f}" for name, fifo, prio in found]
    return Finding(partly(good == len(pairs), 2 * good >= len(found)), "std: " + "; ".join([*said, *left_out]))


def _34(view: View) -> Finding:
    best = view.middle
    share = {name: 100 * float(np.mean(np.abs(view.delays(name) - 1) <= NEAR)) for name in view.all}
    ours, rest = ([share[name] for name in view.all if (name in best) is wanted] for wanted in (True, False))
    ahead = [name for name in share if name not in best and share[name] > min(ours)]
    dropped = numbers(view.dropped(ahead), unit=" %")
    text = f"within {NEAR:.0%} of a period: {numbers(share, 0, ' %')}"
    return Finding(partly(min(ours) >= max(rest), max(ours) >= max(rest)), text, f"of those ahead drop {dropped}")


def _35(view: View) -> Finding:
    share = {name: 100 - above(view.delays(name), BURST) for name in (view.edf, *view.many)}
    first, *rest = share.values()
    text = f"delays of at most {BURST} periods: {numbers(share, unit=' %')}"
    return Finding(partly(first > 2 and first > 2 * max(rest), first > 1 and first > max(rest)), text)


def _36(view: View) -> Finding:
    held = view.overload()
    names = (*view.parts.calibrated, *view.parts.few)
    share = {name: above(view.delays(name), 1.0) for name in names}
    middle = {name: float(np.median(view.delays(name))) for name in names}
    good = [share[name] > 50 and middle[name] > 1 + DROPPED / 100 for name in view.parts.few]
    text = f"delays above one period: {numbers(share, 0, ' %')}; medians {numbers(middle)}"
    dropped = numbers(view.dropped(view.parts.few), unit=" %")
    return Finding(partly(all(good), any(good)), text + held, f"dropped: {dropped}")


# --- Latency from end to end ------------------------------------------------------------------------------------------


def _38(view: View) -> Finding:
    bodies = np.array([np.percentile(view.latencies(name), range(10, 71, 10)) for name in view.many])
    tails = np.array([np.percentile(view.latencies(name), 99) for name in view.many])
    gap = float(np.max(np.ptp(bodies, axis=0) / bodies.mean(axis=0)))
    apart = float(np.ptp(tails) / tails.mean())
    text = f"percentiles 10 to 70 differ by at most {gap:.0%} of their mean, the 99th by {apart:.0%}"
    good, some = gap <= ALIKE, gap <= 2 * ALIKE and gap < apart
    return Finding(partly(good, some), text, view.far_behind(view.many))


def _39(view: View) -> Finding:
    held = view.overload()
    names = (*view.parts.calibrated, *view.parts.few, *view.many)
    late = {name: float(np.percentile(view.latencies(name), 99)) for name in names}
    greatest = {name: float(view.latencies(name).max()) for name in names}
    few, many = ([late[name] for name in of] for of in (view.parts.few, view.many))
    beyond = min(greatest[name] for name in view.parts.few) > POOR
    text = f"99th percentile, in periods: {numbers(late)}; greatest: {numbers(greatest, 0)}{held}"
    return Finding(partly(min(few) > 5 * max(many) and beyond, min(few) > max(many)), text)


def _43(view: View) -> Finding:
    verdicts = [by_number(number).judge(view).verdict for number in (37, 42)]
    good, some = all(v == "reproduced" for v in verdicts), any(v != "not reproduced" for v in verdicts)
    return Finding(partly(good, some), f"observations 37 and 42: {verdicts[0]}, {verdicts[1]}", "it follows from these")


def _44(view: View) -> Finding:
    found = []
    for name in view.runs.configurations:
        try:
            found.append((view.row(name).p99, float(np.percentile(view.latencies(name), 99))))
        except UndecidableError:
            continue
    if len(found) < 4:
        raise UndecidableError(f"only {len(found)} configurations were left alone and have delays of all graphs")
    delay, latency = (np.argsort(np.argsort(values)) for values in zip(*found, strict=True))
    rank = float(np.corrcoef(delay, latency)[0, 1])
    return Finding(partly(rank >= 0.7, rank >= 0.4), f"correlation of ranks {rank:.2f}, of {len(found)} configurations")


# --- The table --------------------------------------------------------------------------------------------------------

ONE_RESOURCE = (
    "kernels of the soft GPU run on the same CPUs as all else, so that the GPU is no second resource, and arbitration "
    "costs CPU time"
)
FEW_WAIT = "an engine has at most rho - 1 requests waiting, so that their order matters little"
NO_MACHINE = (
    "the model has GPUSync, PGM and the schedulers as they are described, with overheads of another paper; a real "
    "machine, CUDA and a driver do more"
)
SPINNING = (
    "jobs that wait for the GPU suspend here, and the paper explains its surprise by threads that wait busily; the "
    "reading waiting=spin has these"
)
LATE_AND_REGULAR = "late frames can be regular: a graph that is always late shows them at the same pace"
BACKLOG = "the tail here is the backlog of a few graphs, whatever the order of engine locks"

OBSERVATIONS = (
    Observation(
        28, "Tables 5.4 to 5.13",
        "The task set is clearly unschedulable under SCHED_FIFO and GPUSync with rho of 1 or 2: frames are dropped "
        "there, and nowhere else.",
        f"SCHED_FIFO and all with few tokens drop more than {DROPPED} %, C-EDF and all with enough no more; partly: "
        "all with few drop more than all with enough.",
        _28,
        {"simulated": "SCHED_FIFO has CPU time enough here; what starved its longest periods in the paper may be busy "
         "waiting (section 5.5.3.1)", "live": ONE_RESOURCE},
    ),
    Observation(
        29, "Tables 5.5, 5.10 to 5.13", "GPUSync with rho of 3 or 6 improved observed predictability.",
        "max, 99.9 %, 99 % and std with enough tokens are below those without management in 90 % of the cases; partly: "
        "half.",
        _29, {"simulated": NO_MACHINE, "live": ONE_RESOURCE},
    ),
    Observation(
        30, "Tables 5.3 to 5.5",
        "SCHED_OTHER outperformed both real-time configurations without GPU management.",
        "less std than, and no more dropped than under, each of the two; partly: one of them.",
        _30, {"simulated": SPINNING, "live": SPINNING},
    ),
    Observation(
        31, "Table 5.14", "For GPUSync configurations, completion delays are more regular when rho = 3.",
        "of all managed ones that rho has the least of max, 99.9 %, 99 %, std in three of four; partly: one.",
        _has_least(MEASURES, lambda view: view.parts.managed, 3, slice(None)),
        {"simulated": "bursts of the GPU that disturb others through memory, the paper's explanation, are not modelled",
         "live": ONE_RESOURCE},
    ),
    Observation(
        32, "Table 5.14",
        "For GPUSync, FIFO engine locks offered better observed predictability than PRIO: standard deviations are "
        "less, or equal at rho = 2.",
        "no more std than with PRIO, wherever there are two tokens or more; partly: in half of what can be compared.",
        _32, {"simulated": FEW_WAIT, "live": FEW_WAIT},
    ),
    Observation(
        33, "Table 5.14", "GPUSync with (3,2,FIFO) outperformed the other ten: least max, 99th percentile, deviation.",
        "least max, 99 % and std of all; partly: one of them.",
        _has_least(("max", "p99", "std"), lambda view: view.all, 3, slice(1)),
        {"simulated": "graphs that drop frames never wait for their periods", "live": ONE_RESOURCE},
    ),
    Observation(
        34, "Figs. 5.17, 5.18", "With rho = 3 normalized completion delays are most likely near 1.0.",
        f"the largest shares within {NEAR:.0%} of a period under both engine orders; partly: under one.",
        _34, {"simulated": "where some graphs drop frames the others gain", "live": ONE_RESOURCE},
    ),
    Observation(
        35, "Fig. 5.12", "The density for LITMUS without GPUSync suggests bursts: a mode near 0.05.",
        f"more than 2 % of the delays are at most {BURST} periods, and twice as many as with enough tokens; partly: "
        "more than 1 %, and more than with enough tokens.",
        _35,
        {"simulated": "few jobs of the model are late enough for several frames to pile up behind one; " + NO_MACHINE,
         "live": ONE_RESOURCE},
    ),
    Observation(
        36, "Figs. 5.13 to 5.16",
        "The densities with rho of 1 or 2 indicate unschedulability: most delays are greater than 1.0.",
        "with few tokens most delays, and their median clearly, are above one period, under both orders; partly: under "
        "one.",
        _36, {"live": ONE_RESOURCE},
    ),
    Observation(
        37, "Fig. 5.21", "GPUSync with (3,2,FIFO) exhibits the least variance in end-to-end latency: 9 to 20 periods.",
        "least between 0.1th and 99.9th percentile; partly: among the three least.",
        _is_least("from the 0.1th to the 99.9th percentile, in periods", width, 1),
        {"simulated": "the least latency of the paper's GPUSync, 7.5 periods, may contain the six by which a frame "
         "that is shown is older than the one read meanwhile"},
    ),
    Observation(
        38, "Fig. 5.21", "With rho of 3 or 6 about 70 % of the latencies behave similarly.",
        f"percentiles 10 to 70 with enough tokens differ by at most {ALIKE:.0%}; partly: by at most {2 * ALIKE:.0%}, "
        "and by less than the 99th.",
        _38, {"live": "the two differ in the order of engine locks, and are one run each"},
    ),
    Observation(
        39, "Fig. 5.22", f"Latencies with rho of 1 or 2 are very poor: beyond {POOR:,} periods.",
        f"99th percentiles with few tokens are 5 times those with enough, and the greatest beyond {POOR:,} periods; "
        "partly: 99th percentiles are greater.",
        _39,
        {"simulated": "backlogs grow with what is dropped, which with rho = 2 is less here than in the paper",
         "live": "backlogs grow with time and with what is dropped"},
    ),
    Observation(
        40, "Fig. 5.22", "FIFO engine locks exhibit a smooth degradation in performance.",
        "the way from the 93rd to the 99th percentile is shorter than under PRIO; partly: not 10 % longer.",
        _orders("from the 93rd to the 99th percentile, in medians", flatness,
                lambda fifo, prio: (fifo < prio, fifo < 1.1 * prio)),
        {"simulated": BACKLOG, "live": FEW_WAIT},
    ),
    Observation(
        41, "Fig. 5.22", "PRIO engine locks perform poorly for about 5 % of the time: extreme outliers.",
        "99.9th by 90th percentile is 1.2 times FIFO's; partly: greater.",
        _orders("99.9th by 90th percentile", tail, lambda fifo, prio: (prio > 1.2 * fifo, prio > fifo)),
        {"simulated": BACKLOG, "live": FEW_WAIT},
    ),
    Observation(
        42, "Fig. 5.22", "GPUSync with (3,2,FIFO) exhibits the best worst-case behavior: 0.09 % above 20 periods.",
        "least greatest latency; partly: among the three least.",
        _is_least("greatest, in periods", lambda latencies: float(latencies.max()), 2), {"simulated": BACKLOG},
    ),
    Observation(
        43, "section 5.5.3.2", "GPUSync with (3,2,FIFO) exhibits the best real-time behavior.",
        "observations 37 and 42 are reproduced; partly: one of them, or in part.", _43, {},
    ),
    Observation(
        44, "section 5.5.3.2", "End-to-end latencies tell what completion delays tell.",
        "99th percentiles of both rank the configurations alike, with a correlation of 0.7; partly: 0.4.",
        _44,
        {"simulated": LATE_AND_REGULAR, "live": LATE_AND_REGULAR},
    ),
)  # fmt: skip


def by_number(number: int) -> Observation:
    """The observation of this number."""
    return next(one for one in OBSERVATIONS if one.number == number)
