//! Named pipes that keep the boundaries of what is written to them (`O_DIRECT` of pipe(2)): a packet is written and read
//! whole or not at all, whichever process is killed meanwhile.
//!
//! Every process that has the pipe has both of its ends open. So the end of one process is no end of file for another and
//! sends it no `SIGPIPE`, and packets last until the last of these processes has ended.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::{ChannelError, setting, system};
use crate::fault;

/// The longest packet, in bytes: `PIPE_BUF`.
pub const PACKET_MAX: usize = 4096;

/// A named pipe.
#[derive(Debug)]
pub struct Fifo {
    file: OwnedFd,
}

impl Fifo {
    /// The pipe called `path`, which is made if there is none, with room for `packets`.
    ///
    /// # Errors
    /// [`ChannelError`].
    pub fn open_or_create(path: &Path, packets: u64) -> Result<Fifo, ChannelError> {
        let make = || rustix::fs::mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0);
        match fault::point("mknod").and_then(|()| make()) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(system("make a named pipe", error)),
        }
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let foreign = || ChannelError::Foreign { path: path.to_owned() };
        let open = || fault::point("open").and_then(|()| rustix::fs::open(path, flags, Mode::empty()));
        let file = match rustix::io::retry_on_intr(open) {
            Ok(file) => file,
            Err(Errno::LOOP | Errno::ISDIR | Errno::NXIO) => return Err(foreign()),
            Err(error) => return Err(system("open a named pipe", error)),
        };
        let status = rustix::fs::fstat(&file).map_err(|error| system("look at a named pipe", error))?;
        let is_ours = status.st_uid == rustix::process::geteuid().as_raw();
        if FileType::from_raw_mode(status.st_mode) != FileType::Fifo || !is_ours {
            return Err(foreign());
        }
        rustix::fs::fcntl_setfl(&file, OFlags::RDWR | OFlags::NONBLOCK | OFlags::DIRECT)
            .map_err(|error| system("let a pipe keep packets apart", error))?;
        reserve(&file, packets)?;
        Ok(Fifo { file })
    }

    /// Sends `packet`; answers whether there was room.
    ///
    /// # Errors
    /// If Linux refuses otherwise.
    pub fn send(&self, packet: &[u8]) -> io::Result<bool> {
        assert!(packet.len() <= PACKET_MAX, "a longer one would be torn");
        loop {
            match rustix::io::write(&self.file, packet) {
                Ok(_) => return Ok(true),
                Err(Errno::AGAIN) => return Ok(false),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Takes the oldest packet, and answers with its length; `None` if there is none.
    ///
    /// # Errors
    /// If Linux refuses otherwise.
    pub fn receive(&self, packet: &mut [u8; PACKET_MAX]) -> io::Result<Option<usize>> {
        loop {
            match rustix::io::read(&self.file, &mut packet[..]) {
                Ok(length) => return Ok(Some(length)),
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// A packet takes a page.
fn reserve(file: &OwnedFd, packets: u64) -> Result<(), ChannelError> {
    let page = rustix::param::page_size() as u64;
    let needed = packets.checked_mul(page).and_then(u64::checked_next_power_of_two).unwrap_or(u64::MAX);
    let limit = |granted, unit, setting| ChannelError::Limit { needed, granted, unit, setting };
    let has = rustix::pipe::fcntl_getpipe_size(file).map_err(|error| system("ask for the size of a pipe", error))?;
    if has as u64 >= needed {
        return Ok(());
    }
    // The most that Linux makes, even for the superuser.
    let Some(size) = usize::try_from(needed).ok().filter(|_| needed <= 1 << 30) else {
        return Err(limit(1 << 30, "bytes of a pipe", ""));
    };
    let max = setting("/proc/sys/fs/pipe-max-size");
    match rustix::pipe::fcntl_setpipe_size(file, size) {
        Ok(_) => Ok(()),
        Err(Errno::PERM) if needed > max => Err(limit(max, "bytes of a pipe", "fs.pipe-max-size")),
        Err(Errno::PERM) => {
            let granted = setting("/proc/sys/fs/pipe-user-pages-soft").saturating_mul(page);
            Err(limit(granted, "bytes more than all pipes of this user have", "fs.pipe-user-pages-soft"))
        }
        Err(error) => Err(system("enlarge a pipe", error)),
    }
}

/// Takes the name of a pipe away; whatever else has it keeps it.
pub fn unlink(path: &Path) {
    let named = rustix::fs::statat(CWD, path, rustix::fs::AtFlags::SYMLINK_NOFOLLOW);
    if named.is_ok_and(|status| FileType::from_raw_mode(status.st_mode) == FileType::Fifo) {
        // If it cannot be removed, it is no worse than before.
        let _ = rustix::fs::unlink(path);
    }
}
