"""What Laxity's scheduler in the kernel costs in the lab's machine (scripts/kernel_lab.py): `make measure-kernel`.

    measure_kernel.py [--for SPAN] [--tasks LIST] [--out FOLDER] PROGRAMS

PROGRAMS is the folder with laxity, laxity-scheduler and laxity-scheduler.bpf.o. Writes a file of `laxity sched measure`
for each realization into FOLDER. Realizations that release jobs where they run are measured on one CPU: there one
instruction takes one nanosecond, and each run says the same. Those with a dedicated CPU need two, and CPUs of the lab
take turns: what another CPU carries out in between is a part of an interval, too. So jobs are short there, and what is
left of that is among the outliers, or said. The same holds for the IPI latency, which all realizations are measured for
on two CPUs, in files of their own: it is that of an idle CPU, with what the sender still does.
"""

import argparse
import subprocess
import sys
from pathlib import Path

import kernel_lab

ROOT = Path(__file__).parents[1]

# Realizations by the CPUs of the machine, and how much of a CPU jobs take, in percent.
MACHINES = {1: ["CEm", "CQm", "S-CQm"], 2: ["CE1", "CQ1", "S-CQ1"]}
LOADS = {1: 20, 2: 2}


def commit() -> str:
    """What is measured, as git names it."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "of no repository"


def measure(programs: list[Path], out: Path, smp: int, options: str, seconds: float) -> None:
    """Measures the realizations for so many CPUs."""
    label = f"emulated machine, instruction counts; commit {commit()}"
    wanted = f"laxity sched measure {options} --load {LOADS[smp]} --label '{label}'"
    script = f"{wanted} --realization {','.join(MACHINES[smp])} --out /out/overheads || exit 1\n"
    if smp > 1:
        script += f"{wanted} --realization {','.join(MACHINES[1])} --out /out/ipi || exit 2\n"
    code = kernel_lab.run(script, programs, out, smp, seconds)
    said = (out / "output.txt").read_text(errors="replace")
    sys.stdout.write(said)
    if code:
        raise kernel_lab.FailedError(f"the measurement ended with {code}")


def main() -> int:
    """Runs the machines, and collects their files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--for", dest="span", default="10s", help="for each number of tasks; default: 10s")
    parser.add_argument("--tasks", default="25,50,75,100,125,150,175,200,225,250")
    parser.add_argument("--smp", type=int, action="append", choices=sorted(MACHINES), help="only with so many CPUs")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "kernel-overheads")
    parser.add_argument("--timeout", type=float, default=7200, help="of each machine, in seconds; default: 7200")
    parser.add_argument("programs", type=Path, help="the folder that has them")
    arguments = parser.parse_args()
    scheduler = arguments.programs / "laxity-scheduler"
    programs = [arguments.programs / "laxity", scheduler, scheduler.with_suffix(".bpf.o")]
    options = f"--for {arguments.span} --tasks {arguments.tasks}"
    arguments.out.mkdir(parents=True, exist_ok=True)
    try:
        for smp in arguments.smp or sorted(MACHINES):
            machine = arguments.out / f"machine-{smp}"
            measure(programs, machine, smp, options, arguments.timeout)
            for path in sorted((machine / "overheads").iterdir()):
                path.replace(arguments.out / path.name)
            for path in sorted((machine / "ipi").glob("*.toml")):
                path.replace(arguments.out / f"{path.stem}-on-{smp}-cpus.toml")
    except (kernel_lab.MissingError, kernel_lab.FailedError) as reason:
        print(f"measure-kernel: {reason}", file=sys.stderr)
        return 77 if isinstance(reason, kernel_lab.MissingError) else 1
    print(f"written to {arguments.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
