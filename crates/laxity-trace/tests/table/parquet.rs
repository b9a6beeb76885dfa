//! Parquet.

use laxity_trace::table::arrow::batch;
use laxity_trace::table::{jobs, parquet};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::Compression;

use super::fixtures::*;

#[test]
fn a_file_is_read_back_as_the_same_rows_and_says_what_it_is_about() {
    let (header, records) = busy(20, 4, 500);
    let batch = batch(&header, &jobs(&header, &records).expect("it fits")).expect("a batch");
    let mut file = Vec::new();
    parquet(&batch, &mut file).expect("writing to memory does not fail");

    let builder = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(file.clone())).expect("a file");
    assert_eq!(builder.metadata().row_group(0).column(0).compression(), Compression::SNAPPY);
    assert_eq!(builder.schema().metadata()["workload"], "busy");
    let read: Vec<_> = builder.build().expect("a reader").map(|batch| batch.expect("a batch")).collect();
    assert_eq!(read.len(), 1);
    assert_eq!(read[0].columns(), batch.columns());

    let mut again = Vec::new();
    parquet(&batch, &mut again).expect("writing to memory does not fail");
    assert!(again == file, "the same bytes");
}
