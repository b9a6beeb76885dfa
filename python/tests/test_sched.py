"""Threads of Python that Laxity's own scheduler schedules."""

import fcntl
import gc
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

import pytest

from laxity import sched

CPU = str(max(os.sched_getaffinity(0)))


@pytest.fixture
def folder():
    """A folder of its own, where no test leaves anything."""
    with tempfile.TemporaryDirectory(prefix="laxity-python-sched-", dir="/dev/shm") as path:
        yield path
        gc.collect()
        assert os.listdir(path) == [], "the last one out takes the system along"


@pytest.fixture
def alone():
    """Systems of two tests would starve each other on one CPU: one test of this machine has one at a time."""
    with open("/dev/shm/laxity-test-sched.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture
def robot(folder, alone):
    """One CPU, on which the earliest deadline is first."""
    with sched.System.create("robot", clusters=CPU, directory=folder) as robot:
        try:
            robot.task("permission", period="1 s").release()
        except sched.RefusedError as refused:
            pytest.skip(str(refused))
        yield robot


def state(robot, name):
    return next(row["state"] for row in robot.snapshot().to_pylist() if row["name"] == name)


def test_jobs_follow_each_other_a_period_apart_and_the_thread_is_scheduled_as_before(robot):
    before = os.sched_getscheduler(0), os.sched_getaffinity(0)
    with robot.task("control", period="5 ms", deadline="4 ms") as task:
        jobs = [job for job, _ in zip(task, range(3), strict=False)]
        assert [job.index for job in jobs] == [0, 1, 2]
        assert [job.release_ns - jobs[0].release_ns for job in jobs] == [0, 5_000_000, 10_000_000]
        assert all(job.deadline_ns - job.release_ns == 4_000_000 for job in jobs)
        assert os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK == os.SCHED_FIFO
        (row,) = robot.snapshot().to_pylist()
        assert (row["name"], row["pid"], row["period_ns"]) == ("control", os.getpid(), 5_000_000)
        with pytest.raises(sched.OrderError, match="call it before the first wait"):
            task.start_at(0)
        with pytest.raises(sched.OrderError, match="this thread is task control of system robot already"):
            robot.task("second", period="5 ms")
    assert (os.sched_getscheduler(0), os.sched_getaffinity(0)) == before
    assert robot.snapshot().num_rows == 0


def test_a_suspended_job_is_suspended_for_the_with(robot):
    with robot.task("control", period="1 s") as task:
        task.wait_for_next_job()
        assert state(robot, "control") == "linked"
        with task.suspended():
            assert state(robot, "control") == "suspended"
            with pytest.raises(sched.OrderError, match="completion needs a job"):
                task.complete()
        assert task.is_linked
        task.complete()
        assert state(robot, "control") == "parked"


def test_a_section_keeps_the_cpu_from_an_earlier_deadline(robot):
    order, released = [], threading.Event()

    def urgent():
        with robot.task("urgent", period="1 s", deadline="1 ms") as task:
            released.set()
            task.wait_for_next_job()
            order.append("urgent")

    with robot.task("patient", period="1 s") as task:
        task.wait_for_next_job()
        with task.section():
            thread = threading.Thread(target=urgent)
            thread.start()
            released.wait()
            # The policy gives it the CPU, and the section keeps it from it.
            end = time.monotonic() + 20
            while state(robot, "urgent") == "parked":
                assert time.monotonic() < end
            order.append("patient")
        thread.join()
    assert order == ["patient", "urgent"]


def test_a_job_that_uses_up_its_budget_waits_for_the_next_one(robot):
    with robot.task("greedy", period="100 ms", budget="20 ms") as task:
        job = task.wait_for_next_job()
        end = time.thread_time() + 0.05
        while time.thread_time() < end:
            pass
        task.complete()
        # Without a budget it computed on, where no other thread wanted the CPU; complete it is with the next one.
        assert time.monotonic_ns() >= job.release_ns + 100_000_000
        assert task.job == job
    assert robot.snapshot().num_rows == 0


def test_the_holder_of_a_lock_inherits_the_deadline_of_the_job_that_waits(folder, robot):
    robot.close()
    locks = [sched.Lock.queue(order="fifo"), sched.Lock.tokens(gpus=2)]
    order = []

    def urgent(shop, deadline):
        with shop.task("urgent", period="10 s", deadline="1 s") as task:
            task.wait_for_next_job()
            deadline.append(task.job.deadline_ns)
            with task.lock(0, length="1 ms") as replica:
                order.append(("urgent", replica))

    with (
        sched.System.create("shop", clusters=CPU, locks=locks, directory=folder) as shop,
        shop.task("patient", period="100 s") as task,
    ):
        with pytest.raises(sched.OrderError, match="a lock needs a job"), task.lock(0):
            pass
        task.wait_for_next_job()
        with task.lock(1, gpu=1) as replica:
            assert replica == 1
        with pytest.raises(sched.OrderError, match="needs one of the system's"), task.lock(2):
            pass
        with task.lock(0) as replica:
            assert replica == 0
            with pytest.raises(sched.OrderError, match="does not hold"), task.lock(0):
                pass
            deadline = []
            thread = threading.Thread(target=urgent, args=(shop, deadline))
            with task.suspended():
                thread.start()
            end = time.monotonic() + 60
            while not deadline or state(shop, "urgent") != "suspended":
                assert time.monotonic() < end
                time.sleep(0.001)
            order.append(("patient", replica))
        thread.join()
    assert order == [("patient", 0), ("urgent", 0)]


def test_a_lock_that_cannot_be_is_refused(folder, alone):
    with pytest.raises(sched.ConfigError, match='order "lifo" is none; write "priority" or "fifo"'):
        sched.Lock.queue(order="lifo")
    with pytest.raises(sched.ConfigError, match="replicas of a lock: 0 is outside 1 to 65535"):
        sched.System.create("shop", clusters=CPU, locks=[sched.Lock.queue(0)], directory=folder)


def test_what_cannot_be_is_refused_with_the_way_out(robot, folder):
    with pytest.raises(sched.ConfigError, match='rule "PID" is none; write "EDF"'):
        sched.System.create("other", rule="PID", directory=folder)
    with pytest.raises(sched.ConfigError, match="no list of CPUs"):
        sched.System.create("other", clusters="all", directory=folder)
    with pytest.raises(sched.ConfigError, match="there is no CPU 1023 here"):
        sched.System.create("other", clusters="1023", directory=folder)
    with pytest.raises(sched.ConfigError, match="contains a control character"):
        robot.task("t\x1b[2J", period="1 ms")
    with pytest.raises(sched.SystemExistsError):
        sched.System.create("robot", clusters=CPU, directory=folder)
    with pytest.raises(sched.DifferentError):
        sched.System.create_or_attach("robot", rule="RM", clusters=CPU, directory=folder)
    with pytest.raises(sched.SystemNotFoundError):
        sched.look("robots", directory=folder)
    with pytest.raises(sched.ConfigError, match="cluster 3 is not one of the system's 1"):
        robot.task("t", period="1 ms", cluster=3)
    with pytest.raises(ValueError, match='server="cbs" is unknown; write "cbs_hard", "cbs_soft" or "sporadic"'):
        robot.task("t", period="1 ms", budget="1 ms", server="cbs")
    with pytest.raises(sched.ConfigError, match="server budget 2 ms in period 1 ms"):
        robot.task("t", period="1 ms", budget="2 ms")
    assert sched.names(directory=folder) == ["robot"]


def test_another_thread_cannot_use_the_task(robot):
    raised = []

    def use(task):
        try:
            task.complete()
        except sched.UseError as error:
            raised.append(str(error))

    with robot.task("control", period="1 s") as task:
        thread = threading.Thread(target=use, args=(task,))
        thread.start()
        thread.join()
    assert "it is another thread" in raised[0]
    with pytest.raises(sched.UseError, match="it is released"):
        task.complete()


WAITING = """
import sys
from laxity import sched

with sched.System.attach("robot", directory=sys.argv[1]) as robot:
    with robot.task("waiting", period="1000 s") as task:
        task.wait_for_next_job()
        print("has its first job", flush=True)
        task.wait_for_next_job()
"""


def test_ctrl_c_ends_a_wait_and_a_kill_leaves_no_task(robot, folder):
    for number, status in ((signal.SIGINT, -signal.SIGINT), (signal.SIGKILL, -signal.SIGKILL)):
        command = [sys.executable, "-c", WAITING, folder]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout.readline() == "has its first job\n"
            end = time.monotonic() + 20
            while state(robot, "waiting") != "parked":
                assert time.monotonic() < end
            process.send_signal(number)
            _, told = process.communicate(timeout=20)
        assert process.returncode == status
        assert ("KeyboardInterrupt" in told) == (number == signal.SIGINT)
        end = time.monotonic() + 20
        while robot.snapshot().num_rows > 0:
            assert time.monotonic() < end


def test_tasks_of_two_processes_are_one_system(robot, folder):
    command = [sys.executable, "-c", WAITING, folder]
    with robot.task("urgent", period="1 s", deadline="1 ms") as task:
        task.wait_for_next_job()
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            # It has a job, and this one keeps the CPU.
            end = time.monotonic() + 20
            while [row["state"] for row in robot.snapshot().to_pylist() if row["name"] == "waiting"] != ["ready"]:
                assert time.monotonic() < end
            assert state(robot, "urgent") == "linked"
            task.complete()
            assert process.stdout.readline() == "has its first job\n"
            process.kill()


def test_a_forked_child_attaches_by_itself(robot, folder):
    child = os.fork()
    if child == 0:
        status = 1
        try:
            robot.snapshot()
        except sched.UseError as error:
            with sched.System.attach("robot", directory=folder) as own:
                status = 0 if "forked" in str(error) and own.rule == "EDF" else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
