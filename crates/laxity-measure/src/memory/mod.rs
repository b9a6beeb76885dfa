//! Memory: what streams of it cost, and how much slower one is beside the others' traffic.
//!
//! [`Stream`] is a loop through memory with known traffic, as hog and as victim; [`Contention`] measures how a victim slows
//! down with the traffic of a hog, the curve that workloads have as `contention` of `[platform.memory]`.

mod contention;
mod curve;
mod stream;

pub use contention::{Contention, ContentionError, Interference};
pub use curve::{Curve, CurvePoint};
pub use stream::{CHUNK, Pattern, Stream};
