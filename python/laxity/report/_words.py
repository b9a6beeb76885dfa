"""Numbers as readers want them, and the sentences that sum up a run."""

from __future__ import annotations

from laxity.report._results import Configuration, Results, Video
from laxity.report._summary import summarize

ALIKE = 1.05
"""Ratios below this are not called a difference."""


def milliseconds(ns: float | None) -> str:
    """A span in ms with four digits; a dash for none."""
    return "-" if ns is None else digits(ns / 1e6)


def digits(value: float | None) -> str:
    """A number with three digits, or all that are before the point; a dash for none."""
    if value is None:
        return "-"
    size = abs(value)
    return f"{value:,.0f}" if size >= 100 else f"{value:.1f}" if size >= 10 else f"{value:.2f}"


def percent(part: int, whole: int) -> str:
    """A share; none only for none."""
    share = 100 * part / max(whole, 1)
    return "0 %" if part == 0 else "< 0.01 %" if share < 0.005 else f"{share:.2f} %"


def share(part: float | None) -> str:
    """A share of the whole, to a tenth of a percent; a dash for none."""
    return "-" if part is None else f"{100 * part:.1f} %"


def count(number: int, what: str) -> str:
    """`1 frame`, `2,000 frames`."""
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def change(before: float | None, after: float | None) -> str:
    """How the second compares with the first: `2.1 x less`."""
    if before is None or after is None:
        return "-"
    if before == after:
        return "alike"
    if before <= 0 or after <= 0:
        return "none left" if after <= 0 else "-"
    if before / after >= ALIKE:
        return f"{before / after:.1f} x less" if before / after < 100 else f"{before / after:.0f} x less"
    return f"{after / before:.1f} x more" if after / before >= ALIKE else "alike"


def verdict(results: Results) -> list[str]:
    """What came out, in a few sentences; the numbers decide what they say."""
    sentences = []
    if results.video is not None:
        sentences += _of_video(results.video)
    for workload in results.workloads:
        sentences.append(f"{workload.name}: {workload.verdict}")
    if results.stabilized is not None:
        before, after = results.stabilized.before_px, results.stabilized.after_px
        sentences.append(
            f"What shook by {digits(before)} px shakes by {digits(after)} px after the stabilizer: "
            f"{change(before, after)}."
        )
    return sentences or ["Nothing ran; below it says why."]


def _of_video(video: Video) -> list[str]:
    first, last = video.configurations[0], video.configurations[-1]
    seconds = digits(video.duration_ns / 1e9).removesuffix(".00").removesuffix(".0")
    if first is last:
        return [f"{_dropped(first)} in {seconds} s."]
    totals = summarize(first.instances), summarize(last.instances)
    dropped = f"{_dropped(first)}, {_dropped(last)}"
    if not any(total.dropped for total in totals):
        dropped = f"neither dropped any of {totals[0].expected:,} frames"
    apart = f"; without the first {video.start_ns / 1e9:g} s, which are told apart" if video.start_ns else ""
    sentences = [f"{count(len(first.instances), 'video stabilizer')} ran for {seconds} s each way{apart}: {dropped}."]
    before, after = (total.delays for total in totals)
    if before is not None and after is not None:
        sentences.append(
            f"The longest completion delay was {digits(before.max)} periods under {first.name} and {digits(after.max)} "
            f"under {last.name} ({change(before.max, after.max)}), its standard deviation {digits(before.deviation)} "
            f"and {digits(after.deviation)} periods ({change(before.deviation, after.deviation)}), as means over the "
            "stabilizers."
        )
    return sentences


def _dropped(configuration: Configuration) -> str:
    total = summarize(configuration.instances)
    share = f" ({percent(total.dropped, total.expected)})" if total.dropped else ""
    return f"{configuration.name} dropped {total.dropped:,} of {total.expected:,} frames{share}"
