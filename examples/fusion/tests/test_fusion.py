"""The fusion example: its chains are proven, and kept where its nodes keep to what the proof goes by.

The environment names the folder of the build, FUSION, and the command, LAXITY, if it is another than
target/debug/laxity.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[3]
LAXITY = os.environ.get("LAXITY", ROOT / "target" / "debug" / "laxity")
FUSION = Path(os.environ.get("FUSION", ROOT / "out" / "dev" / "fusion"))
FILE = FUSION / "fusion.toml"


def command(*arguments):
    """What the command prints, and on standard error; it succeeds."""
    done = subprocess.run([LAXITY, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, done.stderr


@pytest.fixture(scope="module")
def proof():
    """What is proven of the file."""
    return json.loads(command("check", FILE, "--json")[0])


def test_the_scans_are_the_recorded_ones_with_a_range_for_each_column():
    recording = np.fromfile(FUSION / "recording", dtype=[("pixels", np.uint8, (144, 192)), ("ranges", np.float32, 192)])
    scans = np.fromfile(ROOT / "examples/fusion/data/corridor.scans", dtype="<u2").reshape(-1, 361)
    assert len(recording) == 3 * len(scans) == 675
    # The beam straight ahead is the 180th; to the left there are more, half a degree each.
    to_the_right = 60 * ((np.arange(192) + 0.5) / 192 - 0.5)
    beams = 180 - np.floor(2 * to_the_right + 0.5).astype(int)
    for frame in (0, 2, 3, 674):
        assert np.allclose(recording["ranges"][frame], scans[frame // 3][beams] / 100, atol=1e-4)
    assert (scans[:, beams] > 0).mean() > 0.8


def test_the_deadlines_of_both_chains_are_proven(proof):
    assert proof["hard"]["status"] == "schedulable"
    see, scan = proof["chains"]
    assert see["data_age_ns"] <= see["data_age_max_ns"] == 100_000_000
    assert see["reaction_time_ns"] <= see["reaction_time_max_ns"] == 150_000_000
    assert scan["data_age_ns"] <= scan["data_age_max_ns"] == 200_000_000


def test_the_nodes_run_and_keep_the_chains(proof, tmp_path):
    trace = tmp_path / "live.lxt"
    text, said = command("run", FILE, "--for", "3s", "--trace", trace, "--json")
    measured = json.loads(text)
    nodes = {task["name"]: task for task in measured["tasks"]}
    expected = {"car/camera": 91, "car/detect": 91, "car/lidar": 30, "car/fusion": 60, "car/planner": 60}
    assert {name: task["completed"] for name, task in nodes.items()} == expected
    # What the nodes told each other: people are on the street, and the scanner has echoes where they are.
    plans = re.search(r"planner: 60 plans, (\d+) with obstacles, nearest ([\d.]+) m, .* oldest frame ([\d.]+) ms", said)
    assert plans, said
    assert int(plans[1]) > 10
    assert 2 < float(plans[2]) < 50
    # The schedule is legal, whatever else the machine does.
    command("trace", trace, "check", "--ignore-deadlines")
    see, scan = measured["chains"]
    assert see["outputs"] > 50
    assert scan["outputs"] > 50
    # The planner looks at the clock before its job completes, and rounds to a tenth of a millisecond. A value may be
    # newer than the trace says, which counts from completions, and never older.
    assert float(plans[3]) * 1e6 <= see["data_age"]["max_ns"] + 50_000
    # On a machine that was busy with something else, jobs take longer than proven, and so may chains.
    bounds = {task["name"]: task["response_time_ns"] for task in proof["tasks"]}
    if all(task["response_time_ns"]["max"] <= bounds[name] for name, task in nodes.items()):
        for found, proven in zip(measured["chains"], proof["chains"], strict=True):
            assert found["data_age"]["max_ns"] <= proven["data_age_ns"]
            assert found["reaction_time"]["max_ns"] <= proven["reaction_time_ns"]
            assert found["missed"] == 0


def test_the_same_file_runs_with_nodes_in_python():
    done = subprocess.run([sys.executable, FUSION / "fusion.py", "2"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["proven"]
    assert report["completed"]["car/planner"] == report["plans"]["plans"] == 40
    assert report["plans"]["with_obstacles"] > 5
    assert 2 < report["plans"]["nearest_m"] < 50
    assert {row["chain"] for row in report["chains"]} == {"see and steer", "scan and steer"}
