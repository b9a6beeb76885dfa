"""Tasks of the scheduler in the kernel, in Python: the kernel lab runs this program, whose argument names what it does.

It prints what it saw, and ends with an error where that is wrong. Tasks are processes of their own, unless they share a
lock.
"""

import itertools
import os
import signal
import sys
import threading
import time
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from laxity.sched import kernel

MS = 1_000_000


def children(*works: Callable[[], None]) -> None:
    """Runs each in a process of its own, and waits for all."""
    pids = []
    for work in works:
        pids.append(os.fork())
        if pids[-1] == 0:
            status = 1
            try:
                work()
                status = 0
            except BaseException as error:
                print(f"error: {error!r}", flush=True)
            finally:
                sys.stdout.flush()
                os._exit(status)
    assert all(os.waitpid(pid, 0)[1] == 0 for pid in pids), "a task failed"


def say(name: str, jobs: list[kernel.Job], **more: int) -> None:
    """Prints what is known of a task's jobs."""
    by_linux = sum(not job.is_scheduled for job in jobs)
    words = "".join(f" {key}={value}" for key, value in more.items())
    print(f"{name} jobs={len(jobs)} by_linux={by_linux}{words}", flush=True)


def compute(span_ns: int) -> None:
    """Uses the CPU."""
    end = time.thread_time_ns() + span_ns
    while time.thread_time_ns() < end:
        pass


def periodic(name: str, period_ms: int, cost_ms: int, jobs: int, start_ns: int) -> None:
    """Jobs once a period, each with a section in it."""
    seen = []
    with (
        kernel.Scheduler.join() as scheduler,
        scheduler.task(name, period=f"{period_ms} ms", wcet=f"{cost_ms} ms", start_ns=start_ns) as task,
    ):
        for job in task:
            seen.append(job)
            compute(cost_ms * MS // 2)
            with task.section():
                compute(cost_ms * MS // 4)
            if len(seen) == jobs:
                break
    apart = {second.release_ns - first.release_ns for first, second in itertools.pairwise(seen)}
    assert apart == {period_ms * MS}, apart
    assert seen[0].release_ns == start_ns
    assert all(job.deadline_ns - job.release_ns == period_ms * MS for job in seen)
    assert [job.index for job in seen] == list(range(jobs))
    say(name, seen)


BURSTS, BURST = 12, 4


def source(writer: int, start_ns: int) -> None:
    """A sporadic task: the gaps between its jobs are its own. Each writes four messages."""
    gaps_ms = [25, 35, 27, 50]
    seen = []
    with (
        kernel.Scheduler.join() as scheduler,
        scheduler.task("source", period="20 ms", wcet="2 ms", releases="told", start_ns=start_ns) as task,
    ):
        release_ns = start_ns
        for number in range(BURSTS):
            job = task.wait_for_job_at(release_ns, release_ns + 15 * MS if number else None)
            assert job.release_ns == release_ns
            assert job.deadline_ns == release_ns + (15 if number else 20) * MS, job
            seen.append(job)
            for _ in range(BURST):
                os.write(writer, b"message!")
            release_ns += gaps_ms[number % 4] * MS
    say("source", seen)


def consumer(reader: int) -> None:
    """A job for each message."""
    seen = []
    with (
        kernel.Scheduler.join() as scheduler,
        scheduler.task("consumer", period="4 ms", wcet="1 ms", releases="events") as task,
    ):
        while len(seen) < BURSTS * BURST:
            with task.event():
                message = os.read(reader, 8)
            assert message == b"message!"
            seen.append(task.job)
            compute(MS // 4)
    pairs = list(itertools.pairwise(seen))
    assert all(first.release_ns <= second.release_ns for first, second in pairs)
    say("consumer", seen, close=sum(second.deadline_ns - first.deadline_ns < 4 * MS for first, second in pairs))


def of_all_kinds() -> None:
    """Periodic jobs beside sporadic ones and those at events."""
    reader, writer = os.pipe()
    start_ns = time.monotonic_ns() + 1_000 * MS
    children(
        lambda: consumer(reader),
        lambda: source(writer, start_ns),
        lambda: periodic("fast", 25, 3, 20, start_ns),
        lambda: periodic("slow", 100, 20, 5, start_ns),
    )


def inversion() -> None:
    """Under FP: the most urgent task waits for a lock of the least urgent one, beside a third."""
    buffer, start_ns = bytes(8 << 20), time.monotonic_ns() + 1_000 * MS
    begin = time.thread_time_ns()
    zlib.crc32(buffer)
    hold_ns = time.thread_time_ns() - begin
    print(f"hold_us={hold_ns // 1_000}", flush=True)
    after_ns = start_ns + hold_ns // 2
    with kernel.Scheduler.join() as scheduler:
        lock = scheduler.lock()

        def locks(name: str, priority: int, start_ns: int, work: Callable[[], None]) -> None:
            with scheduler.task(name, period="2 s", priority=priority, start_ns=start_ns) as task:
                job = task.wait_for_next_job()
                with task.lock(lock):
                    work()
                end_ns = time.monotonic_ns()
            print(f"{name} response_us={(end_ns - job.release_ns) // 1_000}", flush=True)

        def middle() -> None:
            with (
                kernel.Scheduler.join() as own,
                own.task("middle", period="2 s", priority=1, start_ns=after_ns) as task,
            ):
                job = task.wait_for_next_job()
                compute(300 * MS)
                end_ns = time.monotonic_ns()
            print(f"middle response_us={(end_ns - job.release_ns) // 1_000}", flush=True)

        def both() -> None:
            # Without the GIL, so that the other one gets as far as to the lock.
            low = threading.Thread(target=locks, args=("low", 2, start_ns, lambda: zlib.crc32(buffer)))
            high = threading.Thread(target=locks, args=("high", 0, after_ns, lambda: None))
            for thread in [low, high]:
                thread.start()
            for thread in [low, high]:
                thread.join()

        child = os.fork()
        if child == 0:
            middle()
            os._exit(0)
        both()
        assert os.waitpid(child, 0)[1] == 0


def section() -> None:
    """A more urgent job is released amid a section."""
    release_ns = time.monotonic_ns() + 1_000 * MS

    def patient() -> None:
        with (
            kernel.Scheduler.join() as scheduler,
            scheduler.task("patient", period="1 s", start_ns=release_ns - 5 * MS) as task,
        ):
            task.wait_for_next_job()
            with task.section():
                while (end_ns := time.monotonic_ns()) < release_ns + 3 * MS:
                    pass
            after_ns = time.monotonic_ns()
        print(
            f"section end_us={(end_ns - release_ns) // 1_000} after_us={(after_ns - release_ns) // 1_000}", flush=True
        )

    def urgent() -> None:
        with (
            kernel.Scheduler.join() as scheduler,
            scheduler.task("urgent", period="1 s", deadline="10 ms", start_ns=release_ns) as task,
        ):
            job = task.wait_for_next_job()
            began_ns = time.monotonic_ns()
            assert job.release_ns == release_ns
            compute(2 * MS)
        print(f"urgent began_us={(began_ns - release_ns) // 1_000}", flush=True)

    children(patient, urgent)


def until_the_end() -> None:
    """Jobs until some of them were scheduled by Linux, because the scheduler ended."""

    def work(name: str, period_ms: int) -> None:
        seen = []
        with kernel.Scheduler.join() as scheduler, scheduler.task(name, period=f"{period_ms} ms") as task:
            for job in task:
                seen.append(job)
                compute(MS)
                if sum(not job.is_scheduled for job in seen) == 5:
                    break
            assert not task.is_scheduled
            refused(kernel.EndedError, "ended before it answered", scheduler.status)
        apart = {second.release_ns - first.release_ns for first, second in itertools.pairwise(seen)}
        assert apart == {period_ms * MS}, apart
        say(name, seen)

    children(lambda: work("fast", 20), lambda: work("slow", 70))


def interrupted() -> None:
    """Ctrl-C in each wait of a main thread, and a signal whose handler goes on."""

    def ends(name: str, wait: Callable[[kernel.Scheduler], None]) -> Callable[[], None]:
        def work() -> None:
            with kernel.Scheduler.join() as scheduler:
                threading.Timer(0.7, os.kill, (os.getpid(), signal.SIGINT)).start()
                begin = time.monotonic()
                try:
                    wait(scheduler)
                except KeyboardInterrupt:
                    # What may take a while, at the program's end.
                    compute(20 * MS)
                    print(f"{name} after_ms={int((time.monotonic() - begin) * 1_000)}", flush=True)
                else:
                    raise AssertionError("nothing was raised")
                assert kernel.look().pid == scheduler.status().pid

        return work

    def period(scheduler: kernel.Scheduler) -> None:
        with scheduler.task("long", period="100 s") as task:
            task.wait_for_next_job()
            task.wait_for_next_job()

    def first(scheduler: kernel.Scheduler) -> None:
        with scheduler.task("first", period="1 s", start_ns=time.monotonic_ns() + 100_000 * MS) as task:
            task.wait_for_next_job()

    def event(scheduler: kernel.Scheduler) -> None:
        reader, _ = os.pipe()
        with scheduler.task("event", period="1 s", releases="events") as task:
            while True:
                with task.event():
                    os.read(reader, 1)

    def held(scheduler: kernel.Scheduler) -> None:
        lock, is_held, ends = scheduler.lock(), threading.Event(), threading.Event()

        def hold() -> None:
            with scheduler.task("holder", period="100 s") as task:
                task.wait_for_next_job()
                with task.lock(lock):
                    is_held.set()
                    ends.wait()

        holder = threading.Thread(target=hold)
        holder.start()
        is_held.wait()
        try:
            with scheduler.task("waiter", period="50 s") as task:
                task.wait_for_next_job()
                with task.lock(lock):
                    pass
        finally:
            ends.set()
            holder.join()

    children(ends("period", period), ends("first", first), ends("event", event), ends("held", held), handled)


def handled() -> None:
    """A handler that returns does not end the wait, and the jobs stay as they are."""
    heard = []
    signal.signal(signal.SIGUSR1, lambda *_: (heard.append(time.monotonic_ns()), compute(5 * MS)))
    with kernel.Scheduler.join() as scheduler, scheduler.task("handles", period="2 s") as task:
        jobs = [task.wait_for_next_job()]
        sent = []

        def send() -> None:
            for _ in range(3):
                time.sleep(0.4)
                sent.append(time.monotonic_ns())
                os.kill(os.getpid(), signal.SIGUSR1)

        sender = threading.Thread(target=send)
        sender.start()
        jobs.append(task.wait_for_next_job())
        began_ns = time.monotonic_ns()
        sender.join()
    assert jobs[1].release_ns == jobs[0].release_ns + 2_000 * MS
    assert len(heard) == 3, heard
    after_ns = max(at - sent_ns for at, sent_ns in zip(heard, sent, strict=True))
    print(f"handled after_us={after_ns // 1_000} began_us={(began_ns - jobs[1].release_ns) // 1_000}", flush=True)


def refused(kind: type[Exception], text: str, call: Callable[[], object]) -> None:
    """That a call raises this."""
    said = None
    try:
        call()
    except kind as error:
        said = str(error)
    assert said is not None, f"no {kind.__name__}: {text}"
    assert text in said, said


def entered(part: kernel.Section | kernel.Hold | kernel.Event) -> Callable[[], object]:
    """A call that enters it."""
    return part.__enter__


def misused() -> None:
    """What cannot be is refused, and the task goes on."""
    with kernel.Scheduler.join() as scheduler:
        begin = scheduler.task
        refused(kernel.ConfigError, "cluster 63", lambda: begin("t", period="1 ms", cluster=63))
        refused(kernel.ConfigError, "a budget of 2000000 ns", lambda: begin("t", period="1 ms", budget="2 ms"))
        refused(kernel.ConfigError, 'releases="now" are none', lambda: begin("t", period="1 ms", releases="now"))
        refused(kernel.ConfigError, "due_ns is for", lambda: begin("t", period="1 ms", due_ns=1))
        refused(ValueError, "", lambda: begin("t", period="soon"))
        refused(kernel.ConfigError, "laxity sched irq", lambda: scheduler.interrupt_thread(1))
        lock = scheduler.lock()
        out_of_order(scheduler, lock)
        with begin("e", period="20 ms", releases="events") as task:
            refused(kernel.OrderError, "events release its jobs", task.wait_for_next_job)
            with task.event():
                refused(kernel.OrderError, "it waits for an event", entered(task.event()))
                refused(kernel.OrderError, "there is no job", entered(task.lock(lock)))
            assert task.job.index == 1
        # A thread that ends with a lock leaves it to others.
        ended = threading.Thread(target=ends_with, args=(scheduler, lock))
        ended.start()
        ended.join()
        with begin("next", period="20 ms") as task:
            task.wait_for_next_job()
            with task.lock(lock):
                pass
        status = kernel.look()
        assert (status.policy, status.clusters, status.dedicated) == ("G-EDF/CEm", [[0]], None)
        assert (status.pid, status.lost) == (scheduler.status().pid, 0)
    refused(kernel.UseError, "it is closed", scheduler.status)
    print("ok", flush=True)


def out_of_order(scheduler: kernel.Scheduler, lock: kernel.Lock) -> None:
    """Calls of a periodic task that are refused, in its thread, in another one and in children."""
    other = kernel.Scheduler.join().lock()
    with scheduler.task("t", period="20 ms", wcet="1 ms") as task:
        refused(kernel.OrderError, "there is no job", entered(task.section()))
        first = task.wait_for_next_job()
        assert (first.index, task.job, task.is_scheduled) == (0, first, True)
        refused(kernel.UseError, "another Scheduler", lambda: task.lock(other))
        refused(kernel.OrderError, "not released by events", entered(task.event()))
        refused(kernel.OrderError, "once a period", lambda: task.wait_for_job_at(1))
        with task.lock(lock):
            refused(kernel.OrderError, "wait for itself", entered(task.lock(lock)))
            refused(kernel.OrderError, "holds a lock", task.wait_for_next_job)
            refused(kernel.OrderError, "holds a lock", task.release)
        with task.section():
            refused(kernel.OrderError, "do not nest", entered(task.section()))
            refused(kernel.OrderError, "in a section", task.wait_for_next_job)
        children(lambda: refused(kernel.UseError, "forked", task.wait_for_next_job))
        child = os.fork()
        if child == 0:
            # With its copy of the task.
            sys.exit(0)
        assert os.waitpid(child, 0)[1] == 0
        with ThreadPoolExecutor() as threads:
            threads.submit(refused, kernel.UseError, "another thread", task.wait_for_next_job).result()
        second = task.wait_for_next_job()
        assert second.is_scheduled
        assert task.is_scheduled
        assert second.index > first.index
        assert (second.release_ns - first.release_ns) % (20 * MS) == 0
    refused(kernel.UseError, "it is released", task.wait_for_next_job)


def ends_with(scheduler: kernel.Scheduler, lock: kernel.Lock) -> None:
    """A task whose thread ends amid a job, with the lock."""
    task = scheduler.task("ends", period="20 ms")
    task.wait_for_next_job()
    task.lock(lock).__enter__()


if __name__ == "__main__":
    {work.__name__: work for work in [of_all_kinds, inversion, section, until_the_end, interrupted, misused]}[
        sys.argv[1]
    ]()
