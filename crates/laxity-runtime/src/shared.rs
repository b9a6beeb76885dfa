//! All that the tasks of a run have in common, if they are threads of one process.

use laxity_sys::pi_lock::PiLock;

use crate::kernel::InKernel;

/// All that the tasks of a run have in common.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// The resources, where Linux schedules.
    pub resources: Vec<PiLock>,
    /// The scheduler in the kernel, if that schedules.
    pub kernel: Option<InKernel>,
}
