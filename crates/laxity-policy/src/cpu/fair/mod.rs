//! Linux's fair class as CFS, the Completely Fair Scheduler (kernels up to 6.5), which is behind `SCHED_OTHER`: each CPU
//! has a queue of its own, ordered by virtual time, and CPUs without work take from those with too much.
//!
//! ```text
//!                  wakes: previous CPU if idle, else an idle one, else previous
//!   asleep --------------------------------------------------------------------.
//!     ^                                                                         v
//!     |  completes, suspends                       least virtual time       waiting on a CPU
//!   linked <------------------------------------------------------------------ | ^    |
//!     |                                                                          |    | pulled by an idle CPU,
//!     '---- slice over (tick), or a woken one is behind by more than a granularity -'    v or by one with less to do
//!                                                                              another CPU
//! ```
//!
//! Beside a class above, a CPU may be taken, and under a regulator of memory bandwidth throttled: its threads wait there, or
//! go elsewhere. Decisions 27 and 45 list the modelled features and the others. Sources: `kernel/sched/fair.c` of Linux
//! 3.0 to 5.10; paper 004, section IV-C (virtual time).

mod entity;
mod loads;
mod parameters;
mod policy;
mod run_queue;

pub use entity::{Entity, NICE_0_WEIGHT};
pub use parameters::Parameters;
pub use policy::{Fair, FairThread};
