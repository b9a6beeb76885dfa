"""Priority inversions by the interrupts of network devices in the lab, under three ways of handling them.

A task set is what one CPU has of the paper's (000, section V): eight tasks with periods of 15 to 60 ms, of which two
send datagrams and go on computing while their device works. A device is two of QEMU's network cards that are
connected: what the one is given it sends some milliseconds later, and the other one interrupts. Its bottom half is
Linux's own: what its network stack does for each datagram until it is in the socket.

    ordinary   top halves on the stack of any job, and the bottom halves, as softirqs, right after them
    threaded   `threadirqs`: both in a thread with SCHED_FIFO 50
    klmirqd    `threadirqs`, and `laxity sched irq`: that thread has the priority of its owner's job

The same tasks are scheduled by Laxity in the kernel each time. Linux's record says which thread or handler executed,
and the scheduler's trace which job was ready.
"""

import dataclasses
import json
import random
import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import kernel_lab
import kernel_records
from kernel_records import Happened

HANDLINGS = ("ordinary", "threaded", "klmirqd")
KINDS = ("waiting_bottom_half", "overtaken", "co_scheduled")

SLOTS = (16, 17, 18, 19)
"""PCI slots of the cards; each device is two that are next to one another."""

WORK_NS = (2_000_000, 3_000_000)
"""For how long each device works."""

PERIOD_US = (15_000, 60_000)
TASKS, LOAD = 8, 0.8
DATAGRAMS_MEAN, DATAGRAMS_MAX = 12, 64

EVENTS = (
    "irq:irq_handler_entry",
    "irq:irq_handler_exit",
    "irq:softirq_entry",
    "irq:softirq_exit",
    "napi:napi_poll",
    "sched:sched_switch",
    "sched:sched_wakeup",
)
HANDLED = 1
"""What a handler returns that needs no thread."""

NET_TX, NET_RX = 2, 3
"""The softirqs of bottom halves: one receives and finds what was sent, the other frees that."""

NETWORK = f"""
for module in failover net_failover virtio_net; do insmod /lab/$module.ko || exit 20; done
echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6
echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6
echo 0 > /proc/sys/net/ipv4/conf/all/rp_filter
for number in 0 1 2 3; do
    until [ -e /sys/class/net/eth$number ]; do sleep 0.1; done
    ip link set eth$number up && ip addr add 10.0.$number.1/24 dev eth$number || exit 21
    # What comes from an address of this machine would be no one's.
    echo 1 > /proc/sys/net/ipv4/conf/eth$number/accept_local
    echo 0 > /proc/sys/net/ipv4/conf/eth$number/rp_filter
done
ip route add 239.0.0.1/32 dev eth0 && ip route add 239.0.0.2/32 dev eth2 || exit 22
irq() {{ sed -n "s,^ *\\([0-9]*\\):.* $1\\$,\\1,p" /proc/interrupts; }}
for card in 0 1 2 3; do for way in input output; do
    echo $card $way $(irq virtio$((card + 1))-$way.0) >> /out/irqs.txt
done; done
threads() {{ echo irq/$(irq virtio$((2 * $1 + 1))-output.0)-,irq/$(irq virtio$((2 * $1 + 2))-input.0)-; }}
CARDS="{" ".join(f"0000:00:{slot:02x}.0" for slot in SLOTS)}"
"""

INTERRUPT_ALL = """
for number in 0 1 2 3; do arping -c 1 -w 1 -I eth$number 10.0.9.9 > /dev/null; done
grep virtio /proc/interrupts
"""


def machine(handling: str) -> kernel_lab.Machine:
    """A machine with two devices."""
    words = []
    for number, slot in enumerate(SLOTS):
        device, is_receiver = divmod(number, 2)
        card = f"virtio-net-pci,netdev=n{number},addr={slot:#x},ioeventfd=off,romfile="
        words += ["-netdev", f"hubport,id=n{number},hubid={device + 1}"]
        words += ["-device", card if is_receiver else f"{card},tx=timer,x-txtimer={WORK_NS[device]}"]
    parameters = [] if handling == "ordinary" else ["threadirqs"]
    return kernel_lab.Machine(words, ["failover", "net_failover", "virtio_net"], parameters)


@dataclasses.dataclass(frozen=True)
class LabTask:
    """A task; `device` is the number of its device, if it has one."""

    name: str
    period_us: int
    phase_us: int
    cost_us: int
    device: int | None = None
    datagrams: tuple[int, ...] = ()

    def argument(self, number: int) -> str:
        """As kernel-network takes it, in the set of that number."""
        text = f"task={self.name}:{self.period_us}:{self.phase_us}:{self.cost_us}"
        if self.device is None:
            return text
        counts = ",".join(str(count) for count in self.datagrams)
        return f"{text}:239.0.0.{self.device + 1}:10.0.{2 * self.device + 1}.1:{counts}"


def task_set(seed: int) -> list[LabTask]:
    """A random one: exponential utilizations, which are scaled to `LOAD` together."""
    rng = random.Random(seed)
    periods = rng.sample(range(*PERIOD_US), TASKS)
    shares = [0.25 + rng.expovariate(1) for _ in periods]
    users = rng.sample(range(TASKS), len(WORK_NS))
    made = []
    for number, (period, share) in enumerate(zip(periods, shares, strict=True)):
        device = users.index(number) if number in users else None
        counts = [min(1 + int(rng.expovariate(1 / DATAGRAMS_MEAN)), DATAGRAMS_MAX) for _ in range(16)]
        cost = max(int(period * LOAD * share / sum(shares)), 100)
        made.append(
            LabTask(
                f"s{seed}t{number}",
                period,
                rng.randrange(period),
                cost,
                device,
                tuple(counts) if device is not None else (),
            )
        )
    return made


def script(handling: str, seeds: Iterable[int], span_ms: int, policy: str = "P-RM") -> str:
    """What the lab does: each task set, one after the other."""
    lines = [kernel_records.RECORD, NETWORK, f"start --policy {policy} --trace /out/trace.lxt"]
    if handling == "klmirqd":
        # When a card is up, Linux binds the thread to a CPU at its first interrupt, also after `sched irq`.
        lines += [INTERRUPT_ALL] * (policy == "G-RM")
        lines.append("laxity sched irq $CARDS || exit 23")
    for seed in seeds:
        tasks = task_set(seed)
        words = [task.argument(seed) for task in tasks]
        if handling == "klmirqd":
            words += [f"threads={t.name}:$(threads {t.device})" for t in tasks if t.device is not None]
        lines += [f"record {' '.join(EVENTS)}"]
        lines += [f"kernel-network for={span_ms} {' '.join(words)} > /out/set{seed}.txt || exit 24"]
        lines += [f"recorded set{seed}", f"cat /out/set{seed}.txt"]
    return "\n".join([*lines, "laxity sched stop || exit 25", "wait $loader", ""])


@dataclasses.dataclass(frozen=True)
class Inversion:
    """A maximal interval of priority inversion: whose, since when and for how long, in ns, and how it began."""

    task: str
    since_ns: int
    length_ns: int
    kind: str


@dataclasses.dataclass
class Measured:
    """What the record of a run shows.

    Attributes:
        inversions: those that bottom halves cause, in the order of their ends.
        interrupts: top halves.
        top_halves_ns: what these took of jobs more urgent than their owners.
        bottom_halves_ns: for how long bottom halves executed.
        co_scheduled_ns: of that, while their owner's thread executed on another CPU.
    """

    inversions: list[Inversion] = dataclasses.field(default_factory=list)
    interrupts: int = 0
    top_halves_ns: int = 0
    bottom_halves_ns: int = 0
    co_scheduled_ns: int = 0


@dataclasses.dataclass
class Cpu:
    """What a CPU does: the thread that it has, and on its stack a top half of, or a softirq for, an owner."""

    thread: str = ""
    top_half: str | None = None
    softirq: str | None = None


@dataclasses.dataclass(frozen=True)
class Runner:
    """For which task a CPU works, None: for none, and whether by a bottom half."""

    task: str | None
    is_bottom_half: bool = False


class Watch:
    """Follows a run, and finds the priority inversions that bottom halves cause.

    As laxity-trace does in simulations (metrics/inversion): a task and its bottom halves are one entity, ready while
    the job or a bottom half is, which is from the end of the top half on. Through top halves, the scheduler and
    context switches a CPU goes on with what it ran. An entity is inverted if it is among the m most urgent ready ones,
    nothing of it runs, something less urgent does, and either its own bottom half waits or that other is one.
    """

    def __init__(self, owners: dict[int, str], periods: dict[str, int], cpus: int) -> None:
        """Of each interrupt's number the task that it is for, and each task's period: the shorter, the more urgent."""
        self.owners, self.periods = owners, periods
        self.cpus = [Cpu() for _ in range(cpus)]
        self.ready: set[str] = set()
        # Bottom halves that are not through: threads, and softirqs of network cards.
        self.waiting: dict[str, str] = {}
        self.found = Measured()
        self.inverted: dict[str, tuple[int, str]] = {}
        self.now_ns = 0

    def owner(self, thread: str) -> str | None:
        """The task that a thread handles interrupts for."""
        number = thread.removeprefix("irq/").split("-")[0]
        return self.owners.get(int(number)) if thread.startswith("irq/") and number.isdigit() else None

    def rank(self, task: str | None) -> float:
        """The smaller, the more urgent; that of what is no task is below all."""
        return self.periods.get(task, float("inf")) if task else float("inf")

    def runner(self, cpu: Cpu) -> Runner | None:
        """What a CPU runs; None: it idles."""
        owner = cpu.softirq or self.owner(cpu.thread)
        if owner:
            return Runner(owner, is_bottom_half=True)
        if cpu.thread in self.periods:
            return Runner(cpu.thread)
        return None if cpu.thread.startswith("swapper") else Runner(None)

    def until(self, at_ns: int) -> None:
        """Accounts for the time until an instant, in which nothing changed."""
        length = at_ns - self.now_ns
        if length <= 0:
            return
        runners = [self.runner(cpu) for cpu in self.cpus]
        for cpu, runner in zip(self.cpus, runners, strict=True):
            if cpu.top_half and runner and self.rank(runner.task) < self.rank(cpu.top_half):
                self.found.top_halves_ns += length
            if runner and runner.is_bottom_half and not cpu.top_half:
                self.found.bottom_halves_ns += length
                beside = any(other and other == Runner(runner.task) for other in runners)
                self.found.co_scheduled_ns += length * beside
        now = self.judge([runner for runner in runners if runner])
        for task in [task for task in self.inverted if task not in now]:
            since, kind = self.inverted.pop(task)
            self.found.inversions.append(Inversion(task, since, self.now_ns - since, kind))
        for task, kind in now.items():
            self.inverted.setdefault(task, (self.now_ns, kind))
        self.now_ns = at_ns

    def judge(self, runners: list[Runner]) -> dict[str, str]:
        """The tasks that are inverted, and by which kind."""
        with_halves = set(self.waiting.values())
        entitled = sorted(self.ready | with_halves, key=self.rank)[: len(self.cpus)]
        lowest = max((self.rank(runner.task) for runner in runners), default=0)
        lowest_half = max((self.rank(runner.task) for runner in runners if runner.is_bottom_half), default=0)
        running = {runner.task for runner in runners}
        found = {}
        for task in entitled:
            if task in running or self.rank(task) >= lowest:
                continue
            if task in with_halves:
                found[task] = "waiting_bottom_half"
            elif self.rank(task) < lowest_half:
                found[task] = "overtaken"
        return found

    def apply(self, cpu: int, verb: str, *objects: Any) -> None:
        """Something changes, at the instant that was accounted for last."""
        here = self.cpus[cpu]
        match verb, *objects:
            case "top half", number:
                here.top_half = self.owners[number]
                self.found.interrupts += 1
            case "top half ends", number, card:
                here.top_half = None
                if card:
                    self.waiting[card] = self.owners[number]
            case "wakes", thread if self.owner(thread):
                here.top_half = None
                self.waiting[thread] = self.owner(thread)
            case "switches", before, is_asleep, after:
                here.thread = after
                if is_asleep:
                    self.waiting.pop(before, None)
            case "polls", owner:
                here.softirq = owner
            case "polled", card, owner, is_more:
                self.waiting.pop(card, None)
                if is_more:
                    self.waiting[card] = owner
            case "release" | "ready" | "resume", task:
                self.ready.add(task)
            case "complete" | "suspend", task:
                self.ready.discard(task)


def steps(records: list[Happened], cards: dict[str, tuple[str, int]]) -> Iterator[tuple]:
    """What of a record concerns bottom halves: the time, the CPU, a verb of `Watch.apply`, and its objects.

    Of each network card there is the task that it is for, and the number of its interrupt.
    """
    by_number = {number: card for card, (_, number) in cards.items()}
    next_of: list[int] = [0] * len(records)
    last: dict[int, int] = {}
    for index in range(len(records) - 1, -1, -1):
        next_of[index] = last.get(records[index].cpu, len(records))
        last[records[index].cpu] = index

    def polled_next(index: int) -> str | None:
        """The owner of the card that this softirq polls next."""
        while (index := next_of[index]) < len(records):
            if records[index].event == "napi_poll":
                return cards.get(records[index].fields["dev_name"], (None, 0))[0]
            if records[index].event == "softirq_exit":
                break
        return None

    polled_last: dict[int, str] = {}
    for index, it in enumerate(records):
        head, fields = (it.at_ns, it.cpu), it.fields
        match it.event:
            case "irq_handler_entry" if fields["irq"] in by_number:
                yield *head, "top half", fields["irq"]
            case "irq_handler_exit" if fields["irq"] in by_number:
                number, then = fields["irq"], next_of[index]
                # To wake its thread is a part of it.
                wakes = then < len(records) and records[then].event == "sched_wakeup"
                if not (wakes and records[then].fields["comm"].startswith(f"irq/{number}-")):
                    yield *head, "top half ends", number, by_number[number] if fields["ret"] == HANDLED else None
            case "sched_wakeup":
                yield *head, "wakes", fields["comm"]
            case "sched_switch":
                yield *head, "switches", fields["prev_comm"], fields["prev_state"] & 0xFF != 0, fields["next_comm"]
            case "napi_poll" if fields["dev_name"] in cards:
                is_more = fields["work"] >= fields["budget"] > 0
                yield *head, "polled", fields["dev_name"], cards[fields["dev_name"]][0], is_more
                yield *head, "polls", polled_next(index)
                polled_last[it.cpu] = cards[fields["dev_name"]][0]
            case "softirq_entry" if fields["vec"] == NET_RX:
                yield *head, "polls", polled_next(index)
            case "softirq_entry" if fields["vec"] == NET_TX:
                # What was sent is freed.
                yield *head, "polls", polled_last.get(it.cpu)
            case "softirq_exit" if fields["vec"] in {NET_RX, NET_TX}:
                yield *head, "polls", None


JOB = {"release", "ready", "resume", "complete", "suspend"}


def events(laxity: Path, trace: Path) -> list[dict]:
    """The records of a trace of Laxity's."""
    command = [laxity, "trace", trace, "export", "--table", "events", "--format", "json", "-o", "-"]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def measured(folder: Path, seed: int, jobs: list[dict], cpus: int = 1) -> Measured:
    """What a task set's run showed: `folder` is what the lab wrote, `jobs` are the events of the scheduler's trace."""
    tasks = task_set(seed)
    users = {task.device: task.name for task in tasks if task.device is not None}
    cards = {}
    for line in (folder / "irqs.txt").read_text().splitlines():
        card, way, number = line.split()
        # A device sends by its first card, and receives by the second.
        if (int(card) % 2 == 0) == (way == "output"):
            cards[f"eth{card}"] = users[int(card) // 2], int(number)
    watch = Watch({number: task for task, number in cards.values()}, {t.name: t.period_us for t in tasks}, cpus)
    found = list(steps(kernel_records.read(folder / f"set{seed}"), cards))
    offset, start = clock(folder, seed, jobs)
    names = {task.name for task in tasks}
    ours = [one for one in jobs if one["event"] in JOB and one["task_name"] in names]
    found += [(one["at_ns"] + offset, 0, one["event"], one["task_name"]) for one in ours]
    found.sort(key=lambda step: step[0])
    watch.now_ns = found[0][0]
    for at_ns, cpu, verb, *objects in found:
        watch.until(at_ns)
        if at_ns <= start:
            watch.found = Measured()
        watch.apply(cpu, verb, *objects)
    return watch.found


def clock(folder: Path, seed: int, jobs: list[dict]) -> tuple[int, int]:
    """What the times of the scheduler's trace lack to the monotonic clock, and when the tasks begin on that; in ns."""
    (start,) = map(int, re.findall(r"start_ns=(\d+)", (folder / f"set{seed}.txt").read_text()))
    first: dict[str, int] = {}
    for one in jobs:
        if one["event"] == "release":
            first.setdefault(one["task_name"], one["at_ns"])
    offsets = {start + 1_000 * task.phase_us - first[task.name] for task in task_set(seed)}
    if len(offsets) != 1:
        raise ValueError(f"{folder}: the first releases of set {seed} are not those of its phases: {sorted(offsets)}")
    return offsets.pop(), start


def run(
    handling: str, seeds: list[int], programs: list[Path], out: Path, *, span_ms: int = 2_000, smp: int = 1
) -> dict[int, Measured]:
    """Runs task sets under a handling in the lab; what they showed, by seed. Raises kernel_lab's errors."""
    policy = "P-RM" if smp == 1 else "G-RM"
    text = kernel_lab.START + script(handling, seeds, span_ms, policy)
    code = kernel_lab.run(text, programs, out, smp, 900, machine=machine(handling))
    said = (out / "output.txt").read_text(errors="replace")
    if code or re.search(r" lost=[1-9]", said):
        raise kernel_lab.FailedError(f"the script ended with {code}:\n{said}")
    laxity = next(program for program in programs if program.name == "laxity")
    jobs = events(laxity, out / "trace.lxt")
    return {seed: measured(out, seed, jobs, smp) for seed in seeds}
