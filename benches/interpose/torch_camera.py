"""A camera's network in PyTorch: a job each period, from the frame in the host's memory to the result there.

torch_camera.py PERIOD_MS JOBS      prints the response times, in milliseconds, as a line of JSON
"""

import json
import sys
import time

import torch
from torch_rates import convolutional


def main() -> None:
    """Releases are at multiples of the period; a late job delays the next one, whose release stays."""
    period, jobs = float(sys.argv[1]) / 1e3, int(sys.argv[2])
    network = convolutional()
    frame = torch.randint(0, 255, (1, 3, 480, 640), dtype=torch.uint8).pin_memory()

    def job() -> int:
        image = frame.to("cuda", non_blocking=True).half() / 255
        return network(image).argmax().item()

    with torch.inference_mode():
        for _ in range(50):
            job()
        responses = []
        release = time.perf_counter() + period
        for _ in range(jobs):
            time.sleep(max(0, release - time.perf_counter()))
            job()
            responses.append((time.perf_counter() - release) * 1e3)
            release += period
    print(json.dumps(responses))


if __name__ == "__main__":
    main()
