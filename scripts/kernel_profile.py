"""Whose instructions lie between the release of a job and its start under the scheduler in the kernel, in the lab.

    kernel_profile.py [--top N] PROGRAMS      PROGRAMS is the folder with laxity, laxity-scheduler, its BPF object, and
                                              examples/kernel-releases of laxity-scx

A job that preempts a less urgent one on one CPU, as in `make bench-kernel`: QEMU writes down each instruction that the
kernel carries out, and the kernel's own list of symbols says whose it is. Prints medians over the jobs that were seen:
what Linux carries out, what the scheduler's programs do, and what functions of Linux do that these call. Then the
functions with most instructions, over the whole way to the less urgent job and back.
"""

import argparse
import bisect
import collections
import itertools
import re
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import kernel_lab

KERNEL = "0xffffffff80000000..0xffffffffffffffff"
LOG_BYTES = 60_000_000
READY = b"to be profiled"

SCRIPT = f"""
echo 0 > /proc/sys/kernel/kptr_restrict
start --policy P-EDF
cat /proc/kallsyms > /out/symbols
echo {READY.decode()}
kernel-releases laxity jobs=1500 || exit 2
laxity sched stop || exit 3
wait $loader
"""

TIMER, SYSTEM_CALL = "asm_sysvec_apic_timer_interrupt", "entry_SYSCALL_64"
PROGRAM = re.compile(r"^bpf_prog_[0-9a-f]+_(\w+)")
ENTERS, LEAVES, BY_TIMER = "__bpf_prog_enter", "__bpf_prog_exit", "on_timer"
KICKED = "asm_sysvec_irq_work"


def log_while_it_runs(monitor: Path, console: Path, log: Path) -> None:
    """Has QEMU log single instructions for a while, once the machine says that it is ready."""
    while not (console.exists() and READY in console.read_bytes()):
        time.sleep(0.2)
    # The first jobs are released half a second later.
    time.sleep(3)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(monitor))

        def say(command: str) -> None:
            connection.sendall(command.encode() + b"\n")
            time.sleep(0.2)

        say("singlestep on")
        say("log exec,nochain")
        while not log.exists() or log.stat().st_size < LOG_BYTES:
            time.sleep(0.2)
        say("log none")
        say("singlestep off")


Calls = list[tuple[str, int]]
"""Functions in the order in which they were executed, each with its number of instructions until the next one."""


def executed(log: Path, symbols: Path) -> Calls:
    """What the log says."""
    lines = (line.split() for line in symbols.read_text().splitlines())
    known = sorted((int(address, 16), name) for address, kind, name, *_ in lines if kind in "tTwW")
    addresses = [address for address, _ in known]
    counters = re.findall(r"/(ffffffff[0-9a-f]{8})/", log.read_text())
    names = (known[bisect.bisect_right(addresses, int(counter, 16)) - 1][1] for counter in counters)
    return [(name, sum(1 for _ in same)) for name, same in itertools.groupby(names)]


def preemptions(calls: Calls) -> Iterator[Calls]:
    """From each interrupt of the timer that releases a job to the next one, where both are whole."""
    starts = [at for at, (name, _) in enumerate(calls) if name == TIMER]
    for start, end in itertools.pairwise(starts):
        whole = calls[start:end]
        names = [match[1] for name, _ in whole if (match := PROGRAM.match(name))]
        if BY_TIMER in names and names.count("laxity_dispatch") > 1:
            yield whole


def to_the_start(calls: Calls) -> Calls:
    """Until the job's thread, which had returned to its program, calls the system again."""
    return list(itertools.takewhile(lambda call: call[0] != SYSTEM_CALL, calls))


def shares(calls: Calls) -> dict[str, int]:
    """Instructions of the scheduler's programs, of what these call, and of the rest of Linux."""
    found = {"programs": 0, "called by them": 0, "Linux": 0}
    last_of_timer = max(at for at, (name, _) in enumerate(calls) if name.endswith("_" + BY_TIMER))
    is_inside = False
    for at, (name, count) in enumerate(calls):
        program = PROGRAM.match(name)
        if name == ENTERS or (program and program[1] == BY_TIMER):
            is_inside = True
        # A CPU that interrupts itself does so at once.
        if name in (LEAVES, KICKED):
            is_inside = False
        found["programs" if program else "called by them" if is_inside else "Linux"] += count
        if program:
            is_inside = at != last_of_timer
    return found


def profile(programs: Path) -> list[Calls]:
    """Has the machine run, and answers what it executed."""
    files = [programs / name for name in ["laxity", "laxity-scheduler", "laxity-scheduler.bpf.o"]]
    files.append(programs / "examples" / "kernel-releases")
    with tempfile.TemporaryDirectory() as folder:
        out, monitor, log, console = (Path(folder) / name for name in ["out", "monitor", "log", "console"])
        devices = ["-monitor", f"unix:{monitor},server,nowait", "-dfilter", KERNEL, "-D", str(log)]
        machine = kernel_lab.Machine(devices=devices, parameters=["nokaslr"])
        logging = threading.Thread(target=log_while_it_runs, args=(monitor, console, log), daemon=True)
        logging.start()
        code = kernel_lab.run(kernel_lab.START + SCRIPT, files, out, timeout=600, machine=machine, console=console)
        if code:
            raise kernel_lab.FailedError((out / "output.txt").read_text(errors="replace"))
        return list(preemptions(executed(log, out / "symbols")))


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--top", type=int, default=15, help="so many functions; default: %(default)s")
    parser.add_argument("programs", type=Path)
    arguments = parser.parse_args()
    try:
        found = profile(arguments.programs)
    except (kernel_lab.MissingError, kernel_lab.FailedError) as reason:
        print(f"kernel_profile: {reason}", file=sys.stderr)
        return 1
    if not found:
        print("kernel_profile: no preemption was seen; is the machine too busy?", file=sys.stderr)
        return 1
    each = [shares(to_the_start(calls)) for calls in found]
    print(f"instructions from the interrupt of the release to the job's first system call, medians of {len(each)} jobs")
    for name in each[0]:
        print(f"{statistics.median(one[name] for one in each):8.0f}  {name}")
    print(f"{statistics.median(sum(one.values()) for one in each):8.0f}  together")
    totals = collections.Counter[str]()
    for name, count in itertools.chain.from_iterable(found):
        match = PROGRAM.match(name)
        totals[match[1] if match else name] += count
    print("\ninstructions there and back, a job")
    for name, count in totals.most_common(arguments.top):
        print(f"{count / len(found):8.0f}  {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
