"""Bodies of live runs that keep arrays, raise what is odd, crash, or do not come back: in programs of their own.

They may take the program with them.
"""

import os
import signal
import subprocess
import sys
import textwrap

import pytest

import laxity

PROGRAM = """
import os, signal, sys, threading, time
import laxity

NAME = "failures-%d" % os.getpid()
graph = {
    "name": NAME,
    "edge": [{"from": "camera", "to": "detect", "message": "64 B"}],
    "node": [{"name": "camera", "period": "10 ms", "wcet": "1 ms"}, {"name": "detect", "wcet": "1 ms"}],
}
car = laxity.workload("car", cpus=1, graphs=[graph], policy="P-RM")
kept, lengths = [], []


def run(duration="200 ms", **bodies):
    try:
        bodies = {f"{NAME}/{node}": body for node, body in bodies.items()}
        result = laxity.run(car, bodies, scheduler="other", duration=duration)
    except laxity.RunError as error:
        print(error, flush=True)
    else:
        print("ran", result.total["completed"], flush=True)


def left():
    print([name for name in os.listdir("/dev/shm") if NAME in name], flush=True)
"""


def program(code, **options):
    """Runs `code` as a program, which has `run` and `left` of above."""
    source = PROGRAM + textwrap.dedent(code)
    return subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, timeout=60, check=False, **options
    )


@pytest.mark.parametrize(
    "keep",
    [
        "np.frombuffer(job.input()[0], dtype=np.uint8)",
        "np.asarray(job.input()[0])",
        "np.asarray(job.input()[0])[3:5]",
        "job.input()[0][:8]",
        "memoryview(job.input()[0])",
        "job.input()[0].cast('H')",
        "memoryview(job.input()[0]).toreadonly()",
    ],
)
def test_what_is_kept_of_a_message_ends_the_run_and_can_still_be_read(keep):
    ended = program(
        f"""
        import numpy as np

        def detect(job):
            kept.append({keep})

        run(camera=lambda job: job.output()[0].__setitem__(slice(None), b"x" * 64), detect=detect)
        left()
        print(len(kept), bytes(kept[0])[:2])
        kept.clear()
        run()
        """
    )
    assert ended.returncode == 0, ended.stderr
    error, names, seen, again = ended.stdout.splitlines()
    assert "job 0: its code failed: it keeps a message beyond its job" in error
    assert (names, seen) == ("[]", "1 b'xx'")
    assert again.startswith("ran")


def test_what_is_kept_of_a_message_that_goes_out_ends_the_run():
    ended = program(
        """
        import numpy as np

        run(camera=lambda job: kept.append(np.frombuffer(job.output("detect")[0], dtype=np.uint8)))
        kept[0][:] = 1
        """
    )
    assert ended.returncode == 0, ended.stderr
    assert "job 0: its code failed: it keeps a message beyond its job" in ended.stdout


def test_what_is_kept_by_a_body_that_raises_can_still_be_read():
    ended = program(
        """
        import numpy as np

        def detect(job):
            kept.append(np.asarray(job.input()[0]))
            raise RuntimeError("no lens")

        run(detect=detect)
        print(len(bytes(kept[0])))
        """
    )
    assert ended.returncode == 0, ended.stderr
    assert "RuntimeError: no lens" in ended.stdout
    assert ended.stdout.endswith("64\n")


def test_a_view_or_a_job_that_is_kept_is_released():
    ended = program(
        """
        def detect(job):
            kept.append((job, job.input()[0]))

        run(detect=detect)
        job, view = kept[0]
        for use in (lambda: bytes(view), lambda: bytes(job.input()[0])):
            try:
                use()
            except ValueError as error:
                print(error)
        """
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[0].startswith("ran")
    assert ended.stdout.count("released memoryview") == 2


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("job.output().resize(0.5)", "TypeError: 'float' object cannot be interpreted as an integer (<string>:"),
        ("job.output().resize(-1)", "ValueError: -1 bytes do not fit into a message of 64 (<string>:"),
        (
            "job.output().lengths.__setitem__(0, 2**70)",
            "it changed the lengths of its messages otherwise than by `resize`",
        ),
        ("job.output().lengths.clear()", "it changed the lengths of its messages otherwise than by `resize`"),
        (
            "open(b'/no/\\xff.bin'.decode('utf8', 'surrogateescape'))",
            "FileNotFoundError: [Errno 2] No such file or directory",
        ),
        ("raising('a\\0b\\ud800c')", "ValueError: a\\x00b\\\\ud800c (<string>:"),
        ("raising(Unprintable())", "ValueError: (its text cannot be made) (<string>:"),
        ("job.input()", "KeyError: '0 edges with messages have the peer None; those that there are: none' (<string>:"),
        ("job.output()[1]", "IndexError: message 1 is not among the 1 of 'detect' (<string>:"),
        ("sys.exit(3)", "SystemExit: 3 (<string>:"),
    ],
)
def test_whatever_a_body_raises_ends_the_run_at_that_job(body, words):
    ended = program(
        f"""
        class Unprintable:
            def __str__(self):
                raise RuntimeError

        def raising(text):
            raise ValueError(text)

        def camera(job):
            if job.index == 3:
                {body}

        run(camera=camera, detect=lambda job: lengths.append(len(job.input()[0])))
        print(lengths)
        run()
        """
    )
    assert ended.returncode == 0, ended.stderr
    said, seen, again = ended.stdout.splitlines()[-3:]
    assert '/camera": job 3: its code failed: ' in said
    assert words.encode().decode("unicode_escape") in said or words in said
    # Those that were sent before, as far as the detector had its CPU by then.
    assert seen in ("[]", "[64]", "[64, 64]", "[64, 64, 64]")
    assert again.startswith("ran")


def test_the_last_job_of_a_run_fails_as_any_other():
    ended = program("run('40 ms', camera=lambda job: job.index < 3 or job.output().resize(1.5))")
    assert "job 3: its code failed: TypeError" in ended.stdout, ended


def test_a_warm_up_has_no_messages_and_an_error_says_so():
    nodes = [{"name": "a", "period": "20 ms", "wcet": "1 ms"}, {"name": "b", "wcet": "1 ms"}]
    graph = {"name": f"warm-{os.getpid()}", "edge": [{"from": "a", "to": "b", "message": "8 B"}], "node": nodes}
    name = f"{graph['name']}/a"
    workload = laxity.workload("warm", cpus=1, graphs=[graph])
    words = r"warmed up: IndexError: message 0 is not among the 0 of 'b': a call before"
    with pytest.raises(laxity.RunError, match=words) as raised:
        laxity.run(workload, {name: lambda job: job.output()[0]}, scheduler="other", warm=[name], duration="40 ms")
    assert "test_run_failures.py:" in str(raised.value)


def test_a_crash_with_the_interpreters_lock_ends_the_program_and_leaves_no_names():
    ended = program(
        """
        import ctypes
        print(NAME, flush=True)
        run(camera=lambda job: job.index < 2 or ctypes.pythonapi.PyObject_Repr(ctypes.c_void_p(1)))
        print("never said")
        """
    )
    assert ended.returncode == -signal.SIGABRT, ended
    (name,) = ended.stdout.split()
    assert '/camera": job 2: its code was ended by SIGSEGV' in ended.stderr
    assert "with the interpreter's lock" in ended.stderr
    assert not [file for file in os.listdir("/dev/shm") if name in file]


def test_a_crash_without_the_interpreters_lock_is_an_error():
    ended = program(
        """
        import ctypes
        run(camera=lambda job: job.index < 2 or ctypes.CDLL(None).strlen(ctypes.c_void_p(1)))
        left()
        """
    )
    assert ended.returncode == 0, ended.stderr
    error, names = ended.stdout.splitlines()
    assert '/camera": job 2: its code was ended by SIGSEGV' in error
    assert names == "[]"


@pytest.mark.parametrize("body", ["while True: pass", "time.sleep(4)"])
def test_a_program_ends_properly_after_a_body_that_did_not_return(body):
    ended = program(
        f"""
        def camera(job):
            {body}

        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            run(camera=camera)
        except KeyboardInterrupt:
            print("interrupted")
        left()
        time.sleep(2)
        sys.exit(3)
        """
    )
    assert (ended.returncode, ended.stdout.splitlines()) == (3, ["interrupted", "[]"]), ended
    assert "FATAL" not in ended.stderr
