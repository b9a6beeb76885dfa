//! Numbers that nobody can guess.

use std::io;

use rustix::rand::{GetRandomFlags, getrandom};

/// One of 64 bits.
///
/// # Errors
/// If Linux refuses.
pub fn number() -> io::Result<u64> {
    let mut bytes = [0; 8];
    // Linux answers fewer than 256 bytes whole.
    getrandom(&mut bytes[..], GetRandomFlags::empty())?;
    Ok(u64::from_ne_bytes(bytes))
}
