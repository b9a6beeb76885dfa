"""Stands in for the stabilizer in tests of the driver: shows each frame half a period after it came.

FAKE says what goes wrong: ``late``, the clip takes half a second; ``crash``; ``hang``, no end and no answer to SIGTERM;
``admission``, SCHED_DEADLINE has room for budgets of 1 only; ``starve``, graphs of 100 ms show nothing;
``starve-all``, none does;
``tardy``, each frame takes ten periods.
"""

import itertools
import json
import os
import signal
import sys
import time

NODES = (("read_frame", "CPU"), ("warp_perspective", "GPU"))


def main() -> int:
    words = sys.argv[1:]
    options = {name: value for name, value in itertools.pairwise(words) if name.startswith("--")}
    wrong = os.environ.get("FAKE", "")
    if "--sequential" in words:
        print(json.dumps({"nodes": [{"name": name, "place": at, "cpu_median_us": 500.0} for name, at in NODES]}))
        return 0
    start, period = int(options["--start-at"]), int(options["--period"].removesuffix("us")) * 1_000
    duration = int(options["--duration"].removesuffix("ms")) * 1_000_000
    if wrong == "late" and start - time.monotonic_ns() < 500_000_000:
        return fail(f"--start-at {start}: was 500 ms before the clip was in memory; start later")
    if wrong == "crash" and options["--period"] != "20000us":
        return fail("the clip is no clip")
    if wrong == "admission" and options["--scheduler"] == "deadline" and float(options["--budget"]) > 1:
        return fail("SCHED_DEADLINE: EBUSY: too many tasks")
    if wrong == "hang":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(600)
    time.sleep(max(0, start + duration - time.monotonic_ns()) / 1e9)
    shown = 0 if (wrong == "starve" and period == 100_000_000) or wrong == "starve-all" else duration // period
    with open(options["--times"], "w") as times:
        times.write("frame,release_us,completion_us\n")
        for frame in range(shown):
            release = start + frame * period
            took = 10 * period if wrong == "tardy" else period // 2
            times.write(f"{frame},{release // 1_000},{(release + took) // 1_000}\n")
    print(json.dumps({"cpu_s": 0.25, "command": words}))
    return 0


def fail(why: str) -> int:
    print(f"stabilize: {why}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
