"""The stabilizer on a real clip: `make test-vision`, or pytest with STABILIZE and CLIP set.

What the live graph puts out is compared with what the loop does, bit for bit, by the hashes of all frames; the quality
of both follows from the path of the shake, which is known.
"""

import csv
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))
import quality

STABILIZE = os.environ.get("STABILIZE", "out/vision/stabilize")
CLIP = os.environ.get("CLIP", "/usr/share/doc/opencv-doc/examples/data/vtest.avi")
FRAMES = 795  # of the clip
TIMEOUT_S = 300


def stabilize(*arguments, clip=CLIP):
    """Runs it to the end, and returns what it printed."""
    command = [STABILIZE, *map(str, arguments), clip]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refusal(*arguments, clip=CLIP):
    """Its exit code and message, when it cannot do what is asked."""
    command = [STABILIZE, *map(str, arguments), clip]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    return done.returncode, done.stderr


def read(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def results(path):
    """All columns that do not tell the time."""
    return [{name: value for name, value in line.items() if not name.endswith("_us")} for line in read(path)]


def graphs():
    return {path.name for path in Path("/dev/shm").glob("stabilizer-*")}


@pytest.fixture(scope="module")
def of_the_loop(tmp_path_factory):
    """What the loop computes of the whole clip, shaken so that no matrix is the identity."""
    path = tmp_path_factory.mktemp("loop") / "frames.csv"
    stabilize("--sequential", "--size", "320x240", "--shake", 3, "--csv", path)
    return results(path)


def test_the_loop_puts_out_every_frame_and_no_two_alike(of_the_loop):
    assert len(of_the_loop) == FRAMES
    assert len({line["hash"] for line in of_the_loop}) == FRAMES


def test_most_features_are_found_again_and_agree(of_the_loop):
    good = [line for line in of_the_loop[1:] if int(line["inliers"]) > 0.8 * int(line["pairs"]) > 20]
    assert len(good) > 0.95 * FRAMES


@pytest.mark.parametrize("replicas", [1, 2, 3, 4])
def test_the_live_graph_computes_what_the_loop_does(of_the_loop, tmp_path, replicas):
    path = tmp_path / "frames.csv"
    stabilize("--replicas", replicas, "--size", "320x240", "--shake", 3, "--csv", path)
    assert results(path) == of_the_loop


@pytest.mark.parametrize(("replicas", "seed"), [(1, 1), (2, 2), (4, 3), (9, 4)])
def test_pauses_of_nodes_change_no_result(of_the_loop, tmp_path, replicas, seed):
    path = tmp_path / "frames.csv"
    stabilize("--replicas", replicas, "--jitter", seed, "--size", "320x240", "--shake", 3, "--csv", path)
    assert results(path) == of_the_loop


def test_a_twentieth_of_a_known_shake_is_left(tmp_path):
    frames, shake = tmp_path / "frames.csv", tmp_path / "shake.csv"
    stabilize("--size", "640x360", "--shake", 1, "--csv", frames, "--shake-csv", shake)
    measured = quality.measure(frames, shake, (640, 360))
    print(f"\n{measured}, {measured.reduction:.1f} times less")
    assert measured.before > 10
    assert measured.reduction > 20
    assert measured.error_median < 0.25


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
    # What was written is a clip by itself.
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


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--size", "640"], "--size 640: is not a width and a height"),
        (["--size", "20x20"], "--size 20: is not a whole number from 64 to 4096"),
        (["--replicas", "0"], "--replicas 0: is not a whole number from 1 to 1000"),
        (["--crop", "half"], "--crop half: is not a number from 0 to 0.4"),
        (["--sequential", "--replicas", "2"], "--replicas and --jitter are of --pipelined"),
        (["--shake-csv", "x.csv"], "add --shake SEED"),
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
