"""What delays contain before the first frame: `make test-vision-short`, or pytest with STABILIZE and CLIP set.

The loop and the live graph share what a delay starts with, so that comparing them does not find a wrong start. Here it
follows from elsewhere: corrections are computed anew from the motions, and memory of a GPU has been used before.
"""

import contextlib
import os
import signal
import subprocess
import time

import numpy as np
import pytest
from stabilizer import CLIP, STABILIZE, read, results, stabilize

SIZE = (320, 240)
FRAMES = 30
WINDOW = 12  # frames of the smoothing, of which 5 are before the one that is corrected, and 6 behind it
BEFORE, BEHIND = 5, 6


def matrix(line, name):
    """The matrix of a line."""
    return np.array([[float(line[f"{name}{row}{column}"]) for column in range(3)] for row in range(3)])


def filtered(line):
    """The motion of a line, or none where it cannot be one, as README.md says."""
    motion, pairs = matrix(line, "motion"), int(line["pairs"])
    if pairs < 8 or 2 * int(line["inliers"]) < pairs:
        return np.eye(3)
    for corner in [(0, 0), (SIZE[0], 0), (0, SIZE[1]), SIZE]:
        x, y, w = motion @ [*corner, 1]
        if np.hypot(x / w - corner[0], y / w - corner[1]) >= min(SIZE) / 4:
            return np.eye(3)
    return motion


def smoothed(motion, frame):
    """The correction of a frame: the mean of its positions in the window, weighted by half a sine."""
    weight = np.sin(np.pi * (np.arange(WINDOW) + 1) / (WINDOW + 1))
    total, ahead, back = weight[BEFORE] * np.eye(3), np.eye(3), np.eye(3)
    for step in range(1, BEHIND + 1):
        ahead = motion(frame + step) @ ahead
        total += weight[BEFORE + step] * ahead / ahead[2, 2]
    for step in range(BEFORE):
        back = np.linalg.inv(motion(frame - step)) @ back
        total += weight[BEFORE - 1 - step] * back / back[2, 2]
    return total / total[2, 2]


@pytest.mark.parametrize("mode", [["--sequential"], ["--pipelined"], ["--pipelined", "--gpu", "soft"]])
def test_before_the_first_frame_nothing_moved(tmp_path, mode):
    path = tmp_path / "frames.csv"
    stabilize(*mode, "--size", "320x240", "--shake", 3, "--frames", FRAMES, "--csv", path)
    lines = read(path)
    motions = [filtered(line) for line in lines]
    assert sum(not np.array_equal(motion, np.eye(3)) for motion in motions) > FRAMES / 2, "else all is one"
    for frame in range(FRAMES - BEHIND):
        expected = smoothed(lambda number: motions[number] if number >= 0 else np.eye(3), frame)
        assert np.allclose(matrix(lines[frame], "correction"), expected, rtol=1e-9, atol=1e-9), frame


def test_before_the_first_frame_there_were_no_features(tmp_path):
    path = tmp_path / "frames.csv"
    stabilize("--size", "320x240", "--frames", 3, "--csv", path)
    pairs = [int(line["pairs"]) for line in read(path)]
    assert pairs[0] == 0 < min(pairs[1:])


@contextlib.contextmanager
def soft_gpu_in_use(tmp_path):
    """A soft GPU whose server stays, so that memory that is freed there is not new when it is allocated again."""
    name = f"stabilizer-delays-{os.getpid()}"
    options = ["--period", "20ms", "--cache-frames", "10", "--size", "64x64", "--gpu", f"soft:{name}"]
    with subprocess.Popen([STABILIZE, *options, "--out", tmp_path / "%05d.png", CLIP]) as running:
        try:
            while not (tmp_path / "00000.png").exists():
                assert running.poll() is None
                time.sleep(0.01)
            yield ["--gpu", f"soft:{name}"]
        finally:
            running.send_signal(signal.SIGINT)


def test_delays_start_alike_in_memory_that_was_used(tmp_path):
    path = tmp_path / "frames.csv"
    options = ["--size", "320x240", "--shake", 3, "--frames", 20, "--csv", path]
    stabilize("--sequential", *options)
    of_the_loop = results(path)
    with soft_gpu_in_use(tmp_path) as gpu:
        for _ in range(2):
            stabilize(*gpu, *options)
            assert results(path) == of_the_loop
