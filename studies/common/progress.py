"""A progress bar with rate and time left; lines where there is no terminal."""

from __future__ import annotations

import sys
import time
from typing import TextIO

BETWEEN_LINES_S = 30.0
BETWEEN_UPDATES_S = 0.1


class Progress:
    """Counts what is done, such as task sets. On a terminal a bar that is redrawn, else a line now and then."""

    def __init__(self, label: str, total: int, unit: str = "sets", stream: TextIO | None = None) -> None:
        self.label = label
        self.total = total
        self.unit = unit
        self.done = 0
        self.stream = sys.stderr if stream is None else stream
        self.watched = self.stream.isatty()
        self.start = self.shown = time.monotonic()

    def add(self, count: int) -> None:
        """Counts so many more."""
        self.reach(self.done + count)

    def reach(self, done: int) -> None:
        """So many are done by now; fewer than were done before are not."""
        self.done = max(self.done, done)
        now = time.monotonic()
        if now - self.shown >= (BETWEEN_UPDATES_S if self.watched else BETWEEN_LINES_S):
            self.shown = now
            self._show(now)

    def close(self) -> None:
        """Shows the last state."""
        self._show(time.monotonic())
        if self.watched:
            print(file=self.stream, flush=True)

    def _show(self, now: float) -> None:
        rate = self.done / max(now - self.start, 1e-9)
        share = self.done / max(self.total, 1)
        left = f"{_span((self.total - self.done) / rate)} left" if rate > 0 else "starting"
        work = f"{self.done:,} of {self.total:,} {self.unit}  {rate:,.0f} {self.unit}/s"
        text = f"{self.label} {100 * share:5.1f} %  {work}  {left}"
        if self.watched:
            filled = round(24 * share)
            text = f"\r{'█' * filled}{'░' * (24 - filled)} {text}\x1b[K"
        print(text, end="" if self.watched else "\n", file=self.stream, flush=True)


def _span(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
