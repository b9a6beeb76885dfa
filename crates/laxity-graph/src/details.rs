//! The codes and details of this crate's errors.

use laxity_model::{Details, ErrorCode, ErrorDetails};

use crate::graph::ClaimError;
use crate::hooks::{FifoError, HookError};
use crate::objects::ObjectError;
use crate::pipeline::PipelineError;
use crate::registry::NoChannel;
use crate::releases::NoRecorder;
use crate::ring::MessageError;
use crate::spec::SpecError;
use crate::user_data::UserDataError;
use crate::wait_error::WaitError;

impl ErrorDetails for WaitError {
    fn code(&self) -> ErrorCode {
        match self {
            WaitError::TimedOut { .. } => ErrorCode::TimedOut,
            WaitError::Lost { .. } => ErrorCode::Lost,
            WaitError::Terminated { .. } => ErrorCode::Terminated,
            WaitError::Unreachable { .. } => ErrorCode::Unreachable,
        }
    }

    fn details(&self) -> Details<'_> {
        match self {
            WaitError::TimedOut { node, in_flight } => Details::node(node).on(in_flight.as_ref()),
            WaitError::Lost { node, edge, pid } => Details::node(node).on(Some(edge)).of(*pid),
            WaitError::Terminated { node, edge } => Details::node(node).on(edge.as_ref()),
            WaitError::Unreachable { node, edge, code } => Details::node(node).on(Some(edge)).because(*code),
        }
    }
}

impl ErrorDetails for ClaimError {
    fn code(&self) -> ErrorCode {
        match self {
            ClaimError::NoSuchNode { .. } => ErrorCode::NoNode,
            ClaimError::Claimed { .. } | ClaimError::NoneFree => ErrorCode::Claimed,
            ClaimError::Ending { .. } => ErrorCode::Ending,
            ClaimError::Listen { .. } => ErrorCode::Listen,
            ClaimError::Forked => ErrorCode::Forked,
        }
    }

    fn details(&self) -> Details<'_> {
        match self {
            ClaimError::NoSuchNode { name } => Details::node(name),
            ClaimError::Claimed { node, pid } | ClaimError::Ending { node, pid } => Details::node(node).of(*pid),
            ClaimError::Listen { edge, code, .. } => Details::default().on(Some(edge)).because(*code),
            ClaimError::NoneFree | ClaimError::Forked => Details::default(),
        }
    }
}

/// Without names: a message error has the position of its edge only.
impl ErrorDetails for MessageError {
    fn code(&self) -> ErrorCode {
        match self {
            MessageError::NoRing { .. } => ErrorCode::NoRing,
            MessageError::NoMessage { .. } => ErrorCode::NoMessage,
            MessageError::TooLong { .. } => ErrorCode::TooLong,
            MessageError::Lost { .. } => ErrorCode::MessageLost,
            MessageError::NotSwapping { .. } | MessageError::Kept { .. } => ErrorCode::Swap,
        }
    }

    fn details(&self) -> Details<'_> {
        match self {
            MessageError::Lost { token, .. } => Details { token: Some(*token), ..Details::default() },
            _ => Details::default(),
        }
    }
}

impl ErrorDetails for ObjectError {
    fn code(&self) -> ErrorCode {
        match self {
            ObjectError::NoSuchObject { .. } => ErrorCode::NoObject,
            _ => ErrorCode::Access,
        }
    }

    fn details(&self) -> Details<'_> {
        match self {
            ObjectError::NoSuchObject { node, .. }
            | ObjectError::NotDeclared { node, .. }
            | ObjectError::Changed { node, .. }
            | ObjectError::Twice { node, .. } => Details::node(node),
            ObjectError::Type { .. } => Details::default(),
        }
    }
}

impl ErrorDetails for SpecError {
    fn code(&self) -> ErrorCode {
        ErrorCode::Spec
    }

    fn details(&self) -> Details<'_> {
        match self {
            SpecError::NodeName { name } | SpecError::Duplicate { name } | SpecError::NoNode { name } => {
                Details::node(name)
            }
            SpecError::Span { node, .. } => Details::node(node),
            SpecError::Capacity { from, to, .. }
            | SpecError::Address { from, to, .. }
            | SpecError::Swapping { from, to, .. } => Details::edge(from, to),
            SpecError::Graph(error) => error.details(),
            _ => Details::default(),
        }
    }
}

impl ErrorDetails for PipelineError {
    fn code(&self) -> ErrorCode {
        ErrorCode::Spec
    }

    fn details(&self) -> Details<'_> {
        match self {
            PipelineError::Spec(error) => error.details(),
            PipelineError::UnknownObject { node, .. }
            | PipelineError::TooLongAgo { node, .. }
            | PipelineError::DelayChanged { node, .. }
            | PipelineError::UsedTwice { node, .. }
            | PipelineError::NoWriter { node, .. } => Details::node(node),
            PipelineError::UnknownNode { from, to, node } => Details { node: Some(node), ..Details::edge(from, to) },
            PipelineError::Cycle { links } => {
                links.first().map_or_else(Details::default, |link| Details::edge(&link.from, &link.to))
            }
            _ => Details::default(),
        }
    }
}

impl ErrorDetails for NoChannel {
    fn code(&self) -> ErrorCode {
        ErrorCode::Channel
    }

    fn details(&self) -> Details<'_> {
        Details::edge(&self.from, &self.to)
    }
}

impl ErrorDetails for NoRecorder {
    fn code(&self) -> ErrorCode {
        ErrorCode::NoRecorder
    }

    fn details(&self) -> Details<'_> {
        Details { graph: Some(&self.graph), ..Details::default() }
    }
}

impl ErrorDetails for FifoError {
    fn code(&self) -> ErrorCode {
        ErrorCode::Value
    }
}

impl ErrorDetails for HookError {
    fn code(&self) -> ErrorCode {
        ErrorCode::Schedule
    }

    fn details(&self) -> Details<'_> {
        Details::node(&self.node).because(self.error.raw_os_error())
    }
}

impl ErrorDetails for UserDataError {
    fn code(&self) -> ErrorCode {
        match self {
            UserDataError::Length { .. } => ErrorCode::Value,
            UserDataError::Forked => ErrorCode::Forked,
            UserDataError::Lock(_) => ErrorCode::System,
        }
    }
}
