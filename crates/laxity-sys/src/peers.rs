//! The processes whose threads this one may schedule: those that share memory with it and belong to this user.

use std::io;
use std::sync::{Mutex, PoisonError};

use rustix::io::Errno;

use crate::peer::Peer;
use crate::scheduling;

/// Processes that were found to be of this user.
#[derive(Debug, Default)]
pub struct Peers(Mutex<Vec<Peer>>);

impl Peers {
    /// Whether `thread`, a number from shared memory, is a thread of the process `pid`; `Ok(false)`: it has ended.
    ///
    /// # Errors
    /// EPERM if the process belongs to another user, and any error that keeps this process from knowing.
    pub fn has_thread(&self, pid: u32, thread: u32) -> io::Result<bool> {
        if pid != std::process::id() && !self.knows(pid)? {
            return Ok(false);
        }
        Ok(scheduling::is_thread_of(thread, pid))
    }

    /// Whether the process lives.
    fn knows(&self, pid: u32) -> io::Result<bool> {
        let mut peers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = peers.iter().position(|peer| peer.pid() == pid) {
            if peers[index].lives() {
                return Ok(true);
            }
            peers.swap_remove(index);
        }
        match Peer::of(pid) {
            Ok(peer) => {
                peers.retain(Peer::lives);
                peers.push(peer);
                Ok(true)
            }
            Err(error) if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
