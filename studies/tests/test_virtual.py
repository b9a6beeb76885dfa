"""The runs of elliott2015vision on a virtual machine: what is run, how much there is to do, and what is concluded."""

import json
import math
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from studies.common.report import check, report
from studies.elliott2015vision import live, virtual
from studies.elliott2015vision.live import part
from studies.elliott2015vision.results import VIRTUAL, VisionResults
from studies.elliott2015vision.stabilizers import Configuration, Programs, Ran, Spent, Stabilizers, Virtual
from studies.elliott2015vision.stabilizers.configuration import arguments
from studies.elliott2015vision.stabilizers.run import Shown
from studies.elliott2015vision.virtual import LOADS, MAIN, Scale, VirtualRuns, kernels_us, planned
from studies.elliott2015vision.workload import CPUS, ENGINE_LOAD
from studies.tests.test_stabilizers import ARBITRATION, SOON, program
from studies.tests.test_vision_live import simulated, whole  # noqa: F401 (fixtures)

UNDECIDABLE_ON_TWO_CPUS = (28, 31, 33, 34, 36, 37, 39, 42, 43)


def test_what_runs_are_the_papers_eleven_configurations_and_other_loads_of_c_edf():
    main = [one.name for one in planned() if one.load == MAIN]
    assert main[:3] == ["SCHED_OTHER", "SCHED_FIFO", "C-EDF"]
    assert main[3:] == [f"C-EDF ({rho},{6 // rho},{order})" for rho in (1, 2, 3, 6) for order in ("FIFO", "PRIO")]
    others = [one for one in planned() if one.load != MAIN]
    assert {one.load for one in others} == set(LOADS) - {MAIN}
    assert {one.configuration.scheduler for one in others} == {"laxity"}
    assert len({one.file_name for one in planned()}) == len(planned()) == 11 + 2 * 5


def test_kernels_keep_the_engine_as_busy_as_the_papers_in_proportion_to_their_nodes():
    found = kernels_us([100.0, 300.0], 0.2)
    assert found[1] == pytest.approx(3 * found[0])
    assert sum(found) * 0.2 / 1_000 == pytest.approx(ENGINE_LOAD)


def test_an_instance_says_what_its_system_shares_out_and_how_long_kernels_are():
    stabilizers = Stabilizers(60.0, "320x240")
    machine = Virtual(6, (12.3456, 0.0001))

    def options(configuration, stands_for):
        one = stabilizers.scaled(1.0)[0]
        words = arguments(configuration, one, stabilizers, gpu="g", start_ns=7, virtual=stands_for)
        return dict(zip(words[::2], words[1::2], strict=True))

    managed = options(Configuration("laxity", 3, 2, "priority"), machine)
    assert (managed["--system"], managed["--tokens"], managed["--fifo-length"]) == ("g", "3", "2")
    assert (managed["--virtual-cpus"], managed["--engine-order"]) == ("6", "priority")
    assert managed["--kernels"] == "12346ns,1ns", "no kernel takes no time"
    assert "--arbitration" not in managed
    unmanaged = options(Configuration("fifo"), machine)
    assert unmanaged["--kernels"] == "12346ns,1ns"
    assert "--system" not in unmanaged
    assert "--tokens" not in options(Configuration("laxity"), machine)
    assert "--kernels" not in options(Configuration("laxity", 1, 2), None)


@pytest.fixture
def driver(tmp_path, monkeypatch):
    """A driver of stand-ins: two graphs, for a second."""
    monkeypatch.setattr(virtual, "LOADS", (100,))
    fake = (Path(__file__).parent / "fake_stabilize.py").read_text()
    clip = tmp_path / "clip"
    clip.touch()
    programs = Programs(program(tmp_path / "stabilize", fake), program(tmp_path / "laxity", ARBITRATION), clip)
    return VirtualRuns(tmp_path / "out", programs, Stabilizers(1.0, "64x64", 2), SOON)


def test_periods_follow_from_what_a_frame_takes(driver, monkeypatch):
    """The loop takes 1 ms, and a frame 4 ms of the stabilizers and the server while frames come."""

    def probed(order, attempt):
        assert order.configuration.name == "C-EDF (6,1,FIFO)"
        assert order.factor == pytest.approx(driver.size.frames_per_ms * 4 * 1.0 / virtual.cpus() / 0.5)
        # Half a second is used whatever comes.
        count, seconds = round(100 * order.stabilizers.seconds), order.stabilizers.seconds
        shown = {"G1": Shown(np.arange(count), np.arange(count), np.arange(count))}
        spent = Spent(0.1 * seconds, 0.6, 1.0, 0.0, 0.5 + 0.3 * seconds)
        return Ran(shown, {}, 9.0, spent, seconds, None), attempt

    monkeypatch.setattr(virtual, "tried", probed)
    driver.parts.mkdir(parents=True)
    found = virtual.measure(driver.programs, driver.size, driver.parts, SOON)
    per_ms = driver.size.frames_per_ms
    assert found.loop_ms == 1.0
    assert found.cpu_ms == pytest.approx(4.0)
    needed = per_ms * found.cpu_ms / virtual.cpus() / virtual.CPU_LOAD
    assert needed <= found.factor < needed + 0.011
    assert sum(found.kernels_us) / 1_000 * per_ms / found.factor == pytest.approx(ENGINE_LOAD)
    chosen = virtual.measure(driver.programs, driver.size, driver.parts, SOON, 3.5)
    assert chosen.factor == 3.5
    assert sum(chosen.kernels_us) / 1_000 * per_ms / 3.5 == pytest.approx(ENGINE_LOAD)


def test_runs_are_kept_with_their_load_and_are_not_run_twice(driver, monkeypatch):
    monkeypatch.setattr(live, "cpus", lambda: 2)
    monkeypatch.setattr(virtual, "planned", lambda: planned((100, 125))[2:5] + planned((100, 125))[-1:])
    monkeypatch.setattr(virtual, "measure", lambda *_: Scale(2.0, (10.0,), 5.0, 1.0))
    monkeypatch.setattr(live.Live, "_was_disturbed", lambda *_: False)
    path = driver.run()
    assert path.name == VIRTUAL
    table = pq.read_table(path)
    kept = set(zip(table["configuration"].to_pylist(), table["options"].to_pylist(), strict=True))
    expected = {("C-EDF", "load=100"), ("C-EDF (1,6,FIFO)", "load=100"), ("C-EDF (1,6,PRIO)", "load=100")}
    assert kept == expected | {("C-EDF (6,1,FIFO)", "load=125")}
    of_g1 = np.array(table["graph"].to_pylist()) == "G1"
    at_125 = of_g1 & (np.array(table["options"].to_pylist()) == "load=125")
    released = table["release_ns"].to_numpy()[at_125]
    assert np.diff(released)[0] == 20_000_000 * 2.0 / 1.25, "an eighth more in each second than at 100 %"
    monkeypatch.setattr(virtual, "tried", lambda *_: pytest.fail("all is there"))
    assert driver.run() == path


def made_up(period_ms, late_periods, generator):
    """Frames of a second, each late by up to so many periods."""
    release = np.arange(0, 10**9, round(period_ms * 10**6), dtype=np.int64)
    late = generator.integers(1, round(late_periods * period_ms * 1e6), len(release))
    shown = release + late <= 10**9
    return Shown(np.arange(len(release))[shown], release[shown], (release + late)[shown])


@pytest.fixture
def both(whole, monkeypatch):  # noqa: F811
    """Made-up live runs of two CPUs, and such of a virtual machine: the fewer the tokens the later."""
    folder = whole.parent
    driver = VirtualRuns(folder, Programs(folder, folder, folder), Stabilizers(1.0, "64x64"))
    driver.parts.mkdir()
    driver._claim()
    measured = vars(Scale(1.0, (100.0,) * 7, 5.0, 2.0))
    how = {"periods_scaled": 1.0, "is_chosen": False, "measured": measured}
    driver._record.write_text(json.dumps(how))
    generator = np.random.default_rng(2)
    for one in planned():
        late = {0: 1.0, 1: 4.0, 2: 3.0, 3: 0.2, 6: 0.5}[one.configuration.tokens] * one.load / MAIN
        periods = driver.size.graphs
        shown = {name: made_up(period * MAIN / one.load, late, generator) for name, period in periods}
        ran = Ran(shown, {}, 1.7, Spent(0.1, 0.01, 1.8, 0.02), 1.0, None)
        pq.write_table(part(ran, one.configuration, one.options), driver._part(one))
    driver._merge(driver._planned(), 1.0)
    return whole


def test_a_page_says_by_which_runs_a_live_observation_was_decided(both):
    found = {claim.key: finding for claim, finding in check(VisionResults(both)) if claim.key.startswith("live-")}
    assert len(found) == 17
    assert [key for key, finding in found.items() if finding.verdict == "not decidable here"] == []
    by_virtual = {key for key, finding in found.items() if "on a virtual machine of 6 CPUs" in finding.ours}
    own = {"live-28", "live-36", "live-39"}
    assert by_virtual == {f"live-{number}" for number in UNDECIDABLE_ON_TWO_CPUS} - own, (
        "these tell by made-up overload"
    )
    assert "2 CPUs have no rho between 1 and 2" in found["live-31"].ours
    assert found["live-31"].verdict == "reproduced", found["live-31"].ours
    report(both, both.parent, every_figure=False)
    text = (both.parent / "index.md").read_text()
    assert "## Table 5.14, live on a virtual machine" in text
    assert "## By load, live on a virtual machine" in text
    assert "Live, on a virtual machine: the paper's machine of 6 CPUs" in text


def test_few_tokens_that_suffice_on_the_virtual_machine_refute_the_papers_observation(both, monkeypatch):
    """The load is the paper's whatever tokens that takes: there is nothing that cannot be decided."""
    from studies.elliott2015vision import views  # noqa: PLC0415

    results = VisionResults(both)
    view = views.View(results.virtual)
    assert view.parts.few == tuple(f"C-EDF ({rho},{order})" for rho in ("1,6", "2,3") for order in ("FIFO", "PRIO"))
    assert view.overload() == ""
    assert not view.parts.calibrated
    assert math.isclose(results.virtual.frames("C-EDF", "G1", "load=125").period_ms, 20 / 1.25)
    assert results.virtual.frames("C-EDF", "G1").period_ms == 20
    assert CPUS == 6
