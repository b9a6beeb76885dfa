"""The studies of Laxity's scheduler in the kernel: their tables, their curves, their verdicts."""

import csv

import numpy as np
import pytest

from studies.brandenburg2009gedf import claims as paper
from studies.brandenburg2009gedf_kernel.overheads import ALONE, LAB, MEASURED, SOURCES, WAITING
from studies.common.plan import plan
from studies.common.report import check, publish
from studies.common.results import Results
from studies.common.run import run
from studies.common.study import study

SMALL = {"scenarios": range(6, 9), "step": 26, "replicates": 12}
COSTS = {"brandenburg2009gedf_kernel": ALONE, "brandenburg2009gedf_kernel_waiting": WAITING}


@pytest.fixture(scope="module", params=COSTS)
def small(request, tmp_path_factory):
    """Three heavy scenarios at six points."""
    return run(plan(request.param, **SMALL), tmp_path_factory.mktemp("small"), threads=1)


@pytest.mark.parametrize("costs", COSTS.values(), ids=COSTS)
def test_the_tables_are_whole_labelled_and_ordered(costs):
    for name in MEASURED:
        file = costs.of(name)
        assert "emulated machine, instruction counts; commit " in str(file.machine["processor"])
        assert str(file.machine["scheduler"]).startswith(f"G-EDF/{name},")
        for source in SOURCES:
            if source == "timer_rearming" and name.endswith("1"):
                # The dedicated CPU sets its timer itself.
                assert costs.us(name, "worst", source, 250) == 0
                continue
            for tasks in (25, 125, 250):
                mean, worst = (costs.us(name, statistic, source, tasks) for statistic in ("average", "worst"))
                assert 0 < mean <= worst, (name, source, tasks)
        # All ten numbers of tasks, with samples enough for what is left out of them.
        counts = [file.counts[f"scheduling_{tasks}"] for tasks in range(25, 251, 25)]
        assert min(counts) > 100, (name, counts)


def test_all_were_measured_once_at_one_commit():
    files = {f"{name}{costs.suffix}": costs.of(name) for name in MEASURED for costs in COSTS.values()}
    assert {path.stem for path in LAB.iterdir()} == set(files)
    machines = {str(file.machine["processor"]) for file in files.values()}
    assert len(machines) == 1
    assert "dirty" not in machines.pop()


def test_waiting_is_added_to_the_same_measurement():
    for name in MEASURED:
        assert ALONE.of(name).counts == WAITING.of(name).counts
        for key, (_, without) in ALONE.of(name).tables.items():
            at, with_waiting = WAITING.of(name).tables[key]
            assert np.all(with_waiting >= np.broadcast_to(without, at.shape)), (name, key)


def test_both_studies_draw_the_same_task_sets_and_the_costs_differ(small, tmp_path):
    ours, theirs = Results(small), Results(run(plan("brandenburg2009gedf", **SMALL), tmp_path, threads=1))
    for scenario in ours.scenarios:
        for graph in ("hard", "soft"):
            assert ours.weighted(scenario, graph, "G-EDF") == theirs.weighted(scenario, graph, "G-EDF")
            for name in paper.SOFT[1:]:
                assert ours.weighted(scenario, graph, name) <= ours.weighted(scenario, graph, "G-EDF") + 1e-9
    names = {key[1:] for key, _ in ours.all_weighted()}
    assert {name for graph, name in names if graph == "hard"} == set(paper.HARD)
    assert {name for graph, name in names if graph == "soft"} == set(paper.SOFT)
    differ = [
        scenario
        for scenario in ours.scenarios
        if ours.weighted(scenario, "hard", "CEm") != theirs.weighted(scenario, "hard", "CEm")
    ]
    assert differ


def test_the_papers_own_checks_decide_and_reasons_are_measured(small):
    results = Results(small)
    costs = COSTS[results.run["study"]]
    ours = study(results.run["study"]).claims
    assert [(claim.key, claim.says) for claim in ours] == [(claim.key, claim.says) for claim in paper.CLAIMS]
    theirs = {claim.key: claim.check for claim in paper.CLAIMS}
    # What needs light tasks was not run.
    decided = [(claim, finding) for claim, finding in check(results) if finding.verdict != "undecided"]
    assert len(decided) >= 15
    for claim, finding in decided:
        expected = theirs[claim.key](results)
        assert (finding.verdict, finding.ours) == (expected.verdict, expected.ours)
        assert finding.why.startswith(expected.why)
        assert finding.hypothesis == ""
        if claim.key == "fe1":
            assert costs.in_words("release", "FE1", "CE1") in finding.why


def test_what_the_repository_keeps_has_the_overheads_and_the_machine(small, tmp_path):
    publish(small, tmp_path)
    text = (tmp_path / "README.md").read_text()
    assert "emulated machine, instruction counts" in text
    assert "## Overheads" in text
    assert "A reduced run" in text
    figures = sorted(path.name for path in (tmp_path / "figures").iterdir())
    assert figures == ["figure-022.svg", "figure-028.svg", "overheads-average.svg", "overheads-worst.svg"]
    rows = list(csv.DictReader((tmp_path / "weighted.csv").read_text().splitlines()))
    # Ten hard curves, each by the strongest tests, too, and eight soft ones.
    assert len(rows) == 3 * (10 + 10 + 8)
