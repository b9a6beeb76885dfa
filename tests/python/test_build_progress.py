"""What scripts/progress.py makes of what cargo writes: the bar now and then, errors at once."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "progress.py"
USUAL = b"       Fetch [=>  ] 1 complete; 2 pending\r\x1b[K   Compiling a v1.0.0\n  Downloaded b v2.0.0\n\n"
ERROR = b"error[E0308]: mismatched types\n  --> src/main.rs:1:1\nlast words without an end"


def test_errors_remain_and_what_is_usual_does_not():
    done = subprocess.run([sys.executable, SCRIPT], input=USUAL + ERROR, capture_output=True, check=True)
    assert done.stderr == ERROR
    assert done.stdout == b""


def test_the_bar_is_told_by_the_clock_though_cargo_is_silent():
    with subprocess.Popen([sys.executable, SCRIPT, "0.1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as script:
        script.stdin.write(USUAL + b"    Building [==> ] 17/18: a, laxity(bin)   \r")
        script.stdin.flush()
        said = [script.stdout.readline() for _ in range(2)]
        script.stdin.close()
    assert said == [b"  compiled 17 of 18 parts, now a, laxity(bin)\n"] * 2
    assert script.returncode == 0
