"""The command ``python -m studies``."""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
from pathlib import Path

from laxity import LaxityError

from studies.common.run import run
from studies.common.store import Store, import_csv
from studies.common.study import STUDIES, Choices, Work, study

VISION = "elliott2015vision"
BWLOCK = "ali2018bwlock"
LIVE_FOR = {VISION: "60s", BWLOCK: "2s"}
"""Studies that run live, and how long a run of each is."""

INSTANCES = 17

BY_OPTION = 50
"""Task sets a point of --by-option: enough for curves, a twentieth of a full run for each setting."""


def parser() -> argparse.ArgumentParser:
    """The arguments."""
    whole = argparse.ArgumentParser(prog="python -m studies", description=__doc__.splitlines()[0])
    whole.add_argument("study", choices=STUDIES)
    whole.add_argument("--out", type=Path, help="folder for parts, result, figures and page; default: out/STUDY")
    whole.add_argument("--quick", action="store_true", help="fewer points and task sets, and the main figures only")
    whole.add_argument("--scenarios", type=_range, metavar="A..B", help="only these, counted from 0")
    whole.add_argument("--step", type=int, help="take every so many-th point")
    whole.add_argument("--replicates", type=int, help="task sets a point, or repetitions")
    whole.add_argument("--seconds", type=int, help="simulated time of a run at most, where runs are simulations")
    whole.add_argument("--options", default="", metavar='"KEY=VALUE ..."', help="what the paper leaves open")
    whole.add_argument(
        "--by-option",
        action="store_true",
        help=f"run it for every other value of an option, {BY_OPTION} task sets a point, and tabulate the verdicts",
    )
    whole.add_argument("--chunk", type=int, help="task sets a chunk; changes no result")
    whole.add_argument("--threads", type=int, help="on this machine; default: one a CPU")
    whole.add_argument(
        "--dask", nargs="?", const="local", metavar="ADDRESS", help="run on a Dask scheduler; default: local"
    )
    whole.add_argument("--workers", type=int, default=0, help="of a local Dask cluster; default: one a CPU")
    whole.add_argument(
        "--import", dest="imported", type=_file, nargs="+", metavar="CSV", help="counts of run_study instead"
    )
    whole.add_argument("--figures", choices=("all", "main", "none"), help="default: all, with --quick main")
    live = whole.add_argument_group(
        "live runs",
        f"of {VISION}, seventeen processes under each configuration of this machine; of {BWLOCK}, a kernel beside hogs",
    )
    live.add_argument("--live", action="store_true", help="run what is missing of them before the simulations")
    live.add_argument(
        "--virtual",
        action="store_true",
        help=f"run what is missing of the runs of {VISION} in which this machine stands for one of six CPUs",
    )
    live.add_argument("--for", dest="length", metavar="SPAN", help=f"of a run; default: {LIVE_FOR}")
    live.add_argument("--size", default="320x240", metavar="WxH", help="of the frames; default: 320x240")
    live.add_argument("--instances", type=int, default=INSTANCES, metavar="N", help="only the first so many graphs")
    live.add_argument("--periods", type=float, metavar="FACTOR", help="times Table 5.2; default: measured")
    live.add_argument("--stabilize", type=Path, default=Path("out/vision/stabilize"), metavar="PROGRAM")
    live.add_argument("--laxity", type=Path, metavar="PROGRAM", help="default: that in target/ or PATH")
    live.add_argument(
        "--clip", type=Path, default=Path("/usr/share/doc/opencv-doc/examples/data/vtest.avi"), metavar="FILE"
    )
    whole.add_argument(
        "--publish", type=Path, metavar="FOLDER", help="also write what the repository keeps of a result"
    )
    return whole


def main(arguments: list[str] | None = None) -> int:
    """Runs a study and writes its page. Returns the exit status."""
    args = parser().parse_args(arguments)
    folder = args.out or Path("out") / args.study
    try:
        if args.by_option:
            _by_option(args, folder)
        else:
            _one(args, folder)
    except KeyboardInterrupt:
        print(f"stopped; the same command goes on from what {folder} has", file=sys.stderr)
        return 130
    except (LaxityError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _plan(args: argparse.Namespace, options: str, replicates: int | None) -> Work:
    published = study(args.study)
    quick = published.quick if args.quick else Choices(replicates=replicates)
    chosen = {
        name: getattr(args, name) if getattr(args, name) is not None else getattr(quick, name)
        for name in ("scenarios", "step", "replicates", "seconds", "chunk")
    }
    return published.plan(Choices(options, **chosen))


def _one(args: argparse.Namespace, folder: Path) -> None:
    """A run, its page, and what the repository keeps of it."""
    if args.live or args.virtual:
        _live(args, folder)
    result = _result(_plan(args, args.options, None), folder, args)
    figures = args.figures or ("main" if args.quick else "all")
    if figures != "none":
        from studies.common.report import report  # noqa: PLC0415 (matplotlib only where it is used)

        report(result, folder, every_figure=figures == "all")
    if args.publish:
        from studies.common.report import publish  # noqa: PLC0415

        publish(result, args.publish)


def _live(args: argparse.Namespace, folder: Path) -> None:
    """What is missing of the live runs."""
    from studies.elliott2015vision.live import Live, seconds  # noqa: PLC0415
    from studies.elliott2015vision.stabilizers import Programs, Stabilizers  # noqa: PLC0415 (needs Linux)
    from studies.elliott2015vision.virtual import VirtualRuns  # noqa: PLC0415

    if args.study not in LIVE_FOR:
        raise ValueError(f"--live is for {' and '.join(LIVE_FOR)}; {args.study} has no live runs")
    if args.virtual and args.study != VISION:
        raise ValueError(f"--virtual is for {VISION}; {args.study} runs on no virtual machine")
    span_s = seconds(args.length or LIVE_FOR[args.study])
    laxity = args.laxity or _command()
    if args.study == BWLOCK:
        return _live_bwlock(args, folder, laxity.absolute(), span_s)
    if not 1 <= args.instances <= INSTANCES:
        raise ValueError(f"--instances is {args.instances}; it must be 1 to {INSTANCES}")
    programs = Programs(args.stabilize.absolute(), laxity.absolute(), args.clip.absolute())
    stabilizers = Stabilizers(span_s, args.size, args.instances)
    if args.live:
        print(Live(folder, programs, stabilizers).run(args.periods))
    if args.virtual:
        print(VirtualRuns(folder, programs, stabilizers).run(None if args.live else args.periods))
    return None


def _live_bwlock(args: argparse.Namespace, folder: Path, laxity: Path, span_s: float) -> None:
    """A kernel beside hogs, once: what is there stays."""
    from studies.ali2018bwlock.live import LIVE, Bench  # noqa: PLC0415 (needs Linux)

    if (folder / LIVE).exists():
        print(f"{folder / LIVE} is there; delete it to run again", file=sys.stderr)
        return
    if not laxity.exists():
        raise ValueError(f"there is no laxity command at {laxity}; build it, or name it with --laxity")
    folder.mkdir(parents=True, exist_ok=True)
    print(Bench(laxity, Path("/dev/shm"), span_s, 1 if args.quick else 3).observe().write(folder))


def _command() -> Path:
    """The ``laxity`` command: that of this checkout, else that in PATH."""
    built = [path for path in (Path("target/release/laxity"), Path("target/debug/laxity")) if path.exists()]
    if built:
        return max(built, key=lambda path: path.stat().st_mtime)
    return Path(shutil.which("laxity") or "target/release/laxity")


def _by_option(args: argparse.Namespace, folder: Path) -> None:
    """A run for every setting, and the table of their verdicts."""
    if not study(args.study).alternatives:
        raise ValueError(f"{args.study} has its other options in every run; leave out --by-option")
    from studies.common.by_option import by_option, write  # noqa: PLC0415

    def go(setting: str, part: Path) -> Path:
        return _result(_plan(args, f"{args.options} {setting}", BY_OPTION), part, args)

    columns = by_option(study(args.study), folder, go)
    for place in (folder, args.publish):
        if place:
            print(write(study(args.study), columns, place))


def _result(what: Work, folder: Path, args: argparse.Namespace) -> Path:
    if args.imported:
        return import_csv(Store(folder, what), args.imported)
    return run(what, folder, threads=args.threads, dask=args.dask, workers=args.workers)


def _file(text: str) -> Path:
    path = Path(text)
    if not path.is_file():
        raise argparse.ArgumentTypeError(f"{text} is no file")
    return path


def _range(text: str) -> range:
    start, dots, end = text.partition("..")
    if not dots or not start.isdigit() or not end.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is no range; write 0..3")
    return range(int(start), int(end))


if __name__ == "__main__":
    # A termination ends what was started, as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
