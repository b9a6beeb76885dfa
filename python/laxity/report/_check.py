"""What `laxity check` answers, in words; and which overheads to charge, by its answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from laxity.report._fields import Fields


class Overheads(NamedTuple):
    """Which overheads an analysis charges.

    Attributes:
        are_measured: those that were measured on this machine, and not those of the workload's file.
        says: which, and why.
    """

    are_measured: bool
    says: str


def why_not(answer: Mapping[str, Any]) -> str:
    """Why `laxity check --json` does not prove that hard deadlines are met; empty if it does.

    Raises ResultsError if this is no such answer.
    """
    check = Fields("laxity check", dict(answer))
    hard = check.inner("hard")
    if hard.text("status") == "schedulable":
        return ""
    reasons = [f"{thing.text('subject')}: {thing.text('reason')}" for thing in check.each("refused")]
    reasons += [failure.text("message") for failure in hard.each("failures")]
    return reasons[0] if reasons else hard.text("status").replace("_", " ")


def choose_overheads(answer: Mapping[str, Any], statistic: str) -> Overheads:
    """Those that were measured, unless nothing can be proven with them: then those of the workload's file.

    Args:
        answer: of `laxity check --json` with the overheads that were measured.
        statistic: that stands for the worst of each overhead, such as "p99".

    Raises ResultsError if this is no such answer.
    """
    why = why_not(answer)
    if not why:
        says = f"Analysis and simulation charge the overheads that were measured here right before ({statistic})."
        return Overheads(True, says)
    return Overheads(
        False,
        f"With the overheads that were measured here right before ({statistic}) its deadlines are not proven ({why}), "
        "so that analysis and simulation charge those that the file guesses.",
    )
