"""Traces: checked, measured, stored, exported and drawn."""

import pickle
from xml.etree import ElementTree

import pyarrow.parquet as pq
import pytest

import laxity


def test_a_simulated_trace_is_legal_and_follows_its_policy(robot):
    for policy in laxity.measured_realizations():
        trace = laxity.simulate(robot, policy, duration="500 ms", trace=True).trace
        assert trace.check() == []


def test_missed_deadlines_are_violations_only_if_asked_for(overloaded):
    trace = laxity.simulate(overloaded, duration="10 ms", trace=True).trace
    assert trace.check() == []
    late, incomplete = trace.check(deadlines=True)
    assert (late.checker, late.at_ns, late.task, late.job, late.cpu) == ("deadlines", 6_000_000, 1, 0, 0)
    assert str(late) == "at 6 ms T1.0 completes 1 ms after its deadline 5 ms"
    assert (incomplete.task, incomplete.job) == (1, 1)
    assert late != incomplete
    assert late == trace.check(deadlines=True)[0]


def test_measuring_a_trace_yields_what_was_measured_on_the_way(robot):
    result = laxity.simulate(robot, duration="2 s", seed=1, trace=True)
    costs = result.summary["overheads"]["costs_ns"]
    assert result.trace.metrics() == result.summary | {"overheads": {"profile": None, "costs_ns": costs}}


def test_a_trace_survives_a_file_and_pickle(robot_trace, tmp_path):
    path = tmp_path / "robot.lxt"
    robot_trace.save(path)
    assert path.read_bytes() == robot_trace.to_bytes()
    for copy in (laxity.read_trace(path), pickle.loads(pickle.dumps(robot_trace))):
        assert copy.to_bytes() == robot_trace.to_bytes()
        assert (copy.workload, copy.scheduler, copy.origin, copy.seed) == ("quickstart", "G-EDF/CEm", "simulated", 1)
        assert (copy.cpus, copy.duration_ns, len(copy), copy.damage) == (4, 2 * 10**9, len(robot_trace), None)
        assert copy.task_names[:3] == ["motor-control", "balance", "camera"]


def test_a_trace_that_was_cut_off_is_read_up_to_there_if_wanted(robot_trace, tmp_path):
    path = tmp_path / "cut.lxt"
    whole = robot_trace.to_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(laxity.TraceError):
        laxity.read_trace(path)
    part = laxity.read_trace(path, strict=False)
    assert part.damage is not None
    assert 0 <= len(part) < len(robot_trace)
    assert "damaged" in repr(part)
    path.write_bytes(b"no trace at all")
    with pytest.raises(laxity.TraceError, match="not a Laxity trace"):
        laxity.read_trace(path, strict=False)
    with pytest.raises(FileNotFoundError):
        laxity.read_trace(tmp_path / "missing.lxt")


def test_parquet_files_hold_the_tables_and_what_they_are_about(robot_trace, tmp_path):
    for name in ("jobs", "events", "intervals"):
        robot_trace.to_parquet(tmp_path / name, table=name)
        table = pq.read_table(tmp_path / name)
        assert table.equals(getattr(robot_trace, name)())
        assert table.schema.metadata[b"scheduler"] == b"G-EDF/CEm"
    with pytest.raises(ValueError, match='table="job" is unknown'):
        robot_trace.to_parquet(tmp_path / "x", table="job")


def test_a_perfetto_file_names_every_task(robot_trace, tmp_path):
    path = tmp_path / "robot.pftrace"
    robot_trace.to_perfetto(path)
    content = path.read_bytes()
    assert all(name.encode() in content for name in robot_trace.task_names)
    with pytest.raises(FileNotFoundError):
        robot_trace.to_perfetto(tmp_path / "missing" / "robot.pftrace")
    with pytest.raises(OSError, match=r"No space left on device: .*/dev/full"):
        robot_trace.to_perfetto("/dev/full")


def test_the_drawing_is_svg_and_notebooks_show_it(robot_trace):
    svg = robot_trace.gantt_svg(start="0 ms", end="50 ms", rows="tasks", width=800)
    root = ElementTree.fromstring(svg)
    assert root.tag.endswith("svg")
    assert root.get("width") == "800"
    assert "simulated" in svg
    assert "simulated" not in robot_trace.gantt_svg(end="50 ms", caption=False).split("</title>")[1]
    assert robot_trace._repr_svg_() == robot_trace.gantt_svg()


def test_the_text_drawing_shows_the_schedule(pair):
    trace = laxity.simulate(pair, duration="10 ms", trace=True).trace
    text = trace.gantt_text(rows="cpus", width=40, ascii=True)
    assert text.isascii()
    assert text.startswith("pair, G-EDF/CEm, simulated (seed 0)\n")
    (row,) = [line for line in text.splitlines() if line.startswith("cpu0")]
    letters = row.split()[1]
    runs = [letter for index, letter in enumerate(letters) if index == 0 or letters[index - 1] != letter]
    assert "".join(runs) == "ABABA"


def test_a_window_without_time_is_refused(robot_trace):
    for draw in (robot_trace.gantt_svg, robot_trace.gantt_text):
        with pytest.raises(ValueError, match="shows no time"):
            draw(start="5 ms", end="5 ms")
        with pytest.raises(ValueError, match='rows="cores" is unknown'):
            draw(rows="cores")
