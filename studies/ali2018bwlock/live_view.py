"""What the live runs say: claims, tables, and a figure. Criteria were written before the first run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from studies.ali2018bwlock.live import INTERFERENCE_MIN, LOOSE, SLOWDOWN_MAX, Observed, Shares
from studies.common.claims import Claim, Finding, Table, UndecidableError, csv_text, partly, yes
from studies.common.results import NotRunError

if TYPE_CHECKING:
    from studies.ali2018bwlock.results import BwlockResults

TAKEN_MAX = 0.05
"""Of the CPUs: if other programs and the host had more, numbers that miss a criterion decide nothing."""

OF_BUDGET = 0.8
"""What best-effort programs are to have of the budget that they are allowed, at least."""

SAVED = {1: (39, 20), 3: (62, 45)}
"""By punishment: how much less is throttled in the paper, and here at least; percent."""


def seen(results: BwlockResults) -> Observed:
    """The live runs. Raises NotRunError if nothing ran, UndecidableError if the machine showed no interference."""
    if results.live is None:
        raise NotRunError("nothing ran live; add --live")
    if results.live.skipped:
        raise UndecidableError(results.live.skipped)
    return results.live


OF_FORMULA = 10
"""By how many points what is saved under a budget of `LOOSE` may differ from the formula."""


def saved_percent(shares: dict[int, Shares] | None) -> dict[int, float]:
    """How much less CPUs are throttled than under the fair class alone, by punishment."""
    shares = shares or {}
    fair = shares[0].throttled if 0 in shares else 0.0
    return {rho: 100 * (1 - one.throttled / max(fair, 1e-9)) for rho, one in shares.items() if rho}


def formula_percent(punishment: int, beta: float) -> float:
    """What TFS saves of throttled time by formula 6, one memory task beside one CPU task of the same weight.

    It follows from equations 1 to 3: both tasks have the same virtual time in the end. With `beta`, the part of a
    period that the memory task executes before its budget is used up, it is throttled for
    (1 - beta) / (1 + beta + rho (1 - beta)) of the time.
    """
    return 100 * (1 - (1 + beta) / (1 + beta + punishment * (1 - beta)))


def _finding(observed: Observed, verdict: str, text: str) -> Finding:
    """What a machine shows that was busy with other programs decides nothing where it misses."""
    if verdict != "reproduced" and observed.taken > TAKEN_MAX:
        raise UndecidableError(f"{text}; but other programs and the host had {observed.taken:.0%} of the CPUs")
    return Finding(verdict, text)  # type: ignore[arg-type]


def _slowed(results: BwlockResults) -> Finding:
    observed = seen(results)
    return Finding("reproduced", f"{observed.interference:.2f} times as long")


def _protected(results: BwlockResults) -> Finding:
    observed = seen(results)
    slowdowns = dict(observed.curve)
    if observed.threshold is None:
        best = min(slowdowns.values())
        return _finding(observed, "not reproduced", f"no budget was small enough; the best: {best:.3f} times as long")
    text = f"{slowdowns[observed.threshold]:.3f} times as long with {observed.threshold / 1e6:.0f} MB/s for each CPU"
    return Finding("reproduced", text)


def _of_budget(results: BwlockResults) -> Finding:
    observed = seen(results)
    if observed.of_budget is None:
        raise UndecidableError("no budget protects the kernel")
    good = yes(observed.of_budget >= OF_BUDGET)
    return _finding(observed, good, f"{observed.of_budget:.0%} of what they were allowed")


def _saved(punishment: int) -> Callable[[BwlockResults], Finding]:
    def check(results: BwlockResults) -> Finding:
        observed = seen(results)
        if observed.shares is None:
            raise UndecidableError(observed.no_shares)
        _, least = SAVED[punishment]
        found = saved_percent(observed.shares)[punishment]
        return _finding(observed, partly(found >= least, found > 0), f"{found:.0f} % less")

    return check


def _as_formula(results: BwlockResults) -> Finding:
    observed = seen(results)
    if observed.loose is None:
        raise UndecidableError(observed.no_shares or "it was not measured; run it again with --live")
    saved = saved_percent(observed.loose)
    due = {rho: formula_percent(rho, LOOSE) for rho in saved}
    texts = [f"punishment {rho}: {found:.0f} % less, by the formula {due[rho]:.0f} %" for rho, found in saved.items()]
    good = all(abs(found - due[rho]) <= OF_FORMULA for rho, found in saved.items())
    return _finding(observed, partly(good, all(found > 0 for found in saved.values())), "; ".join(texts))


CLAIMS = (
    Claim(
        "live-slowed",
        "I, live",
        "Memory hogs on other CPUs slow a memory-bound kernel down.",
        _slowed,
        f"at least {INTERFERENCE_MIN} times as long; where it is less, nothing is decided",
    ),
    Claim(
        "live-protected",
        "VI-C, live",
        "Under the threshold that is found it slows down by at most 10 %.",
        _protected,
        f"there is a budget with at most {SLOWDOWN_MAX} times",
    ),
    Claim(
        "live-budget",
        "V-B, live",
        "Best-effort programs have what the threshold allows.",
        _of_budget,
        f"at least {OF_BUDGET:.0%} of it",
    ),
    *(
        Claim(
            f"live-tfs{punishment}",
            "VI-E, live",
            f"TFS with a punishment of {punishment} throttles {paper} % less than CFS.",
            _saved(punishment),
            f"at least {least} % less; partly if less at all",
        )
        for punishment, (paper, least) in SAVED.items()
    ),
    Claim(
        "live-tfs-formula",
        "IV-C4, live",
        "What TFS saves follows from its virtual time (equations 1 to 3).",
        _as_formula,
        f"with {LOOSE:.0%} of a hog's rate, within {OF_FORMULA} points of formula 6; partly if less at all",
    ),
)


def facts(observed: Observed | None) -> list[tuple[str, str]]:
    """What ran, for people."""
    if observed is None:
        return [("live", "not run")]
    said = (
        f"{observed.date}, {observed.machine}, Linux {observed.linux}: a copying kernel on one CPU, hogs "
        f"on {observed.cpus}; medians of {observed.repeats} runs of {observed.seconds:g} s; other programs and the "
        f"host had {observed.taken:.0%} of the CPUs"
    )
    return [("live", said + (f". Skipped: {observed.skipped}" if observed.skipped else ""))]


def tables(observed: Observed | None) -> list[Table]:
    """Slowdowns by budget, and what TFS does."""
    if observed is None or observed.skipped:
        return []
    rows = [[f"unhindered, {observed.hog_rate / 1e6:.0f} MB/s", f"{observed.interference:.3f}"]]
    rows += [
        [f"{budget / 1e6:.1f} MB/s", f"{slowdown:.3f}"] for budget, slowdown in sorted(observed.curve, reverse=True)
    ]
    text = "Times its time alone that the kernel takes, by the budget of each best-effort CPU while it holds the lock."
    found = [Table("Live: slowdown by budget", text, ["budget", "slowdown"], rows)]
    for title, budget, shares in (
        ("Live: TFS", observed.threshold, observed.shares),
        ("Live: TFS, loose budget", int(LOOSE * observed.hog_rate), observed.loose),
    ):
        if shares and budget:
            found.append(_saved_table(title, budget, observed, shares))
    return found


def _saved_table(title: str, budget: int, observed: Observed, shares: dict[int, Shares]) -> Table:
    saved = saved_percent(shares)
    beta = min(budget / observed.hog_rate, 1.0)
    rows = [
        [
            "fair class alone" if not rho else f"TFS-{rho}",
            f"{one.slowdown:.3f}",
            f"{one.throttled:.1%}",
            *(
                ["-"] * 3
                if not rho
                else [f"{saved[rho]:.0f} %", f"{formula_percent(rho, beta):.0f} %", f"{SAVED[rho][0]} %"]
            ),
        ]
        for rho, one in shares.items()
    ]
    text = (
        f"A streaming and a computing program on each best-effort CPU, {observed.cpus} of them, each with "
        f"{budget / 1e6:.0f} MB/s: {beta:.0%} of what a hog has unhindered. The paper's are means of six benchmarks."
    )
    return Table(
        title, text, ["", "slowdown", "throttled of the time", "less than fair", "by formula 6", "paper"], rows
    )


def published(observed: Observed | None) -> dict[str, str]:
    """What a repository keeps of the numbers."""
    if observed is None:
        return {}
    rows = [["interference", f"{observed.interference:.4f}"], ["hog_bytes_per_second", f"{observed.hog_rate:.0f}"]]
    rows += [[f"slowdown at {budget} B/s", f"{slowdown:.4f}"] for budget, slowdown in observed.curve]
    for rho, one in (observed.shares or {}).items():
        rows += [[f"TFS-{rho} slowdown", f"{one.slowdown:.4f}"], [f"TFS-{rho} throttled", f"{one.throttled:.4f}"]]
    for rho, one in (observed.loose or {}).items():
        name = f"TFS-{rho} under {LOOSE:.0%} of a hog's rate"
        rows += [[f"{name} slowdown", f"{one.slowdown:.4f}"], [f"{name} throttled", f"{one.throttled:.4f}"]]
    return {"live.csv": csv_text([["measure", "value"], *rows])}
