"""The demo, which `make demo` runs: the same work under several schedulers, and one page about it.

It has video stabilizers that nearly fill the machine, workloads that are analysed, simulated and run, and simulations
of published machines. A part that cannot be run here is left out, and the page says why.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import webbrowser
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import laxity
from laxity import report

from examples.demo import children, machine, protected, simulated, stabilized, stabilizers, workloads

GPU = "soft: a process that stands in for one, with an engine for kernels and two for copies"

CLIP = Path("/usr/share/doc/opencv-doc/examples/data/vtest.avi")


def main() -> int:
    """Runs what can be run, writes the page and names it. Returns the exit status."""
    arguments = parse()
    children.interrupt_on_termination()
    try:
        page = demonstrate(arguments)
    except KeyboardInterrupt:
        print("\ninterrupted; there is no report", file=sys.stderr)
        return 130
    print(f"\nlook at    {page}")
    if os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        webbrowser.open(page.resolve().as_uri())
    return 0


def demonstrate(arguments: argparse.Namespace) -> Path:
    """All parts, then the page."""
    out: Path = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    demo = Demo(out)
    command = arguments.laxity
    demo.told["gpu"] = GPU
    costs = workloads.Costs(command, out)
    demo.part("a rover on two CPUs", "workloads", lambda: workloads.rover(command, out, costs))
    demo.part("a graph under global EDF", "workloads", lambda: workloads.pipeline(command, out, costs))
    demo.part("a camera pipeline on a soft GPU", "workloads", lambda: workloads.live_gpu(command, out, costs))
    demo.part("a kernel beside a memory hog", "sections", lambda: protected.run(command, out))
    if why := no_video(arguments.stabilize):
        demo.leave_out("video stabilizers", why)
    else:
        video = arguments.stabilize
        programs = stabilizers.Programs(stabilize=video, laxity=command, clip=CLIP)
        demo.part("the stabilizer and a known shake", "stabilized", lambda: stabilized.run(video, CLIP, out))
        demo.part("video stabilizers, live", "video", lambda: stabilizers.run(programs, out))
    demo.part("simulations of published machines", "sections", lambda: simulated.run(command, out))
    return demo.page()


class Demo:
    """What was run, as `laxity.report` wants to be told."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.started = time.monotonic()
        self.told: dict[str, Any] = {
            "laxity": laxity.__version__,
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": machine.describe(),
            "command": "make demo",
            "missing": [],
            "workloads": [],
            "sections": [],
        }

    def part(self, title: str, name: str, run: Callable[[], Any]) -> None:
        """Runs a part, which is one of several if there is a list of that name; if it fails the page says why."""
        print(f"\n{title}", flush=True)
        try:
            told = run()
            if name in self.told:
                self.told[name] += told if isinstance(told, list) else [told]
            else:
                self.told[name] = told
        except children.FailedError as failure:
            self.leave_out(title, str(failure))

    def leave_out(self, what: str, why: str) -> None:
        """Notes that a part is missing."""
        print(f"  left out: {what}: {why}", file=sys.stderr, flush=True)
        self.told["missing"].append({"what": what, "why": why})

    def page(self) -> Path:
        """Writes the page."""
        (self.out / "run.json").write_text(json.dumps(self.told, indent=1) + "\n", encoding="utf-8")
        page = self.out / "report.html"
        report.write(self.out, page)
        print(f"\nall of it took {time.monotonic() - self.started:.0f} s")
        return page


def no_video(stabilize: Path | None) -> str:
    """Why the stabilizer cannot be run; empty if it can."""
    if stabilize is None or not stabilize.is_file():
        return "the stabilizer is not built, as OpenCV is not installed; run `make demo` as root"
    if not CLIP.is_file():
        return f"there is no clip at {CLIP}; install Debian's package opencv-doc"
    return ""


def parse() -> argparse.Namespace:
    """The arguments."""
    parser = argparse.ArgumentParser(prog="demo", description=__doc__.splitlines()[0])
    parser.add_argument("--laxity", type=Path, required=True, help="the laxity command")
    parser.add_argument("--stabilize", type=Path, help="the stabilizer; without it there is no video")
    parser.add_argument("--out", type=Path, default=Path("out/demo"), help="folder for everything (out/demo)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
