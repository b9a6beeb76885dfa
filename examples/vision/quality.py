#!/usr/bin/env python3
"""How much of a known shake is left: `quality.py FRAMES.csv SHAKE.csv WIDTHxHEIGHT`, or `quality.py STABILIZE CLIP`.

The files are those of `stabilize --csv` and `--shake-csv`. With a program and a clip it runs the program on the clip,
once for each kind of shake, and prints the table of README.md.

With S(f) the injected transformation of frame f and W(f) the correction that the stabilizer chose, a corner p of a
scene that does not move itself is seen at S(f) p before and at W(f) S(f) p after. Shake is the acceleration of that
path, |x(f + 1) - 2 x(f) + x(f - 1)|, as root mean square over frames and the four corners, in pixels. With exact
motions p would be seen at the weighted mean of S(i) p over the frames i of the window. The error of a motion is the
distance between where it takes a corner and where S(f) S(f - 1)^-1 does, as mean of the four.
"""

import csv
import math
import statistics
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

LATENCY = 6  # frames at either end for which the window of the smoothing is not full
BEFORE = 5  # frames of the window before the one that is corrected; behind it there are LATENCY
SIZE = (640, 360)  # of the table
KEEPS = [0, 0.5, 0.7, 0.9]  # --shake-keep

Matrix = list[list[float]]
Point = tuple[float, float]


class Quality(NamedTuple):
    """Accelerations and errors in pixels."""

    before: float
    after: float
    after_exact: float
    error_median: float
    error_longest: float

    @property
    def reduction(self) -> float:
        """How many times less there is after."""
        return self.before / self.after

    @property
    def reduction_exact(self) -> float:
        """How many times less there would be with exact motions."""
        return self.before / self.after_exact


def read_matrices(path: Path, name: str) -> list[Matrix]:
    """The 3 x 3 matrices in the columns `name`00 to `name`22 of a file, by frame."""
    with path.open(newline="") as file:
        return [
            [[float(line[f"{name}{row}{column}"]) for column in range(3)] for row in range(3)]
            for line in csv.DictReader(file)
        ]


def apply(matrix: Matrix, point: Point) -> Point:
    """Where a homography takes a point."""
    x, y, w = (row[0] * point[0] + row[1] * point[1] + row[2] for row in matrix)
    return x / w, y / w


def undo_rigid(matrix: Matrix, point: Point) -> Point:
    """The inverse of a rotation and translation: its transpose, after the translation is taken back."""
    x, y = point[0] - matrix[0][2], point[1] - matrix[1][2]
    return matrix[0][0] * x + matrix[1][0] * y, matrix[0][1] * x + matrix[1][1] * y


def acceleration(paths: list[list[Point]]) -> float:
    """Root mean square of the second differences of all paths."""
    squares = [
        (after[0] - 2 * at[0] + before[0]) ** 2 + (after[1] - 2 * at[1] + before[1]) ** 2
        for path in paths
        for before, at, after in zip(path, path[1:], path[2:], strict=False)
    ]
    return math.sqrt(statistics.fmean(squares))


def window_mean(path: list[Point], frame: int) -> Point:
    """The mean of a path around a frame, weighted by half a sine."""
    around = path[frame - BEFORE : frame + LATENCY + 1]
    weights = [math.sin(math.pi * (place + 1) / (len(around) + 1)) for place in range(len(around))]
    x, y = (sum(map(math.prod, zip(weights, axis, strict=True))) / sum(weights) for axis in zip(*around, strict=True))
    return x, y


def measure(frames: Path, shake: Path, size: tuple[int, int]) -> Quality:
    """The quality of a run, from its two files, for images of `size` (width, height)."""
    shakes = read_matrices(shake, "shake")
    corrections = read_matrices(frames, "correction")
    motions = read_matrices(frames, "motion")
    if not len(shakes) == len(corrections) > 2 * LATENCY + 2:
        raise ValueError(f"{len(shakes)} frames were shaken, {len(corrections)} came out; {2 * LATENCY + 3} are needed")
    corners: list[Point] = [(x, y) for x in (0, size[0]) for y in (0, size[1])]
    inner = slice(LATENCY, len(shakes) - LATENCY)
    both = list(zip(shakes[inner], corrections[inner], strict=True))
    before = [[apply(moved, corner) for moved, _ in both] for corner in corners]
    after = [[apply(correction, apply(moved, corner)) for moved, correction in both] for corner in corners]
    paths = [[apply(moved, corner) for moved in shakes] for corner in corners]
    exact = [[window_mean(path, frame) for frame in range(LATENCY, len(path) - LATENCY)] for path in paths]
    errors = [
        statistics.fmean(math.dist(apply(motion, corner), apply(now, undo_rigid(last, corner))) for corner in corners)
        for (last, now), motion in zip(pairwise(shakes), motions[1:], strict=True)
    ]
    accelerations = (acceleration(points) for points in (before, after, exact))
    return Quality(*accelerations, statistics.median(errors), max(errors))


def run(program: str, clip: str, keep: float) -> Quality:
    """The quality of `program` on `clip`, with a shake of which each frame keeps a part from the one before."""
    with tempfile.TemporaryDirectory() as folder:
        frames, shake = Path(folder, "frames.csv"), Path(folder, "shake.csv")
        shaken = ["--size", "x".join(map(str, SIZE)), "--shake", "1", "--shake-keep", str(keep)]
        command = [program, *shaken, "--csv", str(frames), "--shake-csv", str(shake), clip]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return measure(frames, shake, SIZE)


def print_table(program: str, clip: str) -> None:
    """The table of README.md."""
    print("| Keeps | Before | After | Reduced | With exact motions | Error of motions: median | Longest |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for keep in KEEPS:
        found = run(program, clip, keep)
        lengths = f"{found.before:.2f} px | {found.after:.2f} px"
        reductions = f"{found.reduction:.1f} times | {found.reduction_exact:.1f} times"
        errors = f"{found.error_median:.2f} px | {found.error_longest:.1f} px"
        print(f"| {keep} | {lengths} | {reductions} | {errors} |", flush=True)


def main(arguments: list[str]) -> None:
    """Prints the quality of a run, or the table."""
    if len(arguments) == 2:
        print_table(*arguments)
        return
    if len(arguments) != 3:
        sys.exit("usage: quality.py FRAMES.csv SHAKE.csv WIDTHxHEIGHT, or quality.py STABILIZE CLIP")
    width, height = map(int, arguments[2].split("x"))
    quality = measure(Path(arguments[0]), Path(arguments[1]), (width, height))
    print(
        f"acceleration of corners: {quality.before:.2f} px before, {quality.after:.2f} px after, "
        f"{quality.reduction:.1f} times less\n"
        f"error of motions: median {quality.error_median:.2f} px, longest {quality.error_longest:.2f} px"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
