"""Laxity's scheduler in the kernel of a small Linux that QEMU runs: one short run, and the lab itself.

Skipped, with the reason, where QEMU, clang or a kernel is not to be had; `make test-kernel-lab` installs them as root,
and goes on with kernel_lab_runs.py.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import kernel_lab  # noqa: E402 - found once its folder is on the path

DEBUG = ROOT / "target" / "debug"
LAXITY = DEBUG / "laxity"

# What all scripts begin with. The verifier takes some seconds of the emulated machine.
PRELUDE = """
start() {
    rm -f /out/loader.txt && touch /out/loader.txt
    laxity sched start "$@" > /out/loader.txt 2>&1 & loader=$!
    until grep -q scheduling /out/loader.txt; do
        kill -0 $loader || { echo "no scheduler:"; cat /out/loader.txt; exit 9; }
        sleep 0.5
    done
}
ended() { wait $loader; echo "loader $?"; cat /out/loader.txt; echo "state $(cat /sys/kernel/sched_ext/state)"; }
"""


@pytest.fixture(scope="module")
def programs() -> list[Path]:
    """What the lab's machine needs of ours."""
    lacking = kernel_lab.missing_tools()
    if lacking:
        pytest.skip(f"no kernel lab: {kernel_lab.not_installed(lacking)}")
    examples = ["kernel-tasks", "kernel-device", "kernel-network", "kernel-events"]
    build = ["scripts/scheduler.sh", "dev", *(word for example in examples for word in ["--example", example])]
    as_it_is = {**os.environ, "LAXITY_INSTALL": "no"}
    done = subprocess.run(build, cwd=ROOT, env=as_it_is, capture_output=True, text=True, check=False)
    if done.returncode == 77:
        pytest.skip(f"no kernel lab: {done.stderr}")
    assert done.returncode == 0, done.stderr
    if not LAXITY.exists():
        pytest.skip("no kernel lab: target/debug/laxity is not built")
    try:
        kernel_lab.fetch_kernel()
    except kernel_lab.MissingError as reason:
        pytest.skip(f"no kernel lab: no kernel with sched_ext: {reason}")
    scheduler = DEBUG / "laxity-scheduler"
    return [LAXITY, scheduler, scheduler.with_suffix(".bpf.o"), *(DEBUG / "examples" / name for name in examples)]


def lab(
    programs: list[Path],
    out: Path,
    script: str,
    smp: int,
    timeout: float = 900,
    *,
    machine: kernel_lab.Machine | None = None,
) -> str:
    """What a script says in the lab. It must end with 0."""
    code = kernel_lab.run(PRELUDE + script, programs, out, smp, timeout, machine=machine)
    said = (out / "output.txt").read_text()
    assert code == 0, said
    return said


def judged(trace: Path) -> dict[str, str]:
    """Each claim that `laxity trace check` judges, and its answer."""
    done = subprocess.run([LAXITY, "trace", trace, "check"], capture_output=True, text=True, check=False)
    claims = {claim: answer for answer, claim in re.findall(r"^  (yes|no)\s+([^:\n]+)", done.stdout, re.MULTILINE)}
    assert claims.get("a legal schedule") == "yes", done.stdout
    return claims


def jobs(said: str) -> list[tuple[int, int]]:
    """Of each task that kernel-tasks ran: its jobs, and how many of them Linux scheduled."""
    return [(int(jobs), int(linux)) for jobs, linux in re.findall(r" jobs=(\d+) late=\d+ by_linux=(\d+) ", said)]


def delays(said: str) -> list[tuple[int, int]]:
    """Of each task that kernel-tasks ran: its period, and the longest time from a release to a start, in us."""
    found = re.findall(r" period_ms=(\d+) .* delay_max_us=(\d+)", said)
    return [(int(period_ms) * 1_000, int(delay_us)) for period_ms, delay_us in found]


def test_tasks_run_by_the_policy_and_linux_schedules_afterwards(programs, tmp_path):
    script = """
    laxity sched doctor || exit 1
    start --policy C-EDF --cluster-size 2 --others 2ms/100ms --trace /out/trace.lxt
    laxity sched start > /out/second.txt 2>&1 && exit 2
    kernel-tasks seed=1 tasks=6 load=900 for=600 suspend=30 & tasks=$!
    laxity sched top --kernel --json --every 300ms > /out/top.jsonl & top=$!
    sleep 1.3
    laxity sched status --json > /out/status.json || exit 3
    laxity sched top --kernel --once
    wait $tasks || exit 4
    laxity sched stop || exit 5
    wait $top || exit 7
    ended
    laxity sched status && exit 6
    true
    """
    said = lab(programs, tmp_path / "out", script, smp=2)
    assert "loader 0" in said
    assert "state disabled" in said
    assert "is not in the kernel" in said, "status after the end"
    assert "laxity is loaded" in (tmp_path / "out" / "second.txt").read_text()
    status = json.loads((tmp_path / "out" / "status.json").read_text())["status"]
    assert status["policy"] == "C-EDF/CEm"
    assert status["dedicated"] is None
    assert status["clusters"] == [[0, 1]]
    assert status["lost"] == 0
    assert sorted(task["name"] for task in status["tasks"]) == [f"task{number}" for number in range(6)]
    assert "C-EDF/CEm on CPUs 0,1" in said, "the table of top"
    # It looked more than once, saw jobs being completed, and ended with the scheduler.
    looks = [json.loads(line)["status"] for line in (tmp_path / "out" / "top.jsonl").read_text().splitlines()]
    completed = [sum(task["completed"] for task in look["tasks"]) for look in looks]
    assert completed == sorted(completed), completed
    assert completed[0] < completed[-1], completed
    done = jobs(said)
    assert len(done) == 6, said
    assert all(count > 3 and linux == 0 for count, linux in done), said
    # Zero tolerance: after each instant of the trace the links are those of the policy.
    assert judged(tmp_path / "out" / "trace.lxt")["follows C-EDF/CEm"] == "yes"


def described(programs: list[Path], folder: Path, source: str) -> dict[str, list[str]]:
    """What the loader says of a kernel that has the functions of some C."""
    clang = subprocess.run(["scripts/scheduler.sh", "clang"], cwd=ROOT, capture_output=True, text=True, check=True)
    (folder / "kernel.c").write_text(source)
    command = [
        clang.stdout.strip(),
        "-g",
        "-O1",
        "-target",
        "bpf",
        "-c",
        folder / "kernel.c",
        "-o",
        folder / "kernel.o",
    ]
    subprocess.run(command, check=True)
    loader = next(program for program in programs if program.name == "laxity-scheduler")
    done = subprocess.run([loader, "functions", folder / "kernel.o"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_a_kernel_is_known_by_the_functions_that_it_describes(programs, tmp_path):
    found = described(
        programs,
        tmp_path,
        """
        void scx_bpf_kick_cpu(int cpu, long flags) {}
        int scx_bpf_create_dsq(long queue, int node, const void *aux) { return 0; }
        int scx_bpf_task_cpu(const void *task, int other) { return 0; }
        /* As Linux 6.12 calls it. */
        void scx_bpf_dispatch(void *task, long queue, long slice, long flags) {}
        """,
    )
    assert sorted(found["fitting"]) == ["scx_bpf_dispatch", "scx_bpf_kick_cpu"]
    assert found["unhidden"] == ["scx_bpf_create_dsq"]
    assert found["different"] == ["scx_bpf_task_cpu"]
    assert {"scx_bpf_dsq_insert_vtime", "scx_bpf_dsq_move_to_local"} < set(found["missing"])
    assert not {"scx_bpf_dsq_insert", "scx_bpf_consume"} & set(found["missing"])


# --- the lab itself ------------------------------------------------------------------------------------------------


def test_the_preferred_kernel_comes_first_and_then_the_newest():
    names = [
        "linux-image-6.1.0-9-cloud-amd64",
        "linux-image-7.0.2+deb13-cloud-amd64",
        "linux-image-7.1.13+deb13-cloud-amd64",
        "linux-base-7.1.13+deb13-cloud-amd64",
        "linux-binary-7.1.13+deb13-cloud-amd64",
        "linux-image-6.12.9+deb13-cloud-amd64",
        "linux-image-6.17.8+deb13-cloud-amd64",
        "linux-image-6.18.15+deb13-cloud-amd64",
        "linux-image-6.18.15+deb13-cloud-amd64-dbg",
        "linux-image-6.18.15+deb13-amd64",
        "linux-image-cloud-amd64",
    ]
    assert [version for _, version in kernel_lab.ranked(names)] == [(6, 18, 15), (7, 1, 13), (6, 17, 8), (6, 12, 9)]
    assert kernel_lab.ranked(names, "7.1") == [("linux-image-7.1.13+deb13-cloud-amd64", (7, 1, 13))]


def test_an_archive_has_each_file_whole_and_in_a_folder(tmp_path):
    archive = tmp_path / "archive"
    files = {"init": (b"#!", True), "a/b/text": (b"12345", False), "empty": (b"", False)}
    kernel_lab.write_initramfs(archive, files)
    data, found = archive.read_bytes(), {}
    while True:
        fields = [int(data[6 + 8 * field : 14 + 8 * field], 16) for field in range(13)]
        mode, size, length = fields[1], fields[6], fields[11]
        assert data[:6] == b"070701"
        name, start = data[110 : 110 + length - 1].decode(), (110 + length + 3) // 4 * 4
        if name == "TRAILER!!!":
            break
        found[name] = (mode, data[start : start + size])
        data = data[(start + size + 3) // 4 * 4 :]
    assert found["init"] == (0o100755, b"#!")
    assert found["a/b/text"] == (0o100644, b"12345")
    assert found["a"][0] == found["a/b"][0] == 0o040755
    assert found["empty"] == (0o100644, b"")
    assert list(found)[:2] == ["a", "a/b"], "folders come before what is in them"


def test_a_machine_that_hangs_is_ended(tmp_path):
    if kernel_lab.missing_tools() or not kernel_lab.cached_kernel(kernel_lab.wanted()):
        pytest.skip("no kernel lab: QEMU or its kernel is not there")
    # It computes: time that all its CPUs are idle takes the emulator next to none, however long it is.
    with pytest.raises(kernel_lab.FailedError, match="did not end"):
        kernel_lab.run("while :; do :; done", [], tmp_path / "out", timeout=12)
    running = subprocess.run(["pgrep", "-f", str(tmp_path)], capture_output=True, text=True, check=False)
    assert running.stdout == "", "no QEMU is left over"
