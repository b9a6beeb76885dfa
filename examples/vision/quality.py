#!/usr/bin/env python3
"""How much of a known shake is left: `quality.py FRAMES.csv SHAKE.csv WIDTHxHEIGHT`.

The files are those of `stabilize --csv` and `--shake-csv`. With S(f) the injected transformation of frame f and W(f)
the correction that the stabilizer chose, a corner p of a scene that does not move itself is seen at S(f) p before and
at W(f) S(f) p after. Shake is the acceleration of that path, |x(f + 1) - 2 x(f) + x(f - 1)|, as root mean square over
frames and the four corners, in pixels. The error of a motion is the distance between where it takes a corner and where
S(f) S(f - 1)^-1 does, as mean of the four.
"""

import csv
import math
import statistics
import sys
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

LATENCY = 6  # frames at either end for which the window of the smoothing is not full

Matrix = list[list[float]]
Point = tuple[float, float]


class Quality(NamedTuple):
    """Accelerations and errors in pixels."""

    before: float
    after: float
    error_median: float
    error_longest: float

    @property
    def reduction(self) -> float:
        """How many times less there is after."""
        return self.before / self.after


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
    errors = [
        statistics.fmean(math.dist(apply(motion, corner), apply(now, undo_rigid(last, corner))) for corner in corners)
        for (last, now), motion in zip(pairwise(shakes), motions[1:], strict=True)
    ]
    return Quality(acceleration(before), acceleration(after), statistics.median(errors), max(errors))


def main(arguments: list[str]) -> None:
    """Prints the quality of a run."""
    if len(arguments) != 3:
        sys.exit("usage: quality.py FRAMES.csv SHAKE.csv WIDTHxHEIGHT")
    width, height = map(int, arguments[2].split("x"))
    quality = measure(Path(arguments[0]), Path(arguments[1]), (width, height))
    print(
        f"acceleration of corners: {quality.before:.2f} px before, {quality.after:.2f} px after, "
        f"{quality.reduction:.1f} times less\n"
        f"error of motions: median {quality.error_median:.2f} px, longest {quality.error_longest:.2f} px"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
