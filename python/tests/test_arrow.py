"""Tables: types, units in names, and other libraries that take them."""

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import laxity

TIME, NAME = pa.int64(), pa.dictionary(pa.int32(), pa.string())
COLUMNS = {
    "jobs": {
        "task": pa.uint32(), "task_name": NAME, "job": pa.uint32(), "release_ns": TIME, "arrival_ns": TIME,
        "deadline_ns": TIME, "completion_ns": TIME, "response_time_ns": TIME, "lateness_ns": TIME,
        "tardiness_ns": TIME, "preemptions": pa.uint32(), "migrations": pa.uint32(), "executed_ns": TIME,
        "missed": pa.bool_(), "spinning_ns": TIME, "awaiting_locks_ns": TIME, "inheriting_ns": TIME,
        "operations_ns": TIME, "bottom_halves_ns": TIME, "owner": NAME,
    },
    "events": {
        "at_ns": TIME, "event": NAME, "cpu": pa.uint16(), "to_cpu": pa.uint16(), "task": pa.uint32(),
        "task_name": NAME, "job": pa.uint32(), "deadline_ns": TIME, "kind": NAME, "duration_ns": TIME,
        "gpu": pa.uint16(), "engine": NAME, "device": pa.uint16(), "lock": pa.uint16(), "replica": pa.uint16(),
        "owner": NAME, "edge": pa.uint32(), "tokens": pa.uint32(), "level": pa.uint64(), "of_task": pa.uint32(),
        "operation": NAME, "outsider": NAME, "thread": pa.uint32(),
    },
    "intervals": {
        "from_ns": TIME, "to_ns": TIME, "duration_ns": TIME, "activity": NAME, "cpu": pa.uint16(),
        "task": pa.uint32(), "task_name": NAME, "job": pa.uint32(), "begin": NAME, "stop": NAME,
        "migrated_from_cpu": pa.uint16(), "gpu": pa.uint16(), "engine": NAME, "device": pa.uint16(),
        "lock": pa.uint16(), "replica": pa.uint16(), "owner": NAME, "level": pa.uint64(), "of_task": pa.uint32(),
        "operation": NAME, "kind": NAME, "outsider": NAME, "thread": pa.uint32(),
    },
}  # fmt: skip


@pytest.mark.parametrize("name", COLUMNS)
def test_a_traces_tables_have_the_documented_columns(robot_trace, name):
    table = getattr(robot_trace, name)()
    table.validate(full=True)
    # Columns are only ever added, at the end.
    assert list(zip(table.schema.names, table.schema.types, strict=True))[: len(COLUMNS[name])] == list(
        COLUMNS[name].items()
    )
    assert table.schema.metadata[b"workload"] == b"quickstart"
    assert table.schema.metadata[b"origin"] == b"simulated"


@pytest.mark.parametrize("name", COLUMNS)
def test_the_docstrings_name_every_column(robot_trace, name):
    documentation = getattr(type(robot_trace), name).__doc__
    assert [column for column in COLUMNS[name] if column not in documentation] == []


def test_result_tables_document_their_columns(robot):
    result = laxity.simulate(robot, duration="10 ms")
    documentation = laxity.Result.tasks.__doc__.replace("_p90_ns", "response_time_p90_ns").replace(
        " _p99_ns", " response_time_p99_ns"
    )
    assert [column for column in result.tasks.column_names if column not in documentation] == []
    assert [column for column in robot.tasks.column_names if column not in type(robot).tasks.__doc__] == []


def test_there_is_a_row_for_every_job_and_event(robot_trace):
    total = robot_trace.metrics()["total"]
    jobs, events = robot_trace.jobs(), robot_trace.events()
    assert jobs.num_rows == total["released"]
    assert jobs["completion_ns"].null_count == total["released"] - total["completed"]
    assert sum(jobs["missed"].to_pylist()) == total["missed"]
    assert events.num_rows == len(robot_trace)


def test_polars_takes_every_table(robot, robot_trace):
    jobs = pl.from_arrow(robot_trace.jobs())
    assert jobs.schema["response_time_ns"] == pl.Int64
    worst = jobs.group_by("task_name").agg(pl.col("response_time_ns").max()).height
    assert worst == 8
    for table in (robot.tasks, robot_trace.events(), robot_trace.intervals()):
        assert pl.from_arrow(table).height == table.num_rows
        assert pl.DataFrame(table).height == table.num_rows


def test_pandas_takes_every_table(robot, robot_trace):
    jobs = robot_trace.jobs().to_pandas()
    assert isinstance(jobs, pd.DataFrame)
    completed = jobs.dropna(subset="completion_ns")
    assert (completed["completion_ns"] - completed["arrival_ns"] == completed["response_time_ns"]).all()
    # Signed, so that differences cannot wrap around.
    assert (completed["completion_ns"] - completed["deadline_ns"]).min() < 0
    for table in (robot.tasks, robot_trace.events(), robot_trace.intervals()):
        assert len(pd.DataFrame.from_arrow(table)) == table.num_rows
