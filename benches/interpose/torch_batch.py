"""Work without deadlines in PyTorch: products of large matrices until SIGTERM; prints how many a second."""

import signal
import threading
import time

import torch


def main() -> None:
    """It waits for the GPU after each ten, as training loops do that print their loss."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    for _ in range(10):
        a @ b
    torch.cuda.synchronize()
    print("begun", flush=True)
    begin, products = time.perf_counter(), 0
    while not stop.is_set():
        for _ in range(10):
            c = a @ b
        c[0, 0].item()
        products += 10
    print(products / (time.perf_counter() - begin), flush=True)


if __name__ == "__main__":
    main()
