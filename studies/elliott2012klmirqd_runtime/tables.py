"""Table II beside the paper's, and what other readings of the paper would give."""

from __future__ import annotations

from studies.common.claims import Table
from studies.elliott2012klmirqd_runtime import lab_view
from studies.elliott2012klmirqd_runtime.claims import PERCENTILES, TABLE_2, TOTALS, judged_percentile
from studies.elliott2012klmirqd_runtime.plan import INVERSION_VARIANTS, RESPONSE_VARIANTS, SHOWN
from studies.elliott2012klmirqd_runtime.results import KINDS, RuntimeResults


def tables(results: RuntimeResults) -> list[Table]:
    """All of them."""
    made = [_table_2(results)]
    if SHOWN in results.points:
        made.append(_inversion_variants(results))
    return [*lab_view.tables(results), *made, _response_variants(results)]


def _table_2(results: RuntimeResults) -> Table:
    rows = []
    for column, name in results.systems:
        cells = [f"({column}) {name}"]
        for kind in KINDS:
            ours, paper = results.responses(column, kind), TABLE_2[column, kind]
            cells += [f"{paper.missed:.1f}", f"{ours.missed:.2f}", f"{paper.response:,.1f}"]
            cells += [f"{ours.response:.1f} ± {ours.spread:.1f}"]
        rows.append(cells)
    columns = [f"{kind} {what}" for kind in KINDS for what in ("missed: paper", "ours", "response: paper", "ours")]
    text = (
        "Percentage of deadlines missed, and response times as a percentage of the period: means over tasks and "
        "repetitions, with the standard deviation over repetitions."
    )
    return Table("Table II", text, ["", *columns], rows)


def _inversion_variants(results: RuntimeResults) -> Table:
    rows = [
        ["paper", *(f"{number:,.0f}" for number in (*PERCENTILES.values(), *(us / 1e3 for us in TOTALS.values()))), ""]
    ]
    for variant in ("", *INVERSION_VARIANTS):
        curves = {h: results.inversions(h, variant=variant) for h in PERCENTILES}
        good = [h for h in PERCENTILES if judged_percentile(h, curves[h].percentile_us(90))]
        percentiles = [f"{curves[h].percentile_us(90):.1f}{' ✓' if h in good else ''}" for h in PERCENTILES]
        totals = [f"{curves[h].total_us / 1e3:,.0f}" for h in PERCENTILES]
        rows.append([variant or "default", *percentiles, *totals, f"{curves['SLIH'].interrupts:,}"])
    header = [
        "",
        *(f"90th percentile {h}, us" for h in PERCENTILES),
        *(f"sum {h}, ms" for h in PERCENTILES),
        "interrupts",
    ]
    text = (
        "What the paper leaves open in section V, varied one at a time at utilization 11.2; a check mark where the "
        "percentile is as the paper says. The default is the plainest reading, not the nearest result: an interrupt "
        "for each of a job's three operations, and owners that suspend while the GPU works, as in the paper's "
        "analysis. Polling owners come nearer."
    )
    return Table("Other readings of section V", text, header, rows)


def _response_variants(results: RuntimeResults) -> Table:
    columns = "abdefg"
    rows = []
    for variant in ("", *RESPONSE_VARIANTS):
        cells = [variant or "default"]
        for kind in KINDS:
            cells += [f"{(r := results.responses(c, kind, variant)).missed:.2f} / {r.response:.1f}" for c in columns]
        rows.append(cells)
    cells = ["paper"]
    cells += [f"{TABLE_2[c, kind].missed:.1f} / {TABLE_2[c, kind].response:,.1f}" for kind in KINDS for c in columns]
    header = ["missed / response, %", *(f"{kind} ({c})" for kind in KINDS for c in columns)]
    text = "What the paper leaves open in section VI, varied one at a time."
    return Table("Other readings of section VI", text, header, [cells, *rows])
