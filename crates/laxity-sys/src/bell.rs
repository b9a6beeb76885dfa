//! A descriptor that becomes readable when a process, any that knows its name, rings it.
//!
//! A datagram socket with an abstract name (unix(7)): it has no file and vanishes with its process. Names are known
//! within a network namespace.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, bind, recv, sendto, socket_with,
};

use crate::fault;

/// A bell.
#[derive(Debug)]
pub struct Bell {
    socket: OwnedFd,
}

/// What rings bells.
#[derive(Debug)]
pub struct Ringer {
    socket: OwnedFd,
}

fn socket() -> io::Result<OwnedFd> {
    fault::point("socket")?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None)?)
}

impl Bell {
    /// Hangs up a bell called `name`, of at most 107 bytes.
    ///
    /// # Errors
    /// If there is one of this name, or this process has too many descriptors.
    pub fn new(name: &str) -> io::Result<Bell> {
        let socket = socket()?;
        fault::point("bind")?;
        bind(&socket, &SocketAddrUnix::new_abstract_name(name.as_bytes())?)?;
        Ok(Bell { socket })
    }

    /// Makes it unreadable, until it is rung again.
    pub fn silence(&self) {
        while let Ok(_) | Err(Errno::INTR) = recv(&self.socket, &mut [0; 8][..], RecvFlags::empty()) {}
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Ringer {
    /// With nothing rung.
    ///
    /// # Errors
    /// If this process has too many descriptors.
    pub fn new() -> io::Result<Ringer> {
        Ok(Ringer { socket: socket()? })
    }

    /// Rings the bell called `name`, if there is one.
    pub fn ring(&self, name: &str) {
        let Ok(address) = SocketAddrUnix::new_abstract_name(name.as_bytes()) else { return };
        // A bell that was rung too often to take more is readable already; one that is gone has no owner to wake.
        let send = || sendto(&self.socket, &[1], SendFlags::NOSIGNAL, &address);
        while fault::point("sendto").and_then(|()| send()) == Err(Errno::INTR) {}
    }
}

#[cfg(test)]
mod tests {
    use laxity_model::Instant;

    use super::*;
    use crate::channel::wait_readable;

    #[test]
    fn a_bell_is_readable_from_when_it_is_rung_until_it_is_silenced() {
        let name = format!("laxity-test-{}", std::process::id());
        let ringer = Ringer::new().expect("a descriptor");
        ringer.ring(&name);
        let bell = Bell::new(&name).expect("the name is free");
        assert!(Bell::new(&name).is_err(), "one of a name");
        let is_readable = || wait_readable(&[bell.as_fd()], Instant::ZERO);
        assert!(!is_readable());
        for _ in 0..1000 {
            ringer.ring(&name);
        }
        assert!(is_readable());
        bell.silence();
        assert!(!is_readable());
    }
}
