"""The stabilizer under Laxity's own scheduler: the same frames, a trace that is its policy's, and nothing left by those
that are killed. Part of `make test-vision-short`.
"""

import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
from stabilizer import CLIP, LAXITY, STABILIZE, graphs, need, refusal, results, stabilize

CPUS = len(os.sched_getaffinity(0))
TOKENS = {
    f"({tokens},{6 // tokens},{name})": [
        *("--tokens", tokens, "--fifo-length", 6 // tokens, "--virtual-cpus", 6, "--engine-order", order)
    ]
    for tokens in (1, 2, 3, 6)
    for name, order in (("FIFO", "fifo"), ("PRIO", "priority"))
}
KERNELS = ",".join(["20us"] * 7)
KILLS = 12


@pytest.fixture(autouse=True)
def permitted_and_nothing_is_left():
    need("laxity")
    before = systems()
    yield
    assert systems() <= before


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    """Options for few frames, and what the loop computes of them."""
    path = tmp_path_factory.mktemp("few") / "frames.csv"
    options = ["--size", "320x240", "--shake", 3, "--cache-frames", 20, "--frames", 50, "--csv", path]
    stabilize("--sequential", *options)
    return options, results(path)


def systems():
    """Names of the stabilizers' systems."""
    command = [LAXITY, "sched", "list", "--json"]
    listed = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return {one["name"] for one in listed["systems"] if one["name"].startswith("stabilizer-")}


def checked(*command):
    """The output of a command that must succeed."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_frames_are_those_of_the_loop_and_the_trace_is_its_policys(few, tmp_path):
    options, of_the_loop = few
    trace = tmp_path / "stabilizer.lxt"
    stabilize("--period", "10ms", "--scheduler", "laxity", "--trace", trace, *options)
    assert results(options[-1]) == of_the_loop
    # Deadlines depend on how fast the machine is: legality, and the policy's links without tolerance, do not.
    said = checked(LAXITY, "trace", trace, "check", "--ignore-deadlines")
    assert "yes  follows G-EDF" in said, said


@pytest.mark.parametrize("how", [[], *TOKENS.values()], ids=["unmanaged", *TOKENS])
@pytest.mark.parametrize("kernels", [[], ["--kernels", KERNELS]], ids=["computed", "timed"])
def test_frames_are_those_of_the_loop_however_the_system_shares_the_gpu_out(few, how, kernels):
    options, of_the_loop = few
    gpu = ["--gpu", f"soft:stabilizer-test-{os.getpid()}-{len(kernels)}", *how, *kernels]
    stabilize("--period", "10ms", "--scheduler", "laxity", *gpu, *options)
    assert results(options[-1]) == of_the_loop


def test_clusters_are_those_that_are_named(few):
    if CPUS < 2:
        pytest.skip("skipped: two clusters take two CPUs, and there is one")
    options, of_the_loop = few
    clusters = ";".join(map(str, sorted(os.sched_getaffinity(0))[:2]))
    for cluster in (0, 1):
        stabilize("--period", "10ms", "--scheduler", "laxity", "--clusters", clusters, "--cluster", cluster, *options)
        assert results(options[-1]) == of_the_loop
    code, message = refusal("--period", "10ms", "--frames", 1, "--scheduler", "laxity", "--cluster", 1)
    assert code == 1
    assert "cluster 1 is not one of the system's 1" in message


def raised():
    """Threads of stabilizers that have a real-time priority, by process."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/task/[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
            name = (stat.parents[2] / "comm").read_text().strip()
        except OSError:
            continue
        if name == "stabilize" and int(fields[37]) > 0:
            found.setdefault(int(stat.parts[2]), []).append(int(fields[37]))
    return found


def test_stabilizers_that_are_killed_leave_the_others_their_tokens_and_nothing_raised(few):
    """One of a system lives, others are killed at random: holding tokens and engines, suspended, or deciding."""
    options, of_the_loop = few
    before, seed = graphs(), random.randrange(1 << 32)
    print(f"seed {seed}")
    chosen = random.Random(seed)
    name = f"stabilizer-kills-{os.getpid()}"
    how = [
        "--scheduler",
        "laxity",
        "--system",
        name,
        "--gpu",
        f"soft:{name}",
        "--kernels",
        KERNELS,
        *TOKENS["(2,3,PRIO)"],
    ]
    common = [STABILIZE, *map(str, how), "--size", "320x240", "--cache-frames", "20", "--shake", "3"]
    csv = options[-1]
    lives = subprocess.Popen([*common, "--period", "20ms", "--frames", "600", "--csv", csv, CLIP])
    try:
        while name not in systems():
            assert lives.poll() is None
            time.sleep(0.01)
        for _ in range(KILLS):
            with subprocess.Popen([*common, "--period", "15ms", CLIP], stdout=subprocess.DEVNULL) as dies:
                while f"stabilizer-{dies.pid}" not in graphs():
                    assert dies.poll() is None
                time.sleep(chosen.uniform(0, 0.2))
                dies.send_signal(signal.SIGKILL)
        assert lives.wait(timeout=120) == 0
    finally:
        lives.kill()
        lives.wait()
    assert results(csv)[: len(of_the_loop)] == of_the_loop
    # Behind each frame come six others before it is shown.
    assert len(results(csv)) == 600 - 6
    assert raised() == {}
    checked(LAXITY, "graph", "gc")
    checked(LAXITY, "sched", "gc")
    assert graphs() <= before


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--system", "s"], "are of --scheduler laxity; add it"),
        (["--scheduler", "laxity", "--tokens", "2"], "--tokens and --kernels are about a GPU; add --gpu soft"),
        (["--scheduler", "laxity", "--gpu", "soft", "--fifo-length", "2"], "are about --tokens; add them"),
        (["--scheduler", "laxity", "--gpu", "soft", "--arbitration", "a"], "use --tokens"),
        (["--gpu", "soft", "--kernels", "5us,,5us"], "--kernels : is not a span of time"),
        (["--gpu", "soft", "--kernels", "5us"], "1 times; give one for each of the 7 nodes for a GPU"),
    ],
)
def test_what_cannot_be_is_refused_with_a_reason(arguments, says):
    code, message = refusal(*arguments, "--frames", 1)
    assert code == 2
    assert says in message
