"""Programs that the demo starts, and ends."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

Command: TypeAlias = Sequence[object]

Look: TypeAlias = Callable[[], None]

Popen = TypeVar("Popen", bound="subprocess.Popen[Any]")

LOOK_EVERY_S = 0.2
TO_END_S = 10.0
"""For a program that was asked to end; then it is killed."""

BUSY = """
import os, signal
signal.signal(signal.SIGINT, signal.SIG_DFL)
parent = os.getppid()
while os.getppid() == parent:
    sum(range(100_000))
"""
"""Computes until the process that started it is gone."""


class FailedError(Exception):
    """A program did not do what the demo needs; the text says which, and what it said."""


def output(*command: object, may_end_with: tuple[int, ...] = ()) -> str:
    """Runs a program and returns what it prints.

    Raises FailedError with its own message if it ends with something else than 0 and `may_end_with`.
    """
    done = subprocess.run(_words(command), capture_output=True, text=True, check=False)
    if done.returncode not in may_end_with:
        _check(command, done.returncode, done.stderr)
    return done.stdout


def run_watched(command: Command, folder: Path, label: str, expected_s: float, look: Look | None = None) -> None:
    """Runs a program, says how far it is, and ends it whatever happens.

    Its output is in `folder`, in 0.out and 0.err. Raises FailedError if it fails. `look` is called again and again.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as ending:
        child = _start(command, folder / "0", ending)
        started = time.monotonic()
        while child.poll() is None:
            show(label, time.monotonic() - started, expected_s)
            if look is not None:
                look()
            time.sleep(LOOK_EVERY_S)
        show(label, expected_s, expected_s, is_last=True)
        _check(command, child.returncode, (folder / "0.err").read_text())


@contextlib.contextmanager
def busy_loops(count: int) -> Iterator[None]:
    """So many programs that do nothing but compute, as ordinary threads, while the context lasts."""
    with contextlib.ExitStack() as ending:
        for _ in range(count):
            ending.enter_context(_ended(subprocess.Popen([sys.executable, "-c", BUSY])))
        yield


def show(label: str, done_s: float, expected_s: float, *, is_last: bool = False) -> None:
    """How far something is: redrawn on a terminal, else a line when it is over."""
    text = f"  {label}: {min(done_s, expected_s):.0f} of {expected_s:.0f} s"
    if sys.stdout.isatty():
        print(f"\r{text}\x1b[K", end="\n" if is_last else "", flush=True)
    elif is_last:
        print(text, flush=True)


def interrupt_on_termination() -> None:
    """SIGTERM ends the demo as Ctrl-C does: with all that it started."""

    def interrupt(_signal: int, _frame: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)


def _start(command: Command, says: Path, ending: contextlib.ExitStack) -> subprocess.Popen[bytes]:
    out = ending.enter_context(says.with_suffix(".out").open("w"))
    err = ending.enter_context(says.with_suffix(".err").open("w"))
    return ending.enter_context(_ended(subprocess.Popen(_words(command), stdout=out, stderr=err)))


@contextlib.contextmanager
def _ended(child: Popen) -> Iterator[Popen]:
    """Sees to it that `child` is over when the context is: asked first, so that it can clean up."""
    try:
        yield child
    finally:
        if child.poll() is None:
            child.send_signal(signal.SIGINT)
            try:
                child.wait(TO_END_S)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


def _words(command: Command) -> list[str]:
    return [os.fspath(word) if isinstance(word, Path) else str(word) for word in command]


def _check(command: Command, code: int, said: str) -> None:
    """Raises if `code` says that the program failed. 130 is Ctrl-C, which all programs of a terminal get."""
    if code == 130:
        raise KeyboardInterrupt
    if code:
        why = said.strip().splitlines()
        name = Path(str(command[0])).name
        raise FailedError(f"{name} {command[1]} ended with {code}" + (f": {why[-1]}" if why else ""))
