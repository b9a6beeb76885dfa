"""The exceptions of `laxity.sched`. Each can be pickled, so that it survives a trip from a worker process."""

from __future__ import annotations

from laxity._errors import LaxityError


class SchedError(LaxityError):
    """Whatever a system raises that is not an error of the caller's Python."""

    def __str__(self) -> str:
        return str(self.args[0])


class ConfigError(SchedError, ValueError):
    """An argument cannot be: a name, a rule, a list of CPUs, a cluster, a span."""


class SystemExistsError(SchedError):
    """A system that is in use has the name."""


class SystemNotFoundError(SchedError, LookupError):
    """No system has the name."""


class NotRunningError(SystemNotFoundError):
    """Laxity's scheduler is not in the kernel."""


class EndedError(SchedError):
    """The scheduler in the kernel ended before it answered."""


class DifferentError(SchedError):
    """The system that has the name is configured in another way."""


class FullError(SchedError):
    """As many threads are tasks, or processes attached, as can be."""


class RefusedError(SchedError, PermissionError):
    """Linux does not let the thread have SCHED_FIFO or the CPUs of its cluster."""


class OrderError(SchedError, RuntimeError):
    """Asked for in the wrong order: there is no job, or one already, or it is suspended."""


class UseError(SchedError, RuntimeError):
    """It cannot be used, or not here: it is released or closed, another thread has it, this is a forked child."""
