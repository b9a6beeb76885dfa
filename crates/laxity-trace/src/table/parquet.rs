//! Tables as Parquet files.

use std::io::Write;

use arrow_array::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

/// Writes the batch as a Parquet file, compressed with Snappy; what the trace is about is in its metadata.
///
/// Same batch and version: the same bytes. Errors: the writer's.
pub fn parquet(batch: &RecordBatch, writer: impl Write + Send) -> Result<(), ParquetError> {
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut writer = ArrowWriter::try_new(writer, batch.schema(), Some(properties))?;
    writer.write(batch)?;
    writer.close()?;
    Ok(())
}
