//! Connections between processes of this machine that keep the boundaries of what is sent: `SOCK_SEQPACKET` of unix(7),
//! with abstract names.
//!
//! A name has no file: nothing is left of it when its process has ended, in whatever way. When a process ends, its peer
//! sees the end of the connection after *all* threads of the process have carried out their last instruction, as only
//! then Linux closes its descriptors. Names are known within a network namespace.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use laxity_model::Instant;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, Shutdown, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, listen, recv, recvmsg,
    send, sendmsg, shutdown, socket_with, socketpair, sockopt,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::fork::{Unshared, unshare};
use crate::{clock, fault};

/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;
/// Descriptors that a packet may bring.
pub const DESCRIPTORS_MAX: usize = 4;

/// What others connect to.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
}

/// One end of a connection. Threads may share it: packets are not mixed.
#[derive(Debug)]
pub struct Packets {
    /// Before the socket, as it knows the socket's number.
    _unshared: Option<Unshared>,
    socket: OwnedFd,
}

/// What there was to receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// A packet of that many bytes.
    Packet(usize),
    /// Nothing yet.
    Nothing,
    /// The other end is gone: nothing more comes.
    End,
}

fn socket() -> io::Result<OwnedFd> {
    fault::point("socket")?;
    Ok(socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

fn address(name: &str) -> io::Result<SocketAddrUnix> {
    Ok(SocketAddrUnix::new_abstract_name(name.as_bytes())?)
}

impl Listener {
    /// Listens by `name`, of at most 107 bytes.
    ///
    /// # Errors
    /// [`io::ErrorKind::AddrInUse`] if another does.
    pub fn bind(name: &str) -> io::Result<Listener> {
        let socket = socket()?;
        fault::point("bind")?;
        bind(&socket, &address(name)?)?;
        fault::point("listen")?;
        listen(&socket, BACKLOG)?;
        rustix::io::ioctl_fionbio(&socket, true)?;
        Ok(Listener { socket })
    }

    /// The next connection that was made by a process of this user; `None` if there is none now.
    ///
    /// # Errors
    /// If there can be no more descriptors. Until there can, [`wait`] would return at once for it.
    pub fn accept(&self) -> io::Result<Option<Packets>> {
        loop {
            match fault::point("accept").and_then(|()| accept_with(&self.socket, SocketFlags::CLOEXEC)) {
                Ok(socket) => {
                    if sockopt::socket_peercred(&socket).is_ok_and(|peer| peer.uid.as_raw() == user()) {
                        return Ok(Some(Packets::from(socket)));
                    }
                }
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(Errno::AGAIN) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Packets {
    /// Both ends of a connection, one of which is for another process.
    ///
    /// # Errors
    /// If there can be no more descriptors.
    pub fn pair() -> io::Result<(Packets, Packets)> {
        fault::point("socketpair")?;
        let (one, other) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        Ok((Packets::from(one), Packets::from(other)))
    }

    /// Connects to the process of this user that listens by `name`.
    ///
    /// # Errors
    /// [`io::ErrorKind::ConnectionRefused`] if none listens, [`io::ErrorKind::PermissionDenied`] if one of another user
    /// does: any process may take any name.
    pub fn connect(name: &str) -> io::Result<Packets> {
        let socket = socket()?;
        let address = address(name)?;
        loop {
            match fault::point("connect").and_then(|()| connect(&socket, &address)) {
                Ok(()) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let listener = sockopt::socket_peercred(&socket)?.uid.as_raw();
        if listener != user() {
            let text =
                format!("{name} is the name of a process of user {listener}, and this one is of user {}", user());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
        Ok(Packets::from(socket))
    }

    /// The same connection, which a child made by `fork` from now on has no part in: its calls fail.
    #[must_use]
    pub fn kept_from_children(self) -> Packets {
        Packets { _unshared: Some(unshare(self.socket.as_fd())), socket: self.socket }
    }

    /// Sends `packet`, which is not empty, and waits for room if there is none.
    ///
    /// # Errors
    /// If the other end is gone.
    pub fn send(&self, packet: &[u8]) -> io::Result<()> {
        self.send_by(packet, SendFlags::NOSIGNAL).map(drop)
    }

    /// Sends `packet`, which is not empty, if there is room; answers whether there was.
    ///
    /// # Errors
    /// If the other end is gone.
    pub fn try_send(&self, packet: &[u8]) -> io::Result<bool> {
        self.send_by(packet, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)
    }

    fn send_by(&self, packet: &[u8], flags: SendFlags) -> io::Result<bool> {
        assert!(!packet.is_empty(), "an empty packet looks like the end");
        loop {
            match fault::point("sendto").and_then(|()| send(&self.socket, packet, flags)) {
                Ok(_) => return Ok(true),
                Err(Errno::AGAIN) => return Ok(false),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Sends `packet` and copies of `descriptors`, at most [`DESCRIPTORS_MAX`], without waiting.
    ///
    /// # Errors
    /// If there is no room, or the other end is gone.
    pub fn send_with(&self, packet: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let has_room = control.push(SendAncillaryMessage::ScmRights(descriptors));
        assert!(has_room, "{} descriptors, of at most {DESCRIPTORS_MAX}", descriptors.len());
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        loop {
            let mut send = || sendmsg(&self.socket, &[IoSlice::new(packet)], &mut control, flags);
            match fault::point("sendmsg").and_then(|()| send()) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits for a packet and the descriptors that came with it. Bytes that do not fit into `packet` are cut off.
    pub fn receive_with(&self, packet: &mut [u8]) -> (Received, Vec<OwnedFd>) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        loop {
            let mut slices = [IoSliceMut::new(&mut *packet)];
            let mut receive = || recvmsg(&self.socket, &mut slices, &mut control, RecvFlags::CMSG_CLOEXEC);
            match fault::point("recvmsg").and_then(|()| receive()) {
                Ok(message) if message.bytes > 0 => {
                    let descriptors = control.drain().filter_map(|message| match message {
                        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
                        _ => None,
                    });
                    return (Received::Packet(message.bytes), descriptors.flatten().collect());
                }
                Err(Errno::INTR) => {}
                _ => return (Received::End, Vec::new()),
            }
        }
    }

    /// Waits for a packet. Bytes that do not fit into `packet` are cut off.
    pub fn receive(&self, packet: &mut [u8]) -> Received {
        self.receive_by(packet, RecvFlags::empty())
    }

    /// Takes a packet if there is one. Bytes that do not fit into `packet` are cut off.
    pub fn try_receive(&self, packet: &mut [u8]) -> Received {
        self.receive_by(packet, RecvFlags::DONTWAIT)
    }

    fn receive_by(&self, packet: &mut [u8], flags: RecvFlags) -> Received {
        loop {
            match fault::point("recvfrom").and_then(|()| recv(&self.socket, &mut *packet, flags)) {
                Ok((_, length)) if length > 0 => return Received::Packet(length.min(packet.len())),
                Err(Errno::AGAIN) => return Received::Nothing,
                Err(Errno::INTR) => {}
                _ => return Received::End,
            }
        }
    }

    /// The process that has the other end, or had when the connection was made; of a listener, the one that listened.
    ///
    /// # Errors
    /// None are known.
    pub fn peer(&self) -> io::Result<u32> {
        Ok(sockopt::socket_peercred(&self.socket)?.pid.as_raw_nonzero().get().unsigned_abs())
    }

    /// Ends the connection, for all threads that share it.
    pub fn end(&self) {
        // If it has ended, that is as it should be.
        let _ = shutdown(&self.socket, Shutdown::Both);
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Of an end that came with a packet.
impl From<OwnedFd> for Packets {
    fn from(socket: OwnedFd) -> Packets {
        Packets { _unshared: None, socket }
    }
}

impl AsFd for Packets {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// What this network namespace's listeners are called whose names begin with `prefix`, without it; ascending.
///
/// # Errors
/// If there is no `/proc`.
pub fn names(prefix: &str) -> io::Result<Vec<String>> {
    let sockets = std::fs::read("/proc/net/unix")?;
    let mut names: Vec<String> = String::from_utf8_lossy(&sockets)
        .lines()
        .filter_map(|line| listener_in(line)?.strip_prefix(prefix))
        .map(str::to_owned)
        .collect();
    names.sort_unstable();
    Ok(names)
}

/// The abstract name in a line of `/proc/net/unix`, if it is that of a listener.
fn listener_in(line: &str) -> Option<&str> {
    /// `__SO_ACCEPTCON` of Linux.
    const LISTENS: u64 = 0x10000;
    // Number, references, protocol, flags, type, state, inode; the name may have spaces.
    let mut fields = line.splitn(8, ' ').map(str::trim_start);
    let flags = u64::from_str_radix(fields.nth(3)?, 16).ok()?;
    let name = line.split_once(" @")?.1;
    (flags & LISTENS != 0).then_some(name)
}

/// Lets this process have as many descriptors as it may at all. Linux grants few at first, as select(2) knows 1,024.
pub fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    // If not, there are as many as there were.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// The number of this user, whose processes are those that a [`Listener`] accepts.
pub fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Suspends until one of `readable` can be received from, or one of `writable` be sent to, or one of them has ended, or
/// until `deadline` (of the clock of [`now`](crate::clock::now)). May end early: callers look again.
pub fn wait(readable: &[BorrowedFd<'_>], writable: &[BorrowedFd<'_>], deadline: Instant) {
    let reads = readable.iter().map(|descriptor| PollFd::from_borrowed_fd(*descriptor, PollFlags::IN));
    let writes = writable.iter().map(|descriptor| PollFd::from_borrowed_fd(*descriptor, PollFlags::OUT));
    let mut descriptors: Vec<PollFd> = reads.chain(writes).collect();
    let left = deadline.saturating_since(clock::now());
    let timeout =
        rustix::time::Timespec { tv_sec: (left.0 / 1_000_000_000) as i64, tv_nsec: (left.0 % 1_000_000_000) as i64 };
    // A signal is a reason to look again, and a lack of memory one to try again.
    let _ = poll(&mut descriptors, (deadline != Instant::NEVER).then_some(&timeout));
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Seek, Write};

    use super::*;

    fn pair(name: &str) -> (Packets, Packets) {
        let name = format!("laxity-test-{}-{name}", std::process::id());
        let listener = Listener::bind(&name).expect("the name is free");
        assert_eq!(Listener::bind(&name).expect_err("one of a name").kind(), io::ErrorKind::AddrInUse);
        let ours = Packets::connect(&name).expect("it listens");
        (ours, listener.accept().expect("descriptors are left").expect("it was made"))
    }

    #[test]
    fn names_are_those_of_sockets_that_listen() {
        let prefix = format!("laxity-test-{}-names/", std::process::id());
        let listeners =
            ["two words", "a"].map(|name| Listener::bind(&format!("{prefix}{name}")).expect("the name is free"));
        // The accepted end has the name, too, and does not listen.
        let _connected = (Packets::connect(&format!("{prefix}a")).expect("it listens"), listeners[1].accept());
        assert_eq!(names(&prefix).expect("there is /proc"), ["a", "two words"]);
        drop(listeners);
        assert_eq!(names(&prefix).expect("there is /proc"), [""; 0]);
    }

    #[test]
    fn packets_keep_their_boundaries_and_the_end_follows_the_last() {
        let (a, b) = pair("boundaries");
        a.send(b"one").expect("b is there");
        a.send(b"three").expect("b is there");
        drop(a);
        let mut packet = [0; 16];
        assert_eq!(b.peer().expect("Linux knows"), std::process::id());
        assert_eq!(b.try_receive(&mut packet), Received::Packet(3));
        assert_eq!(b.receive(&mut packet), Received::Packet(5));
        assert_eq!(&packet[..5], b"three");
        assert_eq!(b.receive(&mut packet), Received::End);
        assert!(b.send(b"x").is_err());
    }

    #[test]
    fn a_send_that_may_not_wait_says_that_there_is_no_room() {
        let (a, b) = pair("room");
        let mut sent = 0;
        while a.try_send(&[7; 64]).expect("b is there") {
            sent += 1;
        }
        assert!(sent > 0);
        let mut packet = [0; 64];
        for _ in 0..sent {
            assert_eq!(b.try_receive(&mut packet), Received::Packet(64));
        }
        assert_eq!(b.try_receive(&mut packet), Received::Nothing);
    }

    #[test]
    fn descriptors_travel_with_a_packet() {
        let (a, b) = pair("descriptor");
        let mut file = File::from(rustix::fs::memfd_create("test", rustix::fs::MemfdFlags::CLOEXEC).expect("memory"));
        file.write_all(b"device").expect("memory");
        let (ours, theirs) = Packets::pair().expect("descriptors are left");
        a.send_with(b"here", &[file.as_fd(), theirs.as_fd()]).expect("b is there");
        drop(theirs);
        let mut packet = [0; 16];
        let (received, descriptors) = b.receive_with(&mut packet);
        assert_eq!(received, Received::Packet(4));
        let [same, theirs] = descriptors.try_into().expect("two were sent");
        let mut same = File::from(same);
        same.rewind().expect("a file");
        let mut text = String::new();
        same.read_to_string(&mut text).expect("a file");
        assert_eq!(text, "device");
        ours.send(b"ring").expect("b has it");
        let theirs = Packets::from(theirs);
        assert_eq!(theirs.receive(&mut packet), Received::Packet(4));
        drop(ours);
        assert_eq!(theirs.receive(&mut packet), Received::End);
    }

    #[test]
    fn a_connection_to_a_name_without_a_listener_is_refused() {
        let name = format!("laxity-test-{}-unused", std::process::id());
        assert_eq!(Packets::connect(&name).expect_err("it has no listener").kind(), io::ErrorKind::ConnectionRefused);
    }
}
