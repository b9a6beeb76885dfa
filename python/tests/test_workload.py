"""Workloads: read, written, built in Python, and refused with every mistake in them."""

import dataclasses
import inspect
import json
import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import laxity

WORKLOADS = Path(__file__).parents[2] / "examples" / "workloads"


@pytest.mark.parametrize("path", sorted(WORKLOADS.glob("*.toml")), ids=lambda path: path.stem)
def test_every_example_survives_toml_json_pickle_and_a_file(path, tmp_path):
    workload = laxity.load(path)
    assert laxity.Workload.from_toml(workload.to_toml()) == workload
    assert laxity.Workload.from_json(workload.to_json()) == workload
    assert pickle.loads(pickle.dumps(workload)) == workload
    for name in ("copy.toml", "copy.json"):
        workload.save(tmp_path / name)
        assert laxity.load(tmp_path / name) == workload


def test_a_workload_written_in_python_is_the_one_in_the_file():
    in_python = laxity.workload(
        "sensors",
        cpus=2,
        policy="C-RM",
        clusters=["0", "1"],
        quantum="2 ms",
        overheads={"release": "2 us"},
        tasks=[
            laxity.Task("camera", wcet="5 ms", period="33.333333 ms", actual={"uniform": ["1 ms", "5 ms"]}, cluster=0),
            laxity.Task("radio", body=[{"cpu": "1 ms"}, {"suspend": "2 ms"}, {"cpu": "1 ms"}], period="20 ms",
                        arrival="sporadic", gap="1 ms", deadline="15 ms", phase="3 ms", jitter="100 us", cluster=1),
        ],
    )  # fmt: skip
    in_a_file = laxity.Workload.from_toml("""
        laxity = 1
        name = "sensors"
        scheduler = "C-RM"
        platform = { cpus = 2, clusters = ["0", "1"], quantum = "2 ms", overheads = { release = "2 us" } }
        [[task]]
        name = "camera"
        wcet = "5 ms"
        actual = { uniform = ["1 ms", "5 ms"] }
        period = "33.333333 ms"
        cluster = 0
        [[task]]
        name = "radio"
        body = [{ cpu = "1 ms" }, { suspend = "2 ms" }, { cpu = "1 ms" }]
        period = "20 ms"
        arrival = "sporadic"
        gap = "1 ms"
        deadline = "15 ms"
        phase = "3 ms"
        jitter = "100 us"
        cluster = 1
    """)
    assert in_python == in_a_file


def test_a_drawn_workload_is_read_back_and_equal_without_what_drew_it(tmp_path):
    drawn = laxity.generate("uni-light/moderate", cap=2, seed=7, cpus=4)
    drawn.save(tmp_path / "drawn.toml")
    copies = [
        laxity.Workload.from_toml(drawn.to_toml()),
        laxity.Workload.from_json(drawn.to_json()),
        laxity.load(tmp_path / "drawn.toml"),
    ]
    assert copies == [drawn] * 3
    assert {copy.provenance for copy in copies} == {None}
    again = pickle.loads(pickle.dumps(drawn))
    assert (again, again.provenance) == (drawn, drawn.provenance)
    assert laxity.generate("uni-light/moderate", cap=2, seed=8, cpus=4) != drawn


def test_tables_of_a_file_can_be_given_as_dicts(pair):
    tasks = [{"name": "fast", "wcet": "2 ms", "period": "4 ms"}, {"name": "slow", "wcet": "4 ms", "period": "10 ms"}]
    assert laxity.workload("pair", cpus=1, tasks=tasks) == pair


def schema(*path):
    """The properties of a table of workload files, by the published schema."""
    given = json.loads((WORKLOADS.parents[1] / "schema" / "laxity-workload-1.schema.json").read_text())
    found = given
    for step in path:
        found = found[step]
        while "$ref" in found:
            found = given["$defs"][found["$ref"].rpartition("/")[2]]
    return set(found["properties"])


def test_python_has_every_field_of_files():
    assert {field.name for field in dataclasses.fields(laxity.Task)} == schema("properties", "task", "items")
    others = {"laxity", "platform"} | {"scheduler", "task", "resource", "graph", "chain"}
    renamed = {"policy", "tasks", "resources", "graphs", "chains", "gpus", "devices"}
    platform = schema("properties", "platform") - {"gpu", "device"}
    arguments = set(inspect.signature(laxity.workload).parameters)
    assert arguments == (schema() - others) | renamed | platform


def test_servers_memory_devices_and_code_are_those_of_a_file():
    server = {"kind": "cbs_hard", "budget": "2 ms", "period": "10 ms"}
    in_python = laxity.workload(
        "memory",
        cpus=1,
        policy={"rule": "EDF", "scope": "partitioned"},
        clusters=1,
        memory={"contention": [["0 B/s", 1.0], ["900 MB/s", 3.3]]},
        devices=[{"name": "network", "period": "1 ms", "top_half": "4 us", "bottom_half": "9 us"}],
        gpu_management={"handling": "preempt_rt_low"},
        best_effort=[{"name": "stream", "memory_demand": "1 GB/s"}],
        best_effort_scheduler={"rule": "TFS", "punishment": 3.0},
        tasks=[
            laxity.Task("mapping", period="100 ms", wcet="15 ms", server=server, memory_demand="200 MB/s"),
            laxity.Task("plan", period="50 ms", wcet="5 ms", memory_budget="100 MB/s",
                        run={"library": "libcar.so", "symbol": "plan"}),
        ],
    )  # fmt: skip
    in_a_file = laxity.Workload.from_toml("""
        laxity = 1
        name = "memory"
        scheduler = { rule = "EDF", scope = "partitioned" }
        gpu_management = { handling = "preempt_rt_low" }
        best_effort_scheduler = { rule = "TFS", punishment = 3.0 }
        best_effort = [{ name = "stream", memory_demand = "1 GB/s" }]
        [platform]
        cpus = 1
        clusters = 1
        memory.contention = [["0 B/s", 1.0], ["900 MB/s", 3.3]]
        device = [{ name = "network", period = "1 ms", top_half = "4 us", bottom_half = "9 us" }]
        [[task]]
        name = "mapping"
        wcet = "15 ms"
        period = "100 ms"
        server = { kind = "cbs_hard", budget = "2 ms", period = "10 ms" }
        memory_demand = "200 MB/s"
        [[task]]
        name = "plan"
        wcet = "5 ms"
        period = "50 ms"
        memory_budget = "100 MB/s"
        run = { library = "libcar.so", symbol = "plan" }
    """)
    assert in_python == in_a_file


def test_the_tasks_are_a_table_with_units(robot):
    tasks = robot.tasks
    int64, string = pa.int64(), pa.string()
    assert tasks.schema.remove_metadata() == pa.schema(
        [
            pa.field("task", pa.uint32(), nullable=False),
            pa.field("name", string, nullable=False),
            pa.field("sporadic", pa.bool_(), nullable=False),
            *(pa.field(f"{name}_ns", int64, nullable=False) for name in
              ("period", "deadline", "phase", "jitter", "wcet")),
            pa.field("utilization", pa.float64(), nullable=False),
            pa.field("priority", pa.uint32()),
            pa.field("cluster", pa.uint32()),
        ]
    )  # fmt: skip
    radio = tasks.to_pylist()[4]
    assert radio == {
        "task": 4, "name": "radio", "sporadic": True, "period_ns": 20_000_000, "deadline_ns": 20_000_000,
        "phase_ns": 0, "jitter_ns": 0, "wcet_ns": 2_000_000, "utilization": 0.1, "priority": None, "cluster": None,
    }  # fmt: skip


def test_a_workload_says_what_it_is(robot, overloaded):
    assert (robot.name, robot.cpus, robot.scheduler) == ("quickstart", 4, "G-EDF/CEm")
    assert robot.overheads == "brandenburg2009-CEm-worst-aligned"
    assert robot.utilization == pytest.approx(2.17, abs=0.005)
    assert (robot.warnings, robot.provenance) == ([], None)
    assert len(overloaded.warnings) == 1
    assert "utilization" in overloaded.warnings[0] or "CPU" in overloaded.warnings[0]
    assert (
        repr(overloaded)
        == '<laxity.Workload "overloaded": 2 tasks on 1 CPUs, utilization 1.20, G-EDF/CEm, overheads none>'
    )


def test_errors_name_file_line_and_field_and_all_are_reported(tmp_path):
    path = tmp_path / "car.toml"
    path.write_text(
        'laxity = 1\nname = "car"\n[platform]\ncpus = 2\n[[task]]\nname = "lidar"\nperiod = "10 ms"\nwcet = "12 ms"\n'
        '[[task]]\nname = "radar"\nwcet = "1 ms"\nperod = "3 ms"\n'
    )
    with pytest.raises(laxity.WorkloadError) as raised:
        laxity.load(path)
    infeasible, missing, unknown = raised.value.errors
    assert (infeasible.file, infeasible.line) == (str(path), 7)
    assert infeasible.field.startswith("task[0].")
    assert "12 ms exceeds relative deadline 10 ms" in infeasible.message
    assert (unknown.line, unknown.column, unknown.field) == (12, 1, "task[1].perod")
    assert "did you mean `period`?" in unknown.message
    assert str(raised.value) == f"{infeasible}\n{missing}\n{unknown}"
    assert str(unknown).startswith(f"{path}:12:1: ")
    again = pickle.loads(pickle.dumps(raised.value))
    assert again.errors == raised.value.errors
    assert str(again) == str(raised.value)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), np.float64("-inf")])
def test_numbers_that_files_have_no_words_for_are_refused_by_their_fields(number):
    with pytest.raises(laxity.WorkloadError) as raised:
        laxity.workload("none", cpus=1, tasks=[laxity.Task("a", wcet="1 ms", period=number)])
    assert [error.field for error in raised.value.errors] == ["task[0].period"]
    assert str(float(number)) in str(raised.value)


def test_errors_of_a_workload_written_in_python_name_fields_and_no_lines():
    with pytest.raises(laxity.WorkloadError) as raised:
        laxity.workload("none", cpus=0, tasks=[laxity.Task("a", wcet=5, period="10 ms")])
    assert {(error.file, error.line, error.column) for error in raised.value.errors} == {(None, None, None)}
    assert [error.field for error in raised.value.errors] == ["platform.cpus", "task[0].wcet"]
    assert str(raised.value.errors[1]).startswith('task 0 "a": ')


def test_a_file_that_is_missing_or_of_no_known_kind_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"^\[Errno 2\] No such file or directory: .*missing\.toml"):
        laxity.load(tmp_path / "missing.toml")
    with pytest.raises(IsADirectoryError):
        laxity.load(tmp_path)
    (tmp_path / "car.yaml").write_text("")
    with pytest.raises(laxity.WorkloadError, match=r"`\.toml` or `\.json`"):
        laxity.load(tmp_path / "car.yaml")
    with pytest.raises(ValueError, match=r"car\.yaml: .*`\.toml` or `\.json`"):
        laxity.workload("car", cpus=1).save(tmp_path / "car.yaml")


def test_scheduler_and_overheads_can_be_exchanged(robot):
    quantum_driven = robot.with_scheduler("CQm")
    assert (quantum_driven.scheduler, quantum_driven.overheads) == ("G-EDF/CQm", robot.overheads)
    own = quantum_driven.with_overheads("brandenburg2009-average")
    assert own.overheads == "brandenburg2009-CQm-average-aligned"
    assert own.with_overheads("none").overheads == "none"
    with pytest.raises(ValueError, match="did you mean"):
        robot.with_overheads("brandenburg2009-wors")
    with pytest.raises(ValueError, match="unknown scheduler `GEDF`"):
        robot.with_scheduler("GEDF")
    with pytest.raises(laxity.WorkloadError, match="priority"):
        robot.with_scheduler("G-FP")


def test_spans_are_read_exactly():
    assert laxity.nanos("33.333333 ms") == 33_333_333
    assert laxity.nanos("2 min") == 120_000_000_000
    with pytest.raises(ValueError, match='"5" has no unit'):
        laxity.nanos("5")


def test_the_published_profiles_and_realizations_have_names():
    assert "elliott2012-klmirqd" in laxity.overhead_profiles()
    assert laxity.measured_realizations() == ["CEm", "FEm", "HEm", "CQm", "CE1", "FE1", "CQ1", "S-CQm", "S-CQ1"]
