//! Intervals and the charts drawn from them.

mod drawing;
mod fixtures;
mod intervals;
mod svg;
mod text;
