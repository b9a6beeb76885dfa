//! Channels of Linux that carry messages between processes: named pipes, POSIX message queues, TCP.
//!
//! No call here blocks. The users of a channel settle beforehand which process may send and what can be received; a
//! message that does not fit all the same is an answer and not a wait.

use std::io;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;

use laxity_model::Instant;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::clock;

pub mod fifo;
pub mod queue;
pub mod stream;

fn way_out(setting: &str) -> String {
    let raise = if setting.is_empty() { String::new() } else { format!("raise {setting}, or ") };
    format!("{raise}ask for fewer or shorter messages")
}

/// Why there is no channel.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    /// It would hold more than Linux grants.
    #[error("needs {needed} {unit} and Linux grants {granted}; {}", way_out(setting))]
    Limit {
        /// What it takes.
        needed: u64,
        /// What it may have.
        granted: u64,
        /// Of what.
        unit: &'static str,
        /// Where that is set; empty: nowhere.
        setting: &'static str,
    },
    /// The file of this name is something else.
    #[error("{} is not one of ours; move it out of the way", path.display())]
    Foreign {
        /// The name.
        path: PathBuf,
    },
    /// Linux refuses.
    #[error("cannot {action}: {error}")]
    System {
        /// What was tried.
        action: &'static str,
        /// Why not.
        #[source]
        error: io::Error,
    },
}

fn system(action: &'static str, error: impl Into<io::Error>) -> ChannelError {
    ChannelError::System { action, error: error.into() }
}

/// The number in a file below `/proc/sys`; as if there were no limit if it cannot be read.
fn setting(path: &str) -> u64 {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.trim().parse().unwrap_or(u64::MAX)
}

/// Waits until one of `descriptors` can be read, or has failed, or until `deadline`; answers whether one is so.
pub fn wait_readable(descriptors: &[BorrowedFd<'_>], deadline: Instant) -> bool {
    let mut descriptors: Vec<PollFd> =
        descriptors.iter().map(|descriptor| PollFd::from_borrowed_fd(*descriptor, PollFlags::IN)).collect();
    loop {
        let left = deadline.saturating_since(clock::now());
        let timeout = rustix::time::Timespec {
            tv_sec: (left.0 / 1_000_000_000) as i64,
            tv_nsec: (left.0 % 1_000_000_000) as i64,
        };
        match poll(&mut descriptors, Some(&timeout)) {
            Ok(0) if left.is_zero() => return false,
            Ok(0) | Err(Errno::INTR) => {}
            _ => return true,
        }
    }
}
