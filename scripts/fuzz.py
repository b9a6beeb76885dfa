#!/usr/bin/env python3
"""Fuzzes each target for some seconds, guided by coverage, and prints what was reached.

    python3 scripts/fuzz.py SECONDS [--keep] [TARGET...]

Builds the targets with libFuzzer, which is part of bolero, and with the coverage counters of the stable compiler; no
other tool is needed. All targets run side by side, at the lowest priority. A target begins with its committed inputs
(`__fuzz__/TARGET/corpus` beside its source); what it finds lies in out/fuzz/TARGET, and a failure's input, too.
`--keep` adds to the committed inputs those that reach what no committed input reaches.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "out/fuzz"
# Targets are all tests of laxity-fuzz below tests/, and tests in modules called `fuzz` of libraries with private types.
PACKAGES = {"laxity-fuzz": "--test=*", "laxity-graph": "--lib", "laxity-softgpu": "--lib"}
FLAGS = [
    "--cfg fuzzing",
    "--cfg fuzzing_libfuzzer",
    "-C passes=sancov-module",
    *(
        f"-C llvm-args=-sanitizer-coverage-{option}"
        for option in ("level=4", "inline-8bit-counters", "pc-table", "trace-compares")
    ),
]
# Of one input; those of shared memory wait for what does not come.
SECONDS_PER_INPUT = 60
MEGABYTES = 2048
BYTES_PER_INPUT = 4096
# No more are committed of one target, and none that is longer.
KEPT, KEPT_BYTES = 64, 2048


@dataclass
class Target:
    """A test that makes its input of the bytes that libFuzzer gives it."""

    name: str
    program: Path
    committed: Path

    @property
    def found(self) -> Path:
        """The folder of what it found."""
        return OUT / self.name

    def command(self, *options: str) -> tuple[list[str], dict[str, str]]:
        """The arguments and the environment that run it with these options of libFuzzer."""
        arguments = [str(self.program), self.name, "--exact", "--nocapture", "--quiet", "--test-threads", "1"]
        environment = {
            **os.environ,
            "BOLERO_TEST_NAME": self.name,
            "BOLERO_LIBTEST_HARNESS": "1",
            "BOLERO_LIBFUZZER_ARGS": " ".join(options),
        }
        return arguments, environment


def build() -> list[Target]:
    """The targets of all packages, built."""
    targets = []
    host = next(
        line.removeprefix("host: ")
        for line in subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout.splitlines()
        if line.startswith("host: ")
    )
    # With a target given, flags hold for the programs alone, and not for what builds them.
    environment = {**os.environ, "RUSTFLAGS": " ".join(FLAGS), "CARGO_PROFILE_DEV_INCREMENTAL": "false"}
    for package, which in PACKAGES.items():
        command = ["cargo", "test", "--package", package, which, "--no-run", "--target", host]
        command += ["--target-dir", str(ROOT / "target/fuzz"), "--message-format", "json-render-diagnostics"]
        built = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True)
        for message in map(json.loads, built.stdout.splitlines()):
            if message.get("executable") and message["profile"]["test"]:
                targets += in_program(package, Path(message["executable"]), Path(message["target"]["src_path"]))
    return targets


def in_program(package: str, program: Path, source: Path) -> list[Target]:
    """The targets in a program of tests."""
    listed = subprocess.run([program, "--list"], capture_output=True, text=True, check=True).stdout
    names = re.findall(r"^(\S+): test$", listed, re.MULTILINE)
    if package != "laxity-fuzz":
        names = [name for name in names if "fuzz" in name.split("::")]
    return [Target(name, program, folder(name, source) / "__fuzz__" / name.replace("::", "__")) for name in names]


def folder(name: str, source: Path) -> Path:
    """Where the file is that has the test `name`: the last module of its path that is a file."""
    place, modules = source.parent, name.split("::")[:-1]
    best = place
    for count in range(len(modules), 0, -1):
        path = place.joinpath(*modules[:count])
        if path.with_suffix(".rs").is_file():
            return path.parent
        if (path / "mod.rs").is_file():
            return path
    return best


def fuzz(targets: list[Target], seconds: int) -> int:
    """Runs all of them side by side; how many failed."""
    running = []
    for target in targets:
        for part in ("corpus", "failures"):
            (target.found / part).mkdir(parents=True, exist_ok=True)
        folders = [target.found / "corpus", target.committed / "corpus"]
        options = [str(path) for path in folders if path.is_dir()]
        options += [f"-max_total_time={seconds}", f"-timeout={SECONDS_PER_INPUT}", f"-rss_limit_mb={MEGABYTES}"]
        options += [f"-max_len={BYTES_PER_INPUT}", "-print_final_stats=1", f"-artifact_prefix={target.found}/failures/"]
        arguments, environment = target.command(*options)
        log = (target.found / "log").open("w")
        process = subprocess.Popen(["nice", "-n", "19", *arguments], env=environment, stdout=log, stderr=log)
        running.append((target, process))
    print(f"{'target':60} {'CPU, s':>8} {'inputs':>12} {'edges':>8} {'features':>9} {'corpus':>7}", flush=True)
    failed = 0
    for target, process in running:
        _, status, usage = os.wait4(process.pid, 0)
        cpu = usage.ru_utime + usage.ru_stime
        text = (target.found / "log").read_text(errors="replace")
        reached = re.findall(r"cov: (\d+) ft: (\d+) corp: (\d+)", text) or [("?", "?", "?")]
        inputs = re.findall(r"number_of_executed_units: (\d+)|Done (\d+) runs", text)
        number = next((number for pair in inputs for number in pair if number), "?")
        coverage, features, corpus = reached[-1]
        end = "" if status == 0 else f"  FAILED: {target.found}/log, failures/"
        print(f"{target.name:60} {cpu:>8.0f} {number:>12} {coverage:>8} {features:>9} {corpus:>7}{end}", flush=True)
        failed += status != 0
    return failed


def features(target: Target, inputs: list[Path]) -> list[set[str]]:
    """What each input reaches."""
    with tempfile.NamedTemporaryFile("w+") as control:
        control.write(f"{len(inputs)}\n{len(inputs)}\n" + "".join(f"{path}\n" for path in inputs))
        control.flush()
        # In this process, as libFuzzer would start the program anew with options that tests do not have.
        arguments, environment = target.command(f"-merge_control_file={control.name}", "-merge_inner=1")
        subprocess.run(arguments, env=environment, check=True, capture_output=True)
        reached: list[set[str]] = [set() for _ in inputs]
        for line in Path(control.name).read_text().splitlines()[2 + len(inputs) :]:
            kind, number, *rest = line.split()
            if kind == "FT":
                reached[int(number)] = set(rest)
    return reached


def keep(target: Target) -> None:
    """Copies what reaches more than the committed inputs; of each step the input that adds most, by its length."""
    corpus = target.committed / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    committed = sorted(corpus.iterdir())
    new = sorted(path for path in (target.found / "corpus").iterdir() if path.stat().st_size <= KEPT_BYTES)
    reached = features(target, committed + new)
    known = set().union(*reached[: len(committed)]) if committed else set()
    rest = list(zip(new, reached[len(committed) :], strict=True))
    for _ in range(KEPT - len(committed)):
        if not rest:
            break
        best = max(rest, key=lambda entry: (len(entry[1] - known), -entry[0].stat().st_size, entry[0].name))
        if not best[1] - known:
            break
        (corpus / best[0].name[:16]).write_bytes(best[0].read_bytes())
        known |= best[1]
        rest.remove(best)
    print(f"{target.name}: {len(list(corpus.iterdir()))} inputs are kept")


def main() -> int:
    """Builds and runs the targets. Returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seconds", type=int)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("targets", nargs="*")
    options = parser.parse_args()
    targets = [target for target in build() if not options.targets or target.name in options.targets]
    if not targets:
        print("no such target", file=sys.stderr)
        return 2
    failed = fuzz(targets, options.seconds) if options.seconds else 0
    if options.keep:
        for target in targets:
            keep(target)
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
