//! The state of locks as a list of numbers, for memory that cannot hold values of Rust: memory that processes share.
//!
//! Each part of the state describes its numbers once ([`Saved::code`]). A [`Codec`] either appends them to a list or
//! takes them from one and checks each. Only what decides is saved: [`Arbiter::save`](super::Arbiter::save) says what
//! follows from the rest.

mod arbiter;
mod codec;
mod disciplines;
mod tasks;

pub use codec::Codec;

/// A state that is saved as numbers.
pub trait Saved {
    /// Appends the state to the list of `codec`, or replaces it by what the list says.
    ///
    /// # Errors
    /// [`Damaged`], when it takes numbers that cannot be; the state is unspecified then.
    fn code(&mut self, codec: &mut Codec<'_>) -> Result<(), Damaged>;

    /// The most numbers that the state takes, if there are that many tasks.
    fn numbers_max(&self, tasks: usize) -> usize;
}

/// The saved words are not such a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("number {position} of the saved state is not {expected}; the state cannot be used")]
pub struct Damaged {
    /// The position of the number that cannot be.
    pub position: usize,
    /// What it was to be.
    pub expected: &'static str,
}
