"""Elliott 2015, chapter 5: seventeen video stabilizers on six CPUs and a GPU, simulated and live."""

from __future__ import annotations

import numpy as np

from studies.common.claims import Table
from studies.elliott2015vision import live_load as load
from studies.elliott2015vision import stretches
from studies.elliott2015vision.delays import HEADINGS, MEASURES, Delays, cell
from studies.elliott2015vision.observations import numbers
from studies.elliott2015vision.published import published, published_summary
from studies.elliott2015vision.results import Runs, VisionResults
from studies.elliott2015vision.views import short
from studies.elliott2015vision.workload import CONFIGURATIONS, GRAPHS

TITLE = "Elliott: Graph Scheduling and GPUs (dissertation, 2015, chapter 5), section 5.5: VisionWorks under GPUSync"


def tables(results: VisionResults) -> list[Table]:
    """The tables of the page: averages first, then all graphs."""
    live = [_averages_live(results.live), stretches.table(results.live)] if results.has_live else []
    if results.has_virtual:
        live += [_averages_virtual(results.virtual), stretches.table(results.virtual), _by_load(results.virtual)]
    scaled = [load.table(results.live.run), load.probes(results.live.run)] if results.has_live else []
    graphs = [_graphs_of(results.simulated, one.name, one.table) for one in CONFIGURATIONS]
    beside = [results.live] if results.has_live else []
    beside += [results.virtual] if results.has_virtual else []
    graphs += [_graphs_live(runs, name) for runs in beside for name in runs.configurations]
    return [_averages(results.simulated), *live, *scaled, _loads(results), _variants(results.simulated), *graphs]


def _cells(row: Delays) -> list[str]:
    return [cell(getattr(row, name)) for name in MEASURES]


def _beside(paper: Delays, ours: Delays | None) -> list[str]:
    """Numbers of the paper, each with ours behind it."""
    behind = _cells(ours) if ours else ["-"] * len(MEASURES)
    return [cell for pair in zip(_cells(paper), behind, strict=True) for cell in pair]


HEADER = [cell for name in HEADINGS for cell in (f"{name}: paper", "ours")]


def _averages(runs: Runs) -> Table:
    rows = []
    for one in CONFIGURATIONS:
        rows.append([short(one.name), *_beside(published_summary()[one.name], runs.averaged(one.name))])
    text = "Completion delays in periods of the graph, averaged over the graphs; ours simulated."
    return Table("Table 5.14", text, ["", *HEADER], rows)


def _averages_live(runs: Runs) -> Table:
    rows = [
        [name, f"{runs.graphs_shown(name)} of {len(runs.graphs)}", *_cells(runs.averaged(name))]
        for name in runs.configurations
    ]
    text = (
        f"The same, live: {runs.run['machine']}, soft GPU; (rho,f,order) where the GPU is managed. rho f = m has other "
        "values here than on the paper's six CPUs. Averages are over the graphs that showed two frames or more; how "
        "many did is in the first column. Frames are dropped of all graphs."
    )
    return Table("Table 5.14, live", text, ["", "graphs", *HEADINGS], rows)


def _averages_virtual(runs: Runs) -> Table:
    paper = {short(name).replace("(", "C-EDF (", 1): row for name, row in published_summary().items()}
    rows = [[name, *_beside(paper[name], runs.averaged(name))] for name in runs.configurations]
    text = (
        f"The same, live on a virtual machine of {runs.run['virtual_cpus']} CPUs, for which {runs.run['machine']} "
        "stand: C-EDF is Laxity's own scheduler, tokens and queues are the paper's, and kernels only take time."
    )
    return Table("Table 5.14, live on a virtual machine", text, ["", *HEADER], rows)


def _by_load(runs: Runs) -> Table:
    """What more frames do."""
    shown = [name for name in runs.configurations if all(runs.has(name, loaded) for loaded in runs.run["variants"])]
    header, rows = [""], [[name] for name in shown]
    for loaded in runs.run["variants"]:
        header += [f"{loaded.partition('=')[2]} %: dropped", "latency p99"]
        for row in rows:
            latencies = np.concatenate([one.normalized_latencies for one in runs.all_frames(row[0], loaded)])
            dropped = runs.averaged(row[0], loaded).dropped_percent
            row += [f"{dropped:.2f}", f"{np.percentile(latencies, 99):.2f}" if len(latencies) else "none"]
    text = (
        "At 100 % CPUs and execution engine are as busy as was aimed at, at other loads more or fewer frames come. "
        "Dropped: percentages of all graphs' frames. Latencies are in periods; that of a frame which was not shown is "
        "not among them."
    )
    return Table("By load, live on a virtual machine", text, header, rows)


def _loads(results: VisionResults) -> Table:
    rows = []
    every = [results.simulated, *([results.live] if results.has_live else [])]
    for runs in [*every, *([results.virtual] if results.has_virtual else [])]:
        for name in runs.configurations:
            busy = dict(runs.load(name))
            cpus = f"{busy.pop('CPU'):.2f}"
            rows.append([runs.kind, short(name), cpus, numbers(busy)])
    text = (
        "CPUs that were busy, and shares of the engines. Live: CPUs that all processes and the soft GPU's server used, "
        "and beside them all that was used on the machine and, where that was recorded, kept from it by its host."
    )
    return Table("Load", text, ["", "configuration", "CPUs", "else"], rows)


def _variants(runs: Runs) -> Table:
    """What changes if the paper is read otherwise."""
    shown = (
        ("SCHED_FIFO", "dropped_percent"),
        ("LITMUS C-EDF", "dropped_percent"),
        ("LITMUS C-EDF", "std"),
        ("GPUSync(1,6,FIFO)", "dropped_percent"),
        ("GPUSync(2,3,FIFO)", "dropped_percent"),
        ("GPUSync(3,2,FIFO)", "dropped_percent"),
        ("GPUSync(3,2,FIFO)", "std"),
        ("GPUSync(6,1,FIFO)", "std"),
    )
    words = dict(zip(MEASURES, HEADINGS, strict=True))
    paper = published_summary()
    rows = [["paper", *(f"{getattr(paper[name], measure):.2f}" for name, measure in shown)]]
    own = runs.run["options"].split()
    for variant in [runs.run["options"], *runs.run["variants"]]:
        differs = " ".join(word for word in variant.split() if word not in own) or "default"
        cells = []
        for name, measure in shown:
            # An option that is not of a configuration leaves it as it is.
            is_own = variant == runs.run["options"] or not runs.has(name, variant)
            cells.append(f"{getattr(runs.averaged(name, '' if is_own else variant), measure):.2f}")
        rows.append([differs, *cells])
    text = (
        "What the paper leaves open, varied one at a time: held, thousandths of a GPU node's CPU time that come after "
        "its first GPU operation, while it holds its token; callback_us, of the run-time library's thread; waiting, "
        f"what jobs without GPUSync do meanwhile; replicas of data objects. {runs.run['variant_seconds']} s each but "
        "for the default. held was chosen so that (1,6,FIFO) drops what it drops in the paper, so that no claim "
        "is judged by rho = 1."
    )
    return Table("Other readings", text, ["", *(f"{short(name)} {words[measure]}" for name, measure in shown)], rows)


def _graphs_of(runs: Runs, name: str, number: str) -> Table:
    rows = []
    for graph in GRAPHS:
        one = runs.frames(name, graph)
        rows.append([graph, f"{one.period_ms:g}", *_beside(published()[name, graph], one.delays)])
    return Table(f"Table {number}: {short(name)}", "In ms; ours simulated.", ["", "period", *HEADER], rows)


def _graphs_live(runs: Runs, name: str) -> Table:
    rows = []
    for graph in runs.graphs:
        one = runs.frames(name, graph)
        rows.append([graph, f"{one.period_ms:g}", f"{one.delays_count:,}", *_cells(one.delays)])
    where = "live" if runs.kind == "live" else "live on a virtual machine"
    return Table(f"{name}, {where}", "In ms.", ["", "period", "delays", *HEADINGS], rows)
