"""The demo: schedulers under the overheads of real machines, simulated; run it with `make demo`.

Simulates random task sets on 32 CPUs under the realizations of global EDF measured by Brandenburg and Anderson (RTSS
2009), with the worst overheads they published, and draws where deadlines begin to be missed, how long jobs take, and
what a schedule looks like. Then GPUs interrupt the machine of Elliott and Anderson (2012), and what their bottom halves
do to the schedule is measured as they measured it. Everything lands in one folder with a page to look at.
"""

from __future__ import annotations

import argparse
import html
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import laxity
import matplotlib

matplotlib.use("agg")
from laxity import plots
from laxity.studies import run as run_study
from laxity.studies import runtime_plan
from laxity.studies._report import report
from matplotlib import pyplot

HERE = Path(__file__).parent
SCENARIO = "uni-light/short"
CPUS = 32
CAPS = (14, 16, 18, 20, 21, 22, 23, 24, 26)
SETS_PER_CAP = 4
SEED = 2009
OVERHEADS = "brandenburg2009-worst"


def main() -> None:
    arguments = parse()
    out: Path = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    realizations = laxity.measured_realizations()

    print("one small workload under every measured realization:\n", flush=True)
    quickstart = HERE / "workloads" / "quickstart.toml"
    run(arguments.laxity, "simulate", quickstart, "--policy", "all", "--for", "10 s")

    print(
        f"\n{len(CAPS) * SETS_PER_CAP} task sets on {CPUS} CPUs under {len(realizations)} realizations:",
        flush=True,
    )
    misses = sweep(realizations)
    pictures = [
        draw_misses(misses, out / "misses.svg"),
        draw_comparison(realizations, out / "comparison.svg"),
        draw_response_times(out / "response-times.svg"),
        draw_schedule(arguments.laxity, quickstart, out),
        draw_figure_1(out / "figure-1.svg"),
    ]
    print("\nGPU interrupts on 12 CPUs and 8 GPUs under three ways to handle them:", flush=True)
    interrupts = study_interrupts(out / "interrupts")
    page = write_page(out, pictures, interrupts)
    print(f"\npictures   {', '.join(name for name, _ in pictures + interrupts)}")
    print("trace      schedule.perfetto (open it at ui.perfetto.dev), schedule.lxt")
    print(f"look at    {page}")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--laxity", type=Path, required=True, help="the laxity command")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("out/demo"),
        help="folder for the pictures (out/demo)",
    )
    return parser.parse_args()


def run(*command: object) -> None:
    """Runs a command; its output is ours. A failure ends the demo with the command's own message."""
    code = subprocess.run([str(word) for word in command], check=False).returncode
    if code != 0:
        sys.exit(code)


def sweep(realizations: list[str]) -> dict[str, list[float]]:
    """Percentage of released jobs that miss, per realization and cap on utilization."""
    misses: dict[str, list[float]] = {name: [] for name in realizations}
    for done, cap in enumerate(CAPS, start=1):
        sets = laxity.generate_many(SCENARIO, SETS_PER_CAP, seed=SEED, point=cap, cpus=CPUS, cap=cap)
        table = laxity.simulate_many(sets, realizations, duration="500 ms", overheads=OVERHEADS)
        for name in realizations:
            rows = [row for row in table.to_pylist() if row["scheduler"].endswith(f"/{name}")]
            released = sum(row["released"] for row in rows)
            misses[name].append(100 * sum(row["missed"] for row in rows) / released)
        text = f"  utilization {cap:>2} of {CPUS}, {100 * done // len(CAPS):>3} %"
        if sys.stdout.isatty():
            print(f"\r{text}", end="\n" if done == len(CAPS) else "", flush=True)
        else:
            print(text, flush=True)
    return misses


def draw_misses(misses: dict[str, list[float]], path: Path) -> tuple[str, str]:
    figure, ax = pyplot.subplots(figsize=(7.2, 4.2), layout="constrained")
    for (name, percentages), (colour, dash, marker) in zip(misses.items(), looks(), strict=False):
        ax.plot(
            CAPS,
            percentages,
            color=colour,
            linestyle=dash,
            marker=marker,
            markersize=4.5,
            label=name,
        )
    ax.set_xlabel(f"cap on total utilization, {CPUS} CPUs")
    ax.set_ylabel("jobs that missed their deadline, %")
    ax.set_ylim(-2, 102)
    ax.grid(alpha=0.3, linewidth=0.6)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(title="realization", frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    figure.savefig(path)
    text = (
        f"Simulated: jobs that miss under each realization of global EDF. {SCENARIO}, {SETS_PER_CAP} task sets a "
        f"point, 0.5 s each, overheads {OVERHEADS}, seed {SEED}. A coarse (C), fine-grained (F) or hierarchical (H) "
        "ready queue; event- (E) or quantum-driven (Q), staggered (S-) or aligned; interrupts on all CPUs (m) or one "
        "(1)."
    )
    return path.name, text


def looks() -> Iterator[tuple[str, str, str]]:
    """Colour, dash and marker of each curve, distinct without colour too."""
    colours = (
        "#0072B2",
        "#E69F00",
        "#009E73",
        "#CC79A7",
        "#0072B2",
        "#E69F00",
        "#CC79A7",
        "#56B4E9",
        "#56B4E9",
    )
    dashes = ("-", "-", "-", "-", "--", "--", "--", "-", "--")
    return iter(zip(colours, dashes, "osD^osDv^", strict=True))


def draw_comparison(realizations: list[str], path: Path) -> tuple[str, str]:
    cap = 20
    sets = laxity.generate_many(SCENARIO, SETS_PER_CAP, seed=SEED, point=cap, cpus=CPUS, cap=cap)
    table = laxity.simulate_many(sets, realizations, duration="500 ms", overheads=OVERHEADS)
    figure = plots.compare(table)[0].figure
    figure.savefig(path)
    return path.name, (
        f"Simulated: what the realizations cost at a cap of {cap}; the same task sets for all. CPU time of scheduler "
        "and interrupts is where the schedule spent it, not an estimate."
    )


def draw_response_times(path: Path) -> tuple[str, str]:
    cap = CAPS[0]
    workload = laxity.generate(SCENARIO, seed=SEED, cpus=CPUS, cap=cap)
    results = {
        name: laxity.simulate(workload, policy=name, duration="500 ms", overheads=OVERHEADS, trace=True)
        for name in ("FE1", "CEm", "HEm", "S-CQm")
    }
    ax = plots.cdf(results, "response_time")
    ax.set_xlim(0, 12)
    ax.figure.savefig(path)
    return path.name, (
        f"Simulated: response times of all jobs of one task set at a cap of {cap}. The handlers of S-CQm are the "
        "cheapest, so its fastest jobs are faster; waiting for quanta to begin stretches all others."
    )


def draw_schedule(command: Path, workload: Path, out: Path) -> tuple[str, str]:
    trace = out / "schedule.lxt"
    run(command, "simulate", workload, "--for", "200 ms", "--trace", trace, "--quiet")
    run(command, "trace", trace, "check")
    run(command, "trace", trace, "export", "-o", out / "schedule.perfetto")
    run(command, "trace", trace, "gantt", "--to", "60 ms", "--svg", out / "schedule.svg")
    return (
        "schedule.svg",
        "Simulated: the first 60 ms of examples/workloads/quickstart.toml, as in schedule.perfetto.",
    )


def draw_figure_1(path: Path) -> tuple[str, str]:
    workload = laxity.load(HERE / "workloads" / "paper002_fig1.toml")
    result = laxity.simulate(workload, policy="G-EDF", duration="14 ms", trace=True)
    path.write_text(result.trace.gantt_svg(), encoding="utf-8")
    return (
        path.name,
        "Simulated: paper 002, Fig. 1(a): three jobs on two CPUs, event-driven, without overheads.",
    )


def study_interrupts(folder: Path) -> list[tuple[str, str]]:
    """A short form of `python -m laxity.studies elliott2012klmirqd_runtime`, with a page of its own."""
    shutil.rmtree(folder, ignore_errors=True)
    report(run_study(runtime_plan(step=10, repetitions=1, seconds=10), folder), folder, every_figure=False)
    lengths = (
        "Simulated: how long priority inversions are that the bottom halves of GPU interrupts cause, and how long "
        "together, under standard Linux handling (SLIH), process-aware interrupts (PAI) and klmirqd. 10 s, total "
        "utilization 11.2."
    )
    columns = (
        "Simulated: a workload made to hurt fixed-priority interrupt threads, under the eight systems of the paper's "
        "Table II. Where the paper's numbers leave the axis, its Linux was slower by orders of magnitude; that is "
        "not modelled."
    )
    figures = Path(folder.name) / "figures"
    return [(str(figures / "figures-003-004.svg"), lengths), (str(figures / "table-2.svg"), columns)]


def in_figures(pictures: list[tuple[str, str]]) -> str:
    return "\n".join(
        f'<figure><img src="{name}" alt="{html.escape(text)}"><figcaption>{html.escape(text)}</figcaption></figure>'
        for name, text in pictures
    )


def write_page(out: Path, pictures: list[tuple[str, str]], interrupts: list[tuple[str, str]]) -> Path:
    page = out / "index.html"
    page.write_text(
        "<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n<title>Laxity: demo</title>\n"
        "<style>body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#202124}"
        "figure{margin:2.5rem 0}img{max-width:100%}figcaption{color:#5f6368;font-size:.9rem;max-width:46rem}</style>\n"
        "<h1>Global EDF, nine ways to build it</h1>\n"
        "<p>Everything on this page is simulated. First with the overheads that Brandenburg and Anderson measured on a "
        "Sun Niagara of 32 CPUs (RTSS 2009).</p>\n"
        f"{in_figures(pictures)}\n"
        "<h1>GPU interrupts, three ways to handle them</h1>\n"
        "<p>A short run of what Elliott and Anderson (2012) measured on twelve CPUs and eight GPUs, with the overheads "
        'they published; <a href="interrupts/index.html">every claim of theirs beside what we see</a>.</p>\n'
        f"{in_figures(interrupts)}\n</html>\n",
        encoding="utf-8",
    )
    return page


if __name__ == "__main__":
    main()
