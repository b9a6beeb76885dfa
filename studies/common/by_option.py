"""What a paper leaves open, changed one option at a time: does a verdict hang on it?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from studies.common.claims import Claim, Finding, csv_text
from studies.common.report import check
from studies.common.results import Results
from studies.common.store import write_atomically
from studies.common.study import PublishedStudy


@dataclass(frozen=True)
class Column:
    """The verdicts under one setting.

    Attributes:
        name: what differs from the default, ``KEY=VALUE``; ``default`` where nothing does.
        replicates: task sets a point of the run it comes from.
        checked: every claim with its finding.
    """

    name: str
    replicates: int
    checked: list[tuple[Claim, Finding]]


def settings(published: PublishedStudy) -> list[str]:
    """The default and every other value of each option, one at a time, as lines of options."""
    return ["", *published.alternatives]


def by_option(published: PublishedStudy, folder: Path, go: Callable[[str, Path], Path]) -> list[Column]:
    """Runs a study under each setting and checks its claims.

    Args:
        published: the study.
        folder: where the runs go, one folder a setting; each is resumed if it was stopped.
        go: runs it with these options in that folder, and returns the result.
    """
    columns = []
    for setting in settings(published):
        name = setting or "default"
        results = Results(go(setting, folder / name.replace("=", "-")))
        columns.append(Column(name, results.run["replicates"], check(results)))
    return columns


def write(published: PublishedStudy, columns: list[Column], folder: Path) -> Path:
    """Writes ``by-option.md`` and ``by-option.csv``; returns the path of the former."""
    write_atomically(folder / "by-option.csv", _csv(columns).encode())
    path = folder / "by-option.md"
    write_atomically(path, _markdown(published, columns).encode())
    return path


MARKS = {"reproduced": "yes", "partly reproduced": "partly", "not reproduced": "**no**", "undecided": "?"}


def _markdown(published: PublishedStudy, columns: list[Column]) -> str:
    names = [column.name for column in columns]
    counts = [sum(finding.verdict == "reproduced" for _, finding in column.checked) for column in columns]
    claims = range(len(columns[0].checked))
    lines = [
        f"# {published.title}: verdicts by option",
        "",
        "What the paper leaves open is an option. Here each takes its other values, one at a time, with "
        f"{columns[0].replicates:,} task sets a point: does a claim come out (yes, partly, **no**)? The numbers behind "
        "a verdict are in `by-option.csv`.",
        "",
        "| Claim | " + " | ".join(f"`{name}`" if "=" in name else name for name in names) + " |",
        "| --- " * (len(names) + 1) + "|",
    ]
    for place in claims:
        claim = columns[0].checked[place][0]
        verdicts = [MARKS[column.checked[place][1].verdict] for column in columns]
        lines.append(f"| {claim.key} ({claim.where}) | " + " | ".join(verdicts) + " |")
    lines += [f"| reproduced, of {len(claims)} | " + " | ".join(str(count) for count in counts) + " |", ""]
    return "\n".join(lines)


def _csv(columns: list[Column]) -> str:
    rows = [
        [column.name, claim.key, claim.where, finding.verdict, finding.ours]
        for column in columns
        for claim, finding in column.checked
    ]
    return csv_text([["options", "claim", "where", "verdict", "ours"], *rows])
