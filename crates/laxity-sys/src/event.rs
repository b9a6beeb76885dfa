//! A counter in Linux that threads wait on and event loops poll.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;

use crate::fault;

/// An eventfd.
#[derive(Debug)]
pub struct Event {
    counter: OwnedFd,
}

impl Event {
    /// With nothing signalled.
    ///
    /// # Errors
    /// If this process has too many descriptors.
    pub fn new() -> io::Result<Event> {
        fault::point("eventfd")?;
        Ok(Event { counter: eventfd(0, EventfdFlags::CLOEXEC)? })
    }

    /// Lets one wait return, now or later.
    pub fn signal(&self) {
        while rustix::io::write(&self.counter, &1u64.to_ne_bytes()) == Err(Errno::INTR) {}
    }

    /// Suspends until it was signalled since the last wait.
    pub fn wait(&self) {
        while rustix::io::read(&self.counter, &mut [0; 8]) == Err(Errno::INTR) {}
    }
}

impl AsFd for Event {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.counter.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_that_came_first_is_not_lost() {
        let event = Event::new().expect("a descriptor");
        event.signal();
        event.wait();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| event.wait());
            event.signal();
            waiting.join().expect("no panic");
        });
    }
}
