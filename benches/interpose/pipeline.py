"""An image pipeline of OpenCV's T-API on synthetic frames: so many of them for each line of its input, a number.

Answers each line with a digest of all results so far and milliseconds a frame: the lower quartile, as others may have a
CPU meanwhile.
"""

import hashlib
import sys
import time

import cv2
import numpy as np


def main() -> None:
    """Exits with 77 where OpenCV has no OpenCL."""
    if not cv2.ocl.haveOpenCL():
        sys.exit(77)
    cv2.ocl.setUseOpenCL(True)
    random = np.random.default_rng(7)
    image = random.integers(0, 256, (480, 640, 3), dtype=np.uint8)
    digest = hashlib.sha256()
    frame = 0
    for line in sys.stdin:
        times = []
        for _ in range(int(line)):
            begin = time.perf_counter()
            color = cv2.UMat(np.roll(image, frame, axis=1))
            gray = cv2.cvtColor(color, cv2.COLOR_BGR2GRAY)
            blurred = cv2.GaussianBlur(gray, (7, 7), 1.5)
            small = cv2.resize(blurred, (320, 240))
            turned = cv2.warpAffine(small, np.float32([[0.9, -0.1, 5], [0.1, 0.9, 3]]), (320, 240))
            result = cv2.absdiff(turned, small).get()
            times.append(time.perf_counter() - begin)
            digest.update(result.tobytes())
            frame += 1
        times.sort()
        print(digest.hexdigest(), times[len(times) // 4] * 1e3, flush=True)


main()
