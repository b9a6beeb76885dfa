"""Packs what `make test-gpu` and `make bench-gpu-real` run, for a machine without Rust: `gpu_bundle.py FOLDER`.

There, from the root of a copy of this repository at the same path as here:

    LAXITY_BUNDLE=FOLDER scripts/test_gpu.sh
    python3 benches/gpu_real.py --laxity FOLDER/release/laxity
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
LAYERS = {
    "cuda": ["programs", "sharing", "leaving", "compiled"],
    "opencl": ["programs", "sharing", "leaving", "layers"],
}


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
    for layer, tests in LAYERS.items():
        options = [word for test in tests for word in ("--test", test)]
        messages = cargo("test", "--no-run", "-p", f"laxity-{layer}", *options)
        programs = {
            message["target"]["name"]: message["executable"] for message in messages if message.get("executable")
        }
        for test in tests:
            # Tests look for libraries in the folder above their own.
            pack(Path(programs[test]), folder / layer / "deps" / test)
        libraries = [Path(name) for message in messages for name in message.get("filenames", [])]
        name = f"liblaxity_{layer}.so"
        pack(next(library for library in libraries if library.name == name), folder / layer / name)
    cargo("build", "--release", "-p", "laxity-cli", "-p", "laxity-cuda")
    cargo("build", "--release", "-p", "laxity-opencl")
    for name in ["laxity", *(f"liblaxity_{layer}.so" for layer in LAYERS)]:
        pack(ROOT / "target" / "release" / name, folder / "release" / name)


if __name__ == "__main__":
    main()
