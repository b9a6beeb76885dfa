"""Linux's own record of what CPUs executed, by its tracepoints: what a script of the lab writes, and how it is read.

RECORD is a part of a script: `record EVENT...` begins, `recorded NAME` ends and writes below /out/NAME. The buffers are
copied as they are: their text has microseconds, and they have nanoseconds of the clock that Laxity's traces have.
"""

import dataclasses
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

RECORD = """
tracing=/sys/kernel/tracing
record() {
    mount -t tracefs none $tracing 2> /dev/null
    echo mono > $tracing/trace_clock
    echo 32768 > $tracing/buffer_size_kb
    echo > $tracing/set_event
    for event in "$@"; do echo $event >> $tracing/set_event; done
    echo > $tracing/trace
    echo 1 > $tracing/tracing_on
}
recorded() {
    echo 0 > $tracing/tracing_on
    mkdir -p /out/$1
    for event in $(cat $tracing/set_event); do
        cat $tracing/events/$(echo $event | tr : /)/format >> /out/$1/formats.txt
    done
    for cpu in $tracing/per_cpu/cpu*; do
        # It would wait for more.
        timeout 1 cat $cpu/trace_pipe_raw > /out/$1/${cpu##*/}.raw
        grep -E "overrun|dropped" $cpu/stats >> /out/$1/lost.txt
    done
}
"""

PAGE = 4096
COMMITTED = (1 << 20) - 1
HEAD = struct.Struct("<QQ")
LENGTH_MAX, PADDING, EXTENDED, ABSOLUTE = 28, 29, 30, 31


@dataclasses.dataclass(frozen=True)
class Happened:
    """A record: when, in ns, on which CPU, which event, with its fields."""

    at_ns: int
    cpu: int
    event: str
    fields: dict[str, Any]


def read(folder: Path) -> list[Happened]:
    """All records of a folder that `recorded` wrote, in the order of time. Raises ValueError if some were lost."""
    lost = re.findall(r"(overrun|dropped events): (\d+)", (folder / "lost.txt").read_text())
    if any(int(count) for _, count in lost):
        raise ValueError(f"{folder}: Linux lost records: {lost}; let buffer_size_kb be larger")
    formats = _formats((folder / "formats.txt").read_text())
    found = [
        Happened(at_ns, int(file.stem[3:]), *_decoded(data, formats))
        for file in sorted(folder.glob("cpu*.raw"))
        for at_ns, data in _entries(file.read_bytes())
    ]
    return sorted(found, key=lambda record: record.at_ns)


def beside(records: list[Happened], thread: str, other: str) -> tuple[int, int]:
    """For how long a thread executed, and how long of that another one did on another CPU; in ns, by `sched_switch`."""
    has_cpu: dict[int, str] = {}
    executed, both, last_ns = 0, 0, 0
    for record in records:
        if record.event == "sched_switch":
            if thread in has_cpu.values():
                executed += record.at_ns - last_ns
                both += (record.at_ns - last_ns) * (other in has_cpu.values())
            has_cpu[record.cpu], last_ns = record.fields["next_comm"], record.at_ns
    return executed, both


def _formats(text: str) -> dict[int, tuple[str, list[tuple[str, str, int, int, bool]]]]:
    """By number: an event's name and fields, each with its type, place, size, and whether it has a sign."""
    found = {}
    for one in text.split("name: ")[1:]:
        name, number = one.split("\n")[0], int(re.findall(r"^ID: (\d+)", one, re.MULTILINE)[0])
        fields = re.findall(r"field:(.*?)(\w+)(?:\[\d*\])?;\toffset:(\d+);\tsize:(\d+);\tsigned:([01]);", one)
        found[number] = (
            name,
            [(kind, field, int(at), int(size), sign == "1") for kind, field, at, size, sign in fields],
        )
    return found


def _decoded(data: bytes, formats: dict) -> tuple[str, dict[str, Any]]:
    """The name and the fields of an event."""
    name, fields = formats[int.from_bytes(data[:2], "little")]
    values: dict[str, Any] = {}
    for kind, field, at, size, signed in fields:
        part = data[at : at + size]
        if "__data_loc" in kind:
            word = int.from_bytes(part, "little")
            part = data[word & 0xFFFF : (word & 0xFFFF) + (word >> 16)]
        if "char" in kind and size != 1:
            values[field] = part.split(b"\0")[0].decode(errors="replace")
        else:
            values[field] = int.from_bytes(part, "little", signed=signed)
    return name, values


def _entries(pages: bytes) -> Iterator[tuple[int, bytes]]:
    """Each entry of a CPU's buffer, with its time (Linux: include/linux/ring_buffer.h)."""
    for start in range(0, len(pages), PAGE):
        now, commit = HEAD.unpack_from(pages, start)
        at, end = start + HEAD.size, start + HEAD.size + (commit & COMMITTED)
        while at < end:
            (word,) = struct.unpack_from("<I", pages, at)
            kind, delta = word & 31, word >> 5
            at += 4
            if kind == PADDING and not delta:
                break
            (first,) = struct.unpack_from("<I", pages, at)
            if kind == EXTENDED:
                now += (first << 27) + delta
                at += 4
            elif kind == ABSOLUTE:
                now = (first << 27) + delta | now & ~((1 << 59) - 1)
                at += 4
            elif kind == PADDING:
                now += delta
                at += first
            else:
                now += delta
                # Where it is long its length is in its first word, that word included.
                length = 4 * kind if kind else first
                yield now, pages[at + 4 * (not kind) : at + length]
                at += length
