//! TCP on this machine: sockets whose buffers hold what was agreed on, so that the sender does not wait for the receiver.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use laxity_model::Nanos;
use rustix::net::sockopt;

use super::{ChannelError, system};
use crate::fault;

/// How long Linux may take to connect two sockets of one machine: the least that it is given, as it does so at once
/// unless many others connect, and the most.
const CONNECTING: [Duration; 2] = [Duration::from_millis(1), Duration::from_secs(1)];

/// A socket that others connect to.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
}

/// A connection.
#[derive(Debug)]
pub struct Stream {
    socket: TcpStream,
}

/// What there was to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// That many bytes.
    Bytes(usize),
    /// Nothing yet.
    Nothing,
    /// The other end is closed, or the connection failed: nothing more comes.
    End,
}

/// Whether a socket may hold `bytes` that were not received yet.
///
/// # Errors
/// [`ChannelError::Limit`] if not; [`ChannelError::System`].
pub fn check_buffer(address: SocketAddr, bytes: u64) -> Result<(), ChannelError> {
    let family = if address.is_ipv4() { rustix::net::AddressFamily::INET } else { rustix::net::AddressFamily::INET6 };
    let socket = rustix::net::socket(family, rustix::net::SocketType::STREAM, None);
    let socket = socket.map_err(|error| system("make a TCP socket", error))?;
    let granted = enlarge(socket.as_fd(), bytes).map_err(|error| system("enlarge the buffer of a socket", error))?;
    if granted < bytes {
        return Err(ChannelError::Limit {
            needed: bytes,
            granted,
            unit: "bytes of a socket's buffer",
            setting: "net.core.wmem_max",
        });
    }
    Ok(())
}

/// Asks for a buffer for `bytes` to be sent, and answers with what it holds.
fn enlarge(socket: BorrowedFd<'_>, bytes: u64) -> io::Result<u64> {
    // Linux takes half of the integers, as it doubles them: the other half is what its own structures take.
    let ask = bytes.min(i32::MAX as u64 / 2) as usize;
    if (sockopt::socket_send_buffer_size(socket)? as u64) / 2 < bytes {
        sockopt::set_socket_send_buffer_size(socket, ask)?;
    }
    Ok(sockopt::socket_send_buffer_size(socket)? as u64 / 2)
}

impl Listener {
    /// Listens at `address`; if its port is 0 Linux chooses one.
    ///
    /// # Errors
    /// If another program has the port, or the address is not one of this machine.
    pub fn bind(address: SocketAddr) -> io::Result<Listener> {
        let socket = TcpListener::bind(address)?;
        socket.set_nonblocking(true)?;
        Ok(Listener { socket })
    }

    /// The port.
    ///
    /// # Errors
    /// If Linux does not say.
    pub fn port(&self) -> io::Result<u16> {
        Ok(self.socket.local_addr()?.port())
    }

    /// The next connection that was made; `None` if there is none now.
    ///
    /// # Errors
    /// If there can be no more descriptors. The listener stays readable: a caller that waits for it would not sleep.
    pub fn accept(&self) -> io::Result<Option<Stream>> {
        loop {
            let accepted = fault::point("accept").map_err(io::Error::from).and_then(|()| self.socket.accept());
            match accepted {
                Ok((socket, _)) if socket.set_nonblocking(true).is_ok() => return Ok(Some(Stream { socket })),
                // A connection that was gone before it was accepted.
                Ok(_) => {}
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted | ErrorKind::ConnectionAborted => {}
                    ErrorKind::WouldBlock => return Ok(None),
                    _ => return Err(error),
                },
            }
        }
    }
}

impl Stream {
    /// Connects to `address`, with a buffer for `bytes`, `within` a time; a millisecond at least, a second at most.
    ///
    /// # Errors
    /// [`ErrorKind::ConnectionRefused`] if no socket listens, [`ErrorKind::TimedOut`].
    pub fn connect(address: SocketAddr, bytes: u64, within: Nanos) -> io::Result<Stream> {
        let [least, most] = CONNECTING;
        let within = Duration::from_nanos(within.0).clamp(least, most);
        let socket = TcpStream::connect_timeout(&to_itself(address), within)?;
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        enlarge(socket.as_fd(), bytes)?;
        Ok(Stream { socket })
    }

    /// Sends all of `parts`, one after the other; answers whether there was room. If not, the stream is of no use any
    /// more, as some may be on the way.
    ///
    /// # Errors
    /// If the connection failed.
    pub fn send(&mut self, parts: &[&[u8]]) -> io::Result<bool> {
        for part in parts {
            match self.socket.write_all(part) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Takes what came.
    pub fn receive(&mut self, buffer: &mut [u8]) -> Received {
        loop {
            match self.socket.read(buffer) {
                Ok(0) => return Received::End,
                Ok(length) => return Received::Bytes(length),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Received::Nothing,
                Err(_) => return Received::End,
            }
        }
    }
}

/// A socket that listens at every address of a machine listens at the loopback address, too.
fn to_itself(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
