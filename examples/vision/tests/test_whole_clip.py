"""The stabilizer on a whole clip: `make test-vision`, or pytest with STABILIZE and CLIP set. A few minutes.

The output of the live graph is compared with that of the loop, bit for bit, by the hashes of all frames; the quality
of both follows from the path of the shake, which is known.
"""

import sys
from pathlib import Path

import pytest
from stabilizer import FRAMES, results, stabilize

sys.path.insert(0, str(Path(__file__).parent.parent))
import quality


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


@pytest.fixture(scope="module", params=[200, FRAMES])
def again_and_again(request, tmp_path_factory):
    """Options for the clip from memory, of so many frames, and what the loop computes of it."""
    path = tmp_path_factory.mktemp("memory") / "frames.csv"
    # The clip begins again where its end is still needed: the last LATENCY frames are smoothed with its first ones.
    options = ["--size", "320x240", "--shake", 3, "--cache-frames", request.param, "--frames", request.param + 6]
    stabilize("--sequential", *options, "--csv", path)
    assert len(results(path)) == request.param
    return [*options, "--csv", path], results(path)


def test_the_live_graph_computes_what_the_loop_does_in_real_time(again_and_again, gpu, scheduler):
    options, of_the_loop = again_and_again
    # Pauses take a minute of a whole clip.
    pauses = ["--jitter", 6] if len(of_the_loop) < FRAMES else []
    # On two slow CPUs the budgets of all nodes, kernels done by themselves, are more than 5 ms in each 5 ms.
    period = "10ms" if scheduler == "deadline" else "5ms"
    stabilize("--period", period, "--scheduler", scheduler, *gpu, *pauses, *options)
    assert results(options[-1]) == of_the_loop


def test_a_twentieth_of_a_known_shake_is_left(tmp_path):
    frames, shake = tmp_path / "frames.csv", tmp_path / "shake.csv"
    stabilize("--size", "640x360", "--shake", 1, "--csv", frames, "--shake-csv", shake)
    measured = quality.measure(frames, shake, (640, 360))
    print(f"\n{measured}, {measured.reduction:.1f} times less")
    assert measured.before > 10
    assert measured.reduction > 20
    assert measured.error_median < 0.25
