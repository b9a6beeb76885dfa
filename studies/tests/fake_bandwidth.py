"""A `laxity bandwidth` without memory or CPUs: what it would print of a machine of known interference.

Its state is in the folder of arbitrations: `machine.json` says how the machine is, `hogs` has a line for each hog that
streams, `budget` is there while the lock is held, and `last` has its last budget.
"""

import json
import subprocess
import sys
import time
from pathlib import Path

KERNEL, HOG = 8e9, 10e9


def main(words):
    """Does what the command would."""
    assert words[0] == "bandwidth"
    assert words[1] == "--folder"
    folder, verb, rest = Path(words[2]), words[3], words[4:]
    machine = json.loads((folder / "machine.json").read_text())
    if verb == "hog":
        return hog(folder, machine, rest)
    if verb == "lock":
        for name in ("budget", "last"):
            (folder / name).write_text(rest[rest.index("--budget") + 1].split()[0])
        status = subprocess.run(rest[rest.index("--") + 1 :], check=False).returncode
        (folder / "budget").unlink()
        return status
    if verb == "status":
        is_regulated = (folder / "hogs").exists()
        known = [{"arbitration": (folder / "name").read_text(), "cpus": [{}] * machine["cpus"]}] if is_regulated else []
        print(json.dumps({"arbitrations": known}))
        return 0
    assert verb == "regulate"
    return regulate(folder, machine, rest)


def hog(folder, machine, rest):
    """Prints its rate: a kernel's by what is beside it."""
    span = float(rest[rest.index("--for") + 1].removesuffix("s"))
    if "copy" not in rest:
        time.sleep(span)
        print(f"{HOG / 1e9:.2f} GB/s in 1.000 s, 1.000 s of them on a CPU")
        return 0
    time.sleep(span / 20)
    beta = 0.0
    if (folder / "hogs").exists():
        beta = 1.0
        if (folder / "budget").exists():
            budget = int((folder / "budget").read_text())
            beta = min(budget / HOG, 1.0) if machine["throttles"] else 1.0
    # Formula 8; half of the time another program had the CPU.
    slowdown = 1 / (1 - beta * (1 - 1 / machine["interference"]))
    print(f"{KERNEL / slowdown / 2 / 1e9:.6f} GB/s in 2.000 s, 1.000 s of them on a CPU")
    return 0


def regulate(folder, machine, rest):
    """Says what the CPUs had; throttled time by formula 6."""
    if machine["refuses"]:
        print(f"error: {machine['refuses']}", file=sys.stderr)
        return 1
    script = rest[rest.index("-c") + 1]
    (folder / "name").write_text(rest[0])
    (folder / "hogs").write_text("regulated\n")
    time.sleep(float(script.split("--for ")[1].split("s ")[0]))
    (folder / "hogs").unlink()
    rho = float(rest[rest.index("--punishment") + 1]) if "--punishment" in rest else 0.0
    beta = min(int((folder / "last").read_text()) / HOG, 1.0)
    share = 1 / (1 + beta + rho * (1 - beta)) if "--compute" in script else 1.0
    cpu = {"bytes": 950, "allowed_bytes": 1000, "periods": 1000, "period_ns": 10**6}
    print(json.dumps({"cpus": [cpu | {"throttled_ns": int(1e9 * share * (1 - beta))}]}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
