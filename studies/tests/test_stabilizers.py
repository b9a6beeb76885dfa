"""The driver of live runs of stabilizers: what it starts, what it does when that fails, and what is left."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from laxity import LaxityError

from studies.elliott2015vision import live
from studies.elliott2015vision.live import Live, taken
from studies.elliott2015vision.live_load import describe
from studies.elliott2015vision.results import LIVE, Runs
from studies.elliott2015vision.stabilizers import (
    Attempt,
    Configuration,
    FailedError,
    Load,
    Order,
    Probe,
    Programs,
    Stabilizers,
    configurations,
    cpus,
    measure_load,
)
from studies.elliott2015vision.stabilizers import load as loads
from studies.elliott2015vision.stabilizers import run as running
from studies.elliott2015vision.stabilizers.configuration import arguments
from studies.elliott2015vision.stabilizers.processes import SERVER, Processes, cpu_seconds, other_seconds, server_of
from studies.elliott2015vision.stabilizers.run import BUDGETS, times

ARBITRATION = """
import signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
if "gc" in sys.argv: sys.exit(0)
print("there", flush=True)
signal.pause()
"""


SOON = Attempt(margin_s=0.6)
LOAD = Load(
    loop_ms=2.0,
    kernels_ms=1.9,
    copies_ms={"CE0": 0.02, "CE1": 0.03},
    frames_per_ms=0.37,
    cpus=2,
    probes=(Probe("none", 0, 250.0, 3.0), Probe("one", 1, 150.0, 4.0), Probe("two", 2, 200.0, 3.5)),
)
"""Made up, of a machine of two CPUs: a frame every 5 ms with two tokens, of which kernels compute 1.9 ms."""


def program(path, text):
    """An executable Python program."""
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(0o755)
    return path


def wait_until(condition):
    """Until another process got there, however long that takes."""
    while not condition():
        time.sleep(0.01)


@pytest.fixture
def driver(tmp_path, monkeypatch):
    """A driver of stand-ins: two graphs, for a second, 0.6 s after they are started."""
    monkeypatch.setattr(live.Live, "_measure_load", lambda _: LOAD)
    fake = (Path(__file__).parent / "fake_stabilize.py").read_text()
    clip = tmp_path / "clip"
    clip.touch()
    programs = Programs(program(tmp_path / "stabilize", fake), program(tmp_path / "laxity", ARBITRATION), clip)
    made = Live(tmp_path / "out", programs, Stabilizers(1.0, "64x64", 2), SOON)
    made.parts.mkdir(parents=True)
    return made


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
    """Rho f = m: on two CPUs one token for two, and two for one each."""
    names = [one.name for one in configurations(2)]
    assert len(names) == len(set(names)) == 15
    assert names[:3] == ["SCHED_OTHER", "SCHED_OTHER (1,2,FIFO)", "SCHED_OTHER (1,2,PRIO)"]
    assert "SCHED_DEADLINE (2,1,PRIO)" in names
    assert {one.tokens * one.fifo_length for one in configurations(6)} == {0, 6}
    assert len({one.file_name for one in configurations(6)}) == len(configurations(6)) == 27


def test_an_instance_is_started_as_its_graph_in_table_5_2():
    stabilizers = Stabilizers(60.0, "320x240")
    instance = stabilizers.scaled(1.5)[6]
    assert (instance.name, instance.period_us, instance.priority) == ("G7", 90_000, 30)
    words = arguments(Configuration("fifo", 2, 1), instance, stabilizers, gpu="g", start_ns=7)
    options = dict(zip(words[::2], words[1::2], strict=True))
    assert (options["--period"], options["--duration"], options["--start-at"]) == ("90000us", "60000ms", "7")
    assert (options["--scheduler"], options["--base-priority"]) == ("fifo", "30")
    assert (options["--gpu"], options["--arbitration"]) == ("soft:g", "g")
    unmanaged = arguments(Configuration("other"), instance, stabilizers, gpu="g", start_ns=7)
    assert "--arbitration" not in unmanaged
    assert "--base-priority" not in unmanaged


# --- How much is run --------------------------------------------------------------------------------------------------


def test_a_frame_takes_the_engine_for_its_kernels_and_for_their_hand_overs():
    """5 ms from frame to frame, 1.9 of them computing: 3.1 for seven kernels, and as much for each copy."""
    assert LOAD.engine_ms == 5.0
    assert LOAD.operation_ms == pytest.approx(3.1 / 7)
    assert LOAD.busy(1.0) == pytest.approx(
        {"CPUs": 0.37 * 3.5 / 2, "EE": 0.37 * 5, "CE0": 0.37 * (0.02 + 2 * 3.1 / 7), "CE1": 0.37 * (0.03 + 2 * 3.1 / 7)}
    )
    assert LOAD.token_busy(2.0) == pytest.approx(0.37 / 2 * 1000 / 150), "one token: a frame every 6.7 ms"


@pytest.mark.parametrize(("kernels_ms", "cpu_ms", "short"), [(1.9, 3.5, "EE"), (1.9, 100.0, "CPUs"), (0.1, 3.5, "EE")])
def test_the_factor_is_the_smallest_with_which_nothing_is_busier_than_it_should_be(kernels_ms, cpu_ms, short):
    probes = tuple(replace(probe, cpu_ms=cpu_ms) for probe in LOAD.probes)
    load = replace(LOAD, kernels_ms=kernels_ms, probes=probes)
    most = {"CPUs": loads.CPU_TARGET}

    def fits(factor, has_one_token):
        is_held_too_long = has_one_token and load.token_busy(factor) > loads.ENGINE_TARGET + 1e-9
        return not is_held_too_long and all(
            busy <= most.get(name, loads.ENGINE_TARGET) + 1e-9 for name, busy in load.busy(factor).items()
        )

    for has_one_token in (False, True):
        assert fits(load.factor(has_one_token=has_one_token), has_one_token)
        assert not fits(load.factor(has_one_token=has_one_token) - 0.01, has_one_token)
    fullest = max(load.busy(1.0), key=lambda name: load.busy(1.0)[name] / most.get(name, loads.ENGINE_TARGET))
    assert fullest == short


def test_loads_are_measured_by_frames_that_come_faster_than_they_can_be_shown(driver):
    """The stand-in shows 50 frames in a second of 20 ms; those of the probes come faster, as no machine could."""
    found = measure_load(driver.programs, driver.size, driver.parts, name="probe", attempt=SOON)
    assert found.loop_ms == 1.0
    assert found.kernels_ms == 0.5
    assert found.frames_per_ms == pytest.approx(0.1)
    tokens = list(dict.fromkeys((0, 1, cpus())))
    assert [probe.tokens for probe in found.probes] == tokens
    offered = loads.PROBE_FASTER * cpus() * 1_000 / found.loop_ms
    assert all(probe.frames_per_s == pytest.approx(offered, rel=0.02) for probe in found.probes)
    assert Load.from_json(json.loads(json.dumps(found.to_json()))) == found
    wide = measure_load(driver.programs, driver.size, driver.parts, name="probe", has_one_token=False, attempt=SOON)
    assert [probe.tokens for probe in wide.probes] == list(dict.fromkeys((0, cpus())))
    assert [path for path in driver.parts.iterdir() if path.is_dir()] == []


def test_a_probe_that_shows_nothing_is_an_error_with_the_way_out(driver, monkeypatch):
    monkeypatch.setenv("FAKE", "starve-all")
    with pytest.raises(FailedError, match="showed no frame; use smaller frames"):
        measure_load(driver.programs, driver.size, driver.parts, name="probe", attempt=SOON)


# --- A run ------------------------------------------------------------------------------------------------------------


def test_frames_that_are_shown_in_time_are_kept_with_their_times(driver):
    table, _ = driver._measure(Configuration("other", 1, 2), 1.0, SOON)
    rows = [row for row in table.to_pylist() if row["frame"] is not None]
    assert [row["graph"] for row in rows] == ["G1"] * 50 + ["G2"] * 50
    first = rows[0]
    assert first["configuration"] == "SCHED_OTHER (1,2,FIFO)"
    assert abs(first["release_ns"]) < 1_000, "counted from the first frame; the file has microseconds"
    assert first["completion_ns"] - first["release_ns"] == pytest.approx(10_000_000, abs=2_000)
    loads = {row["resource"]: row["load"] for row in table.to_pylist() if row["resource"]}
    assert loads["CPU"] == pytest.approx(0.5), "two instances that say 0.25 s each, in a second"
    assert loads["machine"] >= 0
    assert loads["other processes"] >= 0
    assert loads["kept by the host"] >= 0


def test_a_whole_run_is_kept_and_not_run_again(driver, monkeypatch):
    monkeypatch.setattr(live, "configurations", lambda _: configurations(2)[::7])
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
        Live(driver.folder, driver.programs, Stabilizers(2.0, "64x64", 2)).run()
    with pytest.raises(LaxityError, match=r"periods times 1\.0, not 3\.0"):
        driver.run(scaled=3.0)


def test_what_much_was_taken_from_is_run_again_once_and_the_calmer_run_counts(driver, monkeypatch):
    """Three configurations: the host disturbs the first at first, others the last, and more when it is run again."""
    chosen = configurations(2)[::7]
    monkeypatch.setattr(live, "configurations", lambda _: chosen)
    kept = [0.9, 0.01, 0.0, 0.015, 0.7]
    used = [0.0, 0.0, 0.5, 0.005, 0.1]
    lost_s = [iter([so_far for share in of for so_far in (0.0, share * cpus())]) for of in (kept, used)]
    monkeypatch.setattr(running, "machine_seconds", lambda: (0.0, next(lost_s[0])))
    monkeypatch.setattr(running, "other_seconds", lambda _: next(lost_s[1]))
    driver.run(scaled=1.0)
    expected = [pytest.approx(shares) for shares in ([0.9, 0.02], [0.01], [0.5, 0.8])]
    assert [taken(driver._read(one)) for one in chosen] == expected
    runs = Runs(driver.folder / LIVE, "live")
    for column, shares in (("kept by the host", (0.015, 0.01, 0.0)), ("other processes", (0.005, 0.0, 0.5))):
        assert [dict(runs.load(one.name))[column] / cpus() for one in chosen] == pytest.approx(shares)
    said = describe(runs.run)
    assert "at most 50.0% of the CPUs in a run that counts" in said
    taken_of = said.partition("Taken: ")[2].split("; ")
    assert sorted(taken_of) == [f"{chosen[2].name}: 50.0% and 80.0%", f"{chosen[0].name}: 90.0% and 2.0%"]
    driver.run()
    assert [next(seconds, None) for seconds in lost_s] == [None, None], "nothing was run a third time"


def test_what_other_processes_use_beside_a_run_is_told_apart_from_what_it_uses(driver):
    """A real one that computes all the time, which has a child that does and ends; the run's own are not counted."""
    spin = "import time; until = time.monotonic() + {}\nwhile time.monotonic() < until: pass"
    command = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {spin.format(1.0)!r}]); {spin.format(60)}"
    with (
        subprocess.Popen([sys.executable, "-c", spin.format(60)]) as ours,
        subprocess.Popen([sys.executable, "-c", command]) as other,
    ):
        try:
            known = {os.getpid(), ours.pid}
            before_s, with_ours_s = other_seconds(known), other_seconds({os.getpid()})
            wait_until(lambda: cpu_seconds(other.pid) > 0.3 and cpu_seconds(ours.pid) > 0.3)
            used_s, all_used_s = other_seconds(known) - before_s, other_seconds({os.getpid()}) - with_ours_s
            assert used_s > cpu_seconds(other.pid), "its child's time is counted, too"
            assert all_used_s - used_s > 0.2, "what is not known as ours is another's"
            table, _ = driver._measure(Configuration("other", 0, 0), 1.0, SOON)
        finally:
            for process in (ours, other):
                process.kill()
    assert taken(table)[0] > 0.05, "two of them were beside the run"


# --- What may fail ----------------------------------------------------------------------------------------------------


def test_clips_that_take_longer_get_more_time(driver, monkeypatch):
    monkeypatch.setenv("FAKE", "late")
    _, attempt = driver._measure(Configuration("other"), 1.0, Attempt(margin_s=0.3))
    assert attempt.margin_s > 0.5


def test_budgets_shrink_until_linux_admits_them(driver, monkeypatch):
    monkeypatch.setenv("FAKE", "admission")
    table, attempt = driver._measure(Configuration("deadline"), 1.0, SOON)
    assert BUDGETS[attempt.budget] == 1.0
    assert json.loads(table.schema.metadata[b"part"])["budget"] == 1.0


def test_a_process_that_fails_ends_the_run_with_what_it_said(driver, monkeypatch):
    """Both fail, and either may be seen first."""
    monkeypatch.setenv("FAKE", "crash")
    with pytest.raises(FailedError, match=r"SCHED_FIFO: G[12] ended with 1: stabilize: the clip is no clip"):
        driver._measure(Configuration("fifo"), 2.0, SOON)


def test_a_process_that_does_not_end_is_killed(driver, monkeypatch):
    monkeypatch.setenv("FAKE", "hang")
    monkeypatch.setattr(running, "TO_DRAIN_S", 0.2)
    monkeypatch.setattr("studies.elliott2015vision.stabilizers.processes.TO_END_S", 0.2)
    with pytest.raises(FailedError, match="did not end within"):
        driver._measure(Configuration("other"), 1.0, SOON)


def test_graphs_that_show_nothing_are_a_result(driver, monkeypatch):
    monkeypatch.setenv("FAKE", "starve")
    table, _ = driver._measure(Configuration("other"), 5.0, SOON)
    assert table["frame"].null_count == len(table)


def test_frames_that_are_shown_after_the_end_are_dropped(driver, monkeypatch):
    """Fifty frames of 20 ms in a second, each ten periods late: the last nine or ten are not in time."""
    monkeypatch.setenv("FAKE", "tardy")
    table, _ = driver._measure(Configuration("other"), 1.0, SOON)
    assert len(table.filter(np.array(table["graph"]) == "G1")) in (40, 41)


def test_frames_that_were_under_way_at_the_end_are_counted(driver, tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE", "tardy")
    ran = running.run(Order(driver.programs, driver.size, 1.0, Configuration("other"), tmp_path, "late"), SOON)
    assert {name: len(ran.shown[name].frame) + late for name, late in ran.late.items()} == {"G1": 50, "G2": 50}
    assert min(ran.late.values()) in (9, 10)


def test_ctrl_c_leaves_no_process_and_keeps_what_is_done(driver, tmp_path):
    """A driver of its own, interrupted in the middle of its second configuration."""
    script = f"""
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from pathlib import Path
from studies.elliott2015vision import live
from studies.elliott2015vision.stabilizers import Attempt, Programs, Stabilizers
at = Path({str(tmp_path)!r})
programs = Programs(at / "stabilize", at / "laxity", at / "clip")
live.Live(at / "out", programs, Stabilizers(1.0, "64x64", 2), Attempt(0.6)).run()
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


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="util-linux's setpriv is not there")
def test_a_driver_that_is_killed_leaves_no_process_either():
    """SIGKILL, after which it can do nothing itself: Linux ends what it started."""
    script = """
import os, subprocess
from studies.elliott2015vision.stabilizers import Processes
with Processes(os.environ) as processes:
    child = processes.start("sleeper", ["sleep", "600"], subprocess.DEVNULL, subprocess.DEVNULL)
    print(child.pid, flush=True)
    child.wait()
"""
    driver = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    sleeper = int(driver.stdout.readline())
    while b"sleep\0" not in Path(f"/proc/{sleeper}/cmdline").read_bytes()[:6]:
        time.sleep(0.01)  # it becomes the program only after it asked to be ended with its parent
    driver.kill()
    driver.communicate()
    while Path(f"/proc/{sleeper}/stat").exists() and " Z " not in Path(f"/proc/{sleeper}/stat").read_text():
        time.sleep(0.01)


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
    # The command line of a server is its program, then the name of its soft GPU. Here they are a shell and its script,
    # which waits without a fork: a forked shell would have the same command line until it executed another program.
    shell = tmp_path / SERVER
    shell.symlink_to("/bin/bash")
    os.mkfifo(tmp_path / "never-written")
    (tmp_path / gpu).write_text(f"read < {tmp_path}/never-written")
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
