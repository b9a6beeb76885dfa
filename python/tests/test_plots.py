"""Plots: what they show, what they say of themselves, and that they can be saved."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from matplotlib import pyplot
from matplotlib.colors import to_hex

import laxity
from laxity import plots


@pytest.fixture(autouse=True)
def close_figures():
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def result(robot):
    return laxity.simulate(robot, duration="2 s", seed=1, trace=True)


def _saved(figure, tmp_path):
    for name in ("plot.png", "plot.svg"):
        figure.savefig(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 5_000


def test_a_cdf_has_a_step_for_every_completed_job(result, tmp_path):
    ax = plots.cdf(result)
    (line,) = ax.lines
    values = result.trace.jobs()["response_time_ns"].drop_null().to_numpy()
    assert len(line.get_xdata()) == len(values) + 1
    assert line.get_xdata()[-1] == pytest.approx(values.max() / 1e6)
    # At the median of the data the curve passes one half.
    half = np.searchsorted(line.get_ydata(), 0.5)
    assert line.get_xdata()[half] == pytest.approx(np.quantile(values, 0.5, method="inverted_cdf") / 1e6)
    assert ax.get_xlabel() == "response time (completion - arrival), ms"
    assert ax.get_ylabel() == "fraction of completed jobs"
    assert ax.get_title(loc="left") == "quickstart, G-EDF/CEm, simulated 2 s, seed 1"
    assert ax.get_legend().get_texts()[0].get_text() == f"G-EDF/CEm ({len(values):,} jobs)"
    _saved(ax.figure, tmp_path)


def test_several_schedulers_are_told_apart(robot):
    results = [laxity.simulate(robot, name, duration="1 s", trace=True) for name in ("CEm", "CQm", "CE1")]
    ax = plots.cdf(results, "tardiness")
    labels = [text.get_text().split(" (")[0] for text in ax.get_legend().get_texts()]
    assert labels == ["G-EDF/CEm", "G-EDF/CQm", "G-EDF/CE1"]
    assert len({line.get_color() for line in ax.lines}) == 3
    assert ax.get_title(loc="left") == "quickstart, simulated 1 s, seed 0"
    mapped = plots.cdf({"now": results[0], "then": results[1].trace}, "lateness")
    assert [text.get_text().split(" (")[0] for text in mapped.get_legend().get_texts()] == ["now", "then"]
    assert mapped.get_xlim()[0] < 0


def test_a_cdf_of_one_task_or_of_each(result):
    one = plots.cdf(result, task="camera")
    assert one.get_title(loc="left").startswith("task camera, ")
    each = plots.cdf(result, per_task=True)
    assert len(each.lines) == 8
    assert each.get_legend().get_texts()[0].get_text().startswith("motor-control (400 jobs")
    looks = {(line.get_color(), line.get_linestyle()) for line in each.lines}
    assert len(looks) == 8


def test_a_cdf_of_nothing_is_refused(result, robot):
    with pytest.raises(ValueError, match='no task "engine"'):
        plots.cdf(result, task="engine")
    with pytest.raises(ValueError, match="no completed job"):
        plots.cdf(laxity.simulate(robot, duration="1 ns", trace=True))
    with pytest.raises(ValueError, match='metric="delay" is unknown'):
        plots.cdf(result, "delay")
    with pytest.raises(ValueError, match="nothing to plot"):
        plots.cdf([])
    with pytest.raises(ValueError, match="per_task takes a single source, 2"):
        plots.cdf([result, result], per_task=True)
    with pytest.raises(laxity.LaxityError, match="trace=True"):
        plots.cdf(laxity.simulate(robot, duration="1 ms"))


def test_a_chart_of_cpus_shows_every_execution(result, tmp_path):
    ax = plots.gantt(result, end="50 ms")
    assert [label.get_text() for label in ax.get_yticklabels()] == ["cpu0", "cpu1", "cpu2", "cpu3"]
    assert ax.get_xlim() == (0, 50)
    assert ax.get_xlabel() == "time, ms"
    shown = [row for row in result.trace.intervals().to_pylist() if row["from_ns"] < 50_000_000]
    executed = sum(min(row["to_ns"], 50_000_000) - row["from_ns"] for row in shown if row["activity"] == "execution")
    drawn = 0.0
    for collection in ax.collections:
        if to_hex(collection.get_facecolor()[0]) != "#202124":  # scheduler and interrupts
            drawn += sum(np.ptp(path.vertices[:, 0]) for path in collection.get_paths())
    assert drawn == pytest.approx(executed / 1e6)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == [*result.trace.task_names, "scheduler, interrupts"]
    _saved(ax.figure, tmp_path)


def test_a_chart_of_tasks_marks_releases_deadlines_and_misses(overloaded):
    trace = laxity.simulate(overloaded, duration="10 ms", trace=True).trace
    ax = plots.gantt(trace, rows="tasks")
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "b"]
    marks = {line.get_label(): sorted(line.get_xdata()) for line in ax.lines}
    assert marks == {"release": [0, 0, 5, 5], "deadline": [5, 5, 10, 10], "missed deadline": [5, 10]}
    _, figure_ax = pyplot.subplots()
    assert plots.gantt(trace, figure_ax, start="2 ms", end="4 ms", legend=False) is figure_ax
    assert figure_ax.get_legend() is None


def test_a_chart_of_too_much_or_nothing_is_refused(result, robot):
    with pytest.raises(ValueError, match="nothing lies between 5 ms and 5 ms"):
        plots.gantt(result, start="5 ms", end="5 ms")
    with pytest.raises(ValueError, match='rows="cores" is unknown'):
        plots.gantt(result, rows="cores")
    with pytest.raises(ValueError, match=r"choose a shorter window"):
        plots.gantt(laxity.simulate(robot, duration="20 s", trace=True))


def test_schedulers_are_compared_bar_by_bar(robot, tmp_path):
    names = ["CEm", "CQm", "CE1"]
    results = [
        laxity.simulate(robot, name, duration="2 s", overheads="brandenburg2009-worst", seed=1) for name in names
    ]
    axes = plots.compare(results)
    assert len(axes) == 4
    missed = [bar.get_width() for bar in axes[0].patches]
    assert missed == [100 * one.total["missed"] / one.total["released"] for one in results]
    overhead = [bar.get_width() for bar in axes[3].patches]
    assert overhead == [sum(one.cpus["overhead_ns"].to_pylist()) * 100 / (4 * 2e9) for one in results]
    assert [label.get_text() for label in axes[0].get_yticklabels()] == [f"G-EDF/{name}" for name in names]
    assert axes[0].figure.get_suptitle() == "quickstart, simulated 2 s, seed 1"
    _saved(axes[0].figure, tmp_path)


def test_a_study_is_compared_by_scheduler():
    workloads = laxity.generate_many("uni-medium/short", 6, cap=3, seed=1, cpus=4)
    table = laxity.simulate_many(workloads, ["G-EDF", "P-EDF"], duration="500 ms")
    (axes,) = plots.compare(table, ["migrations"])
    global_edf, partitioned = (bar.get_width() for bar in axes.patches)
    assert global_edf > 0
    assert partitioned == 0
    assert axes.figure.get_suptitle() == "6 workloads, simulated for 500 ms each, seed 0"


def test_comparing_nothing_is_refused(result):
    with pytest.raises(ValueError, match="not its trace"):
        plots.compare(result.trace)
    with pytest.raises(ValueError, match="at least one of missed"):
        plots.compare(result, ["misses"])
    with pytest.raises(ValueError, match='per="workload"'):
        plots.compare(laxity.simulate_many([]))


def test_matplotlib_is_imported_only_for_plots():
    loaded = "'matplotlib' in sys.modules"
    code = f"import sys, laxity; assert not {loaded}; laxity.plots; assert {loaded}"
    subprocess.run([sys.executable, "-c", code], check=True)


class Recorded:
    """Of a run that watched its CPUs: 2 of the 6 ms of a job were stolen from its CPU, and 1 ms from another."""

    cpus, task_names, duration_ns = 2, ["a"], 6_000_000

    def intervals(self):
        rows = [
            {"from_ns": 0, "to_ns": 6_000_000, "activity": "execution", "cpu": 0, "task": 0},
            {"from_ns": 2_000_000, "to_ns": 4_000_000, "activity": "stolen", "cpu": 0, "task": None},
            {"from_ns": 5_000_000, "to_ns": 6_000_000, "activity": "stolen", "cpu": 1, "task": None},
        ]
        return pa.Table.from_pylist(rows)

    def jobs(self):
        return pa.table({"release_ns": [0], "deadline_ns": [5_000_000], "missed": [True], "task": [0]})


@pytest.mark.parametrize(("rows", "drawn"), [("cpus", [(0, 2, 4), (1, 5, 6)]), ("tasks", [(0, 2, 4)])])
def test_a_chart_shows_when_a_cpu_was_stolen(monkeypatch, rows, drawn):
    monkeypatch.setattr(plots._gantt, "trace_of", lambda source: source)
    monkeypatch.setattr(plots._gantt, "provenance", lambda sources: "")
    ax = plots.gantt(Recorded(), rows=rows)
    hatched = [one for one in ax.collections if one.get_hatch()]
    spans = [
        (round(path.vertices[:, 1].mean()), *(float(edge(path.vertices[:, 0])) for edge in (np.min, np.max)))
        for one in hatched
        for path in one.get_paths()
    ]
    assert spans == drawn
    assert "CPU stolen" in [text.get_text() for text in ax.get_legend().get_texts()]
