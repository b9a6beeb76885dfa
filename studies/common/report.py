"""The page of a study, as Markdown and HTML: what the paper says, what we see, and the figures."""

from __future__ import annotations

import html
import json
import sys
from collections import Counter
from dataclasses import astuple
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from studies.common.claims import Claim, Finding, Table, UndecidableError, csv_text
from studies.common.results import NotRunError
from studies.common.store import write_atomically
from studies.common.study import PublishedStudy, StudyResults, study

Drawn = tuple[str, str, Path]
"""A figure: its name, its caption, its file."""


def read(result: Path) -> StudyResults:
    """The result file of any study."""
    return study(json.loads(pq.read_schema(result).metadata[b"laxity.study"])["study"]).read(result)


def report(result: Path, folder: Path, *, every_figure: bool) -> None:
    """Checks the claims and draws the figures of a result; writes ``index.md``, ``index.html`` and ``claims.csv``.

    Args:
        result: the Parquet file of a run.
        folder: where page and figures go.
        every_figure: also those that compare two curves (126), all speed-ups (24 sheets instead of 6), all utilizations
            (82 instead of 8).
    """
    results = read(result)
    checked = check(results)
    drawn = _draw(results, folder / "figures", ("svg", "png"), every=every_figure)
    write_atomically(folder / "claims.csv", claims_csv(checked).encode())
    write_atomically(folder / "index.md", markdown(results, checked, drawn, folder).encode())
    write_atomically(folder / "index.html", page(results, checked, drawn, folder).encode())
    print(f"{summary(checked)}\n{folder / 'index.html'}")


def publish(result: Path, folder: Path) -> None:
    """Writes what a repository keeps of a result: the page as ``README.md``, claims, numbers, SVGs."""
    results = read(result)
    checked = check(results)
    drawn = _draw(results, folder / "figures", ("svg",), every=False)
    write_atomically(folder / "claims.csv", claims_csv(checked).encode())
    for name, text in results.published().items():
        write_atomically(folder / name, text.encode())
    write_atomically(folder / "README.md", markdown(results, checked, drawn, folder).encode())


def check(results: StudyResults) -> list[tuple[Claim, Finding]]:
    """Every claim of a study, with what the results say of it."""

    def find(claim: Claim) -> Finding:
        try:
            return claim.check(results)
        except NotRunError as error:
            return Finding("undecided", str(error), "run the whole study")
        except UndecidableError as error:
            return Finding("not decidable here", "", str(error))

    return [(claim, find(claim)) for claim in _of(results).claims]


def _of(results: StudyResults) -> PublishedStudy:
    """The study that they are of."""
    return study(results.run["study"])


def _draw(results: StudyResults, folder: Path, formats: tuple[str, ...], *, every: bool) -> list[Drawn]:
    """Draws the figures of a study; matplotlib is imported only here."""
    from studies.common.style import Canvas  # noqa: PLC0415

    canvas: Canvas[Any] = Canvas(results, folder, results.caption(), formats)
    figures = import_module(f"studies.{_of(results).name}.drawing").draw_all(canvas, every=every)
    drawn = []
    for figure in figures:
        drawn.append(figure)
        if sys.stderr.isatty():
            print(f"\rdrew {figure[0]}\x1b[K", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr)
    return drawn


def summary(checked: list[tuple[Claim, Finding]]) -> str:
    """How many claims came out how."""
    counts = Counter(finding.verdict for _, finding in checked)
    return f"{len(checked)} claims: " + ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())


def claims_csv(checked: list[tuple[Claim, Finding]]) -> str:
    """The table of claims for programs."""
    criteria = 1 if any(claim.criterion for claim, _ in checked) else 0
    head = ["claim", "where", "paper", *["criterion"] * criteria, "verdict", "ours", "why", "hypothesis"]
    rows = [
        [claim.key, claim.where, claim.says, *[claim.criterion] * criteria, *astuple(finding)]
        for claim, finding in checked
    ]
    return csv_text([head, *rows])


def markdown(results: StudyResults, checked: list[tuple[Claim, Finding]], drawn: list[Drawn], folder: Path) -> str:
    """The page as Markdown."""
    lines = [f"# {_of(results).title}", "", summary(checked) + ".", ""]
    lines += [f"- {name}: {value}" for name, value in results.facts()]
    lines += [
        "",
        "## What the paper says, and what we see",
        "",
        "| Where | The paper | Ours | Verdict |",
        "| --- " * 4 + "|",
    ]
    for claim, finding in checked:
        says = claim.says + (f" *{claim.criterion}*" if claim.criterion else "")
        found = ". ".join(part for part in (finding.ours, *_reasons(finding)) if part)
        cells = (claim.where, says, found, f"**{finding.verdict}**")
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    for table in _of(results).tables(results):
        lines += ["", f"## {table.title}", "", table.text, "", *_markdown_table(table)]
    lines += ["", "## Figures", ""]
    for name, text, path in drawn:
        lines += [f"### {name}", "", f"![{name}: {text}]({path.relative_to(folder)})", ""]
    return "\n".join(lines)


def _reasons(finding: Finding) -> list[str]:
    """Why it differs from the paper: what the results show, and what is only supposed."""
    named = (("Why", finding.why), ("Hypothesis, not tested", finding.hypothesis))
    return [f"{name}: {text}" for name, text in named if text]


STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #202124; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { margin-top: 2.5rem; }
table { border-collapse: collapse; } td, th { padding: .5rem .7rem; vertical-align: top; text-align: left; }
tr { border-top: 1px solid #dadce0; } td:first-child { white-space: nowrap; color: #5f6368; font-size: .85rem; }
.verdict { white-space: nowrap; font-weight: 600; } .why { color: #5f6368; }
.reproduced { color: #00704d; } .partly { color: #8a5a00; } .not { color: #a33b00; } .undecided { color: #5f6368; }
.wide { overflow-x: auto; } .numbers { font-variant-numeric: tabular-nums; font-size: .85rem; }
.numbers td + td, .numbers th + th { text-align: right; } .numbers th { vertical-align: bottom; }
figure { margin: 2rem 0; } figcaption { color: #5f6368; } img { max-width: 100%; height: auto; }
@media (max-width: 40rem) {
  td:first-child { white-space: normal; }
  .claims thead { display: none; }
  .claims tr, .claims td { display: block; } .claims td { padding: .2rem 0; } .claims tr { padding: .6rem 0; }
}
"""

MARKS = {
    "reproduced": "\N{CHECK MARK}",
    "partly reproduced": "\N{ALMOST EQUAL TO}",
    "not reproduced": "\N{MULTIPLICATION X}",
}


def _markdown_table(table: Table) -> list[str]:
    rows = [table.header, ["---"] * len(table.header), *table.rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]


def _html_table(table: Table) -> str:
    header = "".join(f"<th>{html.escape(cell)}" for cell in table.header)
    rows = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}" for cell in row) + "</tr>" for row in table.rows)
    return (
        f"<h2>{html.escape(table.title)}</h2>\n<p>{html.escape(table.text)}</p>\n"
        f'<div class="wide"><table class="numbers"><thead><tr>{header}</thead><tbody>{rows}</tbody></table></div>\n'
    )


def page(results: StudyResults, checked: list[tuple[Claim, Finding]], drawn: list[Drawn], folder: Path) -> str:
    """The page as HTML, with the figures as files beside it."""
    title = html.escape(_of(results).title)
    rows = "".join(_row(claim, finding) for claim, finding in checked)
    tables = "".join(_html_table(table) for table in _of(results).tables(results))
    facts = "".join(f"<li>{html.escape(name)}: {html.escape(value)}</li>" for name, value in results.facts())
    figures = "".join(
        f'<figure><img loading="lazy" src="{path.relative_to(folder)}" alt="{html.escape(f"{name}: {text}")}">'
        f"<figcaption><b>{html.escape(name)}.</b> {html.escape(text)}</figcaption></figure>\n"
        for name, text, path in drawn
    )
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{title}</title><style>{STYLE}</style>\n<h1>{title}</h1>\n<p>{html.escape(summary(checked))}.</p>"
        f"<ul>{facts}</ul>\n<h2>What the paper says, and what we see</h2>\n"
        '<table class="claims"><thead><tr><th>Where<th>The paper'
        f"<th>Ours<th>Verdict</thead><tbody>{rows}</tbody></table>\n{tables}<h2>Figures</h2>\n{figures}</html>\n"
    )


def _row(claim: Claim, finding: Finding) -> str:
    where, says, ours = (html.escape(text) for text in (claim.where, claim.says, finding.ours))
    reason = "".join(f'<br><span class="why">{html.escape(text)}</span>' for text in _reasons(finding))
    reason = reason if ours else reason.removeprefix("<br>")
    criterion = f'<br><span class="why">{html.escape(claim.criterion)}</span>' if claim.criterion else ""
    mark = MARKS.get(finding.verdict, "?")
    kind = finding.verdict.split()[0] if finding.verdict in MARKS else "undecided"
    return (
        f"<tr><td>{where}<td>{says}{criterion}<td>{ours}{reason}"
        f'<td class="verdict {kind}">{mark} {html.escape(finding.verdict)}</tr>\n'
    )
