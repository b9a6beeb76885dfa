"""The scheduler in the kernel of the lab's machine (scripts/kernel_lab.py) against SCHED_DEADLINE: `make bench-kernel`.

    kernel.py FOLDER      with laxity, and what scripts/scheduler.sh builds: laxity-scheduler and examples of laxity-scx

Prints, last, one line. `inversion` is from the release of a job to its start, while a less urgent job executes: median
and maximum with one CPU, where one instruction of the emulated machine is one nanosecond, and times are the same in
each run; `deadline` is the same under SCHED_DEADLINE, before, in the same machine. `violations` are those of `laxity
trace check`, deadlines left out, in a trace of random tasks with suspensions and non-preemptive sections on four CPUs.
Nothing is said of interrupt threads, as the scheduler has none yet.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))

import kernel_lab

START = """
start() {
    touch /tmp/loader
    laxity sched start "$@" > /tmp/loader 2>&1 & loader=$!
    until grep -q scheduling /tmp/loader; do
        kill -0 $loader || { cat /tmp/loader; exit 9; }
        sleep 0.5
    done
}
"""

RELEASES = """
kernel-releases deadline jobs=500 || exit 1
start --policy P-EDF
kernel-releases laxity jobs=500 || exit 2
laxity sched stop || exit 3
wait $loader
"""

RANDOM = """
start --policy G-EDF --trace /out/trace.lxt
kernel-tasks seed=11 tasks=10 load=2200 for=2000 suspend=20 section=40 || exit 1
laxity sched stop || exit 2
wait $loader
"""


def lab(script: str, programs: list[Path], out: Path, smp: int) -> str:
    """What a script says in the lab. It must end with 0."""
    code = kernel_lab.run(START + script, programs, out, smp, timeout=900)
    said = (out / "output.txt").read_text(errors="replace")
    if code:
        raise kernel_lab.FailedError(f"the script ended with {code}:\n{said}")
    print(said, end="", flush=True)
    return said


def times(said: str, of: str) -> tuple[str, str]:
    """Median and maximum, in us, that kernel-releases printed of a class."""
    found = re.search(rf"^{of} jobs=\d+ p50_us=(\S+) max_us=(\S+)", said, re.MULTILINE)
    if not found:
        raise kernel_lab.FailedError(f"no times of {of} in:\n{said}")
    return found.group(1), found.group(2)


def violations(laxity: Path, trace: Path) -> int:
    """How often a trace is no legal schedule, or not that of its policy."""
    judge = [laxity, "trace", trace, "check", "--ignore-deadlines"]
    done = subprocess.run(judge, capture_output=True, text=True, check=False)
    answers = re.findall(r"^  (yes|no) .*?(?:: (\d+) violations?)?$", done.stdout, re.MULTILINE)
    if len(answers) < 2 or (done.returncode == 0) != all(answer == "yes" for answer, _ in answers):
        raise kernel_lab.FailedError(f"the trace cannot be judged:\n{done.stdout}{done.stderr}")
    print(done.stdout, end="")
    return sum(int(count or 0) for _, count in answers)


def main() -> int:
    """Runs both machines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    scheduler = folder / "laxity-scheduler"
    programs = [folder / "laxity", scheduler, scheduler.with_suffix(".bpf.o")]
    programs += [folder / "examples" / name for name in ["kernel-tasks", "kernel-releases"]]
    try:
        with tempfile.TemporaryDirectory() as place:
            said = lab(RELEASES, programs, Path(place) / "releases", smp=1)
            (ours, ours_max), (theirs, theirs_max) = times(said, "laxity"), times(said, "deadline")
            lab(RANDOM, programs, Path(place) / "random", smp=4)
            count = violations(folder / "laxity", Path(place) / "random" / "trace.lxt")
    except (kernel_lab.MissingError, kernel_lab.FailedError) as reason:
        print(f"bench-kernel: {reason}", file=sys.stderr)
        return 1
    print(
        f"kernel inversion_p50_us={ours} inversion_max_us={ours_max} deadline_p50_us={theirs} "
        f"deadline_max_us={theirs_max} violations={count}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
