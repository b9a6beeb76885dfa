//! Locks: the rules of every protocol as drawn schedules, and all of them against a naive model.
//!
//! A schedule has a row for each task and a column for each event, whose effects it shows:
//!
//! ```text
//!        0+A  1+A  1+B  0-A  1?B         0 asks for A, 1 asks for A, ..., 0 unlocks A, 1 withdraws its request for B
//!   T0   A    A=1  A=1  .    .           holds A; =1: with the effective priority of T1, which is not its own
//!   T1   .    a    a    A    A           waits for A (in lower case), then holds it
//!   T2   B1   B1   B1   B1   B1          holds replica 1 of B (a lock of several replicas)
//! ```

mod bounds;
mod circles;
mod fuzz;
mod fuzz_all;
mod inheritance;
mod kfmlp;
mod model;
mod order;
mod progress;
mod saved;
mod schedule;
