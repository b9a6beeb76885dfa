//! Tables: rows, CSV, Arrow and Parquet. Run with `--features parquet` for all of it.

#[cfg(feature = "arrow")]
mod arrow;
mod csv;
#[path = "../gantt/fixtures.rs"]
mod fixtures;
#[path = "../gantt/gpus.rs"]
mod gpus;
#[cfg(feature = "parquet")]
mod parquet;
mod rows;
