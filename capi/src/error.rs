//! Results and their details.

use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use laxity_model::{Details, ErrorDetails};
use thiserror::Error as DeriveError;

pub(crate) use crate::call_error::CallError;
pub use crate::result::laxity_result;
use laxity_result::*;

/// An error. It and its texts belong to the library. They are valid until the next call of the same thread that does
/// not return LAXITY_OK, or until the thread ends.
#[repr(C)]
pub struct laxity_error {
    /// The result that the call returned.
    result: laxity_result,
    /// What went wrong, and the way out; never NULL.
    message: *const c_char,
    /// The node in question, or NULL.
    node: *const c_char,
    /// The producer of the edge in question, or NULL.
    from: *const c_char,
    /// The consumer of the edge in question, or NULL.
    to: *const c_char,
    /// The process in question, or 0.
    pid: u32,
}

/// The error of this thread's last call that did not return LAXITY_OK; never NULL.
#[unsafe(no_mangle)]
pub extern "C" fn laxity_last_error() -> *const laxity_error {
    let found = catch_unwind(|| {
        LAST.try_with(|last| {
            let mut last = last.borrow_mut();
            let Last { error, rendered } = &mut *last;
            &raw const rendered.get_or_insert_with(|| Rendered::of(error)).public
        })
    });
    // A thread that is ending has lost its details.
    found.ok().and_then(Result::ok).unwrap_or(&raw const NO_DETAILS.0)
}

/// Makes the call and returns its result. Nothing unwinds into C.
pub(crate) fn answer(call: impl FnOnce() -> Result<(), Error>) -> laxity_result {
    // State that a panic leaves half-done is dropped or behind a mutex.
    let error = match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => return LAXITY_OK,
        Ok(Err(error)) => error,
        Err(payload) => {
            let text = payload.downcast_ref::<String>().cloned();
            let text = text.or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            // Dropping a payload of another type might panic.
            std::mem::forget(payload);
            CallError::Internal { text: text.unwrap_or_default() }.into()
        }
    };
    let result = error.result();
    // A thread that is ending keeps no details.
    let _ = LAST.try_with(|last| *last.borrow_mut() = Last { error: Some(error), rendered: None });
    result
}

/// Why a call failed.
#[derive(Debug, DeriveError)]
pub(crate) enum Error {
    #[error(transparent)]
    Call(CallError),
    #[error("{0}")]
    Laxity(Box<dyn ErrorDetails>),
}

impl Error {
    fn result(&self) -> laxity_result {
        match self {
            Error::Call(error) => error.result(),
            Error::Laxity(error) => error.code().into(),
        }
    }

    fn details(&self) -> Details<'_> {
        match self {
            Error::Call(error) => error.details(),
            Error::Laxity(error) => error.details(),
        }
    }
}

impl From<CallError> for Error {
    fn from(error: CallError) -> Self {
        Error::Call(error)
    }
}

impl<E: ErrorDetails + 'static> From<E> for Error {
    fn from(error: E) -> Self {
        Error::Laxity(Box::new(error))
    }
}

thread_local! {
    static LAST: RefCell<Last> = const { RefCell::new(Last { error: None, rendered: None }) };
}

/// The last error. Its texts are made when they are asked for: time-outs are frequent, and few programs read them.
struct Last {
    error: Option<Error>,
    rendered: Option<Box<Rendered>>,
}

/// An error as C sees it.
struct Rendered {
    public: laxity_error,
    /// The texts that `public` points to.
    _texts: Vec<CString>,
}

impl Rendered {
    fn of(error: &Option<Error>) -> Box<Rendered> {
        let message = error.as_ref().map_or_else(|| "no call has failed".to_owned(), ToString::to_string);
        let Details { node, edge, pid, .. } = error.as_ref().map(Error::details).unwrap_or_default();
        let mut texts = Vec::new();
        let mut pointer = |text: Option<&str>| {
            let Some(text) = text else { return ptr::null() };
            texts.push(c_string(text));
            // The text is on the heap and stays there when `texts` moves.
            texts.last().map_or(ptr::null(), |text| text.as_ptr())
        };
        let public = laxity_error {
            result: error.as_ref().map_or(LAXITY_OK, Error::result),
            message: pointer(Some(&message)),
            node: pointer(node),
            from: pointer(edge.map(|edge| edge.0)),
            to: pointer(edge.map(|edge| edge.1)),
            pid: pid.unwrap_or(0),
        };
        Box::new(Rendered { public, _texts: texts })
    }
}

/// The error where there can be no details.
struct Constant(laxity_error);

// SAFETY: it points to constants only.
unsafe impl Sync for Constant {}

static NO_DETAILS: Constant = Constant(laxity_error {
    result: LAXITY_ERROR_INTERNAL,
    message: c"no details are known".as_ptr(),
    node: ptr::null(),
    from: ptr::null(),
    to: ptr::null(),
    pid: 0,
});

/// `text` for C, where a NUL would end it.
pub(crate) fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', "?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use ::laxity_graph::WaitError;

    use super::*;

    fn text(pointer: *const c_char) -> String {
        // SAFETY: the texts of the last error, which this thread asked for last.
        unsafe { CStr::from_ptr(pointer) }.to_str().expect("UTF-8").to_owned()
    }

    #[test]
    fn a_panic_ends_at_the_boundary() {
        let result = answer(|| panic!("one job too many"));
        assert_eq!(result, LAXITY_ERROR_INTERNAL);
        // SAFETY: never null, and of this thread.
        let error = unsafe { &*laxity_last_error() };
        assert_eq!((error.result, error.pid), (LAXITY_ERROR_INTERNAL, 0));
        assert_eq!(text(error.message), "a fault in Laxity: one job too many; please report it");
    }

    #[test]
    fn an_error_names_node_edge_and_process() {
        let edge = ("camera".to_owned(), "det\0ector".to_owned());
        let lost = WaitError::Lost { node: "camera".to_owned(), edge, pid: 7 };
        assert_eq!(answer(|| Err(lost.into())), LAXITY_LOST);
        // SAFETY: as above.
        let error = unsafe { &*laxity_last_error() };
        assert_eq!([error.node, error.from, error.to].map(text), ["camera", "camera", "det?ector"]);
        assert_eq!(error.pid, 7);
        assert!(text(error.message).starts_with("node camera of edge camera -> "));
        assert_eq!(answer(|| Ok(())), LAXITY_OK);
        // SAFETY: as above.
        assert_eq!(unsafe { &*laxity_last_error() }.result, LAXITY_LOST, "success takes nothing away");
    }
}
