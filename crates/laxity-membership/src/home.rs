//! Where the threads' numbers and the mutexes in a memory mean something.

use std::sync::atomic::Ordering;

use laxity_sys::mutex;
use laxity_sys::process::{IdentityError, pid_namespace};
use laxity_sys::segment::Segment;

use crate::error::RegistryError;
use crate::kind::Kind;

/// Three words of a memory: the layout of the C library's mutexes, the PID namespace, and the boot of the machine, of the
/// process that made it. With another one of these, neither a thread's number nor a mutex in the memory means the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Home {
    /// Where the words are.
    pub offset: usize,
}

impl Home {
    /// The words' length, in bytes.
    pub const SIZE: usize = 24;

    /// Says in `draft` where this process is.
    ///
    /// # Errors
    /// If the process does not know.
    pub fn write(self, draft: &Segment) -> Result<(), IdentityError> {
        for (word, value) in [mutex::LAYOUT, pid_namespace()?, draft.boot()].into_iter().enumerate() {
            draft.u64(self.offset + 8 * word).store(value, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Whether this process is where the process that made `memory` was.
    pub(crate) fn admit<K: Kind>(self, memory: &K, name: &str) -> Result<(), RegistryError<K::Cause>> {
        let word = |index: usize| memory.segment().u64(self.offset + 8 * index).load(Ordering::Relaxed);
        let elsewhere = |part| Err(RegistryError::Elsewhere { name: name.to_owned(), part });
        if word(2) != memory.segment().boot() {
            // A container may show its processes a boot of their own.
            let is_left_over = !memory.members().any_lives(None);
            let not_found = Err(RegistryError::NotFound { name: name.to_owned() });
            return if is_left_over { not_found } else { elsewhere("boot") };
        }
        match (word(0) == mutex::LAYOUT, word(1) == pid_namespace()?) {
            (false, _) => elsewhere("C library"),
            (true, false) => elsewhere("PID namespace"),
            (true, true) => Ok(()),
        }
    }
}
