"""Priority inversions by interrupts of network cards in the lab's kernel: a part of `make test-kernel-lab`."""

import kernel_inversions
import kernel_lab
import pytest
from test_kernel_lab import programs

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
