//! GPUSync's token allocator: its rules one by one, its invariants under random events, and its blocking bound.

mod affinity;
mod bound;
mod budget;
mod cluster;
mod fuzz;
mod rules;
