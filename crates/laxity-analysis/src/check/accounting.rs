//! Execution times inflated by overheads, and the task sets to test that they make.

use laxity_model::{Nanos, PriorityRule};

use super::analysed_task::AnalysedTask;
use super::context::{Context, Inflation};
use super::terms::{Term, Terms};
use super::{Accounting, Failure, explain, published, safe};
use crate::{AnalysisTask, LONGEST_TICKS, TaskSet};

/// How the lateness of a quantum-driven scheduler enters a task set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lateness {
    /// Not at all.
    Ignored,
    /// Periods and deadlines are shorter by it: what is left once a release was noticed.
    Shortens,
    /// It counts as execution.
    Charged,
}

impl Context<'_> {
    /// Inflates the members: for jobs that are pending for up to `pending` each, or else to their deadlines.
    ///
    /// # Errors
    /// Why no accounting is possible: interrupts leave no time, or a time cannot be written.
    pub fn inflate(&self, pending: Option<&[u64]>) -> Result<Inflation, Failure> {
        let mut inflation = match (self.machine.accounting, pending) {
            (Accounting::Safe, Some(pending)) => safe::inflate(self, pending),
            (Accounting::Safe, None) => {
                let deadlines: Vec<u64> = self.members().map(|task| task.deadline).collect();
                safe::inflate(self, &deadlines)
            }
            (Accounting::Published, Some(pending)) => {
                let late = |(task, &pending): (&AnalysedTask, &u64)| pending.saturating_sub(task.deadline);
                let tardiness: Vec<u64> = self.members().zip(pending).map(late).collect();
                published::inflate(self, Some(&tardiness))
            }
            (Accounting::Published, None) => published::inflate(self, None),
        }
        .map_err(|message| explain::of_cluster(self, message))?;
        self.add_early_jobs(&mut inflation.terms);
        match inflation.terms.iter().position(|terms| terms.total() > LONGEST_TICKS) {
            None => Ok(inflation),
            Some(member) => {
                let message = "the inflated execution time exceeds 36 years; lower the overheads".to_owned();
                Err(explain::of_task(self, self.cluster.members[member], message))
            }
        }
    }

    /// A node's jobs may run before they arrive, one at a time (paper 003, section 5.2.3). Under EDF their deadlines are still
    /// those of their arrivals; at a fixed priority they are so many jobs more than in any window.
    fn add_early_jobs(&self, terms: &mut [Terms]) {
        if self.machine.rule == PriorityRule::Edf {
            return;
        }
        let mut early = 0u64;
        for index in self.machine.by_priority(&self.cluster.members, self.analysed) {
            let own = &mut terms[self.member(index)];
            let execution = if self.tests_blocking() { own.without(Term::Blocking) } else { *own }.total();
            own.add(Term::EarlyJobs, early);
            early = early.saturating_add(execution.saturating_mul(self.analysed[index].early_jobs()));
        }
    }

    /// The task set to test, its members in `order` (indices of analysed).
    ///
    /// # Errors
    /// For which task nothing of its period or deadline is left.
    pub fn task_set(&self, inflation: &Inflation, order: &[usize], lateness: Lateness) -> Result<TaskSet, Failure> {
        let mut tasks = Vec::with_capacity(order.len());
        for &index in order {
            let task = &self.analysed[index];
            let terms = inflation.terms[self.member(index)];
            let charged = if self.tests_blocking() { terms.without(Term::Blocking) } else { terms };
            let (more, less) = match lateness {
                Lateness::Ignored => (0, 0),
                Lateness::Shortens => (0, inflation.late),
                Lateness::Charged => (inflation.late, 0),
            };
            let window = task.period.min(task.deadline);
            if window <= less {
                let message = format!(
                    "a release may be acted upon {} late, and its period or deadline is {}; shorten the quantum",
                    Nanos(less),
                    Nanos(window)
                );
                return Err(explain::of_task(self, index, message));
            }
            let wcet = charged.total().saturating_add(more).max(1);
            tasks.push(AnalysisTask {
                wcet,
                period: task.period - less,
                deadline: task.deadline - less,
                ends_waiting: !task.uses.ends_executing,
            });
        }
        TaskSet::new(self.cpus(), tasks).map_err(|error| explain::of_cluster(self, error.to_string()))
    }
}
