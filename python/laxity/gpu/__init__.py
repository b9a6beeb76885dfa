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

Laxity decides who may use a GPU when; what is issued to it is the program's business (and that it is complete before
the engine is let go of). Whoever waits is suspended, without the GIL, and Ctrl-C ends that; whoever holds runs at the
priority that it inherits, where Linux permits that. Processes may be killed at any instruction: what they hold goes to
the next.

A client belongs to the thread that registered it. Tokens and engines are held from the call that answers with them, and
let go of at the end of `with`, by `release`, or when nobody refers to them any more.

A job that overruns: whoever watches its budget says `exhaust` to what `Client.budget` answers, in any thread. If the
job waits, its request is withdrawn, and made again at `replenish`; if it holds a token the next waiter is admitted in
its place, and has it when the job, which sees `is_exhausted`, lets go.

`look` shows who holds and waits, as a table; `names` and `gc` list arbitrations and remove what killed processes left.
Where there is no GPU, a `Device` opens soft ones, which stand in for it: copies and GPU kernels, which are functions of
Python. Kernels of `laxity.vx` use them, and take tokens and lock engines without saying so.

The rules are those of the Rust crate ``laxity-gpu``; every decision is made there.
"""

from laxity._native import Arbitration, Budget, Client, CopyChunks, Engine, Token, gc, look, names
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
