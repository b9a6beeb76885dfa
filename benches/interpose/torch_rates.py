"""Programs of PyTorch whose time per step is measured: prints a line of JSON, in milliseconds, for bench-gpu-real."""

import json
import statistics
import time
from collections.abc import Callable

import torch


def median_ms(step: Callable[[], object], steps: int, rounds: int = 15) -> float:
    """The median time of a step over rounds, each of which ends with a wait for the GPU."""
    for _ in range(5):
        step()
    torch.cuda.synchronize()
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        for _ in range(steps):
            step()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - begin) / steps * 1e3)
    return statistics.median(times)


def launch_bound() -> float:
    """Kernels of a few microseconds, one after the other: the CPU's launches bound it."""
    small = torch.ones(1024, device="cuda")
    return median_ms(lambda: small.add_(1), 1000)


def memory_bound() -> float:
    """768 MiB read or written by each kernel."""
    a, b = (torch.ones(64 << 20, device="cuda") for _ in range(2))
    target = torch.empty_like(a)
    return median_ms(lambda: torch.add(a, b, out=target), 50)


def inference() -> float:
    """A network of about a hundred kernels on one image, whose result the CPU wants."""
    network = convolutional()
    image = torch.randn(1, 3, 224, 224, device="cuda", dtype=torch.half)
    with torch.inference_mode():
        return median_ms(lambda: network(image).argmax().item(), 30)


def convolutional() -> torch.nn.Module:
    """Residual blocks, as classifiers of images have them."""

    class Block(torch.nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.layers = torch.nn.Sequential(
                torch.nn.Conv2d(width, width, 3, padding=1, bias=False),
                torch.nn.BatchNorm2d(width),
                torch.nn.ReLU(),
                torch.nn.Conv2d(width, width, 3, padding=1, bias=False),
                torch.nn.BatchNorm2d(width),
            )

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            return torch.relu(images + self.layers(images))

    layers = [torch.nn.Conv2d(3, 64, 7, stride=4, padding=3)]
    width = 64
    for stage in range(3):
        layers += [Block(width) for _ in range(4)]
        if stage < 2:
            layers.append(torch.nn.Conv2d(width, 2 * width, 1, stride=2))
            width *= 2
    layers += [torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(width, 1000)]
    return torch.nn.Sequential(*layers).half().cuda().eval()


def training() -> float:
    """Steps of a transformer's training: the GPU bounds it."""
    layer = torch.nn.TransformerEncoderLayer(
        1024, 16, 4096, dropout=0, batch_first=True, device="cuda", dtype=torch.bfloat16
    )
    network = torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-4)
    tokens = torch.randn(8, 512, 1024, device="cuda", dtype=torch.bfloat16)

    def step() -> None:
        loss = network(tokens).float().square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return median_ms(step, 10)


if __name__ == "__main__":
    print(json.dumps({kind.__name__: kind() for kind in (launch_bound, memory_bound, inference, training)}))
