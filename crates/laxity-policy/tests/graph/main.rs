//! Tokens: when jobs of graphs are released, when they may run, and which replica of a data object they use.

mod drawing;
mod driver;
mod errors;
mod pipeline;
mod random;
mod release;
mod vectors;
