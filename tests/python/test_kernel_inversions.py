"""Priority inversions found in records that are made up, and records read from a made-up buffer of Linux."""

import struct
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

import kernel_inversions
import kernel_records
from kernel_inversions import Inversion, Watch, steps
from kernel_records import Happened

PERIODS = {"urgent": 10_000, "owner": 20_000, "lowly": 30_000}
CARDS = {"eth0": ("owner", 28)}
SLEEPS, STAYS = 1, 0


def watched(records: list[tuple], jobs: list[tuple], cpus: int = 1) -> kernel_inversions.Measured:
    """What is found in records of Linux (time, CPU, event, fields) and of the scheduler (time, event, task)."""
    watch = Watch({28: "owner"}, PERIODS, cpus)
    found = list(steps([Happened(at, cpu, event, fields) for at, cpu, event, fields in records], CARDS))
    found += [(at, 0, event, task) for at, event, task in jobs]
    for at_ns, cpu, verb, *objects in sorted(found, key=lambda step: step[0]):
        watch.until(at_ns)
        watch.apply(cpu, verb, *objects)
    return watch.found


def switch(at: int, before: str, state: int, after: str, cpu: int = 0) -> tuple:
    """A switch between threads."""
    return at, cpu, "sched_switch", {"prev_comm": before, "prev_state": state, "next_comm": after}


def top_half(at: int, end: int, returns: int, cpu: int = 0) -> list[tuple]:
    """The handler of the card's interrupt."""
    return [(at, cpu, "irq_handler_entry", {"irq": 28}), (end, cpu, "irq_handler_exit", {"irq": 28, "ret": returns})]


def softirq(at: int, polled: int, end: int, work: int = 3) -> list[tuple]:
    """A softirq that polls the card."""
    poll = {"dev_name": "eth0", "work": work, "budget": 64}
    return [(at, 0, "softirq_entry", {"vec": 3}), (polled, 0, "napi_poll", poll), (end, 0, "softirq_exit", {"vec": 3})]


def test_a_softirq_on_the_stack_of_a_more_urgent_job_overtakes_it():
    #            100  200     250          290
    # urgent ####|top |(ready) |bottom half |####
    records = [switch(0, "swapper/0", STAYS, "urgent"), *top_half(100, 200, 1), *softirq(250, 280, 290)]
    found = watched([*records, switch(500, "urgent", SLEEPS, "swapper/0")], [(0, "release", "urgent")])
    assert found.inversions == [Inversion("urgent", 250, 30, "overtaken")]
    assert (found.interrupts, found.top_halves_ns, found.bottom_halves_ns) == (1, 100, 30)


def test_a_softirq_on_the_stack_of_a_less_urgent_job_waits_only_from_the_top_half_on():
    records = [switch(0, "swapper/0", STAYS, "lowly"), *top_half(100, 200, 1), *softirq(250, 280, 290)]
    found = watched([*records, switch(500, "lowly", SLEEPS, "swapper/0")], [(0, "release", "lowly")])
    assert found.inversions == [Inversion("owner", 200, 50, "waiting_bottom_half")]
    assert found.top_halves_ns == 0


def test_a_softirq_that_is_not_through_goes_on_waiting():
    records = [switch(0, "swapper/0", STAYS, "lowly"), *top_half(100, 200, 1), *softirq(200, 280, 290, work=64)]
    records += [*softirq(400, 450, 460), switch(500, "lowly", SLEEPS, "swapper/0")]
    found = watched(records, [(0, "release", "lowly")])
    assert found.inversions == [Inversion("owner", 280, 120, "waiting_bottom_half")]


@pytest.mark.parametrize(("runs", "kind", "since", "length"), [
    ("urgent", "overtaken", 260, 140),
    ("lowly", "waiting_bottom_half", 230, 30),
])  # fmt: skip
def test_a_thread_overtakes_the_more_urgent_job_and_waits_behind_the_other(runs, kind, since, length):
    thread = "irq/28-virtio1"
    records = [switch(0, "swapper/0", STAYS, runs), *top_half(100, 200, 2)]
    # To wake the thread is a part of the top half.
    records += [(230, 0, "sched_wakeup", {"comm": thread}), switch(260, runs, STAYS, thread)]
    records += [switch(400, thread, SLEEPS, runs), switch(500, runs, SLEEPS, "swapper/0")]
    found = watched(records, [(0, "release", runs)])
    assert found.inversions == [Inversion(runs if kind == "overtaken" else "owner", since, length, kind)]
    assert found.top_halves_ns == (130 if runs == "urgent" else 0)


def test_an_interrupt_while_its_thread_has_work_leaves_none_behind():
    thread = "irq/28-virtio1"
    records = [switch(0, "swapper/0", STAYS, "lowly"), *top_half(100, 200, 2)]
    records += [(230, 0, "sched_wakeup", {"comm": thread}), switch(260, "lowly", STAYS, thread)]
    # It need not be woken.
    records += [*top_half(300, 310, 2), switch(400, thread, SLEEPS, "lowly"), switch(900, "lowly", SLEEPS, "swapper/0")]
    records += [switch(950, "swapper/0", STAYS, "other"), switch(990, "other", SLEEPS, "swapper/0")]
    found = watched(records, [(0, "release", "lowly")])
    assert found.inversions == [Inversion("owner", 230, 30, "waiting_bottom_half")]
    assert found.interrupts == 2


def test_what_runs_on_another_cpu_is_not_inverted():
    records = [switch(0, "swapper/0", STAYS, "lowly"), switch(10, "swapper/1", STAYS, "owner", cpu=1)]
    records += [*top_half(100, 200, 1), *softirq(250, 280, 290), switch(500, "lowly", SLEEPS, "swapper/0")]
    found = watched(records, [(0, "release", "lowly"), (0, "release", "owner")], cpus=2)
    assert found.inversions == []
    assert found.co_scheduled_ns == 30


def test_a_job_that_waits_for_another_job_is_not_inverted_by_interrupts():
    records = [switch(0, "swapper/0", STAYS, "lowly"), switch(500, "lowly", SLEEPS, "swapper/0")]
    found = watched(records, [(0, "release", "lowly"), (100, "release", "urgent")])
    assert found.inversions == []


def test_beside_its_owner_is_on_another_cpu_at_the_same_time():
    thread = "irq/28-virtio1"
    records = [switch(0, "swapper/0", STAYS, "owner"), switch(100, "swapper/1", STAYS, thread, cpu=1)]
    records += [switch(150, "owner", SLEEPS, "swapper/0"), switch(300, thread, SLEEPS, "swapper/1", cpu=1)]
    found = watched(records, [(0, "release", "owner")], cpus=2)
    assert (found.bottom_halves_ns, found.co_scheduled_ns) == (200, 50)
    assert kernel_records.beside([Happened(*one) for one in records], thread, "owner") == (200, 50)


def test_task_sets_are_the_same_each_time_and_use_each_device_once():
    assert kernel_inversions.task_set(3) == kernel_inversions.task_set(3) != kernel_inversions.task_set(4)
    for seed in range(20):
        tasks = kernel_inversions.task_set(seed)
        assert sorted(task.device for task in tasks if task.device is not None) == [0, 1]
        assert sum(task.cost_us / task.period_us for task in tasks) == pytest.approx(kernel_inversions.LOAD, abs=0.01)
        assert len({task.period_us for task in tasks}) == len(tasks)


FORMAT = """name: softirq_entry
ID: 155
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:unsigned int vec;\toffset:8;\tsize:4;\tsigned:0;

print fmt: "vec=%u", REC->vec
"""


def page(begin: int, *entries: bytes) -> bytes:
    """A page of a CPU's buffer."""
    data = b"".join(entries)
    return (struct.pack("<QQ", begin, len(data)) + data).ljust(kernel_records.PAGE, b"\0")


def entry(delta: int, vec: int) -> bytes:
    """An event of three words."""
    return struct.pack("<IHHiI", delta << 5 | 3, 155, 0, 7, vec)


def test_a_buffer_is_read_with_its_long_waits_and_several_pages(tmp_path):
    long = struct.pack("<II", 5 << 5 | kernel_records.EXTENDED, 2)
    pages = page(1_000, entry(10, 1), long, entry(1, 2)) + page(1 << 30, entry(0, 3))
    (tmp_path / "cpu1.raw").write_bytes(pages)
    (tmp_path / "formats.txt").write_text(FORMAT)
    (tmp_path / "lost.txt").write_text("overrun: 0\ndropped events: 0\n")
    found = kernel_records.read(tmp_path)
    assert [(it.at_ns, it.cpu, it.event, it.fields["vec"]) for it in found] == [
        (1_010, 1, "softirq_entry", 1),
        (1_010 + (2 << 27) + 5 + 1, 1, "softirq_entry", 2),
        (1 << 30, 1, "softirq_entry", 3),
    ]
    (tmp_path / "lost.txt").write_text("overrun: 4\n")
    with pytest.raises(ValueError, match="lost records"):
        kernel_records.read(tmp_path)
