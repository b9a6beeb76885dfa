//! What GPU interrupt handling does to a running system: the run-time experiments of Elliott & Anderson 2012 (paper
//! 000), sections V and VI and appendix C, simulated.
//!
//! - [`Inversions`](RuntimeStudy::inversions) (section V, Figs. 3, 4 and 13 to 94): 41 task sets of total utilization
//!   7.5, 7.6 ... 11.5 run for two minutes under each of three ways to handle interrupts; measured are the priority
//!   inversions that bottom halves cause.
//! - [`Responses`](RuntimeStudy::responses) (section VI, Table II): a fixed workload of 50 tasks runs 25 times for a
//!   minute on each of eight systems; measured are response times and missed deadlines.
//!
//! A run is a function of its key (utilization and handling, or system and repetition), the options and its length, so
//! runs may be spread over threads, processes and machines at will.
//!
//! ```text
//!   task_sets, table2   the workload of a run         options    what the paper leaves open
//!   run                 simulates, traces nothing     systems    Table II's columns
//!   inversions          lengths, by cause             responses  jobs, misses, response times, by task
//! ```

mod inversions;
mod options;
mod responses;
mod run;
mod systems;
mod table2;
mod task_sets;

pub use inversions::{CurvePoint, InversionLengths, Measured};
pub use options::{Definition, Halves, ParseRuntimeOptionsError, Phases, RuntimeOptions, Waiting};
pub use responses::TaskResponses;
pub use run::{RuntimeStudy, Stopped};
pub use systems::{HANDLINGS, System};
pub use task_sets::UTILIZATIONS;

/// Simulated time of a run of section V.
pub const INVERSIONS_SECONDS: u64 = 120;
/// Simulated time of a run of Table II.
pub const RESPONSES_SECONDS: u64 = 60;
/// Runs on each system of Table II.
pub const REPETITIONS: u64 = 25;
