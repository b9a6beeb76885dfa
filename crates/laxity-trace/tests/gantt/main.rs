//! Intervals and the charts drawn from them.

mod drawing;
mod fixtures;
mod gpu_intervals;
mod gpus;
mod intervals;
mod outside;
mod stolen;
mod svg;
mod text;
mod throttled;
