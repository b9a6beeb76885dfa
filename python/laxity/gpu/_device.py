"""Soft GPUs, and their memory."""

from __future__ import annotations

import math
import os
import shutil
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from laxity._native import _Device
from laxity.gpu._errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from laxity._native import Arbitration, _Buffer

_SERVER = "laxity-softgpu-server"


class Device:
    """Soft GPUs of this machine, which all processes share that open one of the name.

    A soft GPU stands in for a real one: an execution engine, and one or two copy engines, each first come, first served
    and never preempted. Its kernels are functions of Python, its memory is that of this machine, and so times say
    nothing of a real one. The first process to open it starts its server, which ends when no process uses it.

    Buffers and graphs that were spawned with it keep it open.

    Args:
        name: 1 to 64 bytes; if there are several, they are `name.0`, `name.1` and so on.
        arbitration: decides which job uses what when; None: first come, first served, as a driver does it.
        gpus: how many; None: as many as the arbitration has, or 1.
        memory: of each, such as "64 MiB".
        copy_engines: of each: 1, for both directions, or 2; None: as the arbitration has, or 2.
        copy_rate: bytes that a copy engine copies in a second, such as "4 GiB"; None: as fast as this machine does.
        linger: how long a server stays when no process uses it.
        spins: whether threads look for the completion of operations again and again, rather than be suspended.
        handling: how the threads are scheduled that handle interrupts: "owners", as urgently as the most urgent holder
            of a token; "as_is", as this thread; or a priority of SCHED_FIFO, 1 to 99.
        engines: likewise, those that carry out kernels and copies.
        server: the program that is a soft GPU's server; None: that of the package, or what the environment variable
            LAXITY_SOFTGPU_SERVER names.
        stack: of each thread that runs kernels and copies, such as "16 MiB"; None: as large as an ordinary thread's,
            which is `ulimit -s`, or 8 MiB if that is unlimited.
        bandwidth: the bandwidth lock is held around each operation, with this budget for each regulated CPU, such as
            "64 MB/s"; None: it is not. Needs an arbitration.

    Raises ConfigError, DifferentError if it is there and not like that, SoftGpuError if there is no server, else
    GpuError.
    """

    def __init__(
        self,
        name: str,
        *,
        arbitration: Arbitration | None = None,
        gpus: int | None = None,
        memory: str = "64 MiB",
        copy_engines: Literal[1, 2] | None = None,
        copy_rate: str | None = None,
        linger: str = "1 s",
        spins: bool = False,
        handling: Literal["owners", "as_is"] | int = "owners",
        engines: Literal["owners", "as_is"] | int = "owners",
        server: str | os.PathLike[str] | None = None,
        stack: str | None = None,
        bandwidth: str | None = None,
    ) -> None:
        self.name = name
        self._device = _Device(
            {
                "name": name,
                "arbitration": arbitration,
                "gpus": gpus,
                "memory": memory,
                "copy_engines": copy_engines,
                "copy_rate": copy_rate,
                "linger": linger,
                "spins": spins,
                "handling": handling,
                "engines": engines,
                "server": _server() if server is None else server,
                "stack": stack,
                "bandwidth": bandwidth,
            }
        )

    @property
    def gpus(self) -> int:
        """How many GPUs it has."""
        return self._device.gpus

    def alloc(self, shape: int | Sequence[int], dtype: npt.DTypeLike = np.uint8, gpu: int = 0) -> Buffer:
        """Memory for an array of this shape and type, in which anything may be.

        Args:
            shape: of the array.
            dtype: of its items.
            gpu: in whose memory, counted from 0.

        Raises DeviceMemoryError if there is not enough in one piece, UnknownGpuError.
        """
        kind = np.dtype(dtype)
        if kind.hasobject:
            msg = f"{kind} has references to objects of Python; use a type of numbers"
            raise ConfigError(msg)
        sides = (shape,) if isinstance(shape, int) else tuple(shape)
        return Buffer(self._device.alloc(math.prod(sides) * kind.itemsize, gpu), sides, kind, gpu)

    def __repr__(self) -> str:
        return f'<laxity.gpu.Device "{self.name}": {self.gpus} soft>'


class Buffer:
    """Memory of a soft GPU for an array. It is freed when no reference to it is left.

    Attributes:
        shape: of the array.
        dtype: of its items.
        gpu: in whose memory it is.
    """

    __slots__ = ("_buffer", "dtype", "gpu", "shape")

    def __init__(self, buffer: _Buffer, shape: tuple[int, ...], dtype: np.dtype[Any], gpu: int) -> None:
        self._buffer = buffer
        self.shape = shape
        self.dtype = dtype
        self.gpu = gpu

    @property
    def nbytes(self) -> int:
        """Bytes of the array."""
        return math.prod(self.shape) * self.dtype.itemsize

    def __repr__(self) -> str:
        return f"<laxity.gpu.Buffer of GPU {self.gpu}: {self.dtype} {self.shape}>"


def _server() -> Path | None:
    """The server that was installed with the package, if nothing else is to be taken."""
    installed = Path(sysconfig.get_path("scripts"), _SERVER)
    # A native one starts sooner. Without a name Rust looks where the environment says, and along PATH.
    is_elsewhere = "LAXITY_SOFTGPU_SERVER" in os.environ or shutil.which(_SERVER)
    return None if is_elsewhere or not installed.exists() else installed
