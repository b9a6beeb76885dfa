//! The code and details of [`PlanError`].

use laxity_model::{Details, ErrorCode, ErrorDetails};

use super::PlanError;

impl ErrorDetails for PlanError {
    fn code(&self) -> ErrorCode {
        ErrorCode::Spec
    }

    fn details(&self) -> Details<'_> {
        match self {
            PlanError::NoPeriod { node }
            | PlanError::Mismatch { node, .. }
            | PlanError::Overflow { node }
            | PlanError::TooFast { node, .. } => Details::node(node),
            PlanError::Tokens { from, to, .. }
            | PlanError::Deadlock { from, to, .. }
            | PlanError::Cycle { from, to }
            | PlanError::Unbalanced { from, to, .. }
            | PlanError::NotOneToOne { from, to, .. }
            | PlanError::Unwritten { from, to, .. } => Details::edge(from, to),
            _ => Details::default(),
        }
    }
}
