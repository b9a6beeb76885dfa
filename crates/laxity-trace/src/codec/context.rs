//! The guesses that writer and reader both make from the records so far: a guess that is right takes no bytes.

use laxity_model::{Instant, JobId, Nanos};

use crate::TraceHeader;

/// Guesses for the next record of a chunk. Both sides update it in the same way, and both forget it between chunks.
#[derive(Clone, Debug)]
pub(super) struct Context {
    /// The time of the last record.
    pub at: Instant,
    tasks: Vec<TaskContext>,
}

#[derive(Clone, Copy, Debug)]
struct TaskContext {
    relative_deadline: Nanos,
    /// The job that will be released next, if jobs are released in order.
    next_release: u32,
    /// The job that records other than releases are about, if jobs complete in order.
    current: u32,
}

/// Which of a task's jobs a record is likely to be about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// It releases a job.
    Release,
    /// It completes a job.
    Completion,
    /// Neither.
    Between,
}

impl Context {
    pub fn new(header: &TraceHeader) -> Self {
        let task = |relative_deadline| TaskContext { relative_deadline, next_release: 0, current: 0 };
        Context { at: Instant::ZERO, tasks: header.tasks.iter().map(|info| task(info.deadline)).collect() }
    }

    /// Forgets the last chunk.
    pub fn start_chunk(&mut self) {
        self.at = Instant::ZERO;
        for task in &mut self.tasks {
            task.next_release = 0;
            task.current = 0;
        }
    }

    /// The index the next job of `task` in this role should have. The header may not know the task: then 0.
    #[inline]
    pub fn guess_index(&self, task: usize, role: Role) -> u32 {
        match self.tasks.get(task) {
            Some(context) if role == Role::Release => context.next_release,
            Some(context) => context.current,
            None => 0,
        }
    }

    /// The deadline of a job released without jitter at `at`.
    #[inline]
    pub fn guess_deadline(&self, task: usize, at: Instant) -> Instant {
        self.tasks.get(task).map_or(at, |context| at.saturating_add(context.relative_deadline))
    }

    /// Takes note of the job of a record.
    #[inline]
    pub fn saw(&mut self, job: JobId, role: Role) {
        if let Some(context) = self.tasks.get_mut(job.task.index()) {
            match role {
                Role::Release => context.next_release = job.index.wrapping_add(1),
                Role::Completion => context.current = job.index.wrapping_add(1),
                Role::Between => context.current = job.index,
            }
        }
    }
}
