//! Realizations of global EDF on 32 CPUs. Brandenburg & Anderson, RTSS 2009 (paper 002), section 4 and appendix B.
//!
//! Every task set is judged hard under worst-case overheads and aligned quanta (and staggered ones for the two
//! quantum-driven realizations), and soft under average overheads and staggered quanta, each beside a system without
//! overheads. Hard verdicts are given twice: by the tests the paper had, and by the strongest at hand. Choices that the
//! paper leaves open are named fields of [`Options`].
//!
//! [`GedfStudy::in_kernel`] asks the same of Laxity's own scheduler, with overheads of the kernel that sched_ext runs in.

mod curve;
mod evaluate;
mod kernel;
mod options;

pub use curve::{Criterion, GedfCurve};
pub use evaluate::GedfStudy;
pub use kernel::Waiting;
pub use options::{Accounting, InterruptCpu, Options, ParseOptionsError, StaggeredCpus};

/// CPUs of the machine, a Sun UltraSPARC T1.
pub const CPUS: u32 = 32;
