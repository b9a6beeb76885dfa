"""The lab's part of elliott2012klmirqd_runtime: what it says of runs that are made up, and what is kept of runs."""

import dataclasses
import math
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from studies.common.claims import UndecidableError
from studies.common.results import NotRunError
from studies.elliott2012klmirqd_runtime import measure
from studies.elliott2012klmirqd_runtime.lab import DATA, HANDLINGS, Lab, tabulated
from studies.elliott2012klmirqd_runtime.lab_view import LAB_CLAIMS, facts, tables


@dataclasses.dataclass
class Inversion:
    """As scripts/kernel_inversions.py finds it."""

    length_ns: int
    kind: str = "overtaken"
    task: str = "s1t0"
    since_ns: int = 0


@dataclasses.dataclass
class Measured:
    """As scripts/kernel_inversions.py makes it of a run."""

    inversions: list[Inversion]
    interrupts: int = 10
    top_halves_ns: int = 2_000
    bottom_halves_ns: int = 500_000
    co_scheduled_ns: int = 0


@dataclasses.dataclass
class Results:
    """All that the claims look at."""

    lab: Lab | None


# Good: under klmirqd an urgent bottom half waits 3 us for its thread, and one overtakes for 12; else they overtake.
WAITS = [Inversion(3_000, "waiting_bottom_half")] * 20
GOOD = {
    "ordinary": [*WAITS[:1], *[Inversion(us * 1_000) for us in range(20, 300, 20)]],
    "threaded": [*WAITS[:1], *[Inversion(us * 1_000) for us in range(30, 310, 20)]],
    "klmirqd": [*WAITS, Inversion(12_000)],
}


def made(folder, lengths=GOOD, beside=(4_000, 5_000, 0)) -> Results:
    """Runs that are made up: the inversions of one CPU, and what executes beside its owner on two."""
    one = [
        (1, 2_000, handling, {1: Measured(found[::2]), 2: Measured(found[1::2])}) for handling, found in lengths.items()
    ]
    two = [
        (2, 1_000, handling, {1: Measured([], co_scheduled_ns=ns)})
        for handling, ns in zip(HANDLINGS, beside, strict=True)
    ]
    for name, text in tabulated([*one, *two], "6.18").items():
        (folder / name).write_text(text)
    return Results(Lab.read(folder))


def verdicts(results: Results) -> dict[str, str]:
    """Of each claim."""
    return {claim.key: claim.check(results).verdict for claim in LAB_CLAIMS}


def test_what_is_written_is_read_again(tmp_path):
    lab = made(tmp_path).lab
    runs = lab.one["klmirqd"]
    assert runs.kinds == {"waiting_bottom_half": (20, 60.0), "overtaken": (1, 12.0)}
    assert (runs.total_us, runs.longest_us, runs.seconds, runs.interrupts) == (72.0, 12.0, 4.0, 20)
    assert (runs.top_halves_us, runs.bottom_halves_us) == (4.0, 1_000.0)
    assert [runs.percentile_us(percent) for percent in (50, 95, 100)] == [3.0, 3.0, 12.0]
    assert lab.one["ordinary"].beyond(100) == pytest.approx(sum(range(120, 300, 20)) / (3 + sum(range(20, 300, 20))))
    assert lab.two["threaded"].co_scheduled_us == 5.0
    assert math.isnan(lab.two["klmirqd"].percentile_us(90))


def test_where_the_lab_is_as_the_paper_each_claim_is_reproduced(tmp_path):
    found = verdicts(made(tmp_path))
    assert set(found.values()) == {"reproduced"}, found


def test_where_klmirqd_is_slih_none_is(tmp_path):
    found = verdicts(made(tmp_path, GOOD | {"klmirqd": GOOD["threaded"]}, (1, 1, 1)))
    assert set(found.values()) == {"not reproduced"}, found


def test_long_waits_for_threads_are_said_and_decide_what_is_typical(tmp_path):
    slow = [Inversion(25_000, "waiting_bottom_half")] * 20
    results = made(tmp_path, GOOD | {"klmirqd": slow})
    found = {claim.key: claim.check(results) for claim in LAB_CLAIMS}
    assert found["lab-p90"].verdict == "not reproduced"
    assert "25.0 us each" in found["lab-p90"].why
    assert found["lab-observation-1"].verdict == "reproduced"


def test_where_nothing_is_co_scheduled_nothing_is_decided_and_without_runs_neither(tmp_path):
    (claim,) = (claim for claim in LAB_CLAIMS if claim.key == "lab-co-scheduling")
    with pytest.raises(UndecidableError, match="under no handling"):
        claim.check(made(tmp_path, beside=(0, 0, 0)))
    for one in LAB_CLAIMS:
        with pytest.raises(NotRunError, match="make study-klmirqd-lab"):
            one.check(Results(Lab.read(tmp_path / "nothing")))
    assert tables(Results(None)) == []
    assert facts(Results(None)) == [("Lab", "not run")]


def test_what_the_repository_keeps_is_of_the_same_work_under_each_handling():
    lab = Lab.read(DATA)
    interrupts = [lab.one[handling].interrupts for handling in HANDLINGS]
    assert max(interrupts) - min(interrupts) <= 0.02 * max(interrupts)
    (table,) = tables(Results(lab))
    assert len(table.rows) == len(HANDLINGS)
    assert all(len(row) == len(table.header) for row in table.rows)


class LackingError(Exception):
    """As kernel_lab's."""


def test_each_handling_is_measured_and_a_machine_without_a_lab_is_told(tmp_path, monkeypatch, capsys):
    def run(handling, seeds, programs, _out, *, span_ms, smp):
        asked.append((handling, smp, span_ms))
        assert [program.name for program in programs][-1] == "kernel-network"
        return {seed: Measured(GOOD[handling]) for seed in seeds}

    def fetch():
        if not asked_for_kernels:
            raise LackingError("no kernel")
        return Path("kernel/linux-image-6.18/vmlinuz")

    asked, asked_for_kernels = [], []
    lab = SimpleNamespace(fetch_kernel=fetch, MissingError=LackingError, FailedError=LackingError)
    monkeypatch.setitem(sys.modules, "kernel_lab", lab)
    monkeypatch.setitem(sys.modules, "kernel_inversions", SimpleNamespace(run=run))
    monkeypatch.setattr(sys, "argv", ["measure", str(tmp_path), "--out", str(tmp_path / "out")])
    assert measure.main() == 1
    assert "no kernel" in capsys.readouterr().err
    asked_for_kernels.append(1)
    assert measure.main() == 0
    assert asked == [(handling, cpus, ms) for cpus, ms in ((1, 2_000), (2, 1_000)) for handling in HANDLINGS]
    found = Lab.read(tmp_path / "out")
    assert found.linux == "6.18"
    assert len(found.one["klmirqd"].lengths_us) == len(measure.SETS) * len(GOOD["klmirqd"])
