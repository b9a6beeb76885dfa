"""The stabilizer on few frames: `make test-vision-short`, or pytest with STABILIZE and CLIP set. Under a minute."""

import signal
import subprocess
import time
from pathlib import Path

import pytest
from stabilizer import CLIP, FRAMES, STABILIZE, TIMEOUT_S, graphs, read, refusal, results, stabilize, summary


def test_a_clip_shorter_than_the_latency_comes_out_whole(tmp_path):
    for mode in ["--sequential", "--pipelined"]:
        path = tmp_path / "frames.csv"
        stabilize(mode, "--frames", 3, "--csv", path)
        assert len(read(path)) == 3


def test_a_video_and_images_are_written(tmp_path):
    stabilize("--frames", 5, "--out", tmp_path / "stable.avi", "--sheet-frame", 0)
    assert (tmp_path / "stable.avi").stat().st_size > 10_000
    stabilize("--frames", 5, "--out", tmp_path / "%03d.png")
    assert [path.name for path in sorted(tmp_path.glob("*.png"))] == [f"{number:03}.png" for number in range(5)]
    # The written part is a clip by itself.
    assert "5 frames" in stabilize(clip=str(tmp_path / "stable.avi"))


@pytest.mark.parametrize("mode", ["--sequential", "--pipelined"])
def test_ctrl_c_ends_the_clip_and_leaves_whole_files(tmp_path, mode):
    before, path, video = graphs(), tmp_path / "frames.csv", tmp_path / "stable.avi"
    # Pauses make sure that it is not over by then.
    slow = ["--jitter", "1", "--replicas", "1"] if mode == "--pipelined" else ["--size", "1920x1080"]
    command = [STABILIZE, mode, *slow, "--csv", path, "--out", video, CLIP]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        while not video.exists() or video.stat().st_size < 100_000:
            assert running.poll() is None
            time.sleep(0.01)
        running.send_signal(signal.SIGINT)
        said, _ = running.communicate(timeout=TIMEOUT_S)
    assert running.returncode == 0
    assert said.startswith("interrupted")
    assert 0 < len(read(path)) < FRAMES
    assert f"{len(read(path))} frames" in stabilize(clip=str(video))
    assert graphs() <= before


def test_a_node_that_fails_ends_the_run_with_its_error_and_leaves_no_graph(tmp_path):
    before = graphs()
    code, message = refusal("--frames", 50, "--out", tmp_path / "nowhere" / "%03d.png")
    assert code == 1
    assert "cannot be written" in message
    assert graphs() <= before


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    """Options for few frames, and what the loop computes of them."""
    path = tmp_path_factory.mktemp("few") / "frames.csv"
    options = ["--size", "320x240", "--shake", 3, "--cache-frames", 20, "--frames", 50, "--csv", path]
    stabilize("--sequential", *options)
    return options, results(path)


def test_frames_in_real_time_are_those_of_the_loop_under_any_arbitration(few, gpu):
    options, of_the_loop = few
    for more in [[], ["--release-early"]] if gpu else [[]]:
        stabilize("--period", "5ms", "--jitter", 5, *gpu, *more, *options)
        assert results(options[-1]) == of_the_loop


def test_frames_in_real_time_are_those_of_the_loop_however_linux_schedules(few, scheduler):
    options, of_the_loop = few
    stabilize("--period", "5ms", "--jitter", 5, "--gpu", "soft", "--scheduler", scheduler, *options)
    assert results(options[-1]) == of_the_loop


def test_an_arbitration_that_is_not_there_is_refused():
    code, message = refusal("--gpu", "soft", "--arbitration", "nowhere", "--frames", 1)
    assert code == 1
    assert "nowhere" in message


def test_a_frame_is_released_once_in_a_period_and_complete_later(tmp_path):
    start_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC) + 3_000_000_000
    stabilize(
        *["--size", "320x240", "--period", "12.5 ms", "--duration", "0.5s", "--cache-frames", 10],
        *["--start-at", start_ns, "--times", tmp_path / "times.csv"],
    )
    times = [{name: int(value) for name, value in line.items()} for line in read(tmp_path / "times.csv")]
    assert [line["frame"] for line in times] == list(range(len(times)))
    assert [line["release_us"] for line in times] == [start_ns // 1000 + 12_500 * frame for frame in range(len(times))]
    completions = [line["completion_us"] for line in times]
    assert completions == sorted(completions)
    assert all(line["completion_us"] > line["release_us"] for line in times)


def test_what_an_overloaded_graph_cannot_begin_in_time_is_dropped(tmp_path):
    said = summary("--period", "100us", "--duration", "0.5s", "--cache-frames", 10, "--times", tmp_path / "times.csv")
    frames = said["frames"]
    assert frames["expected"] == 5000
    assert 0 < frames["completed"] == len(read(tmp_path / "times.csv")) < 5000
    assert frames["dropped"] == 5000 - frames["completed"]
    assert len(said["nodes"]) == 11
    assert all(0 < node["cpu_median_us"] <= node["cpu_max_us"] for node in said["nodes"])


def priorities(process):
    """The priorities of those of its threads that are not scheduled by SCHED_OTHER."""
    stats = [path.read_text().rpartition(")")[2].split() for path in Path(f"/proc/{process}/task").glob("*/stat")]
    # man 5 proc_pid_stat: the fields (40) rt_priority and (41) policy, of which the first two are cut off.
    return sorted(int(stat[37]) for stat in stats if int(stat[38]) == 1)


def test_under_fifo_a_node_has_the_base_priority_and_the_length_of_the_longest_path_to_it(tmp_path):
    if refusal("--period", "20ms", "--frames", 1, "--scheduler", "fifo")[0] == 1:
        pytest.skip("skipped: Linux does not permit SCHED_FIFO")
    images = tmp_path / "%05d.png"
    fifo = ["--scheduler", "fifo", "--base-priority", "40", "--period", "20ms", "--cache-frames", "10"]
    with subprocess.Popen([STABILIZE, *fifo, "--size", "64x64", "--out", images, CLIP]) as running:
        while not (tmp_path / "00000.png").exists():
            assert running.poll() is None
            time.sleep(0.01)
        seen = priorities(running.pid)
        running.send_signal(signal.SIGINT)
    seen.remove(98)  # the thread of Laxity that notices deaths of processes
    assert seen == [40, 41, 41, 42, 43, 44, 44, 45, 46, 47, 48]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_in_real_time_without_an_end_is_ended_by_a_signal(tmp_path, number):
    before, images = graphs(), tmp_path / "%05d.png"
    command = [STABILIZE, "--period", "20ms", "--cache-frames", "10", "--size", "64x64", "--out", images, CLIP]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        while not (tmp_path / "00003.png").exists():
            assert running.poll() is None
            time.sleep(0.01)
        assert f"stabilizer-{running.pid}" in graphs()
        running.send_signal(number)
        said, _ = running.communicate(timeout=TIMEOUT_S)
    assert running.returncode == 0
    assert said.startswith("interrupted")
    assert graphs() <= before


def test_a_start_that_has_passed_is_refused():
    code, message = refusal("--period", "20ms", "--frames", 1, "--start-at", 1)
    assert code == 1
    assert "the start at 1 ns was" in message
    assert "start later" in message


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--size", "640"], "--size 640: is not a width and a height"),
        (["--size", "20x20"], "--size 20: is not a whole number from 64 to 4096"),
        (["--replicas", "0"], "--replicas 0: is not a whole number from 1 to 1000"),
        (["--crop", "half"], "--crop half: is not a number from 0 to 0.4"),
        (["--sequential", "--replicas", "2"], "--replicas and --jitter are of --pipelined"),
        (["--shake-csv", "x.csv"], "add --shake SEED"),
        (["--period", "20"], "--period 20: is not a span of time with its unit"),
        (["--period", "-1ms"], "--period -1ms: is not a span of time with its unit"),
        (["--duration", "1s"], "are about a --period; add it"),
        (["--period", "20ms", "--duration", "19ms"], "--duration is less than one --period"),
        (["--sequential", "--period", "20ms"], "--period and --scheduler are of --pipelined"),
        (["--scheduler", "rr"], "--scheduler rr: is not one of other fifo deadline"),
        (["--base-priority", "5"], "--base-priority is of --scheduler fifo"),
        (["--gpu", "hard"], "--gpu hard: is not one of none soft"),
        (["--sequential", "--gpu", "soft"], "--gpu is of --pipelined"),
        (["--arbitration", "x"], "are about a GPU; add --gpu soft"),
        (["--cache-frames", "5"], "add --frames N, or a --period"),
        (["--fast"], "--fast: is no option"),
        (["another.avi"], "2 clips: name one"),
    ],
)
def test_what_cannot_be_is_refused_with_a_reason(arguments, says):
    code, message = refusal(*arguments)
    assert code == 2
    assert says in message


def test_a_clip_that_is_none_is_refused(tmp_path):
    (tmp_path / "text.avi").write_text("no video")
    for clip in [tmp_path / "text.avi", tmp_path / "missing.avi"]:
        code, message = refusal(clip=str(clip))
        assert code == 1
        assert f"{clip}: no video that OpenCV can open" in message


def test_a_contact_sheet_is_an_image_and_needs_frames_that_are_there(tmp_path):
    sheet = tmp_path / "sheet.png"
    stabilize("--frames", 30, "--shake", 1, "--sheet", sheet, "--sheet-frame", 10)
    assert sheet.read_bytes().startswith(b"\x89PNG")
    code, message = refusal("--frames", 20, "--sheet", sheet, "--sheet-frame", 10)
    assert code == 1
    assert "frames 10 to 21 are to be shown, but there are 20" in message
