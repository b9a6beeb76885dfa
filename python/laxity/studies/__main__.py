"""The command ``python -m laxity.studies``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from laxity._errors import LaxityError
from laxity.studies import STUDIES, Plan, plan, run
from laxity.studies._store import Store, import_csv

QUICK = {"brandenburg2009gedf": (5, 10), "elliott2012klmirqd": (5, 20)}
"""Every so many-th point, and replicates, of --quick: about half a minute each on two CPUs, figures included."""


def parser() -> argparse.ArgumentParser:
    """The arguments."""
    whole = argparse.ArgumentParser(prog="python -m laxity.studies", description=__doc__.splitlines()[0])
    whole.add_argument("study", choices=STUDIES)
    whole.add_argument("--out", type=Path, help="folder for parts, result, figures and page; default: out/STUDY")
    whole.add_argument("--quick", action="store_true", help="fewer points and task sets, and the main figures only")
    whole.add_argument("--scenarios", type=_range, metavar="A..B", help="only these, counted from 0")
    whole.add_argument("--step", type=int, help="take every so many-th point")
    whole.add_argument("--replicates", type=int, help="task sets a point")
    whole.add_argument("--options", default="", metavar='"KEY=VALUE ..."', help="what the paper leaves open")
    whole.add_argument("--chunk", type=int, help="task sets a chunk; changes no result")
    whole.add_argument("--threads", type=int, help="on this machine; default: one a CPU")
    whole.add_argument(
        "--dask", nargs="?", const="local", metavar="ADDRESS", help="run on a Dask scheduler; default: local"
    )
    whole.add_argument("--workers", type=int, default=0, help="of a local Dask cluster; default: one a CPU")
    whole.add_argument(
        "--import", dest="imported", type=Path, nargs="+", metavar="CSV", help="counts of run_study instead"
    )
    whole.add_argument("--figures", choices=("all", "main", "none"), help="default: all, with --quick main")
    whole.add_argument(
        "--publish", type=Path, metavar="FOLDER", help="also write what the repository keeps of a result"
    )
    return whole


def main(arguments: list[str] | None = None) -> int:
    """Runs a study and writes its page. Returns the exit status."""
    args = parser().parse_args(arguments)
    folder = args.out or Path("out") / args.study
    step, replicates = QUICK[args.study] if args.quick else (1, None)
    try:
        what = plan(
            args.study,
            args.options,
            scenarios=args.scenarios,
            step=args.step or step,
            replicates=args.replicates or replicates,
            chunk=args.chunk,
        )
        result = _result(what, folder, args)
        figures = args.figures or ("main" if args.quick else "all")
        if figures != "none":
            from laxity.studies._report import report  # noqa: PLC0415 (matplotlib only where it is used)

            report(result, folder, every_figure=figures == "all")
        if args.publish:
            from laxity.studies._report import publish  # noqa: PLC0415

            publish(result, args.publish)
    except KeyboardInterrupt:
        print(f"stopped; the same command goes on from what {folder} has", file=sys.stderr)
        return 130
    except (LaxityError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _result(what: Plan, folder: Path, args: argparse.Namespace) -> Path:
    if args.imported:
        return import_csv(Store(folder, what), args.imported)
    return run(what, folder, threads=args.threads, dask=args.dask, workers=args.workers)


def _range(text: str) -> range:
    start, dots, end = text.partition("..")
    if not dots or not start.isdigit() or not end.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is no range; write 0..3")
    return range(int(start), int(end))


if __name__ == "__main__":
    sys.exit(main())
