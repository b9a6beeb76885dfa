"""Threads that are tasks of Laxity's scheduler in the kernel, which `laxity sched start`, as root, loads.

    from laxity.sched import kernel

    with kernel.Scheduler.join() as scheduler:
        with scheduler.task("control", period="10 ms", deadline="5 ms", budget="3 ms") as task:     # this thread
            for job in task:                    # completes the last job, waits for the next release and a CPU
                control(job.release_ns)
                with task.section():            # no job of another task preempts this, for 10 ms at most
                    publish()

A job that sleeps, in whatever call, is suspended; others get its CPU. Tasks of one process share locks, whose holders
inherit from those that wait, under EDF too: `lock = scheduler.lock()`, and then `with task.lock(lock):`.

Jobs need not be released once a period. With `releases="told"` the thread says when:
`task.wait_for_job_at(release_ns)`. With `releases="events"` the event does it that the thread waits for, in whatever
call:

    with scheduler.task("consumer", period="5 ms", releases="events") as task:
        while True:
            with task.event():                  # the first sleep completes the job, the wake-up releases the next one
                message = connection.recv()
            handle(message, task.job.deadline_ns)

When the scheduler ends, however that happens, tasks go on: Linux schedules them, and `Job.is_scheduled` says so.

All waits are without the GIL, and Ctrl-C ends those of the main thread. Tasks of one process share the GIL all the
same: a less urgent one that runs Python delays a more urgent one of the same process until it lets the GIL go, by 5 ms
or more (`sys.setswitchinterval`), and a job that waits for the GIL is suspended, and nothing inherits from it.
Tasks that must not wait for each other belong in processes of their own.

`look` says what the scheduler does. Times are in ns of `time.monotonic_ns`. The documentation of the Rust crate
``laxity-scx`` has the rules; every decision is made in the kernel.
"""

from laxity._native import KernelEvent as Event
from laxity._native import KernelExpectation as Expectation
from laxity._native import KernelHold as Hold
from laxity._native import KernelInterrupts as InterruptThread
from laxity._native import KernelJob as Job
from laxity._native import KernelLock as Lock
from laxity._native import KernelScheduler as Scheduler
from laxity._native import KernelSection as Section
from laxity._native import KernelStatus as Status
from laxity._native import KernelTask as Task
from laxity._native import kernel_look as look
from laxity.sched._errors import ConfigError, EndedError, NotRunningError, OrderError, SchedError, UseError

__all__ = [
    "ConfigError",
    "EndedError",
    "Event",
    "Expectation",
    "Hold",
    "InterruptThread",
    "Job",
    "Lock",
    "NotRunningError",
    "OrderError",
    "SchedError",
    "Scheduler",
    "Section",
    "Status",
    "Task",
    "UseError",
    "look",
]
