"""The study of BWLOCK++: the same file however split, numbers that the model can be worked out for, and its page."""

import csv

import pytest
from laxity import LaxityError

from studies.__main__ import main
from studies.ali2018bwlock.plan import STUDY, Case, chosen
from studies.ali2018bwlock.results import BwlockResults
from studies.ali2018bwlock.workloads import READINGS, demand
from studies.common.run import run
from studies.common.store import Store
from studies.common.study import Choices


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """The study with --quick: run, checked, drawn."""
    folder = tmp_path_factory.mktemp("quick")
    assert main([STUDY, "--quick", "--out", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def results(quick):
    return BwlockResults(quick / "result.parquet")


def test_the_result_does_not_depend_on_how_the_work_was_split(quick, tmp_path):
    plan = chosen(Choices(seconds=1))
    store = Store(tmp_path, plan)
    for chunk in plan.chunks()[::7]:
        store.write(chunk, plan.evaluate(chunk))
    assert run(plan, tmp_path, threads=1).read_bytes() == (quick / "result.parquet").read_bytes()
    with pytest.raises(LaxityError, match="holds another run"):
        Store(tmp_path, chosen(Choices(seconds=2)))


def test_alone_a_kernel_takes_its_time_and_beside_three_hogs_what_the_curve_was_fitted_to(results):
    for reading in READINGS:
        assert results.slowdown("fig1", reading, 0) == 1
        assert results.slowdown("fig1", reading, 3) == pytest.approx(3.3, abs=1e-6)


def test_a_regulated_slowdown_is_that_of_formula_8(results):
    """1 / (1 - beta loss(d)) for one hog, with beta = Q / d, but for the first period, which is not regulated."""
    for reading, budget in READINGS.items():
        beta = min(65_536_000 / demand(reading), 1)
        loss = 1 - 1 / (1 + 2.3 / 3)
        ours = results.slowdown("fig1", reading, 1, 65_536_000)
        assert ours == pytest.approx(1 / (1 - beta * loss), rel=2e-3), (reading, budget)


def test_throttling_saved_is_that_of_formula_6(results):
    """1 - (1 + beta) / (1 + beta + rho (1 - beta)), within what a second of slices of 9 ms leaves open."""
    for reading in READINGS:
        for rho in (1, 3):
            for benchmark, ours in results.throttled_less_percent(reading, rho).items():
                budget = {"bfs": 32_768_000, "lbm": 16_384_000}.get(benchmark, 65_536_000)
                beta = budget / demand(reading)
                expected = 100 * (1 - (1 + beta) / (1 + beta + rho * (1 - beta)))
                assert ours == pytest.approx(expected, abs=4), (reading, rho, benchmark)


def test_the_page_has_a_verdict_for_every_claim(quick):
    with (quick / "claims.csv").open() as file:
        verdicts = {row["claim"]: row["verdict"] for row in csv.DictReader(file)}
    assert verdicts["fig4-cfs"] == verdicts["fig4-tfs"] == "reproduced"
    live = {claim for claim in verdicts if claim.startswith("live-")}
    assert {verdicts[claim] for claim in live} == {"undecided"}
    simulated = {verdict for claim, verdict in verdicts.items() if claim not in live}
    assert simulated <= {"reproduced", "partly reproduced", "not reproduced"}
    assert (quick / "index.html").read_text().count("<svg") + (quick / "index.html").read_text().count("<img") >= 4


def test_choices_that_the_study_does_not_have_are_refused():
    with pytest.raises(ValueError, match="no choice of step"):
        chosen(Choices(step=2))
    with pytest.raises(ValueError, match="no options"):
        chosen(Choices("a=b"))
    assert Case("fig6", "A", 1, 5, 3).name == "fig6-A-1-5-rho3"
