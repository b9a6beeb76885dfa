"""Runs the stabilizer, and reads what it writes."""

import csv
import functools
import json
import os
import subprocess

import pytest

STABILIZE = os.environ.get("STABILIZE", "out/vision/stabilize")
LAXITY = os.environ.get("LAXITY", "target/debug/laxity")
CLIP = os.environ.get("CLIP", "/usr/share/doc/opencv-doc/examples/data/vtest.avi")
FRAMES = 795  # of the clip
TIMEOUT_S = 300


def stabilize(*arguments, clip=CLIP):
    """Runs it to the end, and returns what it printed."""
    command = [STABILIZE, *map(str, arguments), clip]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def summary(*arguments, clip=CLIP):
    """Runs it to the end, and returns its summary."""
    return json.loads(stabilize("--summary", "json", *arguments, clip=clip))


def refusal(*arguments, clip=CLIP):
    """Its exit code and message, when it cannot do what is asked."""
    command = [STABILIZE, *map(str, arguments), clip]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    return done.returncode, done.stderr


@functools.cache
def scheduler_refusal(scheduler):
    """Why Linux does not permit this scheduler; empty if it does."""
    code, message = refusal("--period", "20ms", "--frames", 1, "--scheduler", scheduler)
    return message if code == 1 else ""


def need(scheduler):
    """Skips a test where Linux does not permit this scheduler."""
    if message := scheduler_refusal(scheduler):
        pytest.skip(f"skipped: {message}")


def read(path):
    """The lines of a CSV file."""
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def results(path):
    """All columns that do not tell the time."""
    return [{name: value for name, value in line.items() if not name.endswith("_us")} for line in read(path)]


def graphs():
    """Names of the stabilizers' live graphs."""
    command = [LAXITY, "graph", "list", "--json"]
    listed = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return {graph["name"] for graph in listed["graphs"] if graph["name"].startswith("stabilizer-")}
