"""Every published number beside ours."""

from __future__ import annotations

from studies.ali2018bwlock import live_view
from studies.ali2018bwlock.plan import FIG8_MBPS, Case
from studies.ali2018bwlock.published import thresholds, throttled_less_percent, two_co_runners
from studies.ali2018bwlock.results import BwlockResults
from studies.ali2018bwlock.workloads import READINGS
from studies.common.claims import Table

TITLE = "Ali & Yun, Protecting real-time GPU kernels on integrated CPU-GPU SoC platforms (ECRTS 2018)"


def tables(results: BwlockResults) -> list[Table]:
    """All of them."""
    simulated = [_periods(results), _slowdowns(results), _thresholds(results), _throttling(results)]
    return simulated + live_view.tables(results.live)


def _periods(results: BwlockResults) -> Table:
    rows = []
    for punishment, paper in ((0, "750 and 250"), (1, "roughly equal"), (3, "cpu more than memory")):
        cells = [f"{'TFS' if punishment else 'CFS'}, punishment {punishment}", paper]
        for name, budget in READINGS.items():
            case = Case("fig6", name, 1, budget, punishment)
            memory, cpu = (results.value(case, f"{task}_periods") for task in ("memory", "cpu"))
            cells.append(f"{memory:.0f} and {cpu:.0f}")
        rows.append(cells)
    text = (
        "Of 1,000 periods, those in which the memory task and the CPU task executed; both may execute in one, where a "
        "slice ends amid it. 750 under CFS is a number that the model was fitted to."
    )
    return Table("Figure 6", text, ["", "paper", *READINGS], rows)


def _slowdowns(results: BwlockResults) -> Table:
    budget = thresholds()["histo"]
    paper = {
        (2, "no lock"): f"{two_co_runners()['unlocked']:.2f} (artifact)",
        (3, "no lock"): "3.3",
        (0, "no lock"): "1",
    }
    rows = []
    for corunners in range(4):
        for lock, staggered in (("no lock", False), ("lock, aligned", False), ("lock, staggered", True)):
            values = [
                results.slowdown("fig1", name, corunners, -1 if lock == "no lock" else budget, staggered=staggered)
                for name in READINGS
            ]
            stated = paper.get((corunners, lock), "-" if lock == "no lock" else "close to 1")
            rows.append([f"{corunners}", lock, stated, *(f"{it:.3f}" for it in values)])
    for phase in ("aligned", "staggered"):
        values = [
            results.slowdown("artifact", name, 2, 512 * 64_000, staggered=phase == "staggered") for name in READINGS
        ]
        paper_text = f"{two_co_runners()['locked']:.3f} (artifact)"
        rows.append(["2", f"lock with 32.8 MB/s, {phase}", paper_text, *(f"{it:.3f}" for it in values)])
    text = (
        "Times its time alone that histo takes. The lock's budget is 65.5 MB/s, the artifact's, but in the last rows. "
        "Other benchmarks of Figs. 7 and 9 are not simulated: how sensitive they are is not published."
    )
    return Table("Figures 1 and 9", text, ["co-runners", "", "paper", *READINGS], rows)


def _thresholds(results: BwlockResults) -> Table:
    rows = [
        [f"{level}", *(f"{100 * (results.slowdown('fig8', name, 3, level * 1_024_000) - 1):.1f}" for name in READINGS)]
        for level in FIG8_MBPS
    ]
    return Table(
        "Figure 8",
        "Slowdown of histo beside three co-runners in percent, by the threshold in MB/s. The paper states no value.",
        ["threshold", *READINGS],
        rows,
    )


def _throttling(results: BwlockResults) -> Table:
    rows = []
    for punishment, paper in throttled_less_percent().items():
        per = {name: results.throttled_less_percent(name, punishment) for name in READINGS}
        for benchmark in next(iter(per.values())):
            cells = [f"TFS-{punishment}", benchmark, "-"]
            rows.append([*cells, *(f"{per[name][benchmark]:.1f}" for name in READINGS)])
        means = {name: sum(values.values()) / len(values) for name, values in per.items()}
        rows.append(
            [f"TFS-{punishment}", "mean", f"{paper:.0f}", *(f"{it:.1f} ({it - paper:+.1f})" for it in means.values())]
        )
    text = "How much less CPUs are throttled than under CFS, in percent; of the means the deviation in points."
    return Table("Figure 10", text, ["", "benchmark", "paper", *READINGS], rows)
