"""Priority inversions by interrupts of network cards in the lab's kernel: a part of `make test-kernel-lab`."""

import json

import kernel_inversions
import kernel_lab
import pytest
from test_kernel_lab import judged, lab, programs

__all__ = ["programs"]

SEED = 1


@pytest.fixture(scope="module")
def measured(programs, tmp_path_factory) -> dict[str, kernel_inversions.Measured]:
    """One task set under each handling, one CPU, a second."""
    try:
        kernel_lab.kernel_modules(kernel_inversions.machine("ordinary").modules)
    except kernel_lab.MissingError as reason:
        pytest.skip(f"no drivers for the lab's devices: {reason}")
    folder = tmp_path_factory.mktemp("inversions")
    return {
        handling: kernel_inversions.run(handling, [SEED], programs, folder / handling, span_ms=1_000)[SEED]
        for handling in kernel_inversions.HANDLINGS
    }


def longest_us(found: kernel_inversions.Measured, kind: str | None = None) -> float:
    """The longest inversion."""
    lengths = (one.length_ns for one in found.inversions if kind in {None, one.kind})
    return max(lengths, default=0) / 1e3


def test_under_klmirqd_inversions_are_shorter_than_under_other_handlings(measured):
    for handling, found in measured.items():
        total = sum(one.length_ns for one in found.inversions) / 1e3
        print(
            f"{handling}: {found.interrupts} interrupts, {found.bottom_halves_ns / 1e3:.0f} us of bottom halves; "
            f"{len(found.inversions)} inversions, {total:.0f} us, the longest {longest_us(found):.1f} us"
        )
        # The same work each time: 72 jobs that use a device, which interrupts twice at least.
        assert found.interrupts > 140
        assert found.bottom_halves_ns > 2_000_000
    ordinary, threaded, klmirqd = (measured[handling] for handling in kernel_inversions.HANDLINGS)
    assert longest_us(klmirqd) < min(longest_us(ordinary), longest_us(threaded))
    # Of one CPU nothing is beside anything.
    assert all(found.co_scheduled_ns == 0 for found in measured.values())


def test_only_under_klmirqd_no_bottom_half_overtakes_a_more_urgent_job(measured):
    overtaken = {handling: longest_us(found, "overtaken") for handling, found in measured.items()}
    print(overtaken)
    # That of some datagrams takes a hundred microseconds and more.
    assert overtaken["ordinary"] > 100
    assert overtaken["threaded"] > 100
    # One that has begun is not preempted.
    assert overtaken["klmirqd"] < 100


def test_bottom_halves_that_end_up_in_ksoftirqd_have_the_priority_of_their_owner(programs, tmp_path):
    # Ordinary handling, but softirqs take one datagram at a time, and leave the rest to ksoftirqd after ten times.
    tasks = [task for task in kernel_inversions.task_set(SEED) if task.device != 1]
    owner = next(task for task in tasks if task.device == 0)
    words = " ".join([*(task.argument(SEED) for task in tasks), f"threads={owner.name}:ksoftirqd/0"])
    script = f"""
    {kernel_inversions.NETWORK}
    echo 1 > /proc/sys/net/core/netdev_budget
    for one in /proc/[0-9]*; do
        [ "$(cat $one/comm)" = ksoftirqd/0 ] && softirqs=${{one#/proc/}}
    done
    start --policy P-RM --trace /out/trace.lxt
    laxity sched irq $softirqs || exit 30
    kernel-network for=1000 {words} || exit 31
    laxity sched status --json > /out/status.json
    laxity sched status
    laxity sched stop || exit 32
    ended
    """
    out = tmp_path / "out"
    said = lab(programs, out, script, smp=1, machine=kernel_inversions.machine("ordinary"))
    assert "loader 0" in said, said
    thread = json.loads((out / "status.json").read_text())["status"]["interrupts"][0]
    assert thread["name"] == "ksoftirqd/0"
    assert thread["owned"] >= 10, thread
    assert judged(out / "trace.lxt")["follows P-RM/CEm"] == "yes"
