"""The command ``python -m laxity.report``: one HTML page about a folder of results."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from laxity.report import ResultsError, write


def main(arguments: list[str] | None = None) -> int:
    """Writes the page and says where. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m laxity.report", description=__doc__)
    parser.add_argument("folder", type=Path, help="of results; has run.json")
    parser.add_argument("-o", "--out", type=Path, help="the page; default: FOLDER/report.html")
    given = parser.parse_args(arguments)
    page = given.out or given.folder / "report.html"
    try:
        write(given.folder, page)
    except (ResultsError, OSError) as error:
        # It names what is in the files, which must not reach the terminal as a command.
        shown = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in str(error))
        print(f"error: {shown}", file=sys.stderr)
        return 2
    print(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
