"""PyTorch on a GPU: trains, infers, captures a graph, copies on streams of its own; prints what came out."""

import hashlib
import os
import sys

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import torch


def digest(*tensors):
    """Of their bytes."""
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()[:16]


def trains(device, steps):
    """A small convolutional network, some steps of it."""
    torch.manual_seed(1)
    network = torch.nn.Sequential(
        torch.nn.Conv2d(3, 32, 3, padding=1),
        torch.nn.BatchNorm2d(32),
        torch.nn.ReLU(),
        torch.nn.Conv2d(32, 64, 3, stride=2),
        torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(4),
        torch.nn.Flatten(),
        torch.nn.Linear(64 * 16, 10),
    ).to(device)
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3)
    for _ in range(steps):
        images = torch.randn(16, 3, 32, 32).to(device)
        wanted = torch.randint(0, 10, (16,)).to(device)
        loss = torch.nn.functional.cross_entropy(network(images), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return digest(loss, *network.parameters())


def attends(device):
    """A transformer's layer in half precision: products of matrices by libraries."""
    torch.manual_seed(2)
    layer = torch.nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True, device=device, dtype=torch.bfloat16).eval()
    with torch.inference_mode():
        return digest(layer(torch.randn(4, 128, 256).to(device, torch.bfloat16)))


def captures(device):
    """A graph is captured once and launched often."""
    source = torch.arange(1 << 16, device=device, dtype=torch.float32)
    for _ in range(3):
        result = torch.sin(source) * 2 + source
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = torch.sin(source) * 2 + source
    for _ in range(20):
        source.add_(1)
        graph.replay()
    torch.cuda.synchronize()
    return digest(result)


def overlaps(device):
    """Copies of pinned memory and kernels, on two streams that events order."""
    host = torch.arange(1 << 20, dtype=torch.float32).pin_memory()
    back = torch.empty_like(host).pin_memory()
    copies, kernels = torch.cuda.Stream(), torch.cuda.Stream()
    there = torch.empty_like(host, device=device)
    for round_ in range(10):
        with torch.cuda.stream(copies):
            there.copy_(host, non_blocking=True)
        kernels.wait_stream(copies)
        with torch.cuda.stream(kernels):
            result = there * 3 + round_
        copies.wait_stream(kernels)
        with torch.cuda.stream(copies):
            back.copy_(result, non_blocking=True)
    copies.synchronize()
    return digest(back)


def main():
    """Everything, with so many steps of training."""
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    torch.use_deterministic_algorithms(True)
    torch.backends.cuda.matmul.allow_tf32 = False
    device = torch.device("cuda")
    print("trains", trains(device, steps))
    print("attends", attends(device))
    print("captures", captures(device))
    print("overlaps", overlaps(device))
    print("end")


if __name__ == "__main__":
    main()
