"""Threads of the lab's kernel that handle interrupts for tasks of Laxity's scheduler: a part of `make test-kernel-lab`.

The devices are QEMU's: `edu` on the PCI bus, which takes 100 ms to copy something and then interrupts, and a serial
port, whose driver sends what was written to it in its interrupt thread. Linux is started with `threadirqs`, so that
threads handle all interrupts.
"""

import itertools
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import kernel_lab
import pytest
from test_kernel_lab import LAXITY, judged, lab, programs

__all__ = ["programs"]

SLOTS = [16, 17, 18, 19]
MACHINE = kernel_lab.Machine(
    devices=["-serial", "null", *(word for slot in SLOTS for word in ["-device", f"edu,addr={slot:#x}"])],
    modules=["uio", "uio_pci_generic"],
    parameters=["threadirqs"],
)
ADDRESSES = [f"0000:00:{slot:02x}.0" for slot in SLOTS]

PRELUDE = f"""
thread() {{ for one in /proc/[0-9]*; do case $(cat $one/comm 2>/dev/null) in $1*) echo ${{one#/proc/}};; esac; done; }}
# Fields 40 and 41: the priority, and the class, of which 1 is SCHED_FIFO.
class() {{ sed 's/.*) //' /proc/$1/stat | cut -d' ' -f38-39; grep Cpus_allowed_list /proc/$1/status; }}
edu() {{
    insmod /lab/uio.ko && insmod /lab/uio_pci_generic.ko
    echo 1234 11e8 > /sys/bus/pci/drivers/uio_pci_generic/new_id
}}
# As long as it is open its interrupt has a thread.
serial() {{ stty -F /dev/ttyS1 raw clocal; exec 9<> /dev/ttyS1; serial=$(thread irq/3-); }}
EDU="{" ".join(ADDRESSES)}"
use_edu() {{ kernel-device device=edu:{",".join(ADDRESSES)} after=50 "$@"; }}
"""


@pytest.fixture(scope="module")
def machine() -> kernel_lab.Machine:
    """A machine with devices, for whose drivers this kernel has modules."""
    if kernel_lab.missing_tools():
        pytest.skip("no kernel lab")
    try:
        kernel_lab.kernel_modules(MACHINE.modules)
    except kernel_lab.MissingError as reason:
        pytest.skip(f"no drivers for the lab's devices: {reason}")
    return MACHINE


def responses(said: str) -> Iterator[dict[str, int]]:
    """Of each run of kernel-device: the response time of each task, in us, behind a line that names the run."""
    for run in said.split("run\n")[1:]:
        yield {name: int(us) for name, us in re.findall(r"(\w+) response_us=(\d+)", run)}


def events(trace: Path) -> list[dict]:
    """The records of a trace."""
    command = [LAXITY, "trace", trace, "export", "--table", "events", "--format", "json", "-o", "-"]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def served(records: list[dict]) -> list[str | None]:
    """The owner of each piece of work of an interrupt thread."""
    owners = (record["owner"] for record in records if record["event"] == "serve")
    return [owner and owner.split(".")[0] for owner in owners]


def linked_beside_owner(records: list[dict]) -> list[int]:
    """The instants, in ns, from which an interrupt thread and its owner are linked to CPUs at the same time."""
    owners, links, found = {}, {}, []
    for record, following in itertools.pairwise(records):
        job = f"{record['task_name']}.{record['job']}"
        if record["event"] == "serve":
            owners[job] = record["owner"]
        elif record["event"] == "link":
            links[record["to_cpu"] if record["cpu"] is None else record["cpu"]] = job
        elif record["event"] in {"complete", "suspend"}:
            links = {cpu: linked for cpu, linked in links.items() if linked != job}
        linked = set(links.values())
        # Links of one instant come one after the other.
        if record["at_ns"] != following["at_ns"] and any(owners.get(job) in linked for job in linked):
            found.append(record["at_ns"])
    return found


def test_work_for_a_task_runs_at_its_priority_and_linuxs_own_threads_do_not(programs, machine, tmp_path):
    script = """
    edu
    start --policy G-FP --trace /out/trace.lxt
    # Above all tasks, as Linux has them.
    echo run; use_edu priority=3 || exit 1
    laxity sched irq $EDU || exit 2
    echo run; use_edu priority=3 threads=irq/ || exit 3
    echo run; use_edu priority=1 threads=irq/ || exit 4
    laxity sched status --json > /out/owned.json
    # No task says that they work for it: below all tasks, as ordinary threads of Linux are.
    echo run; use_edu priority=1 || exit 5
    laxity sched status --json > /out/status.json
    laxity sched status
    laxity sched stop || exit 6
    ended
    """
    said = lab(programs, tmp_path / "out", PRELUDE + script, smp=1, machine=machine)
    assert "loader 0" in said, said
    trace = tmp_path / "out" / "trace.lxt"
    claims = judged(trace)
    assert claims["follows G-FP/CEm"] == "yes"
    above, lowly, urgent, below = responses(said)
    print(f"a lowly owner: middle {above['middle']} us beside SCHED_FIFO, {lowly['middle']} us beside klmirqd")
    print(f"an urgent owner: {below['owner']} us by threads below all tasks, {urgent['owner']} us by klmirqd")
    # Of four interrupts only the hard part delays a more urgent task; that of SCHED_FIFO has the threads' as well.
    assert 100_000 <= lowly["middle"] < above["middle"] - 20, said
    # The owner takes 2 ms and the device 99 to 100, as it counts whole milliseconds; then come four interrupts and
    # their threads. The middle task would end at 150.
    assert urgent["owner"] < 102_500, said
    assert below["owner"] > 150_000, said
    owned, all_ = (
        json.loads((tmp_path / "out" / f"{name}.json").read_text())["status"] for name in ["owned", "status"]
    )
    assert len(owned["interrupts"]) >= 4
    for thread, later in zip(owned["interrupts"], all_["interrupts"], strict=True):
        assert re.fullmatch(r"irq/1\d-(s-)?uio_pci_generic", thread["name"])
        assert thread["own_priority"] == 50
        assert thread["handled"] == thread["owned"] > 0, "each time for a task"
        assert later["owned"] == thread["owned"], "and then for none"
        assert later["handled"] > thread["handled"]
    owners = served(events(trace))
    assert set(owners) == {"owner", None}
    assert len(owners) == sum(thread["handled"] for thread in all_["interrupts"])


def test_a_thread_inherits_with_its_owner_before_and_while_it_has_work(programs, machine, tmp_path):
    # The lowly owner has a lock while it waits for its device. The interrupt comes at 101 ms; the middle task would end
    # at 150.
    script = """
    edu
    start --policy G-FP --trace /out/trace.lxt
    laxity sched irq $EDU || exit 1
    echo run; use_edu priority=3 threads=irq/ waiter=60 || exit 2
    echo run; use_edu priority=3 threads=irq/ waiter=110 || exit 3
    laxity sched stop || exit 4
    ended
    """
    said = lab(programs, tmp_path / "out", PRELUDE + script, smp=1, machine=machine)
    assert judged(tmp_path / "out" / "trace.lxt")["follows G-FP/CEm"] == "yes"
    before, meanwhile = responses(said)
    assert 41_000 <= before["waiter"] < 43_000, said
    assert 1_000 <= meanwhile["waiter"] < 3_000, said


@pytest.mark.parametrize("policy", ["P-EDF", "G-EDF", "C-FP --cluster-size 2"])
def test_a_thread_never_executes_beside_its_owner(programs, machine, tmp_path, policy):
    # The serial port's thread wakes its owner before it is through. Linux's record of switches is the witness.
    cluster = 1 if policy == "P-EDF" else 0
    script = f"""
    serial
    tracing=/sys/kernel/tracing
    mount -t tracefs none $tracing && echo mono > $tracing/trace_clock
    use() {{
        echo > $tracing/trace
        echo 1 > $tracing/events/sched/sched_switch/enable
        kernel-device device=tty:/dev/ttyS1 jobs=40 period=20 middle=5 cluster={cluster} $2 || exit 1
        echo 0 > $tracing/events/sched/sched_switch/enable
        cat $tracing/trace > /out/$1.txt
    }}
    start --policy {policy} --trace /out/trace.lxt
    use rival
    laxity sched irq $serial --cluster {cluster} || exit 2
    laxity sched irq $(thread ksoftirqd/1) --cluster 0 && exit 6
    use klmirqd threads=irq/3-
    # Linux binds it to a CPU again, as when the affinity of its interrupt changes.
    taskset -p {1 << cluster} $serial || exit 3
    use bound threads=irq/3-
    laxity sched irq $serial --cluster {cluster} || exit 4
    class $serial > /out/class.txt
    laxity sched stop || exit 5
    ended
    """
    said = lab(programs, tmp_path / "out", PRELUDE + script, smp=2, machine=machine)
    assert "loader 0" in said, said
    assert "it can work in a cluster of CPUs 1" in said, "Linux keeps ksoftirqd where it is"
    trace = tmp_path / "out" / "trace.lxt"
    assert judged(trace)[f"follows {policy.split()[0]}/CEm"] == "yes"
    records = events(trace)
    assert served(records).count("owner") >= 80
    # CPUs of this machine take turns, so that what is linked at the same time need not execute so.
    assert linked_beside_owner(records) == []
    allowed = (tmp_path / "out" / "class.txt").read_text().split()[-1]
    assert allowed == ("1" if policy == "P-EDF" else "0-1"), "it is asked for again"
    for name in ["rival", "klmirqd", "bound"]:
        executed, beside = beside_owner((tmp_path / "out" / f"{name}.txt").read_text())
        print(f"{policy}, {name}: the thread executed for {executed} us, {beside} us of them beside its owner")
        assert executed > 1_000
        # Under P-EDF Linux has the thread on the other CPU; elsewhere the owner may be on the thread's.
        if name != "rival" or policy == "P-EDF":
            assert (beside > 0) == (name == "rival")


def beside_owner(switches: str) -> tuple[int, int]:
    """How long the serial port's thread executed, and how long beside its owner, by Linux's record; in us."""
    found = re.findall(r"\[(\d+)\] \S+ +(\d+)\.(\d{6}): sched_switch: .* next_comm=(.*) next_pid=", switches)
    executes, last, executed, beside = {}, 0, 0, 0
    for cpu, seconds, us, name in found:
        now = int(seconds) * 1_000_000 + int(us)
        has_cpu = list(executes.values())
        if "irq/3-ttyS1" in has_cpu:
            executed += now - last
            beside += (now - last) * ("owner" in has_cpu)
        executes[cpu], last = name, now
    return executed, beside


def test_work_for_no_task_has_a_budget(programs, machine, tmp_path):
    script = """
    serial
    start --policy G-EDF --trace /out/trace.lxt
    laxity sched irq $serial --server 50us/20ms || exit 1
    echo run; kernel-device device=tty:/dev/ttyS1 bytes=32768 middle=5 period=2000 || exit 2
    echo run; kernel-device device=tty:/dev/ttyS1 bytes=32768 middle=5 period=2000 threads=irq/3- || exit 3
    laxity sched status --json > /out/status.json
    laxity sched stop || exit 4
    ended
    """
    said = lab(programs, tmp_path / "out", PRELUDE + script, smp=1, machine=machine)
    assert judged(tmp_path / "out" / "trace.lxt")["follows G-EDF/CEm"] == "yes"
    (thread,) = json.loads((tmp_path / "out" / "status.json").read_text())["status"]["interrupts"]
    served_alone, owned = responses(said)
    assert thread["throttled"] > 2, thread
    # Each time 50 us in 20 ms, where it takes some milliseconds altogether; for its owner it has what it needs.
    assert served_alone["owner"] > 100_000, said
    assert owned["owner"] < 20_000, said


@pytest.mark.parametrize("end", ["laxity sched stop", "kill -KILL $loader", "echo S > /proc/sysrq-trigger"])
def test_threads_have_their_own_class_again_however_the_scheduler_ends(programs, machine, tmp_path, end):
    script = f"""
    serial
    echo 1 > /proc/sys/kernel/sysrq
    class $serial > /out/before.txt
    start --policy G-EDF
    laxity sched irq $serial || exit 1
    laxity sched irq $$ 2> /out/program.txt && exit 3
    class $serial > /out/meanwhile.txt
    kernel-device device=tty:/dev/ttyS1 jobs=1000 period=20 middle=5 threads=irq/3- & tasks=$!
    until laxity sched status | grep -q owner; do sleep 0.2; done
    sleep 1
    {end}
    wait $loader
    sleep 1
    class $serial > /out/after.txt
    kill -0 $tasks || exit 4
    kill -KILL $tasks
    cat /sys/kernel/sched_ext/state
    """
    said = lab(programs, tmp_path / "out", PRELUDE + script, smp=2, machine=machine)
    assert "disabled" in said, said
    files = ["before", "meanwhile", "after", "program"]
    before, meanwhile, after, program = ((tmp_path / "out" / f"{name}.txt").read_text() for name in files)
    assert before == after, said
    assert before.split()[:2] == ["50", "1"]
    assert meanwhile.split()[:2] == ["0", "0"]
    assert meanwhile.split()[-1] == "0-1", "it may be on all CPUs of the cluster"
    assert "none of the kernel" in program
