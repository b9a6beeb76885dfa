"""A vision graph whose nodes share a soft GPU; each job takes a token for it: `python vision_gpu.py [FRAMES]`."""

import os
import sys
from collections.abc import Callable

import numpy as np
from laxity import gpu, vx

SIZE = (480, 640)
FRAMES = int(sys.argv[1]) if len(sys.argv) > 1 else 100
NAME = f"vision-{os.getpid()}"

with gpu.Arbitration.create_or_attach(NAME, gpus=1, tokens=1) as lab:
    device = gpu.Device(NAME, arbitration=lab)
    graph = vx.Graph(NAME)
    image = graph.object("image", SIZE, np.uint8)
    blurred = graph.delay("blurred", SIZE, np.float32, slots=2)
    moving = graph.object("moving", 1, np.int64)
    results = []

    def camera(job: vx.Job) -> None:
        """A bright square that moves to the right."""
        frame = job.write(image)
        frame.fill(0)
        left = 10 + job.index % 500
        frame[100:200, left : left + 100] = 255

    def blurring() -> Callable[[vx.Job], None]:
        """Copies to the GPU, blurs there, copies back; the next frame's job may have the GPU while this one goes on."""
        there, back = device.alloc(SIZE, np.uint8), device.alloc(SIZE, np.float32)

        def blur(pixels: np.ndarray, out: np.ndarray) -> None:
            out[:] = pixels
            out[:, 1:-1] += pixels[:, :-2]
            out[:, 1:-1] += pixels[:, 2:]
            out /= 3

        def kernel(job: vx.Job) -> None:
            job.gpu.copy_in(there, job.read(image))  # takes the token
            job.gpu.launch(blur, read=[there], write=[back])
            job.gpu.copy_out(back, job.write(blurred))

        return kernel

    def comparing() -> Callable[[vx.Job], None]:
        """Finds on the GPU what has changed, and lets go of the token before it looks at the result."""
        before, now = device.alloc(SIZE, np.float32), device.alloc(SIZE, np.float32)
        count = device.alloc(1, np.int64)

        def differ(old: np.ndarray, new: np.ndarray, out: np.ndarray) -> None:
            out[0] = np.count_nonzero(old != new)

        def kernel(job: vx.Job) -> None:
            job.gpu.copy_in(before, job.read(blurred, 1))
            job.gpu.copy_in(now, job.read(blurred))
            job.gpu.launch(differ, read=[before, now], write=[count])
            job.gpu.copy_out(count, job.write(moving))
            job.gpu.release()

        return kernel

    graph.input([vx.output(image)], camera)
    graph.node("blur", [vx.input(image), vx.output(blurred)], blurring())
    graph.node("compare", [vx.input(blurred), vx.past(blurred, 1), vx.output(moving)], comparing())
    graph.output([vx.input(moving)], lambda job: results.append(int(job.read(moving)[0])))

    with graph.verify().spawn("33 ms", frames=FRAMES, gpu=device) as run:
        run.wait()
        latency_ns = run.times().latency_ns

assert set(results[1:500]) <= {600}, "three columns at either side of the square, 100 pixels high"
print(f"{FRAMES} frames, {np.median(latency_ns) / 1e6:.1f} ms from release to completion (median)")
