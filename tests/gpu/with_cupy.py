"""CuPy on a GPU: kernels that it compiles, products of matrices, transforms, streams; prints what came out."""

import hashlib
import sys

import cupy
import numpy as np


def digest(array):
    """Of its bytes."""
    return hashlib.sha256(np.ascontiguousarray(cupy.asnumpy(array)).tobytes()).hexdigest()[:16]


def main():
    """Everything, so often."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    source = cupy.asarray(np.random.default_rng(1).standard_normal((512, 512), dtype=np.float32))
    saxpy = cupy.RawKernel(
        r"""extern "C" __global__ void saxpy(float a, const float *x, float *y, unsigned length) {
            unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
            if (at < length) y[at] += a * x[at];
        }""",
        "saxpy",
    )
    target = cupy.zeros_like(source)
    for _ in range(rounds):
        saxpy((1024,), (256,), (np.float32(0.5), source, target, np.uint32(source.size)))
        target = cupy.tanh(target @ source / 512)
    print("kernels", digest(target))
    print("sorted", digest(cupy.sort(source.ravel())))
    print("transform", digest(cupy.abs(cupy.fft.fft2(source))))
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        counted = cupy.cumsum(cupy.arange(1 << 20, dtype=cupy.int64))
    stream.synchronize()
    print("streams", digest(counted))
    print("end")


if __name__ == "__main__":
    main()
