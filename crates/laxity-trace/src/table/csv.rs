//! Tables as CSV.

use std::io;

use super::Row;

/// Writes rows as CSV (RFC 4180, but lines end in `\n`): a line of column names, even for an empty table, then a line
/// per row. Nulls are empty, yes and no are `true` and `false`.
///
/// CSV has no place for what the trace is about; keep the file's name telling, or use Arrow or Parquet.
///
/// Errors: the writer's.
pub fn csv<R: Row>(rows: impl IntoIterator<Item = R>, writer: impl io::Write) -> io::Result<()> {
    let mut csv = ::csv::WriterBuilder::new().has_headers(false).from_writer(writer);
    csv.write_record(R::COLUMNS)?;
    for row in rows {
        csv.serialize(row)?;
    }
    csv.flush()
}
