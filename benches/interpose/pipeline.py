"""An image pipeline of OpenCV's T-API on synthetic frames.

Prints a digest of all results, then milliseconds per frame: the lower quartile, as others may have a CPU meanwhile.
"""

import hashlib
import sys
import time

import cv2
import numpy as np


def main() -> None:
    """Runs as many frames as the first argument says; exits with 77 where OpenCV has no OpenCL."""
    frames = int(sys.argv[1])
    if not cv2.ocl.haveOpenCL():
        sys.exit(77)
    cv2.ocl.setUseOpenCL(True)
    random = np.random.default_rng(7)
    image = random.integers(0, 256, (480, 640, 3), dtype=np.uint8)
    digest = hashlib.sha256()
    times = []
    for frame in range(frames):
        begin = time.perf_counter()
        color = cv2.UMat(np.roll(image, frame, axis=1))
        gray = cv2.cvtColor(color, cv2.COLOR_BGR2GRAY)
        blurred = cv2.GaussianBlur(gray, (7, 7), 1.5)
        small = cv2.resize(blurred, (320, 240))
        turned = cv2.warpAffine(small, np.float32([[0.9, -0.1, 5], [0.1, 0.9, 3]]), (320, 240))
        result = cv2.absdiff(turned, small).get()
        times.append(time.perf_counter() - begin)
        digest.update(result.tobytes())
    times = sorted(times[2:])
    print(digest.hexdigest(), times[len(times) // 4] * 1e3)


main()
