"""The stabilizer's nodes: which reads what of which (paper 003, Fig. 5.8), and how long they took on one machine.

``python -m studies.elliott2015vision.nodes out/vision/stabilize CLIP`` measures the latter again.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import os
import platform
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import numpy as np
from laxity import LaxityError

WIDTH, HEIGHT = 640, 360
"""Pixels of the frames whose nodes were measured."""
FRAME_BYTES = 3 * WIDTH * HEIGHT
MATRIX_BYTES = 9 * 8


@dataclass(frozen=True)
class Node:
    """A node of the graph.

    Attributes:
        name: as in Table 5.1.
        place: whether it has work for the GPU.
        copy_in: bytes that it copies to the GPU: what a CPU made and a GPU kernel reads.
        copy_out: bytes that it copies from there.
        depth: length of the longest path from the source, in edges; added to the base priority under SCHED_FIFO.
    """

    name: str
    place: Literal["cpu", "gpu"]
    depth: int
    copy_in: int = 0
    copy_out: int = 0


# Objects stay in the GPU's memory between the nodes that use them there, as those of VisionWorks do (section 5.5.1).
NODES = (
    Node("read_frame", "cpu", 0, copy_in=FRAME_BYTES),
    Node("duplicate_color_image", "gpu", 1),
    Node("convert_to_grayscale", "gpu", 1),
    Node("compute_image_pyramid", "gpu", 2),
    Node("compute_optical_flow", "gpu", 3),
    Node("harris_feature_tracker", "gpu", 4),
    Node("compute_homography", "gpu", 4, copy_out=MATRIX_BYTES),
    Node("homography_filter", "cpu", 5),
    Node("smooth_homography", "cpu", 6),
    Node("warp_perspective", "gpu", 7, copy_in=MATRIX_BYTES),
    Node("display_stabilized_image", "cpu", 8, copy_out=FRAME_BYTES),
)
SOURCE, SINK = NODES[0].name, NODES[-1].name


@dataclass(frozen=True)
class DataObject:
    """Data that nodes share.

    Attributes:
        name: as in the stabilizer's source.
        nodes: those that use it, in the order of the edges.
        delay: how many frames back it is read, at most.
    """

    name: str
    nodes: tuple[str, ...]
    delay: int = 0


OBJECTS = (
    DataObject("color", ("read_frame", "duplicate_color_image", "convert_to_grayscale")),
    DataObject("frames", ("duplicate_color_image", "warp_perspective"), delay=6),
    DataObject("gray", ("convert_to_grayscale", "compute_image_pyramid", "harris_feature_tracker")),
    DataObject("pyramids", ("compute_image_pyramid", "compute_optical_flow"), delay=1),
    DataObject("points", ("compute_optical_flow", "harris_feature_tracker", "compute_homography"), delay=1),
    DataObject("tracked", ("compute_optical_flow", "harris_feature_tracker", "compute_homography")),
    DataObject("motion", ("compute_homography", "homography_filter")),
    DataObject("matrices", ("homography_filter", "smooth_homography"), delay=10),
    DataObject("correction", ("smooth_homography", "warp_perspective")),
    DataObject("stabilized", ("warp_perspective", "display_stabilized_image")),
)

EDGES: tuple[dict[str, Any], ...] = (
    {"from": "read_frame", "to": "duplicate_color_image"},
    {"from": "read_frame", "to": "convert_to_grayscale"},
    {"from": "convert_to_grayscale", "to": "compute_image_pyramid"},
    {"from": "convert_to_grayscale", "to": "harris_feature_tracker"},
    {"from": "compute_image_pyramid", "to": "compute_optical_flow"},
    {"from": "compute_optical_flow", "to": "harris_feature_tracker"},
    {"from": "compute_optical_flow", "to": "compute_homography"},
    {"from": "compute_homography", "to": "homography_filter"},
    {"from": "homography_filter", "to": "smooth_homography"},
    {"from": "smooth_homography", "to": "warp_perspective"},
    {"from": "warp_perspective", "to": "display_stabilized_image"},
    # Delays: a node that reads k frames back waits for the job of k frames ago only: its edge begins with k tokens.
    {"from": "duplicate_color_image", "to": "warp_perspective", "initial": 6, "delay": 6},
    {"from": "harris_feature_tracker", "to": "compute_homography", "initial": 1, "delay": 1},
    {"from": "harris_feature_tracker", "to": "compute_optical_flow", "initial": 1, "delay": 1, "back_edge": True},
)
"""What laxity's pipelines derive from what nodes read and write; a test compares."""

REPLICAS = 9
"""The depth of the graph, the paper's rule of thumb (section 5.4.1)."""


@dataclass(frozen=True)
class NodeTimes:
    """Measured times of the nodes.

    Attributes:
        source: machine, date, clip, how.
        us: microseconds of shape (frames, nodes), in the order of NODES.
    """

    source: str
    us: np.ndarray[Any, np.dtype[np.float64]]


def data(name: str) -> str:
    """A file of this folder's data. Also from the archive in which Dask workers get it."""
    return (resources.files("studies.elliott2015vision") / "data" / name).read_text()


@lru_cache(maxsize=1)
def node_times() -> NodeTimes:
    """The times in this folder's data."""
    lines = data("node_times_us.csv").splitlines()
    comments = [line[2:] for line in lines if line.startswith("# ")]
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    us = np.array([[float(row[node.name]) for node in NODES] for row in rows])
    return NodeTimes(" ".join(comments), us)


# --- Measured again ---------------------------------------------------------------------------------------------------

WARM_UP = 7
"""Frames before the longest delay holds frames: nodes have less to do."""


def measure(stabilize: Path, clip: Path, runs: int, frames: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """By frame and node the shortest time of several runs of the plain loop, in us.

    They compute the same: what remains is the work, without what else the machine did.
    """
    times = []
    for _ in range(runs):
        with tempfile.NamedTemporaryFile(suffix=".csv") as file:
            size, count = f"{WIDTH}x{HEIGHT}", str(frames)
            how = ["--sequential", "--size", size, "--frames", count, "--cache-frames", count, "--csv", file.name]
            done = subprocess.run(
                [stabilize, *how, clip], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
            )
            if done.returncode != 0:
                raise LaxityError(f"{stabilize} ended with {done.returncode}: {done.stdout.decode().strip()}")
            rows = list(csv.DictReader(Path(file.name).read_text().splitlines()))
        times.append([[float(row[f"{node.name}_us"]) for node in NODES] for row in rows])
    shortest: np.ndarray[Any, np.dtype[np.float64]] = np.array(times).min(axis=0)[WARM_UP:]
    return shortest


def processor() -> str:
    """The model of this machine's CPUs, as Linux names it."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def main() -> int:
    """Measures, and prints the CSV."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("stabilize", type=Path)
    parser.add_argument("clip", type=Path)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--frames", type=int, default=795)
    args = parser.parse_args()
    us = measure(args.stabilize, args.clip, args.runs, args.frames)
    print(
        f"# Time of each node by frame, in us: {args.clip.name} at {WIDTH}x{HEIGHT}, frames from {WARM_UP} on, the "
        f"shortest of {args.runs} runs of `stabilize --sequential`.\n"
        f"# {processor()}, {os.cpu_count()} CPUs, Linux {platform.release()}, {datetime.date.today()}."
    )
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow([node.name for node in NODES])
    writer.writerows([[f"{value:.1f}" for value in row] for row in us])
    return 0


if __name__ == "__main__":
    sys.exit(main())
