"""Observations of paper 003 that can be looked for on another machine: live, with other numbers of CPUs and tokens.

C-EDF of the paper is SCHED_DEADLINE here. Its rho of 1 and 2 are our one token, its rho of 3 and 6 as many tokens as
there are CPUs: between those there is nothing on two CPUs.
"""

from __future__ import annotations

import numpy as np

from laxity.studies._claims import Claim, Finding, graded
from laxity.studies._results import NotRunError
from laxity.studies._vision_claims import BURST, DROPPED, above, near_one, numbers, partly
from laxity.studies._vision_results import Runs, VisionResults

SOFT = (
    "GPU kernels of the soft GPU run on the same CPUs as all else, so that the GPU is no second resource here, and "
    "arbitration costs CPU time"
)


def _names(runs: Runs, scheduler: str, tokens: int) -> list[str]:
    """Configurations of a scheduler with so many tokens; FIFO first."""
    length = int(runs.run["cpus"]) // tokens
    names = [f"SCHED_{scheduler} ({tokens},{length},{order})" for order in ("FIFO", "PRIO")]
    if missing := [name for name in names if name not in runs.configurations]:
        raise NotRunError(f"{', '.join(missing)} did not run live")
    return names


def _few(runs: Runs, scheduler: str = "DEADLINE") -> list[str]:
    return _names(runs, scheduler, 1)


def _many(runs: Runs, scheduler: str = "DEADLINE") -> list[str]:
    if runs.run["cpus"] < 2:
        raise NotRunError("one CPU has one token only")
    return _names(runs, scheduler, int(runs.run["cpus"]))


def _all(runs: Runs, measure: str, names: list[str]) -> dict[str, float]:
    return {name: float(getattr(runs.averaged(name), measure)) for name in names}


def _28(results: VisionResults) -> Finding:
    runs = results.live
    one, many = (_all(runs, "dropped_percent", names) for names in (_few(runs), _many(runs)))
    fifo = runs.averaged("SCHED_FIFO").dropped_percent
    text = "dropped: " + numbers({"SCHED_FIFO": fifo, **one, **many}.items(), unit=" %")
    few_drop, many_drop = min(one.values()) > DROPPED, max(many.values()) > DROPPED
    good = few_drop and not many_drop and fifo > DROPPED
    return Finding(partly(good, min(one.values()) > max(many.values())), text, "" if good else SOFT)


def _29(results: VisionResults) -> Finding:
    runs = results.live
    measures = ("max", "p99_9", "p99", "std")
    better, total, said = 0, 0, []
    for scheduler in ("OTHER", "FIFO", "DEADLINE"):
        base = runs.averaged(f"SCHED_{scheduler}")
        managed = _many(runs, scheduler)
        better += sum(getattr(runs.averaged(n), m) < getattr(base, m) for n in managed for m in measures)
        total += len(managed) * len(measures)
        said.append(f"SCHED_{scheduler} std {base.std:.2f}, managed {numbers(_all(runs, 'std', managed).items())}")
    text = f"{better} of {total} numbers are below those without management; " + "; ".join(said)
    return Finding(graded(better, total), text, "" if better >= 0.9 * total else SOFT)


def _30(results: VisionResults) -> Finding:
    runs = results.live
    rows = {name: runs.averaged(f"SCHED_{name}") for name in ("OTHER", "FIFO", "DEADLINE")}
    text = "; ".join(
        f"{name}: dropped {row.dropped_percent:.2f} %, max {row.max:.2f}, std {row.std:.2f}"
        for name, row in rows.items()
    )
    other = rows.pop("OTHER")
    better = [other.std < row.std and other.dropped_percent <= row.dropped_percent for row in rows.values()]
    why = "" if all(better) else "nothing waits busily here, which is how the paper explains its surprise"
    return Finding(partly(all(better), any(better)), text, why)


def _32(results: VisionResults) -> Finding:
    runs = results.live
    pairs = [_many(runs, scheduler) for scheduler in ("OTHER", "FIFO", "DEADLINE")]
    std = [(fifo, runs.averaged(fifo).std, runs.averaged(prio).std) for fifo, prio in pairs]
    good = sum(first <= second for _, first, second in std)
    text = "std: " + ", ".join(f"{name} {first:.3f}, PRIO {second:.3f}" for name, first, second in std)
    why = "" if good == len(std) else f"one run of each; with {runs.run['cpus']} tokens few wait for an engine"
    return Finding(partly(good == len(std), good >= 2), text, why)


def _34(results: VisionResults) -> Finding:
    runs = results.live
    share = {name: 100 * near_one(runs.delays(name)) for name in ("SCHED_DEADLINE", *_few(runs), *_many(runs))}
    best = max(share, key=lambda name: share[name])
    good = best in _many(runs)
    text = "within 10% of a period: " + numbers(share.items(), 0, " %")
    return Finding(partly(good, share[best] - max(share[n] for n in _many(runs)) < 2), text, "" if good else SOFT)


def _35(results: VisionResults) -> Finding:
    runs = results.live
    share = {n: 100 * float(np.mean(runs.delays(n) < BURST)) for n in ("SCHED_DEADLINE", *_many(runs))}
    first, *rest = share.values()
    text = f"delays below {BURST} periods: " + numbers(share.items(), 2, " %")
    good = first > 2 and first > 2 * max(rest)
    return Finding(partly(good, first > max(rest)), text, "" if good else SOFT)


def _36(results: VisionResults) -> Finding:
    runs = results.live
    share = {name: 100 * above(runs.delays(name), 1.0) for name in _few(runs)}
    middle = _all(runs, "median", _few(runs))
    good = all(share[name] > 50 and middle[name] > 1.02 for name in share)
    text = "delays above one period: " + numbers(share.items(), 0, " %") + "; medians " + numbers(middle.items())
    return Finding(partly(good, any(value > 50 for value in share.values())), text, "" if good else SOFT)


def _39(results: VisionResults) -> Finding:
    runs = results.live
    late = {n: float(np.percentile(runs.latencies(n), 99)) for n in (*_few(runs), *_many(runs))}
    few, many = ([late[name] for name in names] for names in (_few(runs), _many(runs)))
    text = "99th percentile, in periods: " + numbers(late.items())
    good = min(few) > 5 * max(many)
    return Finding(partly(good, min(few) > max(many)), text, "" if good else SOFT)


def _41(results: VisionResults) -> Finding:
    runs = results.live
    tail = {n: float(np.divide(*np.percentile(runs.latencies(n), (99.9, 90)))) for n in _many(runs)}
    fifo, prio = tail.values()
    text = "99.9th by 90th percentile: " + numbers(tail.items())
    good = prio > 1.2 * fifo
    why = "" if good else f"with {runs.run['cpus']} tokens few wait for an engine, whatever the order"
    return Finding(partly(good, prio > fifo), text, why)


def _44(results: VisionResults) -> Finding:
    runs = results.live
    delay = [runs.averaged(name).std for name in runs.configurations]
    latency = [float(np.percentile(runs.latencies(name), 99)) for name in runs.configurations]
    rank = float(np.corrcoef(np.argsort(np.argsort(delay)), np.argsort(np.argsort(latency)))[0, 1])
    text = f"deviation of delays and 99th percentile of latency rank alike: correlation {rank:.2f}"
    why = "" if rank >= 0.7 else "late frames can be regular: a graph that is always behind has short deviations"
    return Finding(partly(rank >= 0.7, rank >= 0.4), text, why)


def _claim(number: int, says: str, check: object) -> Claim:
    assert callable(check), "a claim is checked by a function"
    return Claim(f"live-{number}", f"Observation {number}, live", says, check)


CLAIMS = (
    _claim(28, "SCHED_FIFO and one token drop frames; as many tokens as CPUs do not.", _28),
    _claim(29, "Management with many tokens improves predictability, under each scheduler.", _29),
    _claim(30, "SCHED_OTHER outperforms both real-time schedulers where nobody manages the GPU.", _30),
    _claim(32, "FIFO engine locks deviate less than PRIO, or as little.", _32),
    _claim(34, "With many tokens completion delays are most likely near one period.", _34),
    _claim(35, "Without management there are bursts.", _35),
    _claim(36, "With one token most delays are greater than a period.", _36),
    _claim(39, "Latencies with one token are very poor.", _39),
    _claim(41, "PRIO engine locks are prone to extreme outliers.", _41),
    _claim(44, "Latencies from end to end tell what completion delays tell.", _44),
)
