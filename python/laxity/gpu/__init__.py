"""GPUs that processes share: tokens for jobs, and locks of engines for their operations.

    from laxity import gpu

    with gpu.Arbitration.create_or_attach("car", gpus=1, tokens=2, chunk="1 MiB") as car:
        with car.client("detector", priority=50) as me:             # this thread
            for image in images:
                with me.token() as token:                           # a GPU, for this job
                    for chunk in token.copy_chunks("h2d", len(image)):
                        copy_to(token.gpu, image[chunk])            # and wait until it is complete
                    with token.execution_engine():
                        launch_and_wait(token.gpu)
                    with token.copy_engine("d2h"):
                        result = copy_from(token.gpu)

Laxity decides which job may use a GPU when. The program issues the operations, and sees to it that they are complete
before it unlocks the engine. A waiter is suspended, without the GIL, and Ctrl-C ends its wait. A holder runs at the
priority that it inherits, where Linux permits that. Processes may be killed at any instruction: the next waiter gets
what they held.

A client belongs to the thread that registered it. Tokens and engines are held from the call that answers with them
until the end of `with`, until `release`, or until no reference to them is left.

If a job overruns its budget, the thread that watches the budget calls `exhaust` of `Client.budget`; it may be any
thread. If the job waits, its request is withdrawn, and made again at `replenish`. If the job holds a token, the next
waiter is admitted in its place, and gets the token when the job, which sees `is_exhausted`, returns it.

Memory-bound work is protected from best-effort programs by the bandwidth lock: `with me.lock_bandwidth("64 MB/s")`.
`laxity bandwidth regulate` throttles CPUs that exceed the budget meanwhile.

`look` shows holders and waiters as a table; `names` and `gc` list arbitrations and remove what killed processes left.
Where there is no GPU, a `Device` opens soft ones, which stand in for it: copies and GPU kernels, which are functions of
Python. Kernels of `laxity.vx` use them, and take tokens and lock engines without saying so.

The rules are those of the Rust crate ``laxity-gpu``; every decision is made there.
"""

from laxity._native import Arbitration, BandwidthLock, Budget, Client, CopyChunks, Engine, Token, gc, look, names
from laxity.gpu._device import Buffer, Device
from laxity.gpu._errors import (
    ArbitrationExistsError,
    ArbitrationNotFoundError,
    ConfigError,
    DeviceMemoryError,
    DifferentError,
    ForeignBufferError,
    FullError,
    GpuError,
    OrderError,
    SoftGpuError,
    TimedOutError,
    UnknownGpuError,
    UseError,
)

__all__ = [
    "Arbitration",
    "ArbitrationExistsError",
    "ArbitrationNotFoundError",
    "BandwidthLock",
    "Budget",
    "Buffer",
    "Client",
    "ConfigError",
    "CopyChunks",
    "Device",
    "DeviceMemoryError",
    "DifferentError",
    "Engine",
    "ForeignBufferError",
    "FullError",
    "GpuError",
    "OrderError",
    "SoftGpuError",
    "TimedOutError",
    "Token",
    "UnknownGpuError",
    "UseError",
    "gc",
    "look",
    "names",
]
