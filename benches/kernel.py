"""The scheduler in the kernel of the lab's machine (scripts/kernel_lab.py) against SCHED_DEADLINE: `make bench-kernel`.

    kernel.py FOLDER      with laxity, and what scripts/scheduler.sh builds: laxity-scheduler and examples of laxity-scx

Prints, last, one line. `inversion` is from the release of a job to its start, while a less urgent job executes: median
and maximum with one CPU, where one instruction of the emulated machine is one nanosecond, and times of two runs differ
little; `deadline` is the same under SCHED_DEADLINE, before, in the same machine. `violations` are those of `laxity
trace check`, deadlines left out, in a trace of random tasks with suspensions and non-preemptive sections on four CPUs.
`coscheduled` is for how long, by Linux's record of switches, a serial port's interrupt thread executes on one CPU while
the task that it works for executes on the other, in 40 jobs under klmirqd; printed before is the same with that thread
as Linux has it. CPUs of this machine take turns: that it is 0 means something, and how long it is otherwise does not.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))

import kernel_lab
import kernel_records

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

# The thread wakes its owner before it is through.
INTERRUPTS = f"""
{kernel_records.RECORD}
stty -F /dev/ttyS1 raw clocal && exec 9<> /dev/ttyS1 || exit 1
for one in /proc/[0-9]*; do
    case $(cat $one/comm 2> /dev/null) in irq/3-*) serial=${{one#/proc/}};; esac
done
use() {{
    record sched:sched_switch
    kernel-device device=tty:/dev/ttyS1 jobs=40 period=20 middle=5 cluster=1 $2 || exit 2
    recorded $1
}}
start --policy P-EDF
use linux
laxity sched irq $serial --cluster 1 || exit 3
use klmirqd threads=irq/3-
laxity sched stop || exit 4
wait $loader
"""
WITH_THREADS = kernel_lab.Machine(devices=["-serial", "null"], parameters=["threadirqs"])


def lab(script: str, programs: list[Path], out: Path, smp: int, machine: kernel_lab.Machine | None = None) -> str:
    """What a script says in the lab. It must end with 0."""
    code = kernel_lab.run(kernel_lab.START + script, programs, out, smp, timeout=900, machine=machine)
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


def coscheduled_us(records: Path) -> float:
    """For how long the serial port's thread executed beside its owner."""
    executed, beside = kernel_records.beside(kernel_records.read(records), "irq/3-ttyS1", "owner")
    if not executed:
        raise kernel_lab.FailedError(f"{records.name}: the serial port's thread did not execute")
    print(f"{records.name}: the thread executed for {executed / 1e3:.1f} us, {beside / 1e3:.1f} us beside its owner")
    return beside / 1e3


def main() -> int:
    """Runs the machines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    scheduler = folder / "laxity-scheduler"
    programs = [folder / "laxity", scheduler, scheduler.with_suffix(".bpf.o")]
    programs += [folder / "examples" / name for name in ["kernel-tasks", "kernel-releases", "kernel-device"]]
    try:
        with tempfile.TemporaryDirectory() as place:
            said = lab(RELEASES, programs, Path(place) / "releases", smp=1)
            (ours, ours_max), (theirs, theirs_max) = times(said, "laxity"), times(said, "deadline")
            lab(RANDOM, programs, Path(place) / "random", smp=4)
            lab(INTERRUPTS, programs, Path(place) / "interrupts", smp=2, machine=WITH_THREADS)
            coscheduled_us(Path(place) / "interrupts" / "linux")
            coscheduled = coscheduled_us(Path(place) / "interrupts" / "klmirqd")
            count = violations(folder / "laxity", Path(place) / "random" / "trace.lxt")
    except (kernel_lab.MissingError, kernel_lab.FailedError) as reason:
        print(f"bench-kernel: {reason}", file=sys.stderr)
        return 1
    print(
        f"kernel inversion_p50_us={ours} inversion_max_us={ours_max} deadline_p50_us={theirs} "
        f"deadline_max_us={theirs_max} coscheduled_us={coscheduled:.1f} violations={count}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
