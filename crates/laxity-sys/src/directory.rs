//! Waiting until something changes in a directory.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;

use laxity_model::Instant;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};
use rustix::io::Errno;

use crate::{clock, fault};

/// Notices every name that appears in a directory after it was made.
#[derive(Debug)]
pub struct Watch {
    events: OwnedFd,
}

impl Watch {
    /// Watches `directory`.
    ///
    /// # Errors
    /// If it does not exist, or this user watches too many.
    pub fn new(directory: &Path) -> io::Result<Watch> {
        fault::point("inotify_init")?;
        let events = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        fault::point("inotify_add_watch")?;
        inotify::add_watch(&events, directory, WatchFlags::CREATE | WatchFlags::MOVED_TO)?;
        Ok(Watch { events })
    }

    /// Waits until a name has appeared since the last call, or until `deadline`; answers whether one has.
    pub fn wait(&self, deadline: Instant) -> bool {
        loop {
            let left = deadline.saturating_since(clock::now());
            let timeout = rustix::time::Timespec {
                tv_sec: (left.0 / 1_000_000_000) as i64,
                tv_nsec: (left.0 % 1_000_000_000) as i64,
            };
            match poll(&mut [PollFd::new(&self.events, PollFlags::IN)], Some(&timeout)) {
                Ok(0) if left.is_zero() => return false,
                Ok(0) | Err(Errno::INTR) => {}
                _ => {
                    let mut buffer = [MaybeUninit::uninit(); 4096];
                    let mut events = Reader::new(&self.events, &mut buffer);
                    while events.next().is_ok() {}
                    return true;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use laxity_model::Nanos;

    use super::*;

    #[test]
    fn a_name_that_appears_is_noticed_once() {
        let directory = std::env::temp_dir().join(format!("laxity-watch-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("writable");
        let watch = Watch::new(&directory).expect("it exists");
        assert!(!watch.wait(Instant::ZERO));
        fs::write(directory.join("a"), "").expect("writable");
        assert!(watch.wait(Instant::NEVER));
        assert!(!watch.wait(clock::now().saturating_add(Nanos::from_millis(1))));
        fs::remove_dir_all(&directory).expect("ours");
    }
}
