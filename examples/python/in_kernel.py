"""Two tasks of the scheduler in the kernel: a producer, once a period, and a consumer, at events.

    producer --message--> consumer       sudo laxity sched start &    # a kernel with sched_ext
                                         sudo python in_kernel.py

Prints "consumer: 50 jobs, 50 by Laxity" and "producer: 50 jobs, 50 by Laxity"; fewer if the scheduler ends meanwhile.
Each task is a process of its own, so that none waits for the other's Python. docs/guides/kernel.md has more.
"""

import os
import sys

from laxity.sched import kernel

MESSAGES, BYTES = 50, 8


def producer(writer: int) -> tuple[int, int]:
    """Writes when each job was released. Returns how many jobs it had, and how many of them Laxity scheduled."""
    by_laxity = 0
    with kernel.Scheduler.join() as scheduler, scheduler.task("producer", period="20 ms", wcet="2 ms") as task:
        for number, job in enumerate(task, 1):
            by_laxity += job.is_scheduled
            os.write(writer, job.release_ns.to_bytes(BYTES, "little"))
            if number == MESSAGES:
                break
    return number, by_laxity


def consumer(reader: int) -> tuple[int, int]:
    """Reads until there is nothing more."""
    jobs = by_laxity = 0
    with (
        kernel.Scheduler.join() as scheduler,
        scheduler.task("consumer", period="20 ms", deadline="10 ms", wcet="2 ms", releases="events") as task,
    ):
        while True:
            with task.event():  # the sleep completes the job, the wake-up releases the next one
                message = os.read(reader, BYTES)
            if not message:
                return jobs, by_laxity
            jobs += 1
            by_laxity += task.job.is_scheduled


def main() -> int:
    """Runs the consumer in a child."""
    reader, writer = os.pipe()
    try:
        kernel.look()
    except kernel.NotRunningError as reason:
        print(reason, file=sys.stderr)
        return 1
    child = os.fork()
    if child == 0:
        os.close(writer)
        jobs, by_laxity = consumer(reader)
        print(f"consumer: {jobs} jobs, {by_laxity} by Laxity", flush=True)
        return 0
    os.close(reader)
    jobs, by_laxity = producer(writer)
    os.close(writer)
    os.waitpid(child, 0)
    print(f"producer: {jobs} jobs, {by_laxity} by Laxity")
    return 0


if __name__ == "__main__":
    sys.exit(main())
