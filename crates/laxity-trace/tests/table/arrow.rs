//! Arrow.

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_schema::DataType;
use laxity_model::{Instant, Nanos};
use laxity_trace::Record;
use laxity_trace::table::arrow::{ArrowRow, batch, ipc};
use laxity_trace::table::{EventRow, IntervalRow, JobRow, Row, events, intervals, jobs};

use super::fixtures::*;
use super::gpus::*;

/// A column of names, nulls as empty.
fn names(batch: &RecordBatch, column: &str) -> Vec<String> {
    let dictionary = batch.column_by_name(column).expect("the column").as_dictionary::<Int32Type>();
    let values = dictionary.values().as_string::<i32>();
    dictionary
        .keys()
        .iter()
        .map(|key| key.map(|key| values.value(key as usize)).unwrap_or_default().to_owned())
        .collect()
}

fn times(batch: &RecordBatch, column: &str) -> Vec<Option<i64>> {
    batch.column_by_name(column).expect("the column").as_primitive::<Int64Type>().iter().collect()
}

#[test]
fn a_batch_of_jobs_has_typed_columns_and_nulls() {
    let (header, records) = suspension_and_misses();
    let batch = batch(&header, &jobs(&header, &records).expect("it fits")).expect("a batch");
    assert_eq!(names(&batch, "task_name"), ["control", "logger", "control"]);
    assert_eq!(times(&batch, "completion_ns"), [Some(5_000_000), None, Some(9_000_000)]);
    assert_eq!(times(&batch, "lateness_ns"), [Some(1_000_000), None, Some(1_000_000)]);
    let preemptions = batch.column_by_name("preemptions").expect("the column").as_primitive::<UInt32Type>();
    assert_eq!(preemptions.values(), &[0, 2, 0]);
    assert!(batch.column_by_name("missed").expect("the column").as_boolean().iter().all(|missed| missed == Some(true)));
    let nullable: Vec<&str> = batch
        .schema_ref()
        .fields()
        .iter()
        .filter(|field| field.is_nullable())
        .map(|field| field.name().as_str())
        .collect();
    assert_eq!(
        nullable,
        [
            "release_ns",
            "arrival_ns",
            "deadline_ns",
            "completion_ns",
            "response_time_ns",
            "lateness_ns",
            "tardiness_ns",
            "owner"
        ]
    );
}

#[test]
fn batches_of_events_and_intervals_agree_with_their_rows() {
    let (header, records) = (figure_1_header(), figure_1c());
    let rows: Vec<EventRow<'_>> = events(&header, &records).collect();
    let table = batch(&header, &rows).expect("a batch");
    assert_eq!(names(&table, "event"), rows.iter().map(|row| row.event).collect::<Vec<_>>());
    assert_eq!(names(&table, "kind"), rows.iter().map(|row| row.kind.unwrap_or_default()).collect::<Vec<_>>());
    let to_cpu: Vec<_> =
        table.column_by_name("to_cpu").expect("the column").as_primitive::<UInt16Type>().iter().collect();
    assert_eq!(to_cpu, rows.iter().map(|row| row.to_cpu).collect::<Vec<_>>());

    let rows = intervals(&header, &records).expect("it fits");
    let table = batch(&header, &rows).expect("a batch");
    assert_eq!(names(&table, "stop"), rows.iter().map(|row| row.stop.unwrap_or_default()).collect::<Vec<_>>());
    assert_eq!(times(&table, "to_ns"), rows.iter().map(|row| Some(row.to_ns as i64)).collect::<Vec<_>>());
}

#[test]
fn columns_of_gpus_and_locks_agree_with_their_rows() {
    let (header, records) = pipeline();
    let rows: Vec<EventRow<'_>> = events(&header, &records).collect();
    let table = batch(&header, &rows).expect("a batch");
    assert_eq!(names(&table, "engine"), rows.iter().map(|row| row.engine.unwrap_or_default()).collect::<Vec<_>>());
    let owners: Vec<String> = rows.iter().map(|row| row.owner.map(|it| it.to_string()).unwrap_or_default()).collect();
    assert_eq!(names(&table, "owner"), owners);
    let indices = |column: &str| -> Vec<Option<u16>> {
        table.column_by_name(column).expect(column).as_primitive::<UInt16Type>().iter().collect()
    };
    assert_eq!(indices("gpu"), rows.iter().map(|row| row.gpu).collect::<Vec<_>>());
    assert_eq!(indices("device"), rows.iter().map(|row| row.device).collect::<Vec<_>>());
    assert_eq!(indices("lock"), rows.iter().map(|row| row.lock).collect::<Vec<_>>());
    assert_eq!(indices("replica"), rows.iter().map(|row| row.replica).collect::<Vec<_>>());
    let numbers = |column: &str| -> Vec<Option<u32>> {
        table.column_by_name(column).expect(column).as_primitive::<UInt32Type>().iter().collect()
    };
    assert_eq!(numbers("edge"), rows.iter().map(|row| row.edge).collect::<Vec<_>>());
    assert_eq!(numbers("tokens"), rows.iter().map(|row| row.tokens).collect::<Vec<_>>());
    assert_eq!(numbers("of_task"), rows.iter().map(|row| row.of_task).collect::<Vec<_>>());
    let levels: Vec<Option<u64>> =
        table.column_by_name("level").expect("the column").as_primitive::<UInt64Type>().iter().collect();
    assert_eq!(levels, rows.iter().map(|row| row.level).collect::<Vec<_>>());

    let rows = intervals(&header, &records).expect("it fits");
    let table = batch(&header, &rows).expect("a batch");
    assert_eq!(names(&table, "engine"), rows.iter().map(|row| row.engine.unwrap_or_default()).collect::<Vec<_>>());
    let replicas: Vec<Option<u16>> =
        table.column_by_name("replica").expect("the column").as_primitive::<UInt16Type>().iter().collect();
    assert_eq!(replicas, rows.iter().map(|row| row.replica).collect::<Vec<_>>());
    let rows = jobs(&header, &records).expect("it fits");
    let table = batch(&header, &rows).expect("a batch");
    assert_eq!(
        times(&table, "awaiting_locks_ns"),
        rows.iter().map(|row| Some(row.awaiting_locks_ns as i64)).collect::<Vec<_>>()
    );
    assert_eq!(
        times(&table, "bottom_halves_ns"),
        rows.iter().map(|row| Some(row.bottom_halves_ns as i64)).collect::<Vec<_>>()
    );
}

/// Columns keep the names and the order of the rows' fields, also when a table is empty.
#[test]
fn an_empty_table_keeps_its_schema() {
    fn check<R: ArrowRow>() {
        let batch = batch::<R>(&figure_1_header(), &[]).expect("a batch");
        assert_eq!(batch.num_rows(), 0);
        let names: Vec<&str> = batch.schema_ref().fields().iter().map(|field| field.name().as_str()).collect();
        assert_eq!(names, R::COLUMNS);
        for field in batch.schema_ref().fields() {
            let is_time = field.name().ends_with("_ns");
            assert_eq!(is_time, *field.data_type() == DataType::Int64, "{field}: times are Int64, nothing else is");
        }
    }
    check::<JobRow<'_>>();
    check::<EventRow<'_>>();
    check::<IntervalRow<'_>>();
}

#[test]
fn the_schema_says_what_the_trace_is_about() {
    let batch = batch::<JobRow<'_>>(&figure_1_header(), &[]).expect("a batch");
    let schema = batch.schema();
    let value = |key: &str| schema.metadata()[key].as_str();
    assert_eq!(value("table"), JobRow::TABLE);
    assert_eq!(value("workload"), "paper 002, Fig. 1");
    assert_eq!(value("scheduler"), "G-EDF/CEm");
    assert_eq!((value("origin"), value("seed"), value("cpus")), ("simulated", "7", "2"));
}

#[test]
fn ipc_is_read_back_as_the_same_batch_and_is_the_same_bytes_every_time() {
    let (header, records) = suspension_and_misses();
    let batch = batch(&header, &jobs(&header, &records).expect("it fits")).expect("a batch");
    let bytes = ipc(&batch).expect("bytes");
    let mut reader = arrow_ipc::reader::StreamReader::try_new(bytes.as_slice(), None).expect("a stream");
    assert_eq!(reader.next().expect("one batch").expect("a batch"), batch);
    assert!(reader.next().is_none());
    for _ in 0..20 {
        let again = super::arrow::batch(&header, &jobs(&header, &records).expect("it fits")).expect("a batch");
        assert_eq!(ipc(&again).expect("bytes"), bytes);
    }
}

#[test]
fn a_time_beyond_292_years_is_written_as_the_longest() {
    let header = figure_1_header();
    let records = [Record {
        at: Instant::NEVER,
        event: laxity_trace::Event::LockWait { cpu: laxity_model::CpuId(0), duration: Nanos(u64::MAX) },
    }];
    let rows: Vec<EventRow<'_>> = events(&header, &records).collect();
    assert_eq!(times(&batch(&header, &rows).expect("a batch"), "duration_ns"), [Some(i64::MAX)]);
}
