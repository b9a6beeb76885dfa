"""The study of Laxity's scheduler in the kernel: its tables, its curves, its verdicts."""

import csv

import pytest

from studies.brandenburg2009gedf import claims as paper
from studies.brandenburg2009gedf_kernel import claims
from studies.brandenburg2009gedf_kernel.overheads import LAB, REALIZATIONS, SOURCES, cost_us, measured
from studies.common.plan import plan
from studies.common.report import check, publish
from studies.common.results import Results
from studies.common.run import run

SMALL = {"scenarios": range(6, 9), "step": 26, "replicates": 12}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Three heavy scenarios at six points."""
    return run(plan("brandenburg2009gedf_kernel", **SMALL), tmp_path_factory.mktemp("small"), threads=1)


def test_the_tables_are_whole_labelled_and_ordered():
    for name in REALIZATIONS:
        file = measured(name)
        assert "emulated machine, instruction counts; commit " in str(file.machine["processor"])
        assert str(file.machine["scheduler"]).startswith(f"G-EDF/{name},")
        for source in SOURCES:
            if source == "timer_rearming" and name.endswith("1"):
                # The dedicated CPU sets its timer itself.
                assert cost_us(name, "worst", source, 250) == 0
                continue
            for tasks in (25, 125, 250):
                mean, worst = (cost_us(name, statistic, source, tasks) for statistic in ("average", "worst"))
                assert mean <= worst, (name, source, tasks)
                assert mean > 0 or source == "ipi_latency", (name, source, tasks)
        # All ten numbers of tasks, with samples enough for what is left out of them.
        counts = [file.counts[f"scheduling_{tasks}"] for tasks in range(25, 251, 25)]
        assert min(counts) > 100, (name, counts)
    assert {path.stem for path in LAB.iterdir()} == set(REALIZATIONS)


def test_both_studies_draw_the_same_task_sets_and_the_costs_differ(small, tmp_path):
    ours, theirs = Results(small), Results(run(plan("brandenburg2009gedf", **SMALL), tmp_path, threads=1))
    for scenario in ours.scenarios:
        for graph in ("hard", "soft"):
            assert ours.weighted(scenario, graph, "G-EDF") == theirs.weighted(scenario, graph, "G-EDF")
            for name in claims.SOFT[1:]:
                assert ours.weighted(scenario, graph, name) <= ours.weighted(scenario, graph, "G-EDF") + 1e-9
    names = {key[1:] for key, _ in ours.all_weighted()}
    assert {name for graph, name in names if graph == "hard"} == set(claims.HARD)
    assert {name for graph, name in names if graph == "soft"} == set(claims.SOFT)
    differ = [
        scenario
        for scenario in ours.scenarios
        if ours.weighted(scenario, "hard", "CEm") != theirs.weighted(scenario, "hard", "CEm")
    ]
    assert differ


def test_what_needs_other_queues_is_not_decidable_here(small):
    assert [claim.key for claim in claims.CLAIMS] == [claim.key for claim in paper.CLAIMS]
    assert [claim.says for claim in claims.CLAIMS] == [claim.says for claim in paper.CLAIMS]
    found = {claim.key: finding for claim, finding in check(Results(small))}
    undecidable = {key for key, finding in found.items() if finding.verdict == "not decidable here"}
    assert undecidable == {"figure-5a", "hem-soft", "hem-hard", "fem", "fe1", "best-fe1"}
    assert all("no CPU waits for the lock" in found[key].why for key in undecidable)


def test_what_the_repository_keeps_has_the_overheads_and_the_machine(small, tmp_path):
    publish(small, tmp_path)
    text = (tmp_path / "README.md").read_text()
    assert "emulated machine, instruction counts" in text
    assert "## Overheads" in text
    assert "A reduced run" in text
    figures = sorted(path.name for path in (tmp_path / "figures").iterdir())
    assert figures == ["figure-022.svg", "figure-028.svg", "overheads-average.svg", "overheads-worst.svg"]
    rows = list(csv.DictReader((tmp_path / "weighted.csv").read_text().splitlines()))
    # Seven hard curves, each by the strongest tests, too, and five soft ones.
    assert len(rows) == 3 * (7 + 7 + 5)
