//! Laxity's scheduler in the kernel, through sched_ext.
//!
//! The policy core is C, for the kernel: `bpf/`. [`native`] is that core compiled for user space, which tests drive beside
//! the policies of laxity-policy: the links are equal after each event. [`probe`] says what a machine lacks for the
//! scheduler.

pub mod native;
mod probe;

pub use probe::{Check, Report, probe};
