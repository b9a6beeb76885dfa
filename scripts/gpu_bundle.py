"""Packs what `make test-gpu` and `make bench-gpu-real` run, for a machine without Rust: `gpu_bundle.py FOLDER`.

There, from the root of a copy of this repository at the same path as here:

    LAXITY_GPU_BUNDLE=FOLDER scripts/test_gpu.sh
    python3 benches/gpu_real.py --laxity FOLDER/release/laxity
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = ["programs", "sharing", "leaving", "compiled"]
COMMAND = ["laxity", "liblaxity_cuda.so"]


def cargo(*arguments: str) -> list[dict]:
    """What cargo says of what it built."""
    command = ["cargo", *arguments, "--message-format", "json-render-diagnostics"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def pack(source: Path, to: Path) -> None:
    """Without what only debuggers want."""
    to.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["strip", "-o", to, source], check=True)


def main() -> None:
    """Builds and packs."""
    folder = Path(sys.argv[1])
    shutil.rmtree(folder, ignore_errors=True)
    options = [word for test in TESTS for word in ("--test", test)]
    messages = cargo("test", "--no-run", "-p", "laxity-cuda", *options)
    programs = {message["target"]["name"]: message["executable"] for message in messages if message.get("executable")}
    for test in TESTS:
        # Tests look for libraries in the folder above their own.
        pack(Path(programs[test]), folder / "debug" / "deps" / test)
    libraries = [Path(name) for message in messages for name in message.get("filenames", [])]
    pack(
        next(library for library in libraries if library.name == "liblaxity_cuda.so"),
        folder / "debug" / "liblaxity_cuda.so",
    )
    cargo("build", "--release", "-p", "laxity-cli", "-p", "laxity-cuda")
    for name in COMMAND:
        pack(ROOT / "target" / "release" / name, folder / "release" / name)


if __name__ == "__main__":
    main()
