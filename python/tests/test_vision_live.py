"""The driver of the live runs of elliott2015vision: what it starts, what it does when that fails, and what is left."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from laxity import LaxityError
from laxity.studies import _vision_live, elliott2015vision
from laxity.studies import _vision_live_plan as planned
from laxity.studies._report import check, report
from laxity.studies._vision_live import Attempt, FailedError, Live, skipped, times
from laxity.studies._vision_live_plan import LiveConfiguration, Programs, Size, configurations
from laxity.studies._vision_processes import SERVER, Processes, cpu_seconds, server_of
from laxity.studies._vision_results import LIVE, Runs, VisionResults
from laxity.studies._vision_workload import GRAPHS

REPOSITORY = Path(__file__).parents[2]
CLIP = Path("/usr/share/doc/opencv-doc/examples/data/vtest.avi")
ARBITRATION = """
import signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
if "gc" in sys.argv: sys.exit(0)
print("there", flush=True)
signal.pause()
"""


def program(path, text):
    """An executable Python program."""
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(0o755)
    return path


@pytest.fixture
def driver(tmp_path, monkeypatch):
    """A driver of stand-ins: two graphs, for a second, 0.6 s after they are started."""
    monkeypatch.setattr(_vision_live, "MARGIN_S", 0.6)
    monkeypatch.setattr(Attempt, "__init__", lambda self, margin_s=0.6, budget=0: self.__dict__.update(locals()))
    fake = (Path(__file__).parent / "fake_stabilize.py").read_text()
    clip = tmp_path / "clip"
    clip.touch()
    programs = Programs(program(tmp_path / "stabilize", fake), program(tmp_path / "laxity", ARBITRATION), clip)
    live = Live(tmp_path / "out", programs, Size(1.0, "64x64", 2))
    live.parts.mkdir(parents=True)
    return live


def descendants(folder):
    """Processes whose program lies in a folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if os.fsencode(folder) in command and int(entry.name) != os.getpid():
                found.append(int(entry.name))
    return found


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path):
    yield
    assert descendants(tmp_path) == []


# --- What is run ------------------------------------------------------------------------------------------------------


def test_configurations_are_those_whose_tokens_are_optimal():
    """rho f = m: on two CPUs one token for two, and two for one each."""
    names = [one.name for one in configurations(2)]
    assert len(names) == len(set(names)) == 15
    assert names[:3] == ["SCHED_OTHER", "SCHED_OTHER (1,2,FIFO)", "SCHED_OTHER (1,2,PRIO)"]
    assert "SCHED_DEADLINE (2,1,PRIO)" in names
    assert {one.tokens * one.fifo_length for one in configurations(6)} == {0, 6}
    assert len({one.file_name for one in configurations(6)}) == len(configurations(6)) == 27


def test_an_instance_is_started_as_its_graph_in_table_5_2():
    words = planned.arguments(LiveConfiguration("fifo", 2, 1), 60, Size(), scaled=1.5, gpu="g", start_ns=7)
    options = dict(zip(words[::2], words[1::2], strict=True))
    assert (options["--period"], options["--duration"], options["--start-at"]) == ("90000us", "60000ms", "7")
    assert (options["--scheduler"], options["--base-priority"]) == ("fifo", "30")
    assert (options["--gpu"], options["--arbitration"]) == ("soft:g", "g")
    unmanaged = planned.arguments(LiveConfiguration("other"), 60, Size(), scaled=1, gpu="g", start_ns=7)
    assert "--arbitration" not in unmanaged
    assert "--base-priority" not in unmanaged


def test_periods_are_scaled_so_that_the_load_is_the_papers():
    """0.37 frames a ms of 5.19 ms each are 1.92 CPUs: 96 % of two."""
    assert planned.periods_scaled(5.18, 2) == pytest.approx(1.0)
    assert planned.periods_scaled(10.36, 2) == pytest.approx(2.0)
    assert planned.periods_scaled(2.59, 1) == pytest.approx(1.0)


def test_frames_that_are_shown_in_time_are_kept_with_their_times(driver):
    table, _ = driver._measure(LiveConfiguration("other", 1, 2), 1.0, Attempt())
    rows = [row for row in table.to_pylist() if row["frame"] is not None]
    assert [row["graph"] for row in rows] == ["G1"] * 50 + ["G2"] * 50
    first = rows[0]
    assert first["configuration"] == "SCHED_OTHER (1,2,FIFO)"
    assert abs(first["release_ns"]) < 1_000, "counted from the first frame; the file has microseconds"
    assert first["completion_ns"] - first["release_ns"] == pytest.approx(10_000_000, abs=2_000)
    loads = {row["resource"]: row["load"] for row in table.to_pylist() if row["resource"]}
    assert loads["CPU"] == pytest.approx(0.5), "two instances that say 0.25 s each, in a second"
    assert loads["machine"] >= 0


def test_a_whole_run_is_kept_and_not_run_again(driver, monkeypatch):
    monkeypatch.setattr(_vision_live, "configurations", lambda _: configurations(2)[::7])
    driver.run(scaled=1.0)
    written = {path: path.stat().st_mtime_ns for path in driver.parts.glob("*.parquet")}
    assert len(written) == 3
    assert driver.run() == driver.folder / LIVE
    assert {path: path.stat().st_mtime_ns for path in written} == written
    runs = Runs(driver.folder / LIVE, "live")
    assert runs.configurations == [one.name for one in configurations(2)[::7]]
    assert runs.averaged(runs.configurations[0]).mean != 0
    assert runs.frames("SCHED_OTHER", "G1").delays.mean == pytest.approx(20, abs=0.1)
    with pytest.raises(LaxityError, match="different seconds"):
        Live(driver.folder, driver.programs, Size(2.0, "64x64", 2)).run()
    with pytest.raises(LaxityError, match=r"periods times 1\.0, not 3\.0"):
        driver.run(scaled=3.0)


def test_periods_are_found_by_a_run_that_measures_a_frame(driver):
    """Two instances use 0.5 CPUs for the frames of two graphs of 20 ms whose periods were scaled."""
    found = driver._probe()
    alone = planned.periods_scaled(1.0, planned.cpus(), 0.1)
    slow = round(_vision_live.PROBE_SLOWER * alone, 2)
    assert found["cpu_ms_per_frame"] == pytest.approx(0.5 * slow / 0.1)
    assert found["periods_scaled"] == planned.periods_scaled(0.5 * slow / 0.1, planned.cpus(), 0.1)


# --- What may fail ----------------------------------------------------------------------------------------------------


def test_clips_that_take_longer_get_more_time(driver, monkeypatch):
    monkeypatch.setenv("FAKE", "late")
    _, attempt = driver._measure(LiveConfiguration("other"), 1.0, Attempt(margin_s=0.3))
    assert attempt.margin_s > 0.5


def test_budgets_shrink_until_linux_admits_them(driver, monkeypatch):
    monkeypatch.setenv("FAKE", "admission")
    table, attempt = driver._measure(LiveConfiguration("deadline"), 1.0, Attempt())
    assert _vision_live.BUDGETS[attempt.budget] == 1.0
    assert json.loads(table.schema.metadata[b"part"])["budget"] == 1.0


def test_a_process_that_fails_ends_the_run_with_what_it_said(driver, monkeypatch):
    monkeypatch.setenv("FAKE", "crash")
    with pytest.raises(FailedError, match=r"SCHED_FIFO: G1 ended with 1: stabilize: the clip is no clip"):
        driver._measure(LiveConfiguration("fifo"), 2.0, Attempt())


def test_a_process_that_does_not_end_is_killed(driver, monkeypatch):
    monkeypatch.setenv("FAKE", "hang")
    monkeypatch.setattr(_vision_live, "TO_DRAIN_S", 0.2)
    monkeypatch.setattr("laxity.studies._vision_processes.TO_END_S", 0.2)
    with pytest.raises(FailedError, match="did not end within"):
        driver._measure(LiveConfiguration("other"), 1.0, Attempt())


def test_graphs_that_show_nothing_are_a_result(driver, monkeypatch):
    monkeypatch.setenv("FAKE", "starve")
    table, _ = driver._measure(LiveConfiguration("other"), 5.0, Attempt())
    assert table["frame"].null_count == len(table)


def test_frames_that_are_shown_after_the_end_are_dropped(driver, monkeypatch):
    """Fifty frames of 20 ms in a second, each ten periods late: the last nine or ten are not in time."""
    monkeypatch.setenv("FAKE", "tardy")
    table, _ = driver._measure(LiveConfiguration("other"), 1.0, Attempt())
    assert len(table.filter(np.array(table["graph"]) == "G1")) in (40, 41)


def test_ctrl_c_leaves_no_process_and_keeps_what_is_done(driver, tmp_path):
    """A driver of its own, interrupted in the middle of its second configuration."""
    script = f"""
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from pathlib import Path
from laxity.studies import _vision_live
from laxity.studies._vision_live_plan import Programs, Size
def soon(self, margin_s=0.6, budget=0): self.__dict__.update(margin_s=margin_s, budget=budget)
_vision_live.Attempt.__init__ = soon
at = Path({str(tmp_path)!r})
programs = Programs(at / "stabilize", at / "laxity", at / "clip")
_vision_live.Live(at / "out", programs, Size(1.0, "64x64", 2)).run(1.0)
"""
    child = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE)
    while not list(driver.parts.glob("*.parquet")):
        assert child.poll() is None
        time.sleep(0.05)
    time.sleep(0.3)
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=60)
    assert b"KeyboardInterrupt" in said
    assert len(list(driver.parts.glob("*.parquet"))) in (1, 2)
    assert [path for path in driver.parts.iterdir() if path.is_dir()] == []


@pytest.mark.parametrize(
    "text",
    ["frame,release_us\n0,1\n", "frame,release_us,completion_us\n0,1,x\n", "frame,release_us,completion_us\n0,1\n"],
)
def test_times_that_are_no_times_are_an_error_that_names_the_graph(text):
    with pytest.raises(FailedError, match="G7: its --times"):
        times(text, "G7")


def test_times_of_a_graph_that_showed_nothing_are_empty():
    assert [len(column) for column in times("frame,release_us,completion_us\n", "G1")] == [0, 0, 0]


def test_the_server_of_a_soft_gpu_is_found_by_its_name(tmp_path):
    gpu = f"gpu-{os.getpid()}"
    # The command line of a server: its program, then the name of its soft GPU. The shell is all three.
    shell = tmp_path / SERVER
    shell.symlink_to("/bin/bash")
    (tmp_path / gpu).write_text("trap 'kill $!' TERM; sleep 60 & wait")
    with (
        open(os.devnull, "wb") as nothing,
        Processes({**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}) as processes,
    ):
        started = processes.start("server", [shell, gpu], subprocess.DEVNULL, nothing)
        while server_of(gpu) is None:
            assert started.poll() is None
            time.sleep(0.01)
        assert server_of(gpu) == started.pid
        assert server_of(f"{gpu}x") is None
    assert server_of(gpu) is None
    assert cpu_seconds(os.getpid()) > 0
    assert cpu_seconds(2**22 + 1) == 0


# --- The page ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def whole(tmp_path, monkeypatch):
    """Simulations of a second, and live runs of two CPUs beside them, made up: ever longer delays."""
    from test_vision_study import small  # noqa: PLC0415

    from laxity.studies import run  # noqa: PLC0415

    monkeypatch.setattr(_vision_live, "cpus", lambda: 2)
    path = run(small(1), tmp_path, threads=2)
    nowhere = Programs(tmp_path / "a", tmp_path / "b", tmp_path / "c")
    live = Live(tmp_path, nowhere, Size(1.0, "64x64"))
    live.parts.mkdir()
    live._claim()
    generator = np.random.default_rng(1)
    for place, one in enumerate(configurations(2)):
        monkeypatch.setattr(
            _vision_live._Run, "_text", lambda self, name, place=place: _written(name, place, generator)
        )
        made = _vision_live._Run(live, one, 1.0, Attempt(), "gpu", tmp_path, Processes({}))
        pq.write_table(made._read(0, 1.0, 0.1), live._part(one))
    live._merge(configurations(2), 1.0)
    return path


def _written(name, place, generator):
    if name.endswith(".json"):
        return json.dumps({"cpu_s": 0.1})
    period = 1_000 * planned.PERIODS_MS[GRAPHS.index(name.removesuffix(".csv"))]
    frames = [
        f"{k},{k * period},{k * period + int(generator.integers(1, 200 * (place + 1)))}" for k in range(10**6 // period)
    ]
    return "\n".join(["frame,release_us,completion_us", *frames])


def test_a_page_with_live_runs_judges_them_and_shows_them(whole):
    checked = check(VisionResults(whole))
    live = [finding for claim, finding in checked if claim.key.startswith("live-")]
    assert len(live) == 10
    assert "undecided" not in {finding.verdict for finding in live}
    assert len(elliott2015vision.tables(VisionResults(whole))) == 4 + 10 + 15
    report(whole, whole.parent, every_figure=False)
    text = (whole.parent / "index.md").read_text()
    assert "soft" in text
    assert "## SCHED_DEADLINE (2,1,PRIO), live" in text
    assert len(list((whole.parent / "figures").glob("live-*.svg"))) == 3


# --- Live, where the stabilizer was built -----------------------------------------------------------------------------


def test_the_stabilizer_itself_runs_under_the_driver(tmp_path, capsys):
    """Two instances for a second; slow enough that any machine shows some frames."""
    commands = [REPOSITORY / "target" / profile / "laxity" for profile in ("release", "debug")]
    laxity = next((path for path in commands if path.exists()), commands[-1])
    programs = Programs(REPOSITORY / "out" / "vision" / "stabilize", laxity, CLIP)
    if reason := skipped(programs):
        with capsys.disabled():
            print(f"skipped: {reason}")
        pytest.skip(reason)
    live = Live(tmp_path, programs, Size(1.0, "320x240", 2))
    live.parts.mkdir()
    table, _ = live._measure(LiveConfiguration("other", planned.cpus(), 1), 5.0, Attempt(margin_s=5.0))
    assert table["frame"].null_count < len(table), "some frames were shown"
