"""Observations 28 to 44 of paper 003, looked for on another machine: live, with other numbers of CPUs and tokens.

C-EDF of the paper is SCHED_DEADLINE here. Its rho of 1 and 2, which are too few for its load, are our one token; its
rho of 3 and 6 are as many tokens as there are CPUs, m. What it says of rho = 3 is looked for at the greatest rho
between 1 and m that divides m, if there is one. Each verdict follows from numbers by the criterion beside it, and from
runs that were left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from laxity.studies._claims import Claim, Finding, UndecidableError, Verdict, graded
from laxity.studies._vision_claims import BURST, DROPPED, NEAR, above, near_one, numbers, partly, spread
from laxity.studies._vision_delays import Array, Delays
from laxity.studies._vision_live_load import TAKEN_MAX, least_taken, token_busy, was_disturbed
from laxity.studies._vision_results import Runs, VisionResults

SCHEDULERS = ("OTHER", "FIFO", "DEADLINE")
MEASURES = ("max", "p99_9", "p99", "std")
BODY = (10, 70)
"""Percentiles between which the paper finds latencies alike."""
ALIKE = 0.2
"""Of their mean, that percentiles may differ to be alike."""


# --- What there is ----------------------------------------------------------------------------------------------------


def _cpus(runs: Runs) -> int:
    return int(runs.run["cpus"])


def _names(runs: Runs, tokens: int, scheduler: str = "DEADLINE") -> list[str]:
    """Configurations of a scheduler with so many tokens; FIFO first."""
    return [f"SCHED_{scheduler} ({tokens},{_cpus(runs) // tokens},{order})" for order in ("FIFO", "PRIO")]


def _few(runs: Runs) -> list[str]:
    return _names(runs, 1)


def _many(runs: Runs, scheduler: str = "DEADLINE") -> list[str]:
    if _cpus(runs) < 2:
        raise UndecidableError("one CPU has one token only")
    return _names(runs, _cpus(runs), scheduler)


def _middle(runs: Runs) -> list[str]:
    """As the paper's rho = 3 between 1, 2 and 6."""
    between = [rho for rho in range(2, _cpus(runs)) if _cpus(runs) % rho == 0]
    if not between:
        raise UndecidableError(
            f"the observation sets rho = 3 apart from 1, 2 and 6; {_cpus(runs)} CPUs have no rho between 1 and "
            f"{_cpus(runs)} that divides them"
        )
    return _names(runs, between[-1])


def _managed(runs: Runs) -> list[str]:
    """All managed configurations under SCHED_DEADLINE."""
    return [name for name in runs.configurations if name.startswith("SCHED_DEADLINE (")]


def _undisturbed(runs: Runs, name: str) -> Runs:
    """The runs, if this configuration's was left alone."""
    if was_disturbed(runs.run, name):
        raise UndecidableError(
            f"the host and other processes took {least_taken(runs.run, name):.1%} of the CPUs from {name}, which tells "
            f"of that as well; at most {TAKEN_MAX:.0%} are allowed"
        )
    return runs


def _delays(runs: Runs, name: str) -> Array:
    """Normalized completion delays of all graphs."""
    return _undisturbed(runs, name).delays(name)


def _latencies(runs: Runs, name: str) -> Array:
    """Normalized latencies of all graphs."""
    return _undisturbed(runs, name).latencies(name)


def _row(runs: Runs, name: str) -> Delays:
    """Averages of a configuration; what graphs without delays would leave out makes them no averages of all."""
    shown, whole = runs.graphs_shown(name), len(runs.graphs)
    if shown < whole:
        raise UndecidableError(
            f"only {shown} of {whole} graphs have completion delays under {name}, so that its averages are of other "
            "graphs than those of the rest"
        )
    return _undisturbed(runs, name).averaged(name)


def _all(runs: Runs, measure: str, names: Iterable[str]) -> dict[str, float]:
    return {name: float(getattr(_row(runs, name), measure)) for name in names}


def _dropped(runs: Runs, names: Iterable[str]) -> dict[str, float]:
    """Percentages of all graphs' frames."""
    return {name: _undisturbed(runs, name).averaged(name).dropped_percent for name in names}


def _overloaded(runs: Runs) -> str:
    """How much one token is needed; not decidable if it suffices, as overload is what the observation is about."""
    busy = token_busy(runs.run)
    if busy <= 1 and max(_dropped(runs, _few(runs)).values()) <= DROPPED:
        raise UndecidableError(
            f"one token suffices for the load of these runs: it would be held for {busy:.0%} of the time, and no more "
            f"than {DROPPED} % of the frames are dropped with it; the paper's one or two did not suffice"
        )
    return f"one token would be held for {busy:.0%} of the time"


def _soft(runs: Runs, name: str) -> str:
    """A reason that holds on this machine whatever the numbers are."""
    used = runs.load(name)["CPU"]
    return (
        f"kernels of the soft GPU run on the same {_cpus(runs)} CPUs as all else (busy under {name}: {used:.2f}), so "
        "that the GPU is no second resource here, and arbitration costs CPU time"
    )


def _judged(verdict: Verdict, text: str, why: str) -> Finding:
    return Finding(verdict, text, "" if verdict == "reproduced" else why)


# --- Completion delays ------------------------------------------------------------------------------------------------


def _28(results: VisionResults) -> Finding:
    runs = results.live
    dropped = _dropped(runs, ("SCHED_FIFO", "SCHED_DEADLINE", *_few(runs), *_many(runs)))
    held = _overloaded(runs)
    few, many = ([dropped[name] for name in names] for names in (_few(runs), _many(runs)))
    good = min(few) > DROPPED >= max(many) and dropped["SCHED_FIFO"] > DROPPED
    verdict = partly(good, min(few) > max(many))
    return _judged(verdict, f"dropped: {numbers(dropped.items(), unit=' %')}; {held}", _soft(runs, _many(runs)[0]))


def _29(results: VisionResults) -> Finding:
    runs = results.live
    better, total, said, left_out = 0, 0, [], []
    for scheduler in SCHEDULERS:
        try:
            base = _row(runs, f"SCHED_{scheduler}")
            managed = {name: _row(runs, name) for name in _many(runs, scheduler)}
        except UndecidableError as error:
            left_out.append(str(error))
            continue
        better += sum(getattr(row, m) < getattr(base, m) for row in managed.values() for m in MEASURES)
        total += len(managed) * len(MEASURES)
        std = numbers(((name, row.std) for name, row in managed.items()))
        said.append(f"std: SCHED_{scheduler} {base.std:.2f}, {std}")
    if not total:
        raise UndecidableError("; ".join(left_out))
    text = f"{better} of {total} numbers are below those without management; " + "; ".join([*said, *left_out])
    return _judged(graded(better, total), text, _soft(runs, _many(runs)[0]))


def _30(results: VisionResults) -> Finding:
    runs = results.live
    rows = {name: _row(runs, f"SCHED_{name}") for name in SCHEDULERS}
    text = "; ".join(
        f"{name}: dropped {row.dropped_percent:.2f} %, max {row.max:.2f}, std {row.std:.2f}"
        for name, row in rows.items()
    )
    other = rows.pop("OTHER")
    better = [other.std < row.std and other.dropped_percent <= row.dropped_percent for row in rows.values()]
    why = "who waits for a GPU is suspended here; the paper explains its surprise by threads that wait busily"
    return _judged(partly(all(better), any(better)), text, why)


def _31(results: VisionResults) -> Finding:
    runs = results.live
    middle = _middle(runs)
    by = {measure: _all(runs, measure, _managed(runs)) for measure in MEASURES}
    least = {measure: min(values, key=lambda name: values[name]) for measure, values in by.items()}
    good = sum(name in middle for name in least.values())
    text = "least: " + ", ".join(f"{measure} {name} {by[measure][name]:.2f}" for measure, name in least.items())
    return _judged(partly(good >= 3, good >= 1), text, _soft(runs, middle[0]))


def _32(results: VisionResults) -> Finding:
    runs = results.live
    pairs = [_many(runs, scheduler) for scheduler in SCHEDULERS]
    std, left_out = [], []
    for fifo, prio in pairs:
        try:
            std.append((fifo, _row(runs, fifo).std, _row(runs, prio).std))
        except UndecidableError as error:
            left_out.append(str(error))
    if not std:
        raise UndecidableError("; ".join(left_out))
    good = sum(first <= second for _, first, second in std)
    said = [f"{name} {first:.3f}, PRIO {second:.3f}" for name, first, second in std]
    why = f"an engine has at most {_cpus(runs) - 1} waiting, so that their order matters little; one run of each"
    return _judged(partly(good == len(pairs), 2 * good >= len(std)), "std: " + "; ".join([*said, *left_out]), why)


def _33(results: VisionResults) -> Finding:
    runs = results.live
    best = _middle(runs)[0]
    names = ("SCHED_OTHER", "SCHED_FIFO", "SCHED_DEADLINE", *_managed(runs))
    by = {measure: _all(runs, measure, names) for measure in ("max", "p99", "std")}
    least = {measure: min(values, key=lambda name: values[name]) for measure, values in by.items()}
    good = sum(name == best for name in least.values())
    text = "least: " + ", ".join(f"{measure} {name} {by[measure][name]:.2f}" for measure, name in least.items())
    return _judged(partly(good == 3, good >= 1), text, _soft(runs, best))


def _34(results: VisionResults) -> Finding:
    runs = results.live
    best = _middle(runs)
    names = ("SCHED_OTHER", "SCHED_FIFO", "SCHED_DEADLINE", *_managed(runs))
    share = {name: near_one(_delays(runs, name)) for name in names}
    ours, rest = ([share[n] for n in names if (n in best) is wanted] for wanted in (True, False))
    text = f"within {NEAR:.0%} of a period: " + numbers(((n, 100 * v) for n, v in share.items()), 0, " %")
    return _judged(partly(min(ours) >= max(rest), max(ours) >= max(rest)), text, _soft(runs, best[0]))


def _35(results: VisionResults) -> Finding:
    runs = results.live
    share = {n: 100 * float(np.mean(_delays(runs, n) < BURST)) for n in ("SCHED_DEADLINE", *_many(runs))}
    first, *rest = share.values()
    text = f"delays below {BURST} periods: " + numbers(share.items(), 2, " %")
    verdict = partly(first > 2 and first > 2 * max(rest), first > max(rest))
    return _judged(verdict, text, _soft(runs, "SCHED_DEADLINE"))


def _36(results: VisionResults) -> Finding:
    runs = results.live
    held = _overloaded(runs)
    share = {name: 100 * above(_delays(runs, name), 1.0) for name in _few(runs)}
    middle = {name: float(np.median(_delays(runs, name))) for name in _few(runs)}
    good = [share[name] > 50 and middle[name] > 1 + DROPPED / 100 for name in share]
    text = "delays above one period: " + numbers(share.items(), 0, " %") + "; medians " + numbers(middle.items())
    return _judged(partly(all(good), any(good)), f"{text}; {held}", _soft(runs, _few(runs)[0]))


# --- Latency from end to end ------------------------------------------------------------------------------------------


def _37(results: VisionResults) -> Finding:
    runs = results.live
    best = _middle(runs)[0]
    ends = {name: spread(_latencies(runs, name)) for name in ("SCHED_OTHER", "SCHED_DEADLINE", *_managed(runs))}
    width = {name: high - low for name, (low, high) in ends.items()}
    narrowest = sorted(width, key=lambda name: width[name])
    text = "nearly all lie in " + ", ".join(f"{n} {low:.1f} to {high:.1f}" for n, (low, high) in ends.items())
    return _judged(partly(narrowest[0] == best, best in narrowest[:3]), text, f"{narrowest[0]} has the least")


def _38(results: VisionResults) -> Finding:
    runs = results.live
    levels = np.arange(BODY[0], BODY[1] + 1, 10)
    every = np.array([np.percentile(_latencies(runs, name), levels) for name in _many(runs)])
    gap = float(np.max((every.max(axis=0) - every.min(axis=0)) / every.mean(axis=0)))
    tails = np.array([np.percentile(_latencies(runs, name), 99) for name in _many(runs)])
    apart = float((tails.max() - tails.min()) / tails.mean())
    text = f"percentiles {BODY[0]} to {BODY[1]} differ by at most {gap:.0%} of their mean, the 99th by {apart:.0%}"
    why = "the two differ in the order of engine locks, and are one run each"
    return _judged(partly(gap <= ALIKE, gap < apart), text, why)


def _39(results: VisionResults) -> Finding:
    runs = results.live
    held = _overloaded(runs)
    late = {n: float(np.percentile(_latencies(runs, n), 99)) for n in (*_few(runs), *_many(runs))}
    few, many = ([late[name] for name in names] for names in (_few(runs), _many(runs)))
    text = f"99th percentile, in periods: {numbers(late.items())}; {held}"
    why = f"backlogs grow with time and with what is dropped; a run is {runs.run['seconds']:g} s here, in the paper 400"
    return _judged(partly(min(few) > 5 * max(many), min(few) > max(many)), text, why)


def _40(results: VisionResults) -> Finding:
    runs = results.live
    flat = {}
    for name in _many(runs):
        middle, low, high = np.percentile(_latencies(runs, name), (50, 93, 99))
        flat[name] = float((high - low) / middle)
    fifo, prio = flat.values()
    text = "from the 93rd to the 99th percentile, in medians: " + numbers(flat.items())
    why = f"an engine has at most {_cpus(runs) - 1} waiting, whatever the order"
    return _judged(partly(fifo < prio, fifo < (1 + NEAR) * prio), text, why)


def _41(results: VisionResults) -> Finding:
    runs = results.live
    tail = {n: float(np.divide(*np.percentile(_latencies(runs, n), (99.9, 90)))) for n in _many(runs)}
    fifo, prio = tail.values()
    text = "99.9th by 90th percentile: " + numbers(tail.items())
    why = f"an engine has at most {_cpus(runs) - 1} waiting, whatever the order"
    return _judged(partly(prio > 1.2 * fifo, prio > fifo), text, why)


def _42(results: VisionResults) -> Finding:
    runs = results.live
    best = _middle(runs)[0]
    late = {name: float(_latencies(runs, name).max()) for name in ("SCHED_OTHER", "SCHED_DEADLINE", *_managed(runs))}
    order = sorted(late, key=lambda name: late[name])
    text = "greatest, in periods: " + numbers(late.items())
    return _judged(partly(order[0] == best, best in order[:3]), text, f"{order[0]} has the least")


def _43(results: VisionResults) -> Finding:
    both = [check(results).verdict for check in (_37, _42)]
    good, some = all(v == "reproduced" for v in both), any(v != "not reproduced" for v in both)
    return _judged(partly(good, some), f"observations 37 and 42: {both[0]}, {both[1]}", "it follows from these two")


def _44(results: VisionResults) -> Finding:
    runs = results.live
    calm = [name for name in runs.configurations if not was_disturbed(runs.run, name)]
    names = [name for name in calm if runs.graphs_shown(name) == len(runs.graphs)]
    if len(names) < 4:
        raise UndecidableError(
            f"all graphs have completion delays under {len(names)} configurations only that were left alone"
        )
    delay = [runs.averaged(name).p99 for name in names]
    latency = [float(np.percentile(_latencies(runs, name), 99)) for name in names]
    rank = float(np.corrcoef(np.argsort(np.argsort(delay)), np.argsort(np.argsort(latency)))[0, 1])
    text = f"correlation of ranks {rank:.2f}, of {len(names)} configurations"
    why = "late frames can be regular: a graph that is always behind shows one after the other at the same pace"
    return _judged(partly(rank >= 0.7, rank >= 0.4), text, why)


# --- The list ---------------------------------------------------------------------------------------------------------


def _claim(number: int, says: str, criterion: str, check: Callable[[VisionResults], Finding]) -> Claim:
    return Claim(f"live-{number}", f"Observation {number}, live", says, check, f"Criterion: {criterion}")


CLAIMS = (
    _claim(28, "The task set is unschedulable under SCHED_FIFO and with few tokens.", f"SCHED_FIFO and both of one "
           f"token drop more than {DROPPED} %, both of m tokens no more; partly: one token drops more than m.", _28),
    _claim(29, "Management with many tokens improves predictability.", "max, 99.9 %, 99 % and std of m tokens are "
           "below those without management in 90 % of the cases, over the three schedulers; partly: half.", _29),
    _claim(30, "SCHED_OTHER outperforms both real-time schedulers where nobody manages the GPU.", "less std than, and "
           "no more dropped than under, each of the two; partly: one of them.", _30),
    _claim(31, "Of managed configurations, delays are most regular when rho = 3.", "that rho has the least of max, "
           "99.9 %, 99 %, std in three of four; partly: one.", _31),
    _claim(32, "FIFO engine locks are more predictable than PRIO.", "with m tokens no more std, under each scheduler; "
           "partly: half of those that can be compared.", _32),
    _claim(33, "(3,2,FIFO) outperforms the other ten.", "least max, 99 % and std of all; partly: one of them.", _33),
    _claim(34, "With rho = 3 delays are most likely near one period.", f"the largest shares within {NEAR:.0%} of a "
           "period under both engine orders; partly: under one.", _34),
    _claim(35, "C-EDF without management shows bursts.", f"more than 2 % of the delays are below {BURST} periods, and "
           "twice as many as with m tokens; partly: more than with m tokens.", _35),
    _claim(36, "With few tokens densities indicate unschedulability.", "with one token most delays, and their median "
           "clearly, are above one period, under both orders; partly: under one.", _36),
    _claim(37, "(3,2,FIFO) has the least variance in latency.", "least between 0.1th and 99.9th percentile; partly: "
           "among the three least.", _37),
    _claim(38, "With many tokens about 70 % of the latencies are alike.", f"percentiles {BODY[0]} to {BODY[1]} with m "
           f"tokens differ by at most {ALIKE:.0%}; partly: by less than the 99th.", _38),
    _claim(39, "Latencies with few tokens are very poor.", "99th percentiles with one token are 5 times those with m; "
           "partly: greater.", _39),
    _claim(40, "FIFO engine locks degrade smoothly.", "the way from the 93rd to the 99th percentile is shorter than "
           f"under PRIO; partly: not {NEAR:.0%} longer.", _40),
    _claim(41, "PRIO engine locks create extreme outliers.", "99.9th by 90th percentile is 1.2 times FIFO's; partly: "
           "greater.", _41),
    _claim(42, "(3,2,FIFO) has the best worst case.", "least greatest latency; partly: among the three least.", _42),
    _claim(43, "(3,2,FIFO) has the best real-time behavior.", "observations 37 and 42 are; partly: one, or in part.",
           _43),
    _claim(44, "Latencies tell what completion delays tell.", "99th percentiles of both rank the configurations alike, "
           "with a correlation of 0.7; partly: 0.4.", _44),
)  # fmt: skip
