//! How many events of a cluster's jobs may fall into the window of each of them.

use super::analysed_task::AnalysedTask;
use super::context::Context;
use super::staircases::{Staircase, Staircases};
use super::uses::Lock;

/// Events in one window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    /// Interrupts of GPUs, raised for jobs that may be pending in it.
    pub interrupts: u64,
    /// Requests for locks, engines included.
    pub requests: u64,
    /// Requests for tokens of GPUs.
    pub token_requests: u64,
    /// Interrupts that release jobs or end suspensions, on CPUs that run jobs.
    pub timers: u64,
}

/// The events of a cluster, by the length of the window.
pub(super) struct Counts {
    interrupts: Staircases,
    requests: Staircases,
    token_requests: Staircases,
    timers: Staircases,
}

impl Counts {
    /// Those in each of `windows`; `pending`: how long a job of each member may be pending.
    pub fn new(context: &Context<'_>, pending: &[u64], windows: &[u64]) -> Counts {
        let of = |weight: &dyn Fn(&AnalysedTask) -> u64| {
            let stairs = context.members().zip(pending).map(|(task, &pending)| task.jobs_by(pending, weight(task)));
            Staircases::of(stairs, windows.to_vec())
        };
        let has_tokens = context.machine.sharing.tokens().is_some();
        let token_requests = |task: &AnalysedTask| match has_tokens {
            true => task.uses.requests.iter().filter(|request| request.lock == Lock::Gpu).count() as u64,
            false => 0,
        };
        // Releases come with arrivals, which may be delayed, and suspensions end in jobs that are pending.
        let mut timers = of(&|task| task.later_interrupts());
        if !context.machine.is_dedicated {
            for (task, &pending) in context.members().zip(pending) {
                timers.add(&task.jobs_by(task.released_late(pending), 1));
            }
        }
        Counts {
            interrupts: of(&|task| task.interrupts),
            requests: of(&|task| task.lock_requests),
            token_requests: of(&token_requests),
            timers,
        }
    }

    /// Those in one of the windows.
    pub fn at(&self, window: u64) -> Counted {
        Counted {
            interrupts: self.interrupts.at(window),
            requests: self.requests.at(window),
            token_requests: self.token_requests.at(window),
            timers: self.timers.at(window),
        }
    }
}

impl AnalysedTask {
    /// `weight` for each job that arrives within a window or less than `before` ahead of it: [`super::interrupts::jobs`] as a
    /// function of the window's length.
    pub fn jobs_by(&self, before: u64, weight: u64) -> Staircase {
        Staircase { weight, offset: i128::from(before) + i128::from(self.early), period: self.period }
    }
}
