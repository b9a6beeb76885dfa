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
from typing import Any, NamedTuple, TypeAlias, TypeVar

Command: TypeAlias = Sequence[object]

Popen = TypeVar("Popen", bound="subprocess.Popen[Any]")

LOOK_EVERY_S = 0.2
TO_END_S = 10.0
"""For a program that was asked to end; then it is killed."""

BUSY = """
import os, signal, sys, time
signal.signal(signal.SIGINT, signal.SIG_DFL)
parent = os.getppid()
time.sleep(float(sys.argv[1]))
while os.getppid() == parent:
    sum(range(100_000))
"""
"""Computes, after so many seconds, until the process that started it is gone."""


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


def run(*command: object) -> None:
    """Runs a program whose output is ours. Raises FailedError if it fails."""
    done = subprocess.run(_words(command), check=False)
    _check(command, done.returncode, "")


class Observer(NamedTuple):
    """A program that looks at another, which must be there for some time."""

    after_s: float
    command: Callable[[int], Command]
    """Of the first program's process number."""


def run_together(
    commands: Sequence[Command], folder: Path, label: str, expected_s: float, observer: Observer | None = None
) -> None:
    """Runs programs at the same time, says how far they are, and ends all of them whatever happens.

    What each says is in `folder`, in NUMBER.out and NUMBER.err. Raises FailedError if one fails, but not if the
    observer does: what it should have written is not there, then.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as ending:
        running = [_start(command, folder / str(number), ending) for number, command in enumerate(commands)]
        started = time.monotonic()
        while any(child.poll() is None for child in running):
            if any(child.returncode for child in running):
                break
            elapsed_s = time.monotonic() - started
            if observer is not None and elapsed_s > observer.after_s:
                _start(observer.command(running[0].pid), folder / "observer", ending)
                observer = None
            show(label, elapsed_s, expected_s)
            time.sleep(LOOK_EVERY_S)
        show(label, expected_s, expected_s, is_last=True)
        for number, (command, child) in enumerate(zip(commands, running, strict=True)):
            if child.returncode:
                _check(command, child.returncode, (folder / f"{number}.err").read_text())


@contextlib.contextmanager
def busy_loops(count: int, after_s: float = 0) -> Iterator[None]:
    """So many programs that from then on do nothing but compute, as ordinary threads, while the context lasts."""
    with contextlib.ExitStack() as ending:
        for _ in range(count):
            ending.enter_context(_ended(subprocess.Popen([sys.executable, "-c", BUSY, str(after_s)])))
        yield


@contextlib.contextmanager
def serving(*command: object) -> Iterator[None]:
    """A program that is there while the context lasts. Raises FailedError if it does not say a line when it begins."""
    service = subprocess.Popen(_words(command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with service, _ended(service):
        if not service.stdout.readline():
            _check(command, service.wait(), service.stderr.read())
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
