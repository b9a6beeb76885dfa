//! A program that knows nothing of jobs as a task of the scheduler in the kernel.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use laxity_sys::shared_page::SharedPage;

use crate::layout::{Entry, IS_ALIVE};

/// The first thread of another process as a task, until that ends: each of its wake-ups releases a job, which its next sleep
/// completes. See [`Membership::begin_program`](crate::Membership::begin_program).
#[derive(Debug)]
pub struct ProgramTask {
    page: Arc<SharedPage>,
    entry: Entry,
    cluster: usize,
}

impl ProgramTask {
    pub(crate) fn new(page: Arc<SharedPage>, entry: Entry, cluster: usize) -> ProgramTask {
        ProgramTask { page, entry, cluster }
    }

    /// The cluster that it runs in.
    pub fn cluster(&self) -> usize {
        self.cluster
    }

    /// Whether the scheduler is still there; else Linux schedules the program, without a budget.
    pub fn is_scheduled(&self) -> bool {
        self.page.u32(IS_ALIVE).load(Ordering::Acquire) != 0
    }

    /// How many jobs were released.
    pub fn jobs(&self) -> u32 {
        self.page.u32(self.entry.job()).load(Ordering::Acquire)
    }

    /// How often its budget was used up.
    pub fn throttled(&self) -> u64 {
        self.page.u64(self.entry.throttled()).load(Ordering::Relaxed)
    }
}
