"""A reader of traces written from docs/reference/trace-format.md alone agrees with Laxity's own, record by record."""

import json
import zlib
from pathlib import Path

import laxity
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples" / "workloads"
SOURCES = [
    "release", "scheduling", "context_switch", "ipi_latency", "tick", "timer_rearming", "cache_preemption",
    "cache_migration", "top_half", "bottom_half", "thread_release", "pai_enqueue", "pai_check",
]  # fmt: skip
ENGINES = ["EE", "CE0", "CE1"]

# The fields of each kind, in order; `job` and `owner` are composed.
KINDS = {
    0: ("release", ["job", "deadline_ns"]),
    1: ("ready", ["cpu", "job"]),
    2: ("link", ["cpu", "job"]),
    3: ("link", ["cpu"]),
    4: ("dispatch", ["cpu", "job"]),
    5: ("preempt", ["cpu", "job"]),
    6: ("suspend", ["cpu", "job"]),
    7: ("resume", ["cpu", "job"]),
    8: ("complete", ["cpu", "job"]),
    9: ("non_preemptive_begin", ["cpu", "job"]),
    10: ("non_preemptive_end", ["cpu", "job"]),
    11: ("overhead", ["cpu", "source", "duration_ns"]),
    12: ("lock_wait", ["cpu", "duration_ns"]),
    13: ("cache_delay", ["cpu", "job", "source", "duration_ns"]),
    14: ("ipi", ["cpu", "to_cpu", "duration_ns"]),
    15: ("end", []),
    16: ("engine_begin", ["gpu", "engine", "job"]),
    17: ("engine_end", ["gpu", "engine", "job"]),
    18: ("interrupt", ["cpu", "device", "owner"]),
    19: ("bottom_half_begin", ["cpu", "device", "owner"]),
    20: ("bottom_half_end", ["cpu", "device", "owner"]),
    21: ("serve", ["device", "job", "owner"]),
    22: ("request", ["lock", "job"]),
    23: ("grant", ["replica", "lock", "job"]),
    24: ("unlock", ["replica", "lock", "job"]),
    25: ("withdraw", ["lock", "job"]),
    26: ("priority", ["job", "level", "of_task"]),
    27: ("produce", ["edge", "tokens", "job"]),
    28: ("consume", ["edge", "tokens", "job"]),
    29: ("spin_begin", ["cpu", "job"]),
    30: ("spin_end", ["cpu", "job"]),
    32: ("replenish", ["task", "duration_ns", "deadline_ns"]),
    33: ("throttle", ["cpu", "maybe task"]),
    34: ("unthrottle", ["cpu", "maybe task", "duration_ns"]),
    35: ("regulate", ["cpu", "maybe level"]),
    36: ("engine_rate", ["gpu", "engine", "level"]),
}


class Bytes:
    """Bytes that are taken off the front."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        self.at += count
        return self.data[self.at - count : self.at]

    def byte(self):
        return self.take(1)[0]

    def u32(self):
        return int.from_bytes(self.take(4), "little")

    def number(self):
        value, shift = 0, 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def frame(self):
        length, checksum = self.u32(), self.u32()
        data = self.take(length)
        assert zlib.crc32(data) == checksum
        return data

    def __bool__(self):
        return self.at < len(self.data)


def records(data):
    """Every record of the trace as a dict without what is absent."""
    trace = Bytes(data)
    assert trace.take(8) == b"LAXTRACE"
    assert trace.u32() == 1
    header = json.loads(trace.frame())
    found = []
    while trace:
        found += chunk(Bytes(trace.frame()), header["tasks"])
    return found


def chunk(data, tasks):
    time, following, current = 0, [0] * len(tasks), [0] * len(tasks)
    while data:
        tag = data.byte()
        kind = tag & 0x1F
        if not tag & 0x20:
            time = (time + data.number()) % 2**64
        if kind == 31:
            kind = data.byte()
        event, fields = KINDS[kind]
        record = {"at_ns": time, "event": event}
        for field in fields:
            if field == "job":
                task = data.number()
                expected = (following if kind == 0 else current)[task]
                job = expected if tag & 0x40 else data.number()
                if kind == 0:
                    following[task] = job + 1
                else:
                    current[task] = job + 1 if kind == 8 else job
                record |= {"task": task, "job": job}
            elif kind == 0 and field == "deadline_ns" and tag & 0x80:
                task = tasks[record["task"]]
                if task.get("kind") != "best_effort":
                    record["deadline_ns"] = time + task["deadline_ns"]
            else:
                record |= value(field, data, tasks)
        yield record


def rows(trace):
    """The same of Laxity's own reader."""
    for row in trace.events().to_pylist():
        yield {name: value for name, value in row.items() if value is not None and name != "task_name"}


def value(field, data, tasks):
    """The field by the name that Laxity's tables have for it."""
    if field == "owner":
        return {"owner": f"{tasks[data.number()]['name']}.{data.number()}"} if data.byte() else {}
    if field.startswith("maybe "):
        return {field.removeprefix("maybe "): data.number()} if data.byte() else {}
    if field == "source":
        return {"kind": SOURCES[data.byte()]}
    return {field: ENGINES[data.byte()] if field == "engine" else data.number()}


@pytest.fixture(scope="module")
def traces():
    """Traces under all ways to share GPUs and to handle their interrupts, and of what has neither."""
    found = []
    for name in ("gpu_pool", "interrupts", "paper002_fig1", "pipeline", "protected", "quickstart", "stabilizer"):
        workload = laxity.load(EXAMPLES / f"{name}.toml")
        runs = [{}]
        if name == "gpu_pool":
            ways = [("driver_spinning", "linux"), ("semaphore", "preempt_rt_high"), ("k_fmlp", "pai")]
            runs += [{"arbitration": arbitration, "handling": handling} for arbitration, handling in ways]
        found += [laxity.simulate(workload, duration="300 ms", trace=True, **run).trace for run in runs]
    return found


def test_a_reader_written_from_the_reference_agrees(traces):
    for trace in traces:
        ours, theirs = records(trace.to_bytes()), list(rows(trace))
        assert ours[-1]["event"] == "end"
        assert len(ours) == len(theirs) > 10
        for mine, its in zip(ours, theirs, strict=True):
            assert mine == its


def test_the_traces_contain_nearly_all_kinds(traces):
    seen = {record["event"] for trace in traces for record in records(trace.to_bytes())}
    assert {name for name, _ in KINDS.values()} - seen == {"cache_delay", "lock_wait", "withdraw"}
