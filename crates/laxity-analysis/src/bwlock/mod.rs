//! BWLOCK++ (paper 004, section VII): response times of GPU-using tasks on one real-time core, and the virtual time of
//! the throttle fair scheduler that runs best-effort tasks beside them.

mod protection;
mod response;
mod tfs;

pub use protection::{Aggressor, Begins, Regulation, is_concave, protected, unprotected};
pub use response::{BwlockBound, BwlockError, BwlockTask, response_times};
pub use tfs::{
    Slice, SliceKind, TfsError, TfsSchedule, TfsTask, lost_virtual_time_max, memory_task_share, schedule, virtual_time,
};
