"""The page of elliott2015vision with live runs: what it concludes from them, and what it does not."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from laxity import LaxityError

from studies.common.report import check, report
from studies.common.run import run
from studies.elliott2015vision import STUDY, live
from studies.elliott2015vision.live import Live, part
from studies.elliott2015vision.live_load import describe
from studies.elliott2015vision.results import LIVE, VisionResults
from studies.elliott2015vision.stabilizers import (
    Programs,
    Ran,
    Spent,
    Stabilizers,
    configurations,
)
from studies.elliott2015vision.stabilizers.run import Shown
from studies.elliott2015vision.stretches import medians_ms
from studies.tests.test_stabilizers import LOAD
from studies.tests.test_vision import small


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    """Simulations of a second."""
    return run(small(1), tmp_path_factory.mktemp("simulated"), threads=2)


@pytest.fixture
def whole(simulated, tmp_path, monkeypatch):
    """Simulations, and live runs of two CPUs beside them, made up: ever longer delays."""
    monkeypatch.setattr(live, "cpus", lambda: 2)
    path = Path(shutil.copy(simulated, tmp_path / simulated.name))
    nowhere = Programs(tmp_path / "a", tmp_path / "b", tmp_path / "c")
    driver = Live(tmp_path, nowhere, Stabilizers(1.0, "64x64"))
    driver.parts.mkdir()
    driver._claim()
    how = {"periods_scaled": 1.0, "is_chosen": False, "measured": LOAD.to_json()}
    driver._record.write_text(json.dumps(how))
    generator = np.random.default_rng(1)
    for place, one in enumerate(configurations(2)):
        shown = {name: made_up(period, place, generator) for name, period in driver.size.graphs}
        pq.write_table(part(Ran(shown, {}, 1.7, Spent(0.1, 0.01, 1.8, 0.02), 1.0, None), one), driver._part(one))
    driver._merge(configurations(2), 1.0)
    return path


def made_up(period_ms, place, generator):
    """Frames of a second, each later than it came by up to what grows with the place."""
    release = np.arange(0, 10**9, period_ms * 10**6, dtype=np.int64)
    late = generator.integers(1, 200_000 * (place + 1), len(release))
    return Shown(np.arange(len(release)), release, release + late)


def test_a_page_with_live_runs_judges_them_and_shows_them(whole):
    checked = check(VisionResults(whole))
    live = [finding for claim, finding in checked if claim.key.startswith("live-")]
    assert len(live) == 17
    assert "undecided" not in {finding.verdict for finding in live}
    undecidable = [claim.key for claim, finding in checked if finding.verdict == "not decidable here"]
    assert undecidable == [f"live-{number}" for number in (31, 33, 34, 37, 42, 43)], "two CPUs have no middle rho"
    assert len(STUDY.tables(VisionResults(whole))) == 7 + 11 + 15
    report(whole, whole.parent, every_figure=False)
    text = (whole.parent / "index.md").read_text()
    assert "soft" in text
    assert "## SCHED_DEADLINE (2,1,PRIO), live" in text
    assert len(list((whole.parent / "figures").glob("live-*.svg"))) == 3
    assert "the smallest factor with CPUs at most 85%, each engine and a single token at most 66% busy" in text
    assert "| execution engine | 5.00 | 185% | 66% |" in text
    assert "Criterion: " in text


def test_a_page_says_none_where_graphs_showed_nothing_and_claims_nothing_of_them(whole):
    """SCHED_FIFO with management starves: some graphs show one frame or none, and one configuration nothing at all."""
    live = whole.parent / LIVE
    table = pq.read_table(live)
    names, graphs, frame = (np.array(table[column]) for column in ("configuration", "graph", "frame"))
    starved = (names == "SCHED_FIFO (2,1,FIFO)") & np.isin(graphs, ["G16", "G17"]) & (frame > 0)
    starved |= (names == "SCHED_FIFO (1,2,PRIO)") & (frame >= 0)
    pq.write_table(table.filter(pa.array(~starved)), live)
    results = VisionResults(whole)
    averages = {row[0]: row for row in next(t for t in STUDY.tables(results) if "14, live" in t.title).rows}
    assert averages["SCHED_FIFO (2,1,FIFO)"][1] == "15 of 17"
    assert "none" not in averages["SCHED_FIFO (2,1,FIFO)"]
    assert averages["SCHED_FIFO (1,2,PRIO)"][1:] == ["0 of 17", "100.00", *["none"] * 6]
    found = {claim.key: finding for claim, finding in check(results)}
    assert "only 15 of 17 graphs" in found["live-29"].ours
    report(whole, whole.parent, every_figure=False)
    text = (whole.parent / "index.md").read_text()
    assert "nan" not in re.findall(r"[a-z]+", text.lower())
    assert "| G17 | 100 | 0 | 90.00 | none |" in text


def test_nothing_is_concluded_from_runs_that_were_disturbed_twice(whole):
    """The host kept CPUs from all of SCHED_DEADLINE, and of SCHED_FIFO from the run without management."""
    live = whole.parent / LIVE
    table = pq.read_table(live)
    said = json.loads(table.schema.metadata[b"laxity.study"])
    for name, of in said["parts"].items():
        if name.startswith("SCHED_DEADLINE") or name == "SCHED_FIFO":
            of["taken"] = [0.09, 0.05]
        elif name == "SCHED_OTHER":
            of["taken"] = [0.09, 0.03]
    pq.write_table(table.replace_schema_metadata({"laxity.study": json.dumps(said)}), live)
    found = {claim.key: finding for claim, finding in check(VisionResults(whole)) if claim.key.startswith("live-")}
    decided = {key for key, finding in found.items() if finding.verdict != "not decidable here"}
    assert decided == {"live-29", "live-32", "live-44"}
    assert "took 5.0% of the CPUs from SCHED_DEADLINE, which tells of that as well" in found["live-35"].why
    assert re.match(r"\d of 8 numbers", found["live-29"].ours), "those of SCHED_OTHER"
    assert "took 5.0% of the CPUs from SCHED_FIFO," in found["live-29"].ours
    assert found["live-44"].ours.endswith("of 9 configurations"), "five of SCHED_OTHER, four of SCHED_FIFO"
    assert "nothing is concluded from one above that limit" in describe(said)


def test_a_stretch_of_a_run_in_which_the_machine_was_slow_is_found():
    release_ns = np.arange(0, 40_000_000_000, 100_000_000)
    latency_ns = np.where((release_ns >= 12e9) & (release_ns < 14e9), 9_000_000, 3_000_000)
    medians = medians_ms(release_ns, release_ns + latency_ns, 40.0)
    assert medians.tolist() == [9.0 if number == 6 else 3.0 for number in range(20)]
    late = release_ns >= 2e9
    assert np.isnan(medians_ms(release_ns[late], release_ns[late], 40.0)).nonzero()[0].tolist() == [0]


def test_one_token_that_suffices_decides_nothing_about_overload(whole):
    """At five times the periods: the token would be held for half the time, and no frame is dropped."""
    live = whole.parent / LIVE
    table = pq.read_table(live)
    said = json.loads(table.schema.metadata[b"laxity.study"])
    said["scale"]["measured"]["frames_per_ms"] = 0.074
    pq.write_table(table.replace_schema_metadata({"laxity.study": json.dumps(said)}), live)
    found = {claim.key: finding for claim, finding in check(VisionResults(whole))}
    for key in ("live-28", "live-36", "live-39"):
        assert found[key].verdict == "not decidable here"
        assert "held for 49% of the time" in found[key].why


def test_files_of_another_format_are_refused_and_kept(whole):
    """What a Laxity of before format 2 left, which named no format."""
    live = whole.parent / LIVE
    table = pq.read_table(live)
    said = json.loads(table.schema.metadata[b"laxity.study"])
    del said["format"]
    pq.write_table(table.replace_schema_metadata({"laxity.study": json.dumps(said)}), live)
    with pytest.raises(LaxityError, match=r"live\.parquet is of format 1, and this Laxity reads format 2"):
        VisionResults(whole)
    driver = Live(whole.parent, Programs(whole, whole, whole), Stabilizers(1.0, "64x64"))
    record = driver.parts / "run.json"
    before = json.loads(record.read_text())
    record.write_text(json.dumps({key: value for key, value in before.items() if key != "format"}))
    with pytest.raises(LaxityError, match="other runs, with different format; name another folder"):
        driver._claim()
    assert len(list(driver.parts.iterdir())) == len(configurations(2)) + 2
