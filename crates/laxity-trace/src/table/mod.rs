//! A trace as tables: one row per job, per event or per interval, as plain structs, CSV, Arrow and Parquet.
//!
//! ```text
//!   records  ->  jobs, events, intervals  ->  csv                           always
//!                                         ->  arrow::batch  ->  arrow::ipc  feature `arrow`
//!                                                           ->  parquet     feature `parquet`
//! ```
//!
//! Column names carry their unit (`_ns`); what does not apply to a row is null (CSV: empty). Columns are only ever
//! added, at the end.

#[cfg(feature = "arrow")]
pub mod arrow;
mod csv;
mod events;
mod intervals;
mod jobs;
mod owner;
#[cfg(feature = "parquet")]
mod parquet;

use serde::Serialize;

pub use self::csv::csv;
pub use self::events::{EventRow, events};
pub use self::intervals::{IntervalRow, intervals};
pub use self::jobs::{JobRow, jobs};
pub use self::owner::Owner;
#[cfg(feature = "parquet")]
pub use self::parquet::parquet;

use crate::TraceHeader;

/// A row of a table. Its fields are its columns, in this order.
pub trait Row: Serialize {
    /// The table's name.
    const TABLE: &'static str;
    /// The columns' names.
    const COLUMNS: &'static [&'static str];
}

/// A task's name, empty where the header does not know the task.
fn task_name(header: &TraceHeader, task: laxity_model::TaskId) -> &str {
    header.tasks.get(task.index()).map_or("", |info| info.name.as_str())
}
