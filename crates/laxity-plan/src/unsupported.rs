//! What a workload may ask for that cannot be carried out.

use laxity_model::{InterruptHandling, Invocation, Scheduler, Task, Workload};

use crate::{fair, resources};

/// What a workload asks for and cannot have, each feature by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("{}", .reasons.join("\n"))]
pub struct UnsupportedFeatures {
    reasons: Vec<String>,
}

impl UnsupportedFeatures {
    /// Adds a feature; a reason that is known already is not repeated.
    pub fn add(&mut self, reason: impl Into<String>) {
        let reason = reason.into();
        if !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
    }

    /// `self` as an error, if there is any feature in it.
    pub fn none(self) -> Result<(), UnsupportedFeatures> {
        if self.reasons.is_empty() { Ok(()) } else { Err(self) }
    }

    /// The reasons: one for each feature, with the way out.
    pub fn reasons(&self) -> &[String] {
        &self.reasons
    }
}

/// Adds what `workload`, whose nodes of graphs are among `tasks`, asks for and `scheduler` cannot give.
pub(crate) fn check(workload: &Workload, tasks: &[Task], scheduler: &Scheduler, unsupported: &mut UnsupportedFeatures) {
    resources::refuse_circles(workload, tasks, unsupported);
    fair::check(workload, tasks, scheduler, unsupported);
    let threads = matches!(workload.gpu_management.handling, InterruptHandling::Klmirqd { .. });
    if threads && !workload.platform.gpus.is_empty() && scheduler.invocation == Invocation::QuantumDriven {
        unsupported.add(format!(
            "klmirqd under {scheduler}: an interrupt thread takes over its owner's CPU within a quantum; choose an \
             event-driven scheduler (E instead of Q) or another interrupt handling"
        ));
    }
}
