"""Jobs at events, and when threads say, under the scheduler in the lab's kernel: a part of `make test-kernel-lab`."""

import re

import pytest
from test_kernel_lab import judged, lab, programs

__all__ = ["programs"]


def said_of(said: str) -> dict[str, dict[str, int]]:
    """What kernel-events printed of each task."""
    lines = re.findall(r"^(source|consumer|radio) (\S+=.*)$", said, re.MULTILINE)
    return {name: {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", rest)} for name, rest in lines}


@pytest.mark.parametrize(
    ("smp", "policy"),
    [(1, "P-EDF"), (1, "P-RM"), (4, "G-EDF"), (2, "P-FP"), (3, "G-EDF/CE1"), (2, "C-EDF/CQm"), (3, "G-EDF/S-CQ1")],
)
def test_jobs_are_released_at_events_and_when_threads_say(programs, tmp_path, smp, policy):
    size = " --cluster-size 2" if policy.startswith("C-") else ""
    script = f"""
    start --policy {policy}{size} --trace /out/trace.lxt
    kernel-events jobs=25 || exit 1
    laxity sched stop || exit 2
    ended
    """
    out = tmp_path / "out"
    said = lab(programs, out, script, smp=smp)
    assert "loader 0" in said
    assert "lost" not in said
    found = said_of(said)
    assert found["source"]["jobs"] == found["radio"]["jobs"] == 25
    assert found["consumer"]["jobs"] == 4 * 25
    # However fast the messages came, others see a sporadic task.
    assert found["consumer"]["close"] == 0
    assert found["radio"]["release_off_us"] == found["radio"]["deadline_off_us"] == 0
    if smp == 1:
        assert found["consumer"]["late_us"] < 100
    realization = policy if "/" in policy else f"{policy}/CEm"
    assert judged(out / "trace.lxt")[f"follows {realization}"] == "yes"
