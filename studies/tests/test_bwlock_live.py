"""The live part of ali2018bwlock: what it concludes from a machine of known interference, and a run on this one."""

import json
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from laxity import LaxityError

from studies.__main__ import _command, main
from studies.ali2018bwlock import STUDY, live
from studies.ali2018bwlock.live import LIVE, Bench, Observed, RefusedError, rate
from studies.ali2018bwlock.live_view import TAKEN_MAX, formula_percent, saved_percent
from studies.ali2018bwlock.results import BwlockResults
from studies.common.report import check, report

FAKE = Path(__file__).with_name("fake_bandwidth.py")


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """What makes a bench of a machine that is made up."""
    monkeypatch.setattr(live, "LEAD_S", 0.2)
    monkeypatch.setattr(live, "TAIL_S", 0.5)
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("a kernel and a hog need two CPUs")
    command = tmp_path / "laxity"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{FAKE}" "$@"\n')
    command.chmod(0o755)

    def make(interference=2.0, refuses="", *, throttles=True):
        says = {"interference": interference, "refuses": refuses, "throttles": throttles}
        says["cpus"] = len(sorted(os.sched_getaffinity(0))[1:4])
        (tmp_path / "machine.json").write_text(json.dumps(says))
        return Unhindered(command, tmp_path, 0.5, 1)

    return make


class Unhindered(Bench):
    """A bench whose hogs are a file of the made-up machine."""

    def hogs(self, regulation, tail_s):
        """As in a bench."""
        if regulation is None:
            (self.folder / "hogs").write_text("unhindered\n")
        return super().hogs(regulation, tail_s)

    def _end(self, program):
        super()._end(program)
        (self.folder / "hogs").unlink(missing_ok=True)


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    """Simulations of a second."""
    folder = tmp_path_factory.mktemp("simulated")
    assert main(["ali2018bwlock", "--quick", "--figures", "none", "--out", str(folder)]) == 0
    return folder / "result.parquet"


def verdicts(simulated, folder, observed):
    """The verdicts on claims about live runs, with the page drawn."""
    path = Path(shutil.copy(simulated, folder / simulated.name))
    observed.write(folder)
    report(path, folder, every_figure=False)
    results = BwlockResults(path)
    assert results.live == observed
    assert "live.csv" in results.published()
    return {claim.key: finding for claim, finding in check(results) if claim.key.startswith("live")}


def test_a_threshold_is_found_and_every_claim_has_a_verdict(machine, simulated, tmp_path):
    observed = replace(machine().observe(), taken=0.0)
    assert observed.interference == pytest.approx(2.0, rel=1e-3)
    assert observed.hog_rate == 10e9
    # Formula 8: 1 / (1 - beta / 2) = 1.1 at a budget of 2/11 of what a hog has.
    exact = 10e9 * 2 / 11
    assert observed.threshold is not None
    assert exact / 1.5 <= observed.threshold <= exact
    found = verdicts(simulated, tmp_path, observed)
    assert {finding.verdict for finding in found.values()} == {"reproduced"}, found
    beta = observed.threshold / 10e9
    assert saved_percent(observed.shares) == pytest.approx({rho: formula_percent(rho, beta) for rho in (1, 3)}, abs=0.1)
    # Formula 6: 1.4 / 2 and 1.4 / 3.2 of the time that the fair class alone is throttled.
    assert saved_percent(observed.loose) == pytest.approx({1: 30, 3: 56.25}, abs=0.1)
    page = (tmp_path / "index.html").read_text()
    assert "Live: TFS" in page
    assert "figures/live.svg" in page


def test_a_machine_without_interference_is_skipped_by_name(machine, simulated, tmp_path):
    observed = machine(1.2).observe()
    assert "1.20 times as long" in observed.skipped
    assert observed.curve == ()
    found = verdicts(simulated, tmp_path, observed)
    assert {finding.verdict for finding in found.values()} == {"not decidable here"}
    assert "1.20 times as long" in (tmp_path / "index.md").read_text()


def test_a_machine_that_may_not_regulate_is_skipped_by_name(machine):
    observed = machine(refuses="SCHED_FIFO is not permitted").observe()
    assert observed.skipped == "this machine cannot regulate: SCHED_FIFO is not permitted"


def test_what_does_not_throttle_protects_nothing_and_a_busy_machine_decides_nothing(machine, simulated, tmp_path):
    observed = replace(machine(throttles=False).observe(), taken=0.0)
    assert observed.threshold is None
    found = verdicts(simulated, tmp_path, observed)
    assert found["live-protected"].verdict == "not reproduced"
    assert found["live-tfs1"].verdict == "not decidable here"
    assert found["live-tfs-formula"].verdict == "not decidable here"
    found = verdicts(simulated, tmp_path, replace(observed, taken=2 * TAKEN_MAX))
    assert found["live-protected"].verdict == "not decidable here"


def test_without_live_runs_claims_about_them_are_undecided(simulated):
    found = {claim.key: finding.verdict for claim, finding in check(BwlockResults(simulated))}
    assert {found[claim.key] for claim in STUDY.claims if claim.key.startswith("live")} == {"undecided"}


def test_a_rate_is_by_time_on_a_cpu_and_nothing_else_is_one():
    assert rate("4.50 GB/s in 2.000 s, 1.000 s of them on a CPU\n") == 9e9
    with pytest.raises(LaxityError, match="printed no rate, but 'nothing'"):
        rate("nothing")


def test_studies_without_live_runs_refuse_them(capsys):
    assert main(["brandenburg2009gedf", "--live"]) == 2
    assert "elliott2015vision and ali2018bwlock" in capsys.readouterr().err


def test_this_machine_is_measured_or_skipped_by_name(tmp_path, capsys):
    """A kernel of 0.2 s on real memory, by the real command."""
    if not _command().exists():
        pytest.skip("the laxity command is not built")
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("a kernel and a hog need two CPUs")
    bench = Bench(_command().absolute(), tmp_path, 0.2, 1)
    speed, hogs = bench.beside(None)
    assert speed > 0
    assert all(rate(hog.communicate()[0]) > 0 for hog in hogs)
    try:
        speed, hogs = bench.beside(("0", False), 200_000_000)
    except RefusedError as refused:
        pytest.skip(f"this machine cannot regulate: {refused}")
    assert speed > 0
    cpus = live.regulated(hogs[0])
    assert sum(cpu["periods"] for cpu in cpus) > 0
    assert [file.name for file in tmp_path.iterdir()] == []
    observed = Observed("m", "l", "d", "v", 0.2, 1, 1, 1.0, 1.0, skipped="why")
    assert Observed.read(observed.write(tmp_path).parent) == observed
    assert (tmp_path / LIVE).exists()
    capsys.readouterr()
