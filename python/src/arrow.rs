//! Record batches as pyarrow tables.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchIterator};
use arrow_schema::{Field, Schema};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::errors::value_error;

/// Columns on their way into a record batch.
#[derive(Default)]
pub struct Columns {
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
}

impl Columns {
    /// Adds a column; it is nullable where a value is missing or `nullable` says that one may be.
    pub fn push(&mut self, name: impl Into<String>, array: impl Array + 'static, nullable: bool) {
        let nullable = nullable || array.null_count() > 0;
        self.fields.push(Field::new(name, array.data_type().clone(), nullable));
        self.arrays.push(Arc::new(array));
    }

    /// The columns as one batch; `metadata` goes into its schema.
    pub fn batch(self, metadata: HashMap<String, String>) -> PyResult<RecordBatch> {
        let schema = Schema::new_with_metadata(self.fields, metadata);
        RecordBatch::try_new(Arc::new(schema), self.arrays).map_err(value_error)
    }
}

/// The batch as a `pyarrow.Table`, without copying.
pub fn table(py: Python<'_>, batch: RecordBatch) -> PyResult<Bound<'_, PyAny>> {
    py.import("pyarrow")?.call_method1("table", (ArrowStream { batch },))
}

/// What pyarrow imports a table from.
///
/// Source: the Arrow PyCapsule interface, <https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>.
#[pyclass(frozen)]
struct ArrowStream {
    batch: RecordBatch,
}

#[pymethods]
impl ArrowStream {
    /// A capsule named `arrow_array_stream`. Its type cannot be requested; the interface allows a producer to ignore
    /// that.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let batches = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), c"arrow_array_stream")
    }
}
