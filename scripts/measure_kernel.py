"""What Laxity's scheduler in the kernel costs in the lab's machine (scripts/kernel_lab.py): `make measure-kernel`.

    measure_kernel.py [--for SPAN] [--tasks LIST] [--only LIST] [--out FOLDER] PROGRAMS

PROGRAMS is the folder with laxity, laxity-scheduler and laxity-scheduler.bpf.o. Writes two files of `laxity sched
measure` for each realization into FOLDER, from a machine of its own: what it costs where no CPU waits for a lock, as in
that machine, and what it costs at most where 32 CPUs do, as the paper's. Those that are there are kept.

Realizations that release jobs where they run are measured on one CPU: there one instruction takes one nanosecond, and
each run says the same. Those with a dedicated CPU need two, and CPUs of the lab take turns: what another CPU carries
out in between is a part of an interval, too. So jobs are short there, a tenth of the samples is left out, and the IPI
latency is that of an idle CPU, with what the sender still carries out, which is the more the more tasks there are. They
are measured twice, and the time with the shorter tick counts: a turn of the other CPU can only make it longer.
"""

import argparse
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import kernel_lab

ROOT = Path(__file__).parents[1]

# Each realization, and the CPUs of its machine.
CPUS = {
    f"{name[0]}{queue}{name[1]}": 2 if name[1].endswith("1") else 1
    for queue in "CFH"
    for name in [("", "Em"), ("", "E1"), ("", "Qm"), ("", "Q1"), ("S-", "Qm"), ("S-", "Q1")]
}
# What is measured where none is named: what the paper measured, and HE1, from which HEm has its IPI latency.
PAPER = ["CEm", "CE1", "FEm", "FE1", "HEm", "HE1", "CQm", "CQ1", "S-CQm", "S-CQ1"]
# As the paper's machine.
WAITING = 32
# How much of a CPU jobs take, and how many of the samples are left out, both in percent, by the CPUs of the machine.
LOADS = {1: 20, 2: 2}
OUTLIERS = {1: 1, 2: 10}
# How often.
TIMES = {1: 1, 2: 2}


def commit() -> str:
    """What is measured, as git names it."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "of no repository"


def measure(programs: list[Path], file: Path, options: str, seconds: float) -> None:
    """Measures what `file` is to have, and writes it."""
    realization, smp = file.stem, CPUS[file.stem]
    label = f"emulated machine, instruction counts; commit {commit()}"
    options = (
        f"{options} --realization {realization} --load {LOADS[smp]} --outliers {OUTLIERS[smp]} --waiting {WAITING} "
        "--out /out/overheads"
    )
    script = f"laxity sched measure {options} --label '{label}'\n"
    machines = [file.with_name(f"{realization}.{time}") for time in range(TIMES[smp])]
    for machine in machines:
        code = kernel_lab.run(script, programs, machine, smp, seconds)
        sys.stdout.write((machine / "output.txt").read_text(errors="replace"))
        sys.stdout.flush()
        if code:
            raise kernel_lab.FailedError(f"the measurement of {realization} ended with {code}")
    measured = min((machine / "overheads" for machine in machines), key=lambda folder: tick_us(folder / file.name))
    contended = f"{realization}-waiting-{WAITING}.toml"
    (measured / contended).replace(file.with_name(contended))
    (measured / file.name).replace(file)


def tick_us(file: Path) -> float:
    """The longest tick of a profile."""
    costs = tomllib.loads(file.read_text())["worst"]["tick"]
    longest = costs if isinstance(costs, str) else costs[-1][1]
    number, unit = longest.split()
    return float(number) * {"ns": 1e-3, "us": 1, "ms": 1e3}[unit]


def main() -> int:
    """Runs a machine after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--for", dest="span", default="10s", help="for each number of tasks; default: 10s")
    parser.add_argument("--tasks", default="25,50,75,100,125,150,175,200,225,250")
    parser.add_argument(
        "--only", metavar="LIST", default=",".join(PAPER), help="these realizations; default: %(default)s"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "kernel-overheads")
    parser.add_argument("--timeout", type=float, default=3600, help="of each machine, in seconds; default: 3600")
    parser.add_argument("programs", type=Path, help="the folder that has them")
    arguments = parser.parse_args()
    # A request to end is an end like that by Ctrl-C: QEMU ends, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    scheduler = arguments.programs / "laxity-scheduler"
    programs = [arguments.programs / "laxity", scheduler, scheduler.with_suffix(".bpf.o")]
    arguments.out.mkdir(parents=True, exist_ok=True)
    try:
        for name in arguments.only.split(","):
            if name not in CPUS:
                parser.error(f"--only {name}: there are {', '.join(CPUS)}")
            file = arguments.out / f"{name}.toml"
            if file.exists():
                print(f"{file} is there")
                continue
            measure(programs, file, f"--for {arguments.span} --tasks {arguments.tasks}", arguments.timeout)
    except (kernel_lab.MissingError, kernel_lab.FailedError) as reason:
        print(f"measure-kernel: {reason}", file=sys.stderr)
        return 77 if isinstance(reason, kernel_lab.MissingError) else 1
    print(f"written to {arguments.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
