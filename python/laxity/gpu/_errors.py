"""The exceptions of `laxity.gpu`. Each can be pickled, so that it survives a trip from a worker process."""

from __future__ import annotations

from laxity._errors import LaxityError


class GpuError(LaxityError):
    """Whatever an arbitration raises that is not an error of the caller's Python."""

    def __str__(self) -> str:
        return str(self.args[0])


class ConfigError(GpuError, ValueError):
    """An argument cannot be: a name, a number of GPUs or tokens, a priority, a direction."""


class ArbitrationExistsError(GpuError):
    """An arbitration that is in use has the name."""


class ArbitrationNotFoundError(GpuError, LookupError):
    """No arbitration has the name."""


class DifferentError(GpuError):
    """The arbitration that has the name is configured in another way."""


class FullError(GpuError):
    """As many threads are registered, or processes attached, as can be."""


class TimedOutError(GpuError, TimeoutError):
    """Nothing was granted in time."""


class OrderError(GpuError, RuntimeError):
    """Asked for in the wrong order: a token, then engines in the order of GPUs and of EE, CE0, CE1."""


class UnknownGpuError(GpuError, LookupError):
    """There is no such GPU."""


class UseError(GpuError, RuntimeError):
    """It cannot be used, or not here: it is let go of, another thread registered it, this is a forked child."""


class SoftGpuError(GpuError):
    """There is no soft GPU: its server cannot be started, or has ended. Open the device again."""


class DeviceMemoryError(GpuError, MemoryError):
    """There is not enough memory of a GPU in one piece, or the machine has not as much for a soft GPU."""


class ForeignBufferError(GpuError, ValueError):
    """A buffer is in the memory of another GPU than the one that the job uses."""
