//! Arguments that may be of several types, and errors about them in words of Python.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

/// An enum with a variant for each type that an argument may have; others raise TypeError, which says what to pass.
macro_rules! choice {
    ($(#[$meta:meta])* $visible:vis enum $name:ident: $words:literal { $($variant:ident($type:ty)),+ $(,)? }) => {
        $(#[$meta])*
        $visible enum $name { $($variant($type)),+ }

        impl<'py> pyo3::FromPyObject<'_, 'py> for $name {
            type Error = pyo3::PyErr;

            fn extract(argument: pyo3::Borrowed<'_, 'py, pyo3::PyAny>) -> pyo3::PyResult<Self> {
                $(if let Ok(value) = argument.extract::<$type>() {
                    return Ok($name::$variant(value));
                })+
                Err($crate::argument::unfit(&argument, $words))
            }
        }
    };
}
pub(crate) use choice;

/// `TypeError`: `argument` is not what `words` say.
pub fn unfit(argument: &Bound<'_, PyAny>, words: &str) -> PyErr {
    let kind = argument.get_type().name().map_or_else(|_| "object".to_owned(), |name| name.to_string());
    PyTypeError::new_err(format!("expected {words}, got {kind} {}", shortened(argument)))
}

/// Its `repr`, or the start of it.
fn shortened(argument: &Bound<'_, PyAny>) -> String {
    const LENGTH_MAX: usize = 60;
    let text =
        argument.repr().map_or_else(|_| "(it has no repr)".to_owned(), |text| text.to_string_lossy().into_owned());
    match text.char_indices().nth(LENGTH_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

/// What `extract` answers for a structure made of `of`, with errors that name the field as Python does.
pub fn fields<'a, 'py, T: FromPyObject<'a, 'py, Error = PyErr>>(of: &'a Bound<'py, PyAny>) -> PyResult<T> {
    of.extract::<T>().map_err(|error: PyErr| {
        let (py, text) = (of.py(), error.value(of.py()).to_string());
        // PyO3's words, with the name of the structure in Rust: `failed to extract field Options.frames`.
        let Some((_, field)) = text.strip_prefix("failed to extract field ").and_then(|field| field.split_once('.'))
        else {
            return error;
        };
        let cause =
            error.cause(py).map_or_else(|| "is not what it should be".to_owned(), |cause| cause.value(py).to_string());
        PyTypeError::new_err(format!("{field}: {cause}"))
    })
}
