"""The simulated run-time study of GPU interrupts: the same file however split, curves, claims, pages."""

import csv
import dataclasses
import json
import math
from xml.etree import ElementTree

import numpy as np
import pyarrow.parquet as pq
import pytest
from laxity import LaxityError
from laxity._native import RuntimeStudy, StudyStop

from studies.__main__ import main
from studies.common.report import publish
from studies.common.run import run
from studies.common.store import Store, import_csv
from studies.elliott2012klmirqd_runtime import claims as runtime
from studies.elliott2012klmirqd_runtime.plan import SHOWN, STUDY, runtime_plan
from studies.elliott2012klmirqd_runtime.results import CAUSES, KINDS, Inversions, RuntimeResults

UNDECIDED = {"total-klmirqd", "total-pai", "total-slih"}
VERDICTS = {"reproduced", "partly reproduced", "not reproduced", "undecided", "not decidable here"}


def small():
    """One task set, each system once, one second each: a second."""
    return runtime_plan(step=41, repetitions=1, seconds=1)


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """The result of the small plan, on one thread."""
    return run(small(), tmp_path_factory.mktemp("reference"), threads=1)


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """The study with --quick: run, checked, drawn."""
    folder = tmp_path_factory.mktemp("quick")
    assert main([STUDY, "--quick", "--out", str(folder)]) == 0
    return folder


def test_the_result_does_not_depend_on_threads_and_interruptions(reference, tmp_path):
    what = small()
    store = Store(tmp_path, what)
    for chunk in what.chunks()[:10]:
        store.write(chunk, what.evaluate(chunk))
    done = {path: path.stat().st_mtime_ns for path in store.parts.iterdir()}
    assert len(store.missing()) == len(what.chunks()) - 10
    assert run(what, tmp_path, threads=2).read_bytes() == reference.read_bytes()
    assert all(path.stat().st_mtime_ns == written for path, written in done.items())


def test_a_folder_of_another_run_is_refused(reference):
    for other in (dataclasses.replace(small(), seconds=(2, 1)), runtime_plan("interrupts=1", step=41, seconds=1)):
        with pytest.raises(LaxityError, match="holds another run"):
            Store(reference.parent, other)


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(LaxityError, match=r"file/out cannot be made: Not a directory; name another folder with --out"):
        Store(tmp_path / "file" / "out", small())


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--options", "waiting=sleep"], "waiting=suspend|poll"),
        (["--scenarios", "0..1"], "no choice of scenarios"),
        (["--replicates", "-1"], "replicates is -1"),
    ],
)
def test_a_wrong_argument_is_refused_with_the_way_out(arguments, says, tmp_path, capsys):
    assert main([STUDY, *arguments, "--out", str(tmp_path)]) == 2
    assert says in capsys.readouterr().err


def test_counts_of_schedulability_cannot_be_imported(tmp_path):
    with pytest.raises(LaxityError, match="without --import"):
        import_csv(Store(tmp_path, small()), [])


def test_the_utilization_that_the_paper_shows_is_always_among_those_run():
    for step in (1, 2, 3, 7, 10, 41):
        assert SHOWN in runtime_plan(step=step).points
    assert len(runtime_plan().points) == 41


def test_a_whole_plan_is_the_papers_and_each_reading_of_it():
    own = [chunk for chunk in runtime_plan().simulations() if chunk.variant == 0]
    assert sum(chunk.part == "inversions" for chunk in own) == 41 * 3
    assert sum(chunk.part == "responses" for chunk in own) == 8 * 25
    assert {(chunk.part, chunk.count) for chunk in own} == {("inversions", 120), ("responses", 60)}
    names = [chunk.name for chunk in runtime_plan().chunks()]
    assert len(set(names)) == len(names)


def test_a_reading_that_was_asked_for_is_not_run_twice():
    chunks = runtime_plan("interrupts=6").chunks()
    runs = {
        (runtime_plan("interrupts=6").options[chunk.variant], chunk.part, chunk.system, chunk.point) for chunk in chunks
    }
    assert len(runs) == len(chunks)


def test_a_run_can_be_told_to_stop():
    stop = StudyStop()
    stop.set()
    study = RuntimeStudy()
    assert study.inversions(SHOWN, 0, 100, stop) is None
    assert study.responses(0, 0, 100, stop) is None
    for seconds in (0, 1_000_000):
        with pytest.raises(ValueError, match="no length of a run"):
            study.responses(0, 0, seconds)


def test_a_curve_ends_with_all_inversions_and_its_causes_add_up(reference):
    results = RuntimeResults(reference)
    for handling in results.handlings:
        curve = results.inversions(handling)
        assert curve.rank[0] == curve.cumulative_us[0] == 0
        for column in (curve.rank, curve.length_us, curve.cumulative_us):
            assert np.all(np.diff(column) >= 0)
        assert curve.count == sum(curve.causes[cause][0] for cause in CAUSES)
        assert curve.total_us == pytest.approx(sum(curve.causes[cause][1] for cause in CAUSES))
        assert curve.count <= curve.total_us / curve.length_us[1]


def test_percentiles_and_tails_of_a_small_curve():
    """Ten inversions of 1, 2 ... 10 us: nine tenths are at most 9 us long; those above 8 us are 19 of 55 us."""
    lengths = np.arange(11, dtype=np.float64)
    curve = Inversions(lengths, lengths, np.cumsum(lengths), 10, {})
    assert [curve.percentile_us(percent) for percent in (10, 50, 90, 91, 100)] == [1, 5, 9, 10, 10]
    assert curve.beyond(8) == pytest.approx(19 / 55)
    nothing = Inversions(np.zeros(1), np.zeros(1), np.zeros(1), 0, {})
    assert math.isnan(nothing.percentile_us(90))
    assert nothing.beyond(8) == 0


def test_percentages_are_means_over_tasks_and_repetitions(quick):
    table = pq.read_table(quick / "result.parquet").to_pylist()
    options = RuntimeStudy().options
    rows = [row for row in table if (row["options"], row["part"], row["system"]) == (options, "responses", "g")]
    rows = [row for row in rows if row["kind"] == "CPU-only"]
    assert len(rows) == 2 * 40, "two repetitions"
    ours = RuntimeResults(quick / "result.parquet").responses("g", "CPU-only")
    assert ours.missed == pytest.approx(100 * np.mean([row["missed"] / row["jobs"] for row in rows]))
    shares = [row["response_sum_ns"] / row["completed"] / row["period_ns"] for row in rows]
    assert ours.response == pytest.approx(100 * np.mean(shares))
    assert ours.missed_by_quantum <= ours.missed_from_arrival


@pytest.mark.parametrize(
    ("handling", "ours", "good"),
    [
        ("klmirqd", 4.9, True), ("klmirqd", 5.1, False),
        ("PAI", 31.6, True), ("PAI", 38.4, True), ("PAI", 31.4, False), ("PAI", 38.6, False),
        ("SLIH", 40.1, True), ("SLIH", 39.9, False),
    ],
)  # fmt: skip
def test_percentiles_are_judged_as_the_paper_words_them(handling, ours, good):
    assert runtime.judged_percentile(handling, ours) is good


def test_table_2_is_the_published_one():
    assert runtime.TABLE_2["b", "GPU-using"] == runtime.Published(8.5, 34263.5)
    assert runtime.TABLE_2["c", "CPU-only"] == runtime.Published(1.6, 8992.1)
    assert runtime.TABLE_2["e", "GPU-using"] == runtime.Published(0.0, 49.6)
    assert set(runtime.TABLE_2) == {(column, kind) for column in "abcdefgh" for kind in KINDS}


def test_the_figures_are_numbered_as_in_the_paper():
    numbers = [runtime.first_figures(point) for point in runtime_plan().points]
    assert [first for first, _ in numbers] == list(range(13, 54))
    assert [second for _, second in numbers] == list(range(54, 95))


def test_quick_ends_with_a_page_that_has_every_claim_table_and_figure(quick):
    page, text = (quick / "index.html").read_text(), (quick / "index.md").read_text()
    claims = list(csv.DictReader((quick / "claims.csv").read_text().splitlines()))
    assert [row["claim"] for row in claims] == [claim.key for claim in runtime.CLAIMS]
    for row in claims:
        assert row["paper"] in text
        assert row["verdict"] in VERDICTS
        assert (row["verdict"] == "undecided") is (row["claim"] in UNDECIDED), "sums need the whole time"
        assert row["verdict"] == "reproduced" or row["why"] or row["hypothesis"], "what does not reproduce has a reason"
    for title in ("Measured in the lab", "Table II", "Other readings of section V", "Other readings of section VI"):
        assert f"<h2>{title}</h2>" in page
        assert f"## {title}" in text
    assert "A reduced run" in text
    figures = sorted((quick / "figures").glob("*.svg"))
    assert len(figures) == 6 + 1, "with one of the utilizations that have a figure of their own"
    for figure in figures:
        assert f"figures/{figure.name}" in page
        assert f"figures/{figure.name}" in text
        ElementTree.parse(figure)
        assert figure.with_suffix(".png").stat().st_size > 10_000


def test_quick_agrees_with_the_paper_where_little_time_tells(quick):
    verdicts = {row["claim"]: row["verdict"] for row in csv.DictReader((quick / "claims.csv").read_text().splitlines())}
    expected = ("p90-klmirqd", "observation-4", "observation-6")
    assert {key: verdicts[key] for key in expected} == dict.fromkeys(expected, "reproduced")


def test_what_the_repository_keeps_is_the_page_its_numbers_and_figures(quick, tmp_path):
    publish(quick / "result.parquet", tmp_path / "kept")
    text = (tmp_path / "kept" / "README.md").read_text()
    assert all(f"figures/{figure.name}" in text for figure in (tmp_path / "kept" / "figures").iterdir())
    inversions = list(csv.DictReader((tmp_path / "kept" / "inversions.csv").read_text().splitlines()))
    assert len(inversions) == 3 * len(json.loads((quick / "run.json").read_text())["points"])
    assert len((tmp_path / "kept" / "table2.csv").read_text().splitlines()) == 1 + 8 * 2
