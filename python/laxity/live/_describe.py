"""What graphs are described with, and what is told about their nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Counter:
    """Tokens alone: events. Never full."""


@dataclass(frozen=True, kw_only=True)
class Ring:
    """A message with each token, in shared memory, written and read in place.

    When it is full, its producer waits until its consumer is done with the oldest message.

    Attributes:
        message: the longest, in bytes.
        capacity: how many fit.
    """

    message: int
    capacity: int


@dataclass(frozen=True, kw_only=True)
class Fifo:
    """A message with each token, through a named pipe: copied into it and out of it.

    Full as a ring is. Messages that a killed consumer took out of the pipe and did not use up are lost:
    `MessageLostError`.

    Attributes:
        message: the longest, in bytes.
        capacity: how many fit.
    """

    message: int
    capacity: int


@dataclass(frozen=True, kw_only=True)
class Queue:
    """As `Fifo`, through a POSIX message queue.

    Attributes:
        message: the longest, in bytes.
        capacity: how many fit.
    """

    message: int
    capacity: int


@dataclass(frozen=True, kw_only=True)
class Stream:
    """As `Fifo`, through a TCP connection; its producer waits until the consumer is there.

    Messages under way are lost with the consumer.

    Attributes:
        message: the longest, in bytes.
        capacity: how many fit.
        address: where the consumer listens; at port 0 Linux chooses one.
    """

    message: int
    capacity: int
    address: str = "127.0.0.1:0"


Channel: TypeAlias = Counter | Ring | Fifo | Queue | Stream
"""What an edge carries."""


@dataclass(frozen=True)
class NodeSpec:
    """A node of a graph. Spans are texts with a unit: ``"33 ms"``.

    Attributes:
        name: unique in its graph.
        period: of a source; that of every other node follows from the rates of its producers.
        phase: first arrival of a source.
        deadline: relative to the arrival; the period if not given.
        priority: for fixed priorities given by hand; the smaller number is the higher.
        cluster: the cluster that it runs on.
    """

    name: str
    period: str | None = None
    phase: str | None = None
    deadline: str | None = None
    priority: int | None = None
    cluster: int | None = None


@dataclass(frozen=True)
class EdgeSpec:
    """An edge of a graph.

    Attributes:
        producer: the name of the node that it leads from.
        consumer: the name of the node that it leads to.
        channel: what it carries.
        produce: tokens, and messages, that each job of the producer adds.
        consume: those that each job of the consumer takes away.
        threshold: those that must be there before a job of the consumer begins, which sees them all; as many
            as it takes away if not given.
        initial: tokens at the start; their messages are all zeros.
        back_edge: whether it closes a cycle; such an edge needs initial tokens.
    """

    producer: str
    consumer: str
    channel: Channel = Counter()
    produce: int = 1
    consume: int = 1
    threshold: int | None = None
    initial: int = 0
    back_edge: bool = False


@dataclass(frozen=True, kw_only=True)
class NodeStatus:
    """What a node is doing.

    Attributes:
        pid: the process that has it; None if no process has.
        is_lost: whether its process died, or let go of it in the middle of a job.
        started: jobs that were begun.
        completed: jobs that are complete.
        has_terminated: whether it ended, or was told to.
        is_waiting: whether its owner is suspended until tokens, room, or its release come.
        is_sending: whether its owner is telling two consumers or more that their tokens are there.
    """

    pid: int | None
    is_lost: bool
    started: int
    completed: int
    has_terminated: bool
    is_waiting: bool = False
    is_sending: bool = False


@dataclass(frozen=True, kw_only=True)
class Collected:
    """What a recording did so far.

    Attributes:
        records: those written.
        missed: jobs that were over, and forgotten, before it began.
        lost: jobs that were forgotten since, before they were collected: collect more often, or let the graph remember
            more of them. The trace then counts as cut off.
        late: beginnings and completions that a preempted thread noted so late that they have the time of later ones.
    """

    records: int
    missed: int
    lost: int
    late: int
