//! The code and details of [`CompiledGraphError`].

use laxity_model::{Details, ErrorCode, ErrorDetails};

use super::CompiledGraphError;

impl ErrorDetails for CompiledGraphError {
    fn code(&self) -> ErrorCode {
        ErrorCode::Spec
    }

    fn details(&self) -> Details<'_> {
        match self {
            CompiledGraphError::NoPeriod { node }
            | CompiledGraphError::Mismatch { node, .. }
            | CompiledGraphError::Overflow { node }
            | CompiledGraphError::TooFast { node, .. } => Details::node(node),
            CompiledGraphError::Tokens { from, to, .. }
            | CompiledGraphError::Deadlock { from, to, .. }
            | CompiledGraphError::Cycle { from, to }
            | CompiledGraphError::Unbalanced { from, to, .. }
            | CompiledGraphError::NotOneToOne { from, to, .. }
            | CompiledGraphError::Unwritten { from, to, .. } => Details::edge(from, to),
            _ => Details::default(),
        }
    }
}
