"""The official Python bindings of CUDA's driver, on whatever driver there is: prints what came out, in a fixed form."""

import ctypes
import sys
import zlib
from pathlib import Path

import numpy as np
from cuda.bindings import driver as cuda

PTX = (Path(__file__).parents[1] / "c" / "kernels.ptx").read_bytes() + b"\0"


def check(answer):
    """The values of a call that succeeds."""
    result, *values = answer
    assert result == cuda.CUresult.CUDA_SUCCESS, (result, cuda.cuGetErrorName(result))
    return values[0] if len(values) == 1 else tuple(values)


def launch(function, stream, grid, block, *arguments):
    """Launches a kernel with ctypes values."""
    values, kinds = tuple(argument.value for argument in arguments), tuple(type(argument) for argument in arguments)
    check(cuda.cuLaunchKernel(function, grid, 1, 1, block, 1, 1, 0, stream, (values, kinds), 0))


def compute(functions, length, stream):
    """Copies in, computes, copies out."""
    source = np.arange(length, dtype=np.float32)
    target = np.zeros_like(source)
    a, b = (check(cuda.cuMemAlloc(source.nbytes)) for _ in range(2))
    check(cuda.cuMemcpyHtoDAsync(a, source.ctypes.data, source.nbytes, stream))
    check(cuda.cuMemsetD32Async(b, 0, length, stream))
    for _ in range(3):
        launch(
            functions["affine"],
            stream,
            (length + 255) // 256,
            256,
            ctypes.c_void_p(int(b)),
            ctypes.c_void_p(int(a)),
            ctypes.c_float(2),
            ctypes.c_float(1),
            ctypes.c_uint32(length),
        )
        check(cuda.cuMemcpyDtoDAsync(a, b, source.nbytes, stream))
    check(cuda.cuMemcpyDtoHAsync(target.ctypes.data, b, source.nbytes, stream))
    check(cuda.cuStreamSynchronize(stream))
    for memory in (a, b):
        check(cuda.cuMemFree(memory))
    assert np.array_equal(target, source * 8 + 7)
    return zlib.crc32(target.tobytes())


def order(functions):
    """Events and host functions keep the order of two streams."""
    flag = cuda.CUstream_flags.CU_STREAM_NON_BLOCKING
    first, second = (check(cuda.cuStreamCreate(flag)) for _ in range(2))
    counter = check(cuda.cuMemAllocManaged(4, cuda.CUmemAttach_flags.CU_MEM_ATTACH_GLOBAL))
    check(cuda.cuMemsetD32(counter, 0, 1))
    begin, middle, end = (check(cuda.cuEventCreate(0)) for _ in range(3))
    check(cuda.cuEventRecord(begin, first))
    launch(functions["spin"], first, 1, 1, ctypes.c_uint32(20_000))
    launch(functions["increment"], first, 1, 1, ctypes.c_void_p(int(counter)))
    check(cuda.cuEventRecord(middle, first))
    check(cuda.cuStreamWaitEvent(second, middle, 0))
    seen = (ctypes.c_uint32 * 2)()
    view = ctypes.cast(int(counter), ctypes.POINTER(ctypes.c_uint32))
    calls = [ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _, at=at: seen.__setitem__(at, view[0])) for at in range(2)]
    address = [ctypes.cast(call, ctypes.c_void_p).value for call in calls]
    check(cuda.cuLaunchHostFunc(second, cuda.CUhostFn(address[0]), 0))
    launch(functions["increment"], second, 1, 1, ctypes.c_void_p(int(counter)))
    check(cuda.cuLaunchHostFunc(second, cuda.CUhostFn(address[1]), 0))
    check(cuda.cuEventRecord(end, second))
    check(cuda.cuEventSynchronize(end))
    assert list(seen) == [1, 2], list(seen)
    took = check(cuda.cuEventElapsedTime(begin, middle))
    assert took >= 20, took
    for stream in (first, second):
        check(cuda.cuStreamDestroy(stream))
    for event in (begin, middle, end):
        check(cuda.cuEventDestroy(event))
    check(cuda.cuMemFree(counter))
    return list(seen)


def graph(functions):
    """A captured stream runs as often as its graph is launched."""
    stream = check(cuda.cuStreamCreate(cuda.CUstream_flags.CU_STREAM_NON_BLOCKING))
    counter = check(cuda.cuMemAllocManaged(4, cuda.CUmemAttach_flags.CU_MEM_ATTACH_GLOBAL))
    check(cuda.cuMemsetD32(counter, 0, 1))
    check(cuda.cuStreamBeginCapture(stream, cuda.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL))
    for _ in range(3):
        launch(functions["increment"], stream, 1, 1, ctypes.c_void_p(int(counter)))
    captured = check(cuda.cuStreamEndCapture(stream))
    nodes = check(cuda.cuGraphGetNodes(captured, 0))[1]
    executable = check(cuda.cuGraphInstantiate(captured, 0))
    for _ in range(4):
        check(cuda.cuGraphLaunch(executable, stream))
    check(cuda.cuStreamSynchronize(stream))
    value = ctypes.cast(int(counter), ctypes.POINTER(ctypes.c_uint32))[0]
    check(cuda.cuGraphExecDestroy(executable))
    check(cuda.cuGraphDestroy(captured))
    check(cuda.cuStreamDestroy(stream))
    check(cuda.cuMemFree(counter))
    assert (nodes, value) == (3, 12), (nodes, value)
    return nodes, value


def main():
    """Everything, or the computation so often."""
    check(cuda.cuInit(0))
    device = check(cuda.cuDeviceGet(0))
    context = check(cuda.cuDevicePrimaryCtxRetain(device))
    check(cuda.cuCtxSetCurrent(context))
    module = check(cuda.cuModuleLoadData(PTX))
    functions = {
        name: check(cuda.cuModuleGetFunction(module, name.encode())) for name in ("affine", "increment", "spin")
    }
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    default = cuda.CUstream(0)
    print("compute", *(compute(functions, length, default) for length in (1, 1000, 100_000) for _ in range(rounds)))
    print("order", *order(functions))
    print("graph", *graph(functions))
    assert cuda.cuModuleGetFunction(module, b"missing")[0] == cuda.CUresult.CUDA_ERROR_NOT_FOUND
    name = check(cuda.cuDeviceGetName(64, device)).split(b"\0")[0]
    if name.startswith(b"Laxity"):
        # NVIDIA's driver takes a handle for what it says to be.
        assert cuda.cuStreamSynchronize(cuda.CUstream(1 << 40))[0] == cuda.CUresult.CUDA_ERROR_INVALID_HANDLE
    check(cuda.cuModuleUnload(module))
    check(cuda.cuDevicePrimaryCtxRelease(device))
    print("end")


if __name__ == "__main__":
    main()
