"""A progress bar with rate and time left; lines where nobody watches."""

from __future__ import annotations

import sys
import time
from typing import TextIO

BETWEEN_LINES_S = 30.0
BETWEEN_UPDATES_S = 0.1


class Progress:
    """Counts task sets done. On a terminal a bar that is redrawn, else a line now and then."""

    def __init__(self, label: str, total: int, stream: TextIO | None = None) -> None:
        self.label = label
        self.total = total
        self.done = 0
        self.stream = sys.stderr if stream is None else stream
        self.watched = self.stream.isatty()
        self.start = self.shown = time.monotonic()

    def add(self, sets: int) -> None:
        """Counts ``sets`` more."""
        self.done += sets
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
        text = f"{self.label} {100 * share:5.1f} %  {self.done:,} of {self.total:,} sets  {rate:,.0f} sets/s  {left}"
        if self.watched:
            filled = round(24 * share)
            text = f"\r{'█' * filled}{'░' * (24 - filled)} {text}\x1b[K"
        print(text, end="" if self.watched else "\n", file=self.stream, flush=True)


def _span(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
