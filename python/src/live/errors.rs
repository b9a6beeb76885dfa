//! Errors of `laxity-graph` as the exceptions of `laxity.live`, with their parts.

use std::fmt::Display;

use laxity_graph::{MessageError, RegistryError, Spec};
use laxity_model::{Details, ErrorCode, ErrorDetails};
use pyo3::call::PyCallArgs;
use pyo3::prelude::*;

use super::edges;
use crate::errors::exception_of;

fn exception<'py>(py: Python<'py>, class: &str, args: impl PyCallArgs<'py>) -> PyErr {
    exception_of(py, "laxity.live._errors", class, args)
}

/// `laxity.live.SpecError`.
pub fn spec_error(py: Python<'_>, error: &impl Display) -> PyErr {
    exception(py, "SpecError", (error.to_string(),))
}

/// `laxity.live.RegistryError`, or the class of it that fits.
pub fn registry_error(py: Python<'_>, graph: &str, error: &RegistryError) -> PyErr {
    let class = match error {
        RegistryError::Exists { .. } => "GraphExistsError",
        RegistryError::NotFound { .. } => "GraphNotFoundError",
        _ => "RegistryError",
    };
    exception(py, class, (error.to_string(), graph))
}

/// The exception of `laxity.live` that fits the kind of error, with the parts that the error has.
pub fn live_error(py: Python<'_>, error: &impl ErrorDetails) -> PyErr {
    let text = error.to_string();
    let Details { graph, node, edge, pid, errno, .. } = error.details();
    match error.code() {
        ErrorCode::Claimed | ErrorCode::Ending => exception(py, "ClaimError", (text, node, pid)),
        ErrorCode::Listen => exception(py, "ListenError", (text, edge, errno)),
        ErrorCode::TimedOut => exception(py, "TimedOutError", (text, node)),
        ErrorCode::Lost => exception(py, "LostError", (text, node, edge, pid)),
        ErrorCode::Terminated => exception(py, "TerminatedError", (text, node, edge)),
        ErrorCode::Unreachable => exception(py, "UnreachableError", (text, node, edge, errno)),
        ErrorCode::NoRecorder => exception(py, "RecorderError", (text, graph)),
        ErrorCode::Schedule => exception(py, "ScheduleError", (text, node, errno)),
        ErrorCode::NoNode | ErrorCode::NoObject => exception(py, "UnknownError", (text,)),
        ErrorCode::Access => exception(py, "AccessError", (text,)),
        ErrorCode::Forked => exception(py, "UseError", (text,)),
        _ => exception(py, "LiveError", (text,)),
    }
}

/// `laxity.live.MessageError`, or the class of it that fits, about the edge at `position`.
pub fn message_error(py: Python<'_>, spec: &Spec, position: usize, error: &MessageError) -> PyErr {
    let edge = edges::name(spec, position);
    match error {
        MessageError::NoRing { .. } => {
            let text = format!("edge {edge} carries tokens alone; give it a channel with messages, such as Ring");
            exception(py, "MessageError", (text,))
        }
        MessageError::NoMessage { number, count, .. } => {
            let text = format!("edge {edge}: a job has {count} messages, numbered from 0; there is no number {number}");
            exception(py, "MessageError", (text,))
        }
        MessageError::TooLong { length, longest, .. } => {
            let text =
                format!("edge {edge}: a message of {length} bytes exceeds its {longest} bytes; enlarge the channel");
            exception(py, "MessageError", (text,))
        }
        MessageError::NotSwapping { to, .. } => {
            let text = format!(
                "edges {edge} and {} exchange no buffers at this node; describe the graph with_swapping, or copy",
                edges::name(spec, *to)
            );
            exception(py, "MessageError", (text,))
        }
        MessageError::Kept { number, consume, .. } => {
            let text = format!(
                "edge {edge}: a job takes {consume} messages away and leaves number {number} for the next; copy it"
            );
            exception(py, "MessageError", (text,))
        }
        MessageError::Lost { token, .. } => {
            let text = format!("edge {edge}: message {token} was lost with a former owner of a node; go on without it");
            exception(py, "MessageLostError", (text, edges::ends(spec, position), *token))
        }
    }
}

/// `laxity.live.MessageError`, about the latest-value edge called `edge`.
pub fn message_of_register(py: Python<'_>, edge: &str, error: &MessageError) -> PyErr {
    let text = match error {
        MessageError::TooLong { length, longest, .. } => {
            format!("latest-value edge {edge}: a value of {length} bytes exceeds its {longest} bytes; enlarge it")
        }
        _ => format!("latest-value edge {edge}: {error}"),
    };
    exception(py, "MessageError", (text,))
}

/// `laxity.live.UnknownError`: nothing has this name.
pub fn unknown(py: Python<'_>, text: impl Display) -> PyErr {
    exception(py, "UnknownError", (text.to_string(),))
}

/// `laxity.live.UseError`: what was called cannot be used, or not now.
pub fn misuse(py: Python<'_>, text: impl Display) -> PyErr {
    exception(py, "UseError", (text.to_string(),))
}
