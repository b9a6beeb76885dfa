//! What makes records unfit for the header they came with.

use laxity_model::{CpuId, Instant, JobId};
use thiserror::Error;

/// The records do not belong to the header they came with. The trace cannot be drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TrackError {
    /// A record names a CPU the header does not have.
    #[error(
        "record at {at}: {cpu} does not exist, the header has {cpus} CPUs counted from 0; pass the header that was written \
         with these records"
    )]
    UnknownCpu {
        /// When.
        at: Instant,
        /// The CPU named.
        cpu: CpuId,
        /// How many the header has.
        cpus: usize,
    },
    /// A record names a task the header does not have.
    #[error(
        "record at {at}: job {job} is of no known task, the header has {tasks} tasks counted from 0; pass the header that \
         was written with these records"
    )]
    UnknownTask {
        /// When.
        at: Instant,
        /// The job named.
        job: JobId,
        /// How many tasks the header has.
        tasks: usize,
    },
    /// A record names something else the header does not have.
    #[error(
        "record at {at}: {what} {index} does not exist, the header has {count} counted from 0; pass the header that was \
         written with these records"
    )]
    Unknown {
        /// When.
        at: Instant,
        /// What: `GPU`, `copy engine`, `device`, `lock`, `replica`, `edge`, `task`.
        what: &'static str,
        /// Its number.
        index: usize,
        /// How many the header has.
        count: usize,
    },
    /// A record is earlier than the one before it.
    #[error("record at {at} follows a record at {previous}; sort the records by time, keeping the order of equals")]
    OutOfOrder {
        /// Its time.
        at: Instant,
        /// The time of the record before it.
        previous: Instant,
    },
}
