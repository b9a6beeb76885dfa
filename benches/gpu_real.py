"""Programs that know nothing of Laxity on a real NVIDIA GPU, without and with its arbitration: `make bench-gpu-real`.

    gpu_real.py --laxity target/release/laxity --out FOLDER

*Overhead*: each program alone, without and with the layer in turns, while no other program wants the GPU: calls and
launches of a C program, one that memory bounds, and steps of PyTorch. *Interference*: the response times of a camera's
network (a job each 33.3 ms) alone, beside another process that multiplies matrices, and beside it under arbitration.
The results go to FOLDER/gpu-real.json; `python3 benches/gpu_real.py --plot FOLDER` draws them. Prints one line last.
"""

import argparse
import importlib
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
PROGRAMS = HERE / "interpose"
SOFT = HERE.parent / "capi" / "softcuda"
PERIOD_MS = 33.3
HANG_S = 300


class Bench:
    """Where programs run, and how."""

    def __init__(self, laxity: Path, python: str, turns: int, jobs: int, place: Path) -> None:
        self.laxity, self.python, self.turns, self.jobs, self.place = laxity, python, turns, jobs, place

    def compiled(self, name: str) -> list[str]:
        """A program of C."""
        out = self.place / name
        options = ["-std=gnu11", "-O2", "-I", str(SOFT / "tests" / "c")]
        ptx = f'-DKERNELS_PTX="{SOFT / "tests" / "c" / "kernels.ptx"}"'
        subprocess.run(["cc", *options, ptx, "-o", out, PROGRAMS / f"{name}.c", "-pthread"], check=True)
        return [str(out)]

    def torch(self, name: str, *arguments: object) -> list[str]:
        """A program of PyTorch."""
        return [self.python, str(PROGRAMS / f"{name}.py"), *map(str, arguments)]

    def arbitrated(self, command: list[str], *options: str) -> list[str]:
        """The same under arbitration."""
        return [str(self.laxity), "gpu", "exec", "--only", "cuda", *options, "--", *command]

    def in_turns(self, command: list[str], asks: int = 0) -> tuple[list[str], list[str]]:
        """What the program says without and with the layer, in turns; `asks`: lines of input that it answers."""
        without, with_layer = [], []
        for _ in range(self.turns):
            without.append(said(command, asks))
            with_layer.append(said(self.arbitrated(command), asks))
        return without, with_layer


def said(command: list[str], asks: int = 0) -> str:
    """What it prints, if it succeeds."""
    done = subprocess.run(command, input="\n" * asks, capture_output=True, text=True, timeout=HANG_S, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.returncode}\n{done.stderr[-4000:]}")
    return done.stdout


def columns(text: str) -> list[float]:
    """The median of each column of numbers."""
    rows = [list(map(float, line.split())) for line in text.splitlines()]
    return [statistics.median(column) for column in zip(*rows, strict=True)]


def row(what: str, unit: str, without: list[float], with_layer: list[float]) -> dict:
    """Medians of both sides, and what the layer adds."""
    medians = statistics.median(without), statistics.median(with_layer)
    percent = (medians[1] / medians[0] - 1) * 100
    print(
        f"{what:<34} without {medians[0]:>10.3f} {unit:<5} with {medians[1]:>10.3f} {unit:<5} {percent:>+7.1f} %",
        flush=True,
    )
    return {"what": what, "unit": unit, "without": without, "with": with_layer, "percent": percent}


def overheads(bench: Bench, has_torch: bool) -> list[dict]:
    """Programs alone, without and with the layer."""
    rows = []
    calls = [[columns(text) for text in side] for side in bench.in_turns(bench.compiled("cuda_calls"), asks=10)]
    kinds = [
        ("a call that is passed on", "ns"),
        ("kernel and wait", "us"),
        ("its launch", "us"),
        ("each of 100 kernels", "us"),
    ]
    for number, (what, unit) in enumerate(kinds):
        rows.append(row(what, unit, *([turn[number] for turn in side] for side in calls)))
    rates = [[float(text) for text in side] for side in bench.in_turns(bench.compiled("cuda_memory"))]
    rows.append(row("memory-bound program, rate", "GB/s", *rates))
    if has_torch:
        steps = [[json.loads(text) for text in side] for side in bench.in_turns(bench.torch("torch_rates"))]
        for kind in steps[0][0]:
            rows.append(
                row(f"PyTorch, {kind.replace('_', '-')} step", "ms", *([turn[kind] for turn in side] for side in steps))
            )
    return rows


def interference(bench: Bench) -> dict[str, dict]:
    """Response times of the camera's network alone, and beside the batch work, without and with arbitration."""
    camera, batch = bench.torch("torch_camera", PERIOD_MS, bench.jobs), bench.torch("torch_batch")
    urgent = bench.arbitrated(camera, "--priority", "50")
    cases = {
        "alone": (camera, None),
        "alone, arbitrated": (urgent, None),
        "beside batch work": (camera, batch),
        "beside batch work, arbitrated": (urgent, bench.arbitrated(batch, "--priority", "10")),
    }
    results = {}
    for name, (command, beside) in cases.items():
        other = None
        if beside is not None:
            other = subprocess.Popen(beside, stdout=subprocess.PIPE, text=True)
            assert other.stdout.readline() == "begun\n"
        responses = sorted(json.loads(said(command)))
        rate = None
        if other is not None:
            other.terminate()
            rate = float(other.communicate(timeout=HANG_S)[0])
        late = sum(response > PERIOD_MS for response in responses)
        quantile = [responses[min(len(responses) - 1, int(len(responses) * share))] for share in (0.5, 0.99, 1)]
        print(
            f"{name:<34} median {quantile[0]:>8.2f} ms  99 % {quantile[1]:>8.2f} ms  longest {quantile[2]:>8.2f} ms  "
            f"late {late} of {len(responses)}" + (f"  products {rate:.0f}/s" if rate else ""),
            flush=True,
        )
        results[name] = {"responses_ms": responses, "late": late, "products_per_s": rate}
    return results


def machine() -> dict:
    """What the numbers are from."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    gpu, driver = said(query).strip().splitlines()[0].split(", ")
    models = [
        line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line
    ]
    return {
        "gpu": gpu,
        "driver": driver,
        "kernel": platform.release(),
        "cpus": os.cpu_count(),
        "cpu": models[0] if models else "?",
    }


def plot(folder: Path) -> None:
    """The distribution of response times in each case."""
    # Not where it measures: the machine with the GPU may lack it.
    matplotlib = importlib.import_module("matplotlib")
    matplotlib.use("Agg")
    pyplot = importlib.import_module("matplotlib.pyplot")
    results = json.loads((folder / "gpu-real.json").read_text())
    figure, axes = pyplot.subplots(figsize=(8, 4.2), layout="constrained")
    for (name, case), style in zip(results["interference"].items(), ["-", "--", "-", "-"], strict=True):
        responses = case["responses_ms"]
        share = [100 * (at + 1) / len(responses) for at in range(len(responses))]
        axes.step(responses, share, style, where="post", label=f"{name}: {case['late']} of {len(responses)} late")
    axes.axvline(PERIOD_MS, color="black", linewidth=0.8)
    axes.text(PERIOD_MS, 3, " period", fontsize=9)
    axes.set(xscale="log", xlabel="response time (ms)", ylabel="jobs no slower (%)", ylim=(0, 101))
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize=9, loc="lower right")
    told = results["machine"]
    axes.set_title(
        f"A camera's network beside batch work in another process\n{told['gpu']}, driver {told['driver']}", fontsize=10
    )
    figure.savefig(folder / "gpu-real.png", dpi=150)
    print(folder / "gpu-real.png")


def main() -> None:
    """Measures, or draws what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--laxity", type=Path, default=HERE.parent / "target" / "release" / "laxity")
    parser.add_argument("--python", default=sys.executable, help="the Python that has PyTorch")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=300)
    parser.add_argument("--out", type=Path, default=Path("out/bench"))
    parser.add_argument("--plot", type=Path, metavar="FOLDER", help="draw what was measured, and nothing else")
    arguments = parser.parse_args()
    if arguments.plot:
        plot(arguments.plot)
        return
    if not Path("/dev/nvidiactl").exists():
        print("skipped: no NVIDIA GPU on this machine")
        return
    has_torch = (
        subprocess.run([arguments.python, "-c", "import torch"], capture_output=True, check=False).returncode == 0
    )
    with tempfile.TemporaryDirectory() as place:
        bench = Bench(arguments.laxity.resolve(), arguments.python, arguments.turns, arguments.jobs, Path(place))
        results = {"machine": machine(), "overheads": overheads(bench, has_torch)}
        results["interference"] = interference(bench) if has_torch else {}
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "gpu-real.json").write_text(json.dumps(results, indent=1) + "\n")
    by_name = {row["what"]: row for row in results["overheads"]}
    added = [
        statistics.median(by_name[what]["with"]) - statistics.median(by_name[what]["without"])
        for what in ("a call that is passed on", "its launch")
    ]
    memory = by_name["memory-bound program, rate"]["percent"]
    print(f"gpu-real call_ns={added[0]:.1f} launch_us={added[1]:.2f} memory_percent={memory:.2f}")


if __name__ == "__main__":
    main()
