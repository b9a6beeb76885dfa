//! Errors of `laxity-graph` as the exceptions of `laxity.live`, with their parts.

use std::fmt::Display;

use laxity_graph::hooks::HookError;
use laxity_graph::{ClaimError, MessageError, NoRecorder, ObjectError, RegistryError, Spec, WaitError};
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

/// `laxity.live.ClaimError`, or what else a claim can meet.
pub fn claim_error(py: Python<'_>, error: &ClaimError) -> PyErr {
    let text = error.to_string();
    match error {
        ClaimError::NoSuchNode { .. } => exception(py, "UnknownError", (text,)),
        ClaimError::Claimed { node, pid } | ClaimError::Ending { node, pid } => {
            exception(py, "ClaimError", (text, node, *pid))
        }
        ClaimError::Listen { edge, code, .. } => exception(py, "ListenError", (text, edge, *code)),
        ClaimError::NoneFree => exception(py, "ClaimError", (text, None::<&str>, None::<u32>)),
        ClaimError::Forked => exception(py, "UseError", (text,)),
    }
}

/// The `laxity.live.WaitError` that fits.
pub fn wait_error(py: Python<'_>, error: &WaitError) -> PyErr {
    let text = error.to_string();
    match error {
        WaitError::TimedOut { node, .. } => exception(py, "TimedOutError", (text, node)),
        WaitError::Lost { node, edge, pid } => exception(py, "LostError", (text, node, edge, *pid)),
        WaitError::Terminated { node, edge } => exception(py, "TerminatedError", (text, node, edge.as_ref())),
        WaitError::Unreachable { node, edge, code } => exception(py, "UnreachableError", (text, node, edge, *code)),
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

/// `laxity.live.AccessError`, or UnknownError if there is no such object.
pub fn object_error(py: Python<'_>, error: &ObjectError) -> PyErr {
    let text = error.to_string();
    match error {
        ObjectError::NoSuchObject { .. } => exception(py, "UnknownError", (text,)),
        _ => exception(py, "AccessError", (text,)),
    }
}

/// `laxity.live.RecorderError`.
pub fn recorder_error(py: Python<'_>, error: &NoRecorder) -> PyErr {
    exception(py, "RecorderError", (error.to_string(), &error.graph))
}

/// `laxity.live.ScheduleError`.
pub fn schedule_error(py: Python<'_>, error: &HookError) -> PyErr {
    exception(py, "ScheduleError", (error.to_string(), &error.node, error.error.raw_os_error()))
}

/// `laxity.live.UnknownError`: nothing has this name.
pub fn unknown(py: Python<'_>, text: impl Display) -> PyErr {
    exception(py, "UnknownError", (text.to_string(),))
}

/// `laxity.live.UseError`: what was called cannot be used, or not now.
pub fn misuse(py: Python<'_>, text: impl Display) -> PyErr {
    exception(py, "UseError", (text.to_string(),))
}
