"""A kernel in Triton, launched by its own launcher; prints what came out, in a fixed form."""

import hashlib
import sys

import torch
import triton
import triton.language as tl


@triton.jit
def softmax(source, target, columns, width: tl.constexpr):
    """A row for each program."""
    row = tl.program_id(0)
    at = tl.arange(0, width)
    values = tl.load(source + row * columns + at, mask=at < columns, other=-float("inf"))
    values = tl.exp(values - tl.max(values, 0))
    tl.store(target + row * columns + at, values / tl.sum(values, 0), mask=at < columns)


def main():
    """So many launches."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    torch.manual_seed(3)
    source = torch.randn(512, 1000).cuda()
    target = torch.empty_like(source)
    for _ in range(rounds):
        softmax[(512,)](source, target, 1000, width=1024)
        source = target * 3
    print("softmax", hashlib.sha256(target.cpu().numpy().tobytes()).hexdigest()[:16])
    print("end")


if __name__ == "__main__":
    main()
