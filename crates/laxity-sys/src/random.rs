//! Numbers that cannot be guessed.

use std::io;

use rustix::io::retry_on_intr;
use rustix::rand::{GetRandomFlags, getrandom};

use crate::fault;

/// One of 64 bits.
///
/// # Errors
/// If Linux refuses.
pub fn number() -> io::Result<u64> {
    let mut bytes = [0; 8];
    // Linux answers fewer than 256 bytes whole.
    let draw = || fault::point("getrandom").and_then(|()| getrandom(&mut bytes[..], GetRandomFlags::empty()));
    retry_on_intr(draw)?;
    Ok(u64::from_ne_bytes(bytes))
}
