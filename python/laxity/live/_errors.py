"""The exceptions of `laxity.live`. Each can be pickled, so that it survives a trip from a worker process."""

from __future__ import annotations

from laxity._errors import LaxityError


class LiveError(LaxityError):
    """Whatever a live graph raises that is not an error of the caller's Python."""

    def __str__(self) -> str:
        return str(self.args[0])


class SpecError(LiveError, ValueError):
    """A graph cannot be as it is described."""


class UnknownError(LiveError, LookupError):
    """No node or edge has this name or position."""


class UseError(LiveError, RuntimeError):
    """A graph, node or job cannot be used, or not now: it is over, another thread has it, this is a forked child."""


class MessageError(LiveError, ValueError):
    """There is no such message, or it is too long."""


class MessageLostError(MessageError):
    """A message is gone: a former owner of a node took it out of a `Fifo`, `Queue` or `Stream`, and died or let go.

    That is said of this message alone: the job is there, and so are other messages.

    Attributes:
        edge: the names of its producer and consumer.
        token: the number of the message, counted from the first that ever was on the edge.
    """

    def __init__(self, text: str, edge: tuple[str, str], token: int) -> None:
        super().__init__(text, edge, token)
        self.edge = edge
        self.token = token


class AccessError(LiveError, ValueError):
    """A node does not say that it uses the data object so."""


class RecorderError(LiveError):
    """A graph remembers no jobs: it knows no releases, and cannot be recorded.

    Attributes:
        graph: its name.
    """

    def __init__(self, text: str, graph: str) -> None:
        super().__init__(text, graph)
        self.graph = graph


class ScheduleError(LiveError):
    """Linux does not schedule a node's thread as asked; it is scheduled as before.

    Attributes:
        node: the node.
        errno: why not, as in the module `errno`; None if that is not known.
    """

    def __init__(self, text: str, node: str, errno: int | None) -> None:
        super().__init__(text, node, errno)
        self.node = node
        self.errno = errno


class RegistryError(LiveError):
    """A graph cannot be created, found or removed.

    Attributes:
        graph: its name; empty if it is about all of them.
    """

    def __init__(self, text: str, graph: str) -> None:
        super().__init__(text, graph)
        self.graph = graph


class GraphExistsError(RegistryError):
    """A graph that is in use has the name."""


class GraphNotFoundError(RegistryError, LookupError):
    """No graph has the name."""


class ClaimError(LiveError):
    """A node cannot be claimed now.

    Attributes:
        node: its name; None if no node is free.
        pid: the process that has it; None if no node is free.
    """

    def __init__(self, text: str, node: str | None, pid: int | None) -> None:
        super().__init__(text, node, pid)
        self.node = node
        self.pid = pid


class ListenError(LiveError):
    """A node cannot be claimed: it cannot listen where the producer of a `Stream` is to connect to.

    Attributes:
        edge: the names of producer and consumer of the edge.
        errno: why not, as in the module `errno`.
    """

    def __init__(self, text: str, edge: tuple[str, str], errno: int) -> None:
        super().__init__(text, edge, errno)
        self.edge = edge
        self.errno = errno


class WaitError(LiveError):
    """There is no job.

    Attributes:
        node: the node that this is about.
    """

    def __init__(self, text: str, node: str, *parts: object) -> None:
        super().__init__(text, node, *parts)
        self.node = node


class TimedOutError(WaitError, TimeoutError):
    """There was no job in time.

    Attributes:
        node: the node that waited.
    """

    def __init__(self, text: str, node: str) -> None:
        super().__init__(text, node)


class LostError(WaitError):
    """A node died that this one waits for, or let go in the middle of a job. Raised once for each loss.

    The next wait waits for the node to be claimed again, and to go on.

    Attributes:
        node: the node that was lost.
        edge: the names of producer and consumer of the edge over which it is waited for.
        pid: its process.
    """

    def __init__(self, text: str, node: str, edge: tuple[str, str], pid: int) -> None:
        super().__init__(text, node, edge, pid)
        self.edge = edge
        self.pid = pid


class TerminatedError(WaitError):
    """There will be no job any more.

    Attributes:
        node: the node that ended.
        edge: the names of producer and consumer of the edge over which it was waited for; None if it is the node that
            waited which was ended, from outside.
    """

    def __init__(self, text: str, node: str, edge: tuple[str, str] | None) -> None:
        super().__init__(text, node, edge)
        self.edge = edge


class UnreachableError(WaitError):
    """The consumer of a `Stream` listens but cannot be connected to. One may wait again.

    Attributes:
        node: the node that listens.
        edge: the names of producer and consumer of the edge.
        errno: why not, as in the module `errno`.
    """

    def __init__(self, text: str, node: str, edge: tuple[str, str], errno: int) -> None:
        super().__init__(text, node, edge, errno)
        self.edge = edge
        self.errno = errno
