//! Every verb of the command with every feature of a workload file.
#![cfg(target_os = "linux")]

mod features;
mod table;
mod verb;
mod workloads;
