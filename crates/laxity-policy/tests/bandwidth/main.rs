//! BWLOCK++: what threads hold, and what regulators do about it.

mod class;
mod lock;
mod regulator;
