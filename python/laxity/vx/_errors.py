"""What vision graphs raise."""

from __future__ import annotations

from laxity._errors import LaxityError


class VxError(LaxityError):
    """Whatever a vision graph raises that is not an error of the caller's Python.

    Attributes:
        status: what OpenVX would say, such as ``VX_ERROR_MULTIPLE_WRITERS``.
    """

    def __init__(self, text: str, status: str, *parts: object) -> None:
        super().__init__(text, status, *parts)
        self.status = status

    def __str__(self) -> str:
        return str(self.args[0])


class VerifyError(VxError, ValueError):
    """A graph cannot be executed as it is described."""


class SpawnError(VxError):
    """A graph is not executed: options that cannot be, or what Linux refuses."""


class GraphFailedError(VxError):
    """A kernel has raised, and the graph has stopped. Its exception is the cause.

    Attributes:
        node: the node.
        frame: the frame, from 0; None if the node was at none.
    """

    def __init__(self, text: str, node: str, frame: int | None, status: str) -> None:
        super().__init__(text, status)
        self.args = (text, node, frame, status)
        self.node = node
        self.frame = frame


class UseError(LaxityError):
    """A run is used in a forked child, which has none of its threads, or waited for in its kernel. Nothing happened."""
