"""Makes of cargo's bar a line every 20 s, as the first build takes minutes; of the rest what is wrong remains.

    progress.py [SECONDS]

Reads what cargo writes with CARGO_TERM_PROGRESS_WHEN=always. It draws the bar again when a part is done, which may take
a minute, so that it is told by the clock.
"""

import os
import re
import select
import signal
import sys
import time

EVERY_S = float(sys.argv[1]) if len(sys.argv) > 1 else 20.0
BAR = re.compile(rb" Building \[.*?\] (\d+)/(\d+)(.*)")
USUAL = re.compile(rb" *(Adding|Blocking|Compiling|Downloaded|Downloading|Fetch|Finished|Locking|Updating) ")
ERASE = b"\x1b[K"


def main() -> None:
    """Reads to the end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # cargo ends, and has the last word
    bar, rest, told = None, b"", time.monotonic()
    while True:
        left_s = told + EVERY_S - time.monotonic()
        if left_s <= 0:
            if bar:
                done, of, now = (group.decode() for group in bar.groups())
                print(f"  compiled {done} of {of} parts, now {now.lstrip(': ').rstrip()}", flush=True)
            told = time.monotonic()
        elif select.select([sys.stdin], [], [], left_s)[0]:
            read = os.read(sys.stdin.fileno(), 1 << 16)
            if not read:
                sys.stderr.buffer.write(rest)
                return
            *lines, rest = (rest + read).replace(ERASE, b"").replace(b"\r", b"\n").split(b"\n")
            for line in lines:
                if drawn := BAR.search(line):
                    bar = drawn
                elif line.strip() and not USUAL.match(line):
                    sys.stderr.buffer.write(line + b"\n")
                    sys.stderr.buffer.flush()


main()
