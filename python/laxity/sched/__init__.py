"""Threads that Laxity's own scheduler schedules: by the policies that are simulated, on any kernel with SCHED_FIFO.

    from laxity import sched

    with sched.System.create_or_attach("robot", clusters="0,1") as robot:       # EDF on CPUs 0 and 1
        with robot.task("control", period="10 ms", deadline="5 ms") as task:     # this thread
            for job in task:                    # completes the last job, waits for the next release
                control(job.release_ns)
                with task.section():            # no other task gets this CPU meanwhile
                    publish()
                with task.suspended():          # others get it
                    wait_for_device()

A system may have locks (`locks=[sched.Lock.queue()]`): `with task.lock(0)` waits suspended, and the job that holds the
lock inherits by the system's rule.

Tasks of all processes that name the system are scheduled together. A wait is without the GIL, and Ctrl-C ends that of
the main thread. Tasks of one process share the GIL: a less urgent one that runs Python delays a more urgent one of
the same process until it lets the GIL go, by 5 ms or more (`sys.setswitchinterval`). Tasks that must not wait for
each other belong in processes of their own.

`laxity.sched.kernel` is the same for Laxity's scheduler in the kernel.

`look` shows the tasks of a system as a table; `names` and `gc` list systems and remove what killed processes left.
Times are in ns of `time.monotonic_ns`. The rules are those of the Rust crate ``laxity-sched``; every decision is made
there.
"""

from laxity._native import Hold, Lock, Section, Suspension, System, Task, TaskJob
from laxity._native import sched_gc as gc
from laxity._native import sched_look as look
from laxity._native import sched_names as names
from laxity.sched._errors import (
    ConfigError,
    DifferentError,
    EndedError,
    FullError,
    NotRunningError,
    OrderError,
    RefusedError,
    SchedError,
    SystemExistsError,
    SystemNotFoundError,
    UseError,
)

__all__ = [
    "ConfigError",
    "DifferentError",
    "EndedError",
    "FullError",
    "Hold",
    "Lock",
    "NotRunningError",
    "OrderError",
    "RefusedError",
    "SchedError",
    "Section",
    "Suspension",
    "System",
    "SystemExistsError",
    "SystemNotFoundError",
    "Task",
    "TaskJob",
    "UseError",
    "gc",
    "look",
    "names",
]
