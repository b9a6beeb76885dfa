"""The fusion of camera and lidar in Python: the nodes of fusion.toml are functions of this program.

    python fusion.py [SECONDS]

All nodes share the interpreter's lock (GIL), which the proof of `laxity check` does not know: keep an eye on what was
measured.
"""

import json
import math
import sys
import time
from pathlib import Path

import laxity
import numpy as np

HERE = Path(__file__).parent
WIDTH, HEIGHT = 192, 144
VIEW = 60  # degrees
FRAMES_A_SCAN = 3
WEIGHT, CONTRAST = 0.02, 25  # of a frame in the background, and of a pixel that differs from it
SPEED_MAX, BRAKING, DISTANCE_MIN, CORRIDOR = 14, 4, 3, 10  # m/s, m/s^2, m, degrees
HEADER = 2  # the number of the frame and when it was taken, as 64-bit integers before the pixels

recording = np.fromfile(
    HERE / "recording", dtype=[("pixels", np.uint8, (HEIGHT, WIDTH)), ("ranges", np.float32, WIDTH)]
)
plans = {"plans": 0, "with_obstacles": 0, "nearest_m": math.inf, "slowest_m_s": SPEED_MAX, "oldest_frame_ms": 0.0}


def _send(job: laxity.Job, peer: str, value: bytes | np.ndarray) -> None:
    """Sends `value` to `peer`, as long as it is."""
    value = memoryview(value).cast("B")
    edge = job.output(peer)
    edge[0][: len(value)] = value
    edge.resize(len(value))


def camera(job: laxity.Job) -> None:
    """Sends the next frame."""
    if job.is_warm_up:
        return
    message = job.output("detect")[0]
    header = np.frombuffer(message, dtype=np.uint64, count=HEADER)
    pixels = np.frombuffer(message, dtype=np.uint8, offset=8 * HEADER, count=WIDTH * HEIGHT)
    header[:] = job.index, job.release_ns
    pixels[:] = recording["pixels"][job.index % len(recording)].reshape(-1)


class Detect:
    """Finds the columns in which something moves before a background that stands still."""

    def __init__(self) -> None:
        self.background = recording["pixels"][0].astype(np.float32)

    def __call__(self, job: laxity.Job) -> None:
        """Sends pairs of columns, of each thing the first and the one behind the last."""
        if job.is_warm_up:
            return
        message = job.input("camera")[0]
        number, taken_ns = (int(value) for value in np.frombuffer(message, dtype=np.uint64, count=HEADER))
        frame = np.frombuffer(message, dtype=np.uint8, offset=8 * HEADER, count=WIDTH * HEIGHT).reshape(HEIGHT, WIDTH)
        moving = np.abs(frame - self.background) > CONTRAST
        self.background += WEIGHT * (frame - self.background)
        # Four pixels in a column are something, and eight columns are a thing.
        columns = np.concatenate(([0], moving.sum(axis=0) >= 4, [0]))
        edges = np.flatnonzero(np.diff(columns)).reshape(-1, 2)
        things = edges[edges[:, 1] - edges[:, 0] >= 8]
        _send(job, "fusion", np.array([number, taken_ns, *things.reshape(-1)], dtype=np.uint64))


def lidar(job: laxity.Job) -> None:
    """Sends the next scan."""
    if not job.is_warm_up:
        _send(job, "fusion", recording["ranges"][job.index * FRAMES_A_SCAN % len(recording)])


def fuse(job: laxity.Job) -> None:
    """Gives each thing the middle range of the echoes in its columns, and sends bearings and ranges."""
    found, taken_ns = [], 0
    # Of each sensor the newest, or none before its first.
    if len(job.input("detect")) > 0 and len(job.input("lidar")) > 0:
        boxes = np.frombuffer(bytes(job.input("detect")[0]), dtype=np.uint64)
        scan = np.frombuffer(bytes(job.input("lidar")[0]), dtype=np.float32)
        taken_ns = int(boxes[1])
        for left, right in boxes[HEADER:].astype(int).reshape(-1, 2):
            echoes = scan[left:right]
            if (echoes > 0).any():
                found.append((((left + right) / 2 / WIDTH - 0.5) * VIEW, float(np.median(echoes[echoes > 0]))))
    _send(job, "planner", json.dumps({"taken_ns": taken_ns, "obstacles": found[:20]}).encode())


def plan(job: laxity.Job) -> None:
    """Goes as fast as the car can stop before the nearest obstacle in its way."""
    seen = json.loads(bytes(job.input("fusion")[0]))
    nearest = min((far for bearing, far in seen["obstacles"] if abs(bearing) < CORRIDOR), default=math.inf)
    speed = min(SPEED_MAX, math.sqrt(2 * BRAKING * max(nearest - DISTANCE_MIN, 0)))
    plans["plans"] += 1
    plans["with_obstacles"] += bool(seen["obstacles"])
    plans["nearest_m"] = min(plans["nearest_m"], nearest)
    plans["slowest_m_s"] = min(plans["slowest_m_s"], speed)
    if seen["taken_ns"]:
        age_ms = (time.monotonic_ns() - seen["taken_ns"]) / 1e6
        plans["oldest_frame_ms"] = max(plans["oldest_frame_ms"], age_ms)


BODIES = {"car/camera": camera, "car/detect": Detect, "car/lidar": lidar, "car/fusion": fuse, "car/planner": plan}


def main() -> None:
    """Runs it, and prints what was planned, what was measured of each node, and the ages of data, as JSON."""
    seconds = sys.argv[1] if len(sys.argv) > 1 else "10"
    car = laxity.load(HERE / "fusion.toml")
    proof = laxity.check(car, growth=False)
    result = laxity.run(car, BODIES, duration=f"{seconds} s", warm=["car/camera", "car/detect"])
    report = {
        "proven": bool(proof),
        "plans": plans,
        "completed": dict(zip(*(result.tasks[column].to_pylist() for column in ("name", "completed")), strict=True)),
        "missed": result.total["missed"],
        "chains": [
            {key: row[key] for key in ("chain", "measure", "outputs", "missed", "deadline_ns", "max_ns")}
            for row in result.chains.to_pylist()
        ],
    }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
