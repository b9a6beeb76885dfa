//! The bandwidth lock around GPU operations: it excludes no job, and has the best-effort CPUs regulated.

use super::{Cut, JobError, Jobs};
use crate::log::JobStep;

impl Jobs {
    /// The job is about to issue an operation: it has the lock, and the ceiling priority where there are any.
    pub(super) fn hold_bandwidth(&mut self) -> Result<(), Cut> {
        let hold = self.plan.bandwidth.expect("a task whose jobs hold the lock says how");
        let client = self.bandwidth.as_ref().expect("its thread is registered");
        let is_first = client.bandwidth_budget().is_none();
        if is_first {
            self.log.note(self.index, JobStep::Request(hold.lock));
        }
        // One stream: a job waits for all that it issued.
        client.launch_bandwidth(0, hold.budget).map_err(JobError::from)?;
        if is_first {
            self.note(JobStep::Grant(hold.lock, hold.replica));
            self.raise(self.plan.raised.as_ref().map(|raised| raised.non_preemptive))?;
            self.have_ceiling(true)?;
        }
        Ok(())
    }

    /// The job has waited for all operations that it issued.
    pub(super) fn end_bandwidth(&mut self) -> Result<(), Cut> {
        let hold = self.plan.bandwidth.expect("a task whose jobs hold the lock says how");
        let client = self.bandwidth.as_ref().expect("its thread is registered");
        if client.bandwidth_budget().is_none() {
            return Ok(());
        }
        // Before it is true: regulators lift the budget after this.
        self.log.note(self.index, JobStep::Unlock(hold.lock, hold.replica));
        client.synchronize_bandwidth(None).map_err(JobError::from)?;
        self.lower()?;
        self.have_ceiling(false)
    }

    /// Where Laxity schedules, the job is above all others, or no longer.
    fn have_ceiling(&mut self, is_above: bool) -> Result<(), Cut> {
        if let Some(task) = &self.scheduled {
            let mut watch = self.log.decisions(self.index, None);
            task.top_priority_watched(is_above, &mut watch).map_err(JobError::from)?;
            self.note(JobStep::Executes);
        }
        Ok(())
    }
}
