"""An image pipeline of OpenCV's T-API on synthetic frames: prints a digest of each frame."""

import hashlib
import sys

import cv2
import numpy as np

if not cv2.ocl.haveOpenCL():
    sys.exit("OpenCV finds no OpenCL device")
cv2.ocl.setUseOpenCL(True)
image = np.random.default_rng(7).integers(0, 256, (120, 160, 3), dtype=np.uint8)
for frame in range(8):
    color = cv2.UMat(np.roll(image, frame, axis=1))
    gray = cv2.cvtColor(color, cv2.COLOR_BGR2GRAY)
    blurred = cv2.GaussianBlur(gray, (7, 7), 1.5)
    turned = cv2.warpAffine(blurred, np.float32([[0.9, -0.1, 5], [0.1, 0.9, 3]]), (160, 120))
    print(hashlib.sha256(cv2.absdiff(turned, gray).get().tobytes()).hexdigest())
