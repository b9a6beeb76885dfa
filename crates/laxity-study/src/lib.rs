//! Published schedulability studies, evaluated in chunks that can be split at will.
//!
//! A [`Study`] has scenarios (how task sets are drawn), points (caps on their utilization) and replicates; every task
//! set is judged under all curves. [`Study::evaluate`] maps a [`Chunk`] to [`Counts`], purely: the caller that runs a study
//! may split it over threads, processes and machines, stop and resume, and the sum of the counts is the same.
//!
//! - [`gedf`]: Brandenburg & Anderson, RTSS 2009 (paper 002): 18 scenarios, realizations of global EDF, hard and soft.
//! - [`klmirqd`]: Elliott & Anderson 2012 (paper 000), appendix D: GPU interrupt handling under clustered EDF.
//!
//! [`klmirqd_runtime`] simulates what the same paper ran on its machine: its results are measurements, not counts.
#![forbid(unsafe_code)]

pub mod gedf;
pub mod klmirqd;
pub mod klmirqd_runtime;
mod study;
mod tally;

pub use study::{Chunk, Curve, Study, StudyError};
pub use tally::{Answer, Counts, Row, Tally};
