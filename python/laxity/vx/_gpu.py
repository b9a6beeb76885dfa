"""The GPU of a job of a vision graph."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt
    from typing_extensions import Buffer as Memory

    from laxity._native import _VxGpu
    from laxity.gpu import Buffer


class Gpu:
    """The GPU that a job uses, in the thread of its node and until its kernel returns.

    Operations return when the GPU has done them; other threads of Python go on meanwhile. With an arbitration the first
    one takes a token, which the job holds until its kernel returns, or `release`; each locks the engine that it needs,
    and long copies are broken into chunks if the arbitration says so. Jobs are as urgent to the GPU as to Linux: by the
    priority of the node's thread under SCHED_FIFO, else by their deadlines.

    All methods raise laxity.gpu.UseError in other threads and when the job is over, SoftGpuError if the server of the
    soft GPU has ended, ForeignBufferError for buffers of another GPU than the one whose token the job holds, else
    GpuError.
    """

    __slots__ = ("_gpu",)

    def __init__(self, gpu: _VxGpu) -> None:
        self._gpu = gpu

    def copy_in(self, buffer: Buffer, array: npt.NDArray[Any]) -> None:
        """Copies an array of the buffer's shape and type into it.

        Raises ValueError for another shape or type.
        """
        _check(buffer, array)
        self._gpu.copy_in(buffer._buffer, _bytes(np.ascontiguousarray(array)))

    def copy_out(self, buffer: Buffer, out: npt.NDArray[Any] | None = None) -> npt.NDArray[Any]:
        """Copies all of a buffer to `out`, an array of the buffer's shape and type, contiguous; None: a new one.

        Returns the array. Raises ValueError for one that cannot be.
        """
        if out is None:
            out = np.empty(buffer.shape, buffer.dtype)
        _check(buffer, out)
        if not (out.flags.writeable and out.flags.c_contiguous):
            msg = "what a buffer is copied to must be contiguous, and not read-only; give such an array, or none"
            raise ValueError(msg)
        self._gpu.copy_out(buffer._buffer, _bytes(out))
        return out

    def launch(
        self,
        kernel: Callable[..., Any],
        *,
        read: Sequence[Buffer] = (),
        write: Sequence[Buffer] = (),
        duration: str | None = None,
    ) -> None:
        """Runs a GPU kernel: calls `kernel` with an array for each buffer in `read` and then in `write`.

        They are device memory in place, of the buffers' shapes, and end with the kernel: one that keeps an array fails.
        The first ones are read-only. It runs on a thread of the soft GPU's and cannot issue operations. Its exception
        is raised here.

        Args:
            kernel: such as `np.invert`; its answer does not matter.
            read: what it reads.
            write: what it reads and writes.
            duration: the execution engine is busy for so long at least, such as "2 ms".
        """
        self._gpu.launch(
            _on_arrays(kernel, [*read, *write]),
            [buffer._buffer for buffer in read],
            [buffer._buffer for buffer in write],
            duration,
        )

    def launch_timed(self, duration: str) -> None:
        """Occupies the execution engine for so long, such as "2 ms". No CPU is used meanwhile."""
        self._gpu.launch_timed(duration)

    def copy_timed(self, direction: Literal["h2d", "d2h"], nbytes: int) -> None:
        """Occupies a copy engine for as long as `nbytes` bytes take by the device's `copy_rate`. Nothing is copied."""
        self._gpu.copy_timed(direction, nbytes)

    def acquire(self, gpu: int | None = None) -> int:
        """Takes a token now rather than with the first operation, if there is an arbitration and the job holds none.

        Args:
            gpu: the only GPU that will do, counted from 0; None: any.

        Returns which GPU the job uses. Raises UnknownGpuError.
        """
        return self._gpu.acquire(gpu)

    def release(self) -> None:
        """The job needs no GPU any more, though it goes on: lets go of the token; of none, nothing.

        The next operation would take another.
        """
        self._gpu.release()

    @property
    def token_gpu(self) -> int | None:
        """The GPU whose token the job holds; None if it holds none."""
        return self._gpu.token_gpu

    @property
    def holds_token(self) -> bool:
        """Whether the job holds a token."""
        return self.token_gpu is not None

    def __repr__(self) -> str:
        return "<laxity.vx.Gpu>"


def _check(buffer: Buffer, array: npt.NDArray[Any]) -> None:
    if (array.shape, array.dtype) != (buffer.shape, buffer.dtype):
        buffer_is = f"{buffer.dtype} of shape {buffer.shape}"
        msg = f"the array is {array.dtype} of shape {array.shape}, and the buffer {buffer_is}; make them alike"
        raise ValueError(msg)


def _bytes(array: npt.NDArray[Any]) -> memoryview:
    """The bytes of a contiguous array, in place."""
    return array.reshape(-1).view(np.uint8).data


def _on_arrays(kernel: Callable[..., Any], buffers: Sequence[Buffer]) -> Callable[..., None]:
    """`kernel` with arrays instead of memory."""
    shapes = [(buffer.dtype, buffer.shape) for buffer in buffers]

    def run(*memories: Memory) -> None:
        views = zip(memories, shapes, strict=True)
        arrays = [np.frombuffer(memoryview(memory), dtype).reshape(shape) for memory, (dtype, shape) in views]
        try:
            kernel(*arrays)
        except BaseException as error:
            # Its frames refer to arrays, which end here.
            traceback.clear_frames(error.__traceback__)
            raise
        finally:
            arrays.clear()

    return run
