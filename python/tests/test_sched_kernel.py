"""Tasks of the scheduler in the kernel, where there is none; kernel_lab_python.py runs them where there is one."""

import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from laxity import LaxityError, sched
from laxity.sched import kernel

EXAMPLE = Path(__file__).parents[2] / "examples" / "python" / "in_kernel.py"

try:
    kernel.look()
    pytest.skip("Laxity's scheduler is in the kernel", allow_module_level=True)
except kernel.NotRunningError:
    pass


def test_without_a_scheduler_the_error_says_how_to_start_it():
    way_out = "is not in the kernel; `laxity sched start`, as root, loads it"
    with pytest.raises(kernel.NotRunningError, match=way_out) as caught:
        kernel.Scheduler.join()
    with pytest.raises(kernel.NotRunningError, match=way_out):
        kernel.look()
    # As that of a system that is not there, and it survives the trip from a worker process.
    assert all(isinstance(caught.value, kind) for kind in [sched.SystemNotFoundError, LookupError, LaxityError])
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again)) == (kernel.NotRunningError, str(caught.value))


def test_the_example_says_so_and_fails():
    done = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "Laxity's scheduler is not in the kernel; `laxity sched start`, as root, loads it\n"


def test_what_a_task_needs_is_loaded_without_pyarrow():
    # A control program starts sooner, and its process is smaller.
    code = (
        "import sys; from laxity.sched import kernel; print(sorted({'numpy', 'pandas', 'pyarrow'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_objects_of_the_module_are_made_by_it_alone():
    for name in [
        "Event",
        "Expectation",
        "Hold",
        "InterruptThread",
        "Job",
        "Lock",
        "Scheduler",
        "Section",
        "Status",
        "Task",
    ]:
        with pytest.raises(TypeError, match=r"[Nn]o constructor|cannot create"):
            getattr(kernel, name)()


# A process that answers as no scheduler of this version would, and what is raised then.
STRANGER = """
import os, socket, threading
import pytest
from laxity.sched import kernel

listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind("\\0laxity/kernel-scheduler")
listener.listen()

def answer():
    for packet in [b'{"refused":"no room"}', b"what?", None, None]:
        connection, _ = listener.accept()
        if packet:
            connection.recv(100_000)
            connection.send(packet)
        connection.close()

threading.Thread(target=answer, daemon=True).start()
with pytest.raises(kernel.ConfigError, match="the scheduler in the kernel: no room"):
    kernel.look()
with pytest.raises(kernel.SchedError, match="cannot be asked"):
    kernel.look()
with pytest.raises(kernel.EndedError, match="ended before it answered"):
    kernel.look()
scheduler = kernel.Scheduler.join()
with pytest.raises(ValueError, match='write it like "5 ms"'):
    scheduler.task("t", period="soon")
with pytest.raises(kernel.ConfigError, match='releases="now" are none; write "periodic", "told" or "events"'):
    scheduler.task("t", period="1 ms", releases="now")
with pytest.raises(kernel.ConfigError, match='due_ns is for releases="told", and these are "events"'):
    scheduler.task("t", period="1 ms", releases="events", due_ns=5)
with pytest.raises(kernel.EndedError):
    scheduler.task("t", period="1 ms")
child = os.fork()
if child == 0:
    with pytest.raises(kernel.UseError, match="was forked"):
        scheduler.status()
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
with scheduler:
    scheduler.lock()
with pytest.raises(kernel.UseError, match="it is closed; join again"):
    scheduler.prepare()
print("ok")
"""


def test_answers_that_are_none_are_errors_and_so_is_a_wrong_use():
    # Its address is one of a network namespace: in one of its own it is no other test's.
    alone = ["unshare", "--map-root-user", "--net"]
    if not shutil.which("unshare") or subprocess.run([*alone, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no network namespace of its own is allowed")
    done = subprocess.run([*alone, sys.executable, "-c", STRANGER], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("ok\n", 0), done.stderr
