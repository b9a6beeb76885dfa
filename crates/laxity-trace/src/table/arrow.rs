//! Tables as Arrow record batches.
//!
//! Times and spans are Int64, although they are unsigned in the trace: differences of unsigned columns surprise in
//! every language that reads them. 292 years fit; what is longer is written as the longest. Names are dictionaries.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, Int64Array, RecordBatch, UInt16Array, UInt32Array, UInt64Array,
};
use arrow_ipc::writer::StreamWriter;
pub use arrow_schema::ArrowError;
use arrow_schema::{Field, Schema};

use super::{EventRow, IntervalRow, JobRow, Owner, Row};
use crate::TraceHeader;

/// A row that has Arrow columns.
pub trait ArrowRow: Row + Sized {
    /// The columns of these rows, one for each of [`Row::COLUMNS`].
    fn columns(rows: &[Self]) -> Vec<Column>;
}

/// A column: whether it has nulls by its nature, and its values.
pub struct Column {
    nullable: bool,
    values: ArrayRef,
}

/// The rows as one record batch. Its schema's metadata say what the trace is about: `workload`, `scheduler`, `origin`,
/// `seed`, `cpus`, `table`, and `laxity_version`, the version that wrote it.
///
/// Errors: none that rows of this crate can cause.
pub fn batch<R: ArrowRow>(header: &TraceHeader, rows: &[R]) -> Result<RecordBatch, ArrowError> {
    let columns = R::columns(rows);
    let fields: Vec<Field> = R::COLUMNS
        .iter()
        .zip(&columns)
        .map(|(name, column)| Field::new(*name, column.values.data_type().clone(), column.nullable))
        .collect();
    let schema = Schema::new_with_metadata(fields, metadata::<R>(header));
    RecordBatch::try_new(Arc::new(schema), columns.into_iter().map(|column| column.values).collect())
}

/// The batch in Arrow's IPC stream format, which every Arrow library reads.
///
/// Errors: none that a batch of this crate can cause.
pub fn ipc(batch: &RecordBatch) -> Result<Vec<u8>, ArrowError> {
    let mut writer = StreamWriter::try_new(Vec::new(), batch.schema_ref())?;
    writer.write(batch)?;
    writer.into_inner()
}

fn metadata<R: Row>(header: &TraceHeader) -> [(String, String); 7] {
    let entry = |key: &str, value: String| (key.to_owned(), value);
    [
        entry("table", R::TABLE.to_owned()),
        entry("workload", header.workload.clone()),
        entry("scheduler", header.scheduler.to_string()),
        entry("origin", header.origin.name().to_owned()),
        entry("seed", header.seed.to_string()),
        entry("cpus", header.cpus.to_string()),
        entry("laxity_version", env!("CARGO_PKG_VERSION").to_owned()),
    ]
}

impl ArrowRow for JobRow<'_> {
    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            number(rows, |row| row.task),
            name(rows, |row| row.task_name),
            number(rows, |row| row.job),
            optional_time(rows, |row| row.release_ns),
            optional_time(rows, |row| row.arrival_ns),
            optional_time(rows, |row| row.deadline_ns),
            optional_time(rows, |row| row.completion_ns),
            optional_time(rows, |row| row.response_time_ns),
            Column { nullable: true, values: Arc::new(rows.iter().map(|row| row.lateness_ns).collect::<Int64Array>()) },
            optional_time(rows, |row| row.tardiness_ns),
            number(rows, |row| row.preemptions),
            number(rows, |row| row.migrations),
            time(rows, |row| row.executed_ns),
            Column {
                nullable: false,
                values: Arc::new(BooleanArray::from(rows.iter().map(|row| row.missed).collect::<Vec<_>>())),
            },
            time(rows, |row| row.spinning_ns),
            time(rows, |row| row.awaiting_locks_ns),
            time(rows, |row| row.inheriting_ns),
            time(rows, |row| row.operations_ns),
            time(rows, |row| row.bottom_halves_ns),
            owner(rows, |row| row.owner),
        ]
    }
}

impl ArrowRow for EventRow<'_> {
    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            time(rows, |row| row.at_ns),
            name(rows, |row| row.event),
            optional_index(rows, |row| row.cpu),
            optional_index(rows, |row| row.to_cpu),
            optional_number(rows, |row| row.task),
            optional_name(rows, |row| row.task_name),
            optional_number(rows, |row| row.job),
            optional_time(rows, |row| row.deadline_ns),
            optional_name(rows, |row| row.kind),
            optional_time(rows, |row| row.duration_ns),
            optional_index(rows, |row| row.gpu),
            optional_name(rows, |row| row.engine),
            optional_index(rows, |row| row.device),
            optional_index(rows, |row| row.lock),
            optional_index(rows, |row| row.replica),
            owner(rows, |row| row.owner),
            optional_number(rows, |row| row.edge),
            optional_number(rows, |row| row.tokens),
            level(rows, |row| row.level),
            optional_number(rows, |row| row.of_task),
            optional_name(rows, |row| row.operation),
            optional_name(rows, |row| row.outsider),
            optional_number(rows, |row| row.thread),
        ]
    }
}

impl ArrowRow for IntervalRow<'_> {
    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            time(rows, |row| row.from_ns),
            time(rows, |row| row.to_ns),
            time(rows, |row| row.duration_ns),
            name(rows, |row| row.activity),
            optional_index(rows, |row| row.cpu),
            optional_number(rows, |row| row.task),
            optional_name(rows, |row| row.task_name),
            optional_number(rows, |row| row.job),
            optional_name(rows, |row| row.begin),
            optional_name(rows, |row| row.stop),
            optional_index(rows, |row| row.migrated_from_cpu),
            optional_index(rows, |row| row.gpu),
            optional_name(rows, |row| row.engine),
            optional_index(rows, |row| row.device),
            optional_index(rows, |row| row.lock),
            optional_index(rows, |row| row.replica),
            owner(rows, |row| row.owner),
            level(rows, |row| row.level),
            optional_number(rows, |row| row.of_task),
            optional_name(rows, |row| row.operation),
            optional_name(rows, |row| row.kind),
            optional_name(rows, |row| row.outsider),
            optional_number(rows, |row| row.thread),
        ]
    }
}

fn time<R>(rows: &[R], value: impl Fn(&R) -> u64) -> Column {
    Column { nullable: false, ..optional_time(rows, |row| Some(value(row))) }
}

fn optional_time<R>(rows: &[R], value: impl Fn(&R) -> Option<u64>) -> Column {
    let signed = |nanos: u64| i64::try_from(nanos).unwrap_or(i64::MAX);
    let values: Int64Array = rows.iter().map(|row| value(row).map(signed)).collect();
    Column { nullable: true, values: Arc::new(values) }
}

fn number<R>(rows: &[R], value: impl Fn(&R) -> u32) -> Column {
    Column { nullable: false, ..optional_number(rows, |row| Some(value(row))) }
}

fn optional_number<R>(rows: &[R], value: impl Fn(&R) -> Option<u32>) -> Column {
    Column { nullable: true, values: Arc::new(rows.iter().map(value).collect::<UInt32Array>()) }
}

fn optional_index<R>(rows: &[R], value: impl Fn(&R) -> Option<u16>) -> Column {
    Column { nullable: true, values: Arc::new(rows.iter().map(value).collect::<UInt16Array>()) }
}

fn name<'a, R>(rows: &'a [R], value: impl Fn(&'a R) -> &'a str) -> Column {
    Column { nullable: false, ..optional_name(rows, |row| Some(value(row))) }
}

fn optional_name<'a, R>(rows: &'a [R], value: impl Fn(&'a R) -> Option<&'a str>) -> Column {
    Column { nullable: true, values: Arc::new(rows.iter().map(value).collect::<DictionaryArray<Int32Type>>()) }
}

/// Jobs as text: as many values as there are jobs, so that a dictionary still pays.
fn owner<'a, R>(rows: &'a [R], value: impl Fn(&R) -> Option<Owner<'a>>) -> Column {
    let texts: Vec<Option<String>> = rows.iter().map(|row| value(row).map(|owner| owner.to_string())).collect();
    let values: DictionaryArray<Int32Type> = texts.iter().map(Option::as_deref).collect();
    Column { nullable: true, values: Arc::new(values) }
}

/// Priorities: unsigned, as they are times under EDF only.
fn level<R>(rows: &[R], value: impl Fn(&R) -> Option<u64>) -> Column {
    Column { nullable: true, values: Arc::new(rows.iter().map(value).collect::<UInt64Array>()) }
}
