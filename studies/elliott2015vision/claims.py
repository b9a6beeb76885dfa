"""Observations 28 to 44 of paper 003, checked on simulations."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from laxity.studies._claims import Claim, Finding, Verdict, graded
from laxity.studies._vision_delays import MEASURES, Array, Delays
from laxity.studies._vision_results import Runs, VisionResults

OTHER, FIFO, CEDF = "SCHED_OTHER", "SCHED_FIFO", "LITMUS C-EDF"
FEW = tuple(f"GPUSync({rho},{order})" for rho in ("1,6", "2,3") for order in ("FIFO", "PRIO"))
MANY = tuple(f"GPUSync({rho},{order})" for rho in ("3,2", "6,1") for order in ("FIFO", "PRIO"))
BEST = "GPUSync(3,2,FIFO)"

DROPPED = 0.5
"""Percentage of frames from which a configuration counts as dropping frames: more than are under way at the end."""
NEAR = 0.1
"""In periods: how far from one period a completion delay may be to be called near it."""
BURST = 0.25
"""In periods: a shorter completion delay belongs to a burst; the paper's mode is near 0.05."""

IDEAL = (
    "what runs is the model: GPUSync, PGM and the schedulers as they are described, with overheads of another paper. "
    "What else a machine, CUDA and a driver do is not in it"
)


def numbers(pairs: Iterable[tuple[str, float]], digits: int = 2, unit: str = "") -> str:
    """Names with numbers, for people."""
    return ", ".join(f"{short(name)} {value:.{digits}f}{unit}" for name, value in pairs)


def short(name: str) -> str:
    """A configuration as the paper's text has it."""
    return name.removeprefix("GPUSync").removeprefix("LITMUS ")


def partly(good: bool, some: bool) -> Verdict:
    """A verdict with a middle."""
    return "reproduced" if good else "partly reproduced" if some else "not reproduced"


def near_one(delays: Array) -> float:
    """Share of completion delays near one period."""
    return float(np.mean(np.abs(delays - 1) <= NEAR))


def above(values: Array, limit: float) -> float:
    """Share of values above a limit."""
    return float(np.mean(values > limit))


def spread(latencies: Array) -> tuple[float, float]:
    """Where nearly all latencies lie: 0.1th and 99.9th percentile."""
    low, high = np.percentile(latencies, (0.1, 99.9))
    return float(low), float(high)


def _of(runs: Runs, measure: str, names: Iterable[str]) -> dict[str, float]:
    return {name: float(getattr(runs.averaged(name), measure)) for name in names}


# --- Completion delays ------------------------------------------------------------------------------------------------


def _28(results: VisionResults) -> Finding:
    dropped = _of(results.simulated, "dropped_percent", (FIFO, CEDF, *FEW, *MANY))
    drops = {name for name, share in dropped.items() if share > DROPPED}
    text = "dropped: " + numbers(dropped.items(), unit=" %")
    if drops == {FIFO, *FEW}:
        return Finding("reproduced", text)
    why = (
        "the time that a node holds its token was set so that rho = 1 drops about what it drops in the paper; that "
        "rho = 2 drops some and more tokens none follows. SCHED_FIFO has CPU time enough for all here: what starved "
        "its longest periods in the paper, perhaps busy-waiting (section 5.5.3.1), is an option (waiting=spin, below)"
    )
    return Finding(partly(False, set(FEW) <= drops and not drops & set(MANY)), text, why)


def _29(results: VisionResults) -> Finding:
    runs = results.simulated
    measures = ("max", "p99_9", "p99", "std")
    base = {measure: getattr(runs.averaged(CEDF), measure) for measure in measures}
    rows = {name: runs.averaged(name) for name in MANY}
    better = sum(getattr(row, measure) < base[measure] for row in rows.values() for measure in measures)
    text = (
        f"{better} of {len(MANY) * len(measures)} numbers (max, 99.9 %, 99 %, std of four configurations) are below "
        f"those of C-EDF without GPUSync; std: " + numbers(_of(runs, "std", (CEDF, *MANY)).items())
    )
    why = (
        "" if better >= 0.9 * len(MANY) * len(measures) else
        "a driver that takes operations in their order and jobs that suspend do well in the model; with waiting=spin "
        "(below) C-EDF without GPUSync does not"
    )  # fmt: skip
    return Finding(graded(better, len(MANY) * len(measures)), text, why)


def _30(results: VisionResults) -> Finding:
    runs = results.simulated
    rows = {name: runs.averaged(name) for name in (OTHER, FIFO, CEDF)}
    text = "; ".join(
        f"{short(name)}: dropped {row.dropped_percent:.2f} %, max {row.max:.2f}, std {row.std:.2f}"
        for name, row in rows.items()
    )
    other = rows.pop(OTHER)
    better = [other.std < row.std and other.dropped_percent <= row.dropped_percent for row in rows.values()]
    why = "" if all(better) else "jobs that wait for the GPU suspend here; with waiting=spin (below) they do not"
    return Finding(partly(all(better), any(better)), text, why)


def _31(results: VisionResults) -> Finding:
    measures = ("max", "p99_9", "p99", "std")
    best = {m: min(_of(results.simulated, m, MANY).items(), key=lambda item: item[1]) for m in measures}
    good = sum(name.startswith("GPUSync(3") for name, _ in best.values())
    text = "least among rho = 3 and 6: " + ", ".join(f"{m} {short(n)} {v:.2f}" for m, (n, v) in best.items())
    why = (
        "" if good >= 3 else "GPU bursts that disturb others through memory, the paper's explanation, are not modelled"
    )
    return Finding(partly(good >= 3, good >= 1), text, why)


def _32(results: VisionResults) -> Finding:
    std = _of(results.simulated, "std", (*FEW, *MANY))
    pairs = [(name, name.replace("FIFO", "PRIO")) for name in std if "FIFO" in name and "(1" not in name]
    good = sum(std[fifo] <= std[prio] for fifo, prio in pairs)
    text = "std: " + ", ".join(f"{short(fifo)} {std[fifo]:.3f}, PRIO {std[prio]:.3f}" for fifo, prio in pairs)
    why = "" if good == len(pairs) else (
        "an engine has at most rho - 1 requests waiting, so that the order matters little: at rho = 2 never"
    )  # fmt: skip
    return Finding(partly(good == len(pairs), good >= 2), text, why)


def _33(results: VisionResults) -> Finding:
    measures = ("max", "p99", "std")
    names = (FIFO, CEDF, *FEW, *MANY)
    by = {measure: _of(results.simulated, measure, names) for measure in measures}
    least = {measure: min(values, key=lambda name: values[name]) for measure, values in by.items()}
    good = sum(name == BEST for name in least.values())
    text = "; ".join(f"{m}: {by[m][BEST]:.2f}, least {by[m][n]:.2f} {short(n)}" for m, n in least.items())
    schedulable = sum(by[m][BEST] <= min(by[m][name] for name in (FIFO, CEDF, *MANY)) for m in measures)
    why = "" if good == 3 else (
        f"among the configurations that drop no frames it is least in {schedulable} of 3. One that drops frames can be "
        "more regular, as its graphs never wait for their periods"
    )  # fmt: skip
    return Finding(partly(good == 3, good + schedulable > 0), text, why)


def _34(results: VisionResults) -> Finding:
    names = (FIFO, CEDF, *FEW, *MANY)
    share = {name: near_one(results.simulated.delays(name)) for name in names}
    rest = max(value for name, value in share.items() if not name.startswith("GPUSync(3"))
    ours = [share[name] for name in share if name.startswith("GPUSync(3")]
    text = f"within {NEAR:.0%} of a period: " + numbers(((n, 100 * v) for n, v in share.items()), 0, " %")
    why = "" if min(ours) >= rest else f"with rho = 2 only {_dropping(results.simulated)} drop frames; the rest gains"
    return Finding(partly(min(ours) >= rest, max(ours) >= sorted(share.values())[-4]), text, why)


def _dropping(runs: Runs) -> str:
    """Graphs that drop frames with two tokens."""
    names = [graph for graph in runs.graphs if runs.frames(FEW[2], graph).delays.dropped_percent > DROPPED]
    return ", ".join(names) or "none of the graphs"


def _35(results: VisionResults) -> Finding:
    share = {name: float(np.mean(results.simulated.delays(name) < BURST)) for name in (CEDF, BEST)}
    text = f"delays below {BURST} periods: " + numbers(((n, 100 * v) for n, v in share.items()), 2, " %")
    good = share[CEDF] > 0.02 and share[CEDF] > 2 * share[BEST]
    why = "" if good else "no job of the model is late enough for several frames to pile up behind it. " + IDEAL
    return Finding(partly(good, share[CEDF] > 2 * share[BEST] > 0), text, why)


def _36(results: VisionResults) -> Finding:
    share = {name: above(results.simulated.delays(name), 1.0) for name in (*FEW, *MANY)}
    middle = {name: results.simulated.averaged(name).median for name in FEW}
    good = sum(share[name] > 0.5 and middle[name] > 1 for name in FEW)
    text = "delays above one period: " + numbers(((n, 100 * share[n]) for n in FEW), 0, " %")
    text += "; medians " + numbers(middle.items())
    return Finding(graded(good, len(FEW)), text)


# --- Latency from end to end ------------------------------------------------------------------------------------------

BEHIND = 10
"""In periods: a graph whose latencies are longer for one frame in a hundred is far behind."""


def _latencies(results: VisionResults) -> str:
    """Who is far behind here, and what else the paper's latencies may contain."""
    runs = results.simulated
    said = []
    for name in (CEDF, *MANY):
        found = {graph: runs.frames(name, graph) for graph in runs.graphs}
        shown = {graph: one for graph, one in found.items() if len(one.completion_ns)}
        far = [graph for graph, one in shown.items() if np.percentile(one.normalized_latencies, 99) > BEHIND]
        if far:
            frames = sum(len(shown[graph].completion_ns) for graph in far)
            share = frames / sum(len(one.completion_ns) for one in shown.values())
            said.append(f"{short(name)} {', '.join(far)} ({share:.0%} of the frames)")
    who = "; ".join(said) or "no graph"
    return (
        f"more than {BEHIND} periods behind with a hundredth of their frames are here: {who}. The least latency of the "
        "paper's GPUSync, 7.5 periods, may contain the six by which a frame that is shown is older than the one read "
        "meanwhile"
    )


def _37(results: VisionResults) -> Finding:
    runs = results.simulated
    ends = {name: spread(runs.latencies(name)) for name in (CEDF, *MANY)}
    width = {name: high - low for name, (low, high) in ends.items()}
    text = "nearly all lie in " + ", ".join(f"{short(n)} {low:.1f} to {high:.1f}" for n, (low, high) in ends.items())
    narrowest = min(width, key=lambda name: width[name])
    among = min(MANY, key=lambda name: width[name])
    why = "" if narrowest == BEST else f"{short(narrowest)} has the least; {_latencies(results)}"
    return Finding(partly(narrowest == BEST, among == BEST), text, why)


def _38(results: VisionResults) -> Finding:
    levels = np.arange(10, 71, 10)
    quantiles = {name: np.percentile(results.simulated.latencies(name), levels) for name in MANY}
    every = np.array(list(quantiles.values()))
    gap = float(np.max((every.max(axis=0) - every.min(axis=0)) / every.mean(axis=0)))
    tails = np.array([np.percentile(results.simulated.latencies(name), 99) for name in MANY])
    apart = float((tails.max() - tails.min()) / tails.mean())
    text = f"percentiles 10 to 70 of the four differ by at most {gap:.0%} of their mean, the 99th by {apart:.0%}"
    why = "" if gap <= 0.2 else _latencies(results)
    return Finding(partly(gap <= 0.2, gap < apart), text, why)


def _39(results: VisionResults) -> Finding:
    greatest = {name: float(results.simulated.latencies(name).max()) for name in (*FEW, *MANY)}
    text = "greatest, in periods: " + numbers(greatest.items(), 0)
    poor = min(greatest[name] for name in FEW) > 5 * max(greatest[name] for name in MANY)
    beyond = all(greatest[name] > 1_000 for name in FEW)
    why = "" if beyond else "backlogs grow with the frames that are dropped, of which there are fewer here with rho = 2"
    return Finding(partly(poor and beyond, poor), text, why)


def _flat(latencies: Array) -> float:
    """How far the CCDF goes to the right between 7 % and 1 %, in medians: long where it is flat."""
    middle, low, high = np.percentile(latencies, (50, 93, 99))
    return float((high - low) / middle)


def _40(results: VisionResults) -> Finding:
    flat = {name: _flat(results.simulated.latencies(name)) for name in MANY}
    good = sum(flat[name] < flat[name.replace("FIFO", "PRIO")] for name in MANY if "FIFO" in name)
    text = "from the 93rd to the 99th percentile, in medians: " + numbers(flat.items())
    why = (
        ""
        if good == 2
        else f"what the tail is made of here is backlog, not the order of engine locks: {_latencies(results)}"
    )
    return Finding(partly(good == 2, good == 1), text, why)


def _41(results: VisionResults) -> Finding:
    prio = [name for name in MANY if "PRIO" in name]
    ratio = {}
    for name in MANY:
        typical, poor = np.percentile(results.simulated.latencies(name), (90, 99))
        ratio[name] = float(poor / typical)
    good = sum(ratio[name] > ratio[name.replace("PRIO", "FIFO")] for name in prio)
    far = all(ratio[name] > 1.5 for name in prio)
    text = "99th by 90th percentile: " + numbers(ratio.items())
    why = "" if good == 2 and far else f"the tails are those of a backlog, under either order: {_latencies(results)}"
    return Finding(partly(good == 2 and far, good > 0), text, why)


def _42(results: VisionResults) -> Finding:
    runs = results.simulated
    limit = float(np.percentile(runs.latencies(BEST), 99.9))
    share = {name: above(runs.latencies(name), limit) for name in (CEDF, *MANY)}
    least = min(share, key=lambda name: share[name])
    text = f"above {limit:.1f} periods: " + numbers(((n, 100 * v) for n, v in share.items()), 3, " %")
    why = "" if least == BEST else f"{short(least)} has the fewest; {_latencies(results)}"
    fewer = sum(share[BEST] <= share[name] for name in MANY)
    return Finding(partly(least == BEST, fewer >= 3), text, why)


def _43(results: VisionResults) -> Finding:
    variance, worst = _37(results), _42(results)
    both = (variance.verdict, worst.verdict)
    good, some = all(v == "reproduced" for v in both), any(v != "not reproduced" for v in both)
    return Finding(
        partly(good, some), f"observations 37 and 42: {both[0]}, {both[1]}", "" if good else _latencies(results)
    )


def _44(results: VisionResults) -> Finding:
    runs = results.simulated
    names = (CEDF, *FEW, *MANY)
    delay = [runs.averaged(name).median for name in names]
    latency = [float(np.percentile(runs.latencies(name), 99)) for name in names]
    apart = min(delay[1:5]) > max(delay[5:]) and min(latency[1:5]) > max(latency[5:])
    rank = float(np.corrcoef(np.argsort(np.argsort(delay)), np.argsort(np.argsort(latency)))[0, 1])
    text = f"median delay and 99th percentile of latency rank alike: correlation {rank:.2f}"
    text += "; both set rho = 1 and 2 apart from 3 and 6" if apart else ""
    why = (
        ""
        if apart and rank >= 0.7
        else "of (i) to (iv) the first is in both; the others rest on small differences here"
    )
    return Finding(partly(apart and rank >= 0.7, apart or rank >= 0.7), text, why)


# --- Tables -----------------------------------------------------------------------------------------------------------


def _range(rows: Iterable[Delays]) -> str:
    """Of greatest delays."""
    greatest = [row.max for row in rows]
    return f"{min(greatest):.1f} to {max(greatest):.1f}"


def _table_14(results: VisionResults) -> Finding:
    from laxity.studies._vision_published import published_summary  # noqa: PLC0415 (only where the tables are)

    paper = published_summary()
    names = [name for name in results.simulated.configurations if name.startswith("GPUSync")]
    rows = {name: results.simulated.averaged(name) for name in names}
    dropped = max(abs(rows[n].dropped_percent - paper[n].dropped_percent) for n in names)
    near = sum(
        abs(getattr(rows[n], m) - getattr(paper[n], m)) <= NEAR * getattr(paper[n], m)
        for n in names
        for m in MEASURES[4:6]
    )
    text = (
        f"frames dropped under GPUSync differ by at most {dropped:.1f} points; medians and means of {near} of "
        f"{2 * len(names)} are within {NEAR:.0%}; greatest delays {_range(rows.values())} periods, in the paper "
        f"{_range(paper[name] for name in names)}"
    )
    why = f"for greatest delays and deviations it takes more than the model: {IDEAL}"
    return Finding(partly(False, near >= len(names)), text, why)


def _claim(number: int, where: str, says: str, check: object) -> Claim:
    assert callable(check), "a claim is checked by a function"
    return Claim(f"observation-{number}", f"Observation {number}, {where}", says, check)


CLAIMS = (
    Claim("table-5.14", "Tables 5.6 to 5.14", "The numbers of the eight GPUSync configurations.", _table_14),
    _claim(28, "Tables 5.4 to 5.13", "The task set is clearly unschedulable under SCHED_FIFO and GPUSync with rho of 1 "
           "or 2: frames are dropped there, and nowhere else.", _28),
    _claim(29, "Tables 5.5, 5.10 to 5.13", "GPUSync with rho of 3 or 6 improved observed predictability.", _29),
    _claim(30, "Tables 5.3 to 5.5", "SCHED_OTHER outperformed both real-time configurations without GPU management.",
           _30),
    _claim(31, "Table 5.14", "For GPUSync configurations, completion delays are more regular when rho = 3.", _31),
    _claim(32, "Table 5.14", "For GPUSync, FIFO engine locks offered better observed predictability than PRIO: "
           "standard deviations are less, or equal at rho = 2.", _32),
    _claim(33, "Table 5.14", "GPUSync with (3,2,FIFO) outperformed the other ten: least max, 99th percentile, "
           "deviation.", _33),
    _claim(34, "Figs. 5.17, 5.18", "With rho = 3 normalized completion delays are most likely near 1.0.", _34),
    _claim(35, "Fig. 5.12", "The density for LITMUS without GPUSync suggests bursts: a mode near 0.05.", _35),
    _claim(36, "Figs. 5.13 to 5.16", "The densities with rho of 1 or 2 indicate unschedulability: most delays are "
           "greater than 1.0.", _36),
    _claim(37, "Fig. 5.21", "GPUSync with (3,2,FIFO) exhibits the least variance in end-to-end latency: 9 to 20 "
           "periods.", _37),
    _claim(38, "Fig. 5.21", "With rho of 3 or 6 about 70 % of the latencies behave similarly.", _38),
    _claim(39, "Fig. 5.22", "Latencies with rho of 1 or 2 are very poor: beyond 1,000 periods.", _39),
    _claim(40, "Fig. 5.22", "FIFO engine locks exhibit a smooth degradation in performance.", _40),
    _claim(41, "Fig. 5.22", "PRIO engine locks perform poorly for about 5 % of the time: extreme outliers.", _41),
    _claim(42, "Fig. 5.22", "GPUSync with (3,2,FIFO) exhibits the best worst-case behavior: 0.09 % above 20 periods.",
           _42),
    _claim(43, "section 5.5.3.2", "GPUSync with (3,2,FIFO) exhibits the best real-time behavior.", _43),
    _claim(44, "section 5.5.3.2", "End-to-end latencies tell what completion delays tell.", _44),
)  # fmt: skip
