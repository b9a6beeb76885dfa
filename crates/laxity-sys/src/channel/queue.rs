//! POSIX message queues (mq_overview(7)).

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use rustix::process::{Resource, getrlimit};

use super::{ChannelError, setting, system};
use crate::fault;

/// A message queue.
#[derive(Debug)]
pub struct Queue {
    queue: OwnedFd,
    longest: usize,
}

/// The longest message that every process may put into a queue, in bytes.
pub fn longest_packet() -> usize {
    usize::try_from(setting("/proc/sys/fs/mqueue/msgsize_max")).unwrap_or(usize::MAX).min(HARD_LONGEST)
}

/// `HARD_MSGSIZEMAX` of Linux.
const HARD_LONGEST: usize = 16 << 20;
/// `HARD_MSGMAX` of Linux.
const HARD_COUNT: u64 = 65536;
/// What Linux counts for a message beside its bytes: `struct msg_msg` and `struct posix_msg_tree_node`.
const OVERHEAD: u64 = 48 + 48;

impl Queue {
    /// The queue called `name`, which is made if there is none, for `packets` of at most `longest` bytes. `name` begins
    /// with a slash and contains no other.
    ///
    /// # Errors
    /// [`ChannelError`].
    pub fn open_or_create(name: &str, packets: u64, longest: usize) -> Result<Queue, ChannelError> {
        let c_name = c_string(name).map_err(|error| system("name a queue", error))?;
        let limit = |needed, granted, unit, setting| ChannelError::Limit { needed, granted, unit, setting };
        let most = setting("/proc/sys/fs/mqueue/msg_max");
        let too_many = || limit(packets, most, "messages of a queue", "fs.mqueue.msg_max");
        if packets > HARD_COUNT {
            return Err(too_many());
        }
        // SAFETY: the structure consists of integers.
        let mut attributes: libc::mq_attr = unsafe { std::mem::zeroed() };
        attributes.mq_maxmsg = packets as libc::c_long;
        attributes.mq_msgsize = longest as libc::c_long;
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_NONBLOCK | libc::O_CLOEXEC;
        fault::point("mq_open").map_err(|error| system("open a message queue", error))?;
        // SAFETY: the name ends with NUL, and mode and attributes follow as `O_CREAT` asks.
        let queue = unsafe { libc::mq_open(c_name.as_ptr(), flags, 0o600 as libc::mode_t, &raw mut attributes) };
        if queue < 0 {
            let error = io::Error::last_os_error();
            return Err(match error.raw_os_error() {
                Some(libc::EINVAL) => too_many(),
                Some(libc::EMFILE) => {
                    let needed = packets.saturating_mul(longest as u64 + OVERHEAD);
                    let granted = getrlimit(Resource::Msgqueue).current.unwrap_or(u64::MAX);
                    limit(needed, granted, "bytes of all queues of this user", "RLIMIT_MSGQUEUE (ulimit -q)")
                }
                Some(libc::ENOSPC) => {
                    let granted = setting("/proc/sys/fs/mqueue/queues_max");
                    limit(granted + 1, granted, "queues", "fs.mqueue.queues_max")
                }
                _ => system("open a message queue", error),
            });
        }
        // SAFETY: it was just opened and is this function's, and on Linux a queue's descriptor is one of a file.
        let queue = unsafe { OwnedFd::from_raw_fd(queue) };
        let status = rustix::fs::fstat(&queue).map_err(|error| system("look at a message queue", error))?;
        if status.st_uid != rustix::process::geteuid().as_raw() {
            return Err(ChannelError::Foreign { path: name.into() });
        }
        // SAFETY: the result can be written.
        if unsafe { libc::mq_getattr(queue.as_raw_fd(), &raw mut attributes) } != 0 {
            return Err(system("look at a message queue", io::Error::last_os_error()));
        }
        let longest = usize::try_from(attributes.mq_msgsize).unwrap_or(0);
        Ok(Queue { queue, longest })
    }

    /// The longest message, in bytes, as the queue was made for it.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// Sends `packet`; answers whether there was room.
    ///
    /// # Errors
    /// If Linux refuses otherwise.
    pub fn send(&self, packet: &[u8]) -> io::Result<bool> {
        loop {
            // SAFETY: that many bytes can be read.
            let sent = unsafe { libc::mq_send(self.queue.as_raw_fd(), packet.as_ptr().cast(), packet.len(), 0) };
            match answer(sent as isize) {
                Ok(_) => return Ok(true),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes the oldest packet, and answers with its length; `None` if there is none.
    ///
    /// # Errors
    /// If Linux refuses otherwise, for instance as `packet` is shorter than [`Queue::longest`].
    pub fn receive(&self, packet: &mut [u8]) -> io::Result<Option<usize>> {
        loop {
            let (start, length) = (packet.as_mut_ptr().cast(), packet.len());
            // SAFETY: that many bytes can be written; the priority is not asked for.
            let received = unsafe { libc::mq_receive(self.queue.as_raw_fd(), start, length, std::ptr::null_mut()) };
            match answer(received) {
                Ok(length) => return Ok(Some(length)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

fn answer(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// Takes the name of a queue away, if it has one.
pub fn unlink(name: &str) {
    if let Ok(name) = c_string(name) {
        // SAFETY: the name ends with NUL. If there is none, or it is not ours to remove, nothing is to be done.
        let _ = unsafe { libc::mq_unlink(name.as_ptr()) };
    }
}

fn c_string(name: &str) -> io::Result<CString> {
    CString::new(name).map_err(|_| io::ErrorKind::InvalidInput.into())
}
