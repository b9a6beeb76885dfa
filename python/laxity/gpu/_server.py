"""The server of a soft GPU as a program: `laxity-softgpu-server`, which the first process to open one starts."""

import sys

from laxity._native import _serve_soft_gpu


def main() -> None:
    """Serves until no process uses the soft GPU; the first line that it prints says whether it does."""
    try:
        _serve_soft_gpu(sys.argv[1:], _say)
    except (RuntimeError, ValueError) as error:
        _say(str(error))
        sys.exit(1)


def _say(text: str) -> None:
    """Prints, if the reader is still there: without it the server serves all the same."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        # Python flushes once more when it ends.
        sys.stdout = None
