//! How much of a soft GPU is used, for processes that only look.

use std::io;
use std::os::fd::AsFd;

use laxity_model::Nanos;
use laxity_sys::clock;
use laxity_sys::packets::{self, Packets, Received};
use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::message::{Message, PACKET_MAX, Reply, Request, VERSION};
use crate::server;

/// A server answers in far less, unless it is stopped.
const PATIENCE: Nanos = Nanos::from_secs(1);

/// What a soft GPU is like, and how much of it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Its configuration.
    pub config: Config,
    /// Bytes of device memory that processes have, in whole pages.
    pub used: u64,
    /// Bytes of this machine's memory that the soft GPU takes for that, as Linux counts them. Less while memory is
    /// being allocated, more while it is being given back.
    pub reserved: u64,
    /// Streams that processes have.
    pub streams: u64,
    /// Processes, or devices in them, that have it open.
    pub processes: u64,
}

/// The names of the soft GPUs of this user's processes, ascending.
///
/// # Errors
/// If there is no `/proc`.
pub fn names() -> io::Result<Vec<String>> {
    packets::names(&server::address_prefix())
}

/// How much of the soft GPU `name` is used; `None` if there is none now, or its server has another version of the
/// protocol. Looking does not open it, and does not prolong its server's stay.
///
/// # Errors
/// [`io::ErrorKind::TimedOut`] if its server is stopped, [`io::ErrorKind::PermissionDenied`] if a process of another
/// user has the name, else Linux's.
pub fn look(name: &str) -> io::Result<Option<Usage>> {
    let packets = match Packets::connect(&server::address(name)) {
        Ok(packets) => packets,
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut packet = [0; PACKET_MAX];
    if packets.send(&Request::Look(VERSION).encode()).is_err() {
        return Ok(None);
    }
    let deadline = clock::now().saturating_add(PATIENCE);
    let length = loop {
        match packets.try_receive(&mut packet) {
            Received::Packet(length) => break length,
            Received::End => return Ok(None),
            Received::Nothing if clock::now() < deadline => packets::wait(&[packets.as_fd()], &[], deadline),
            Received::Nothing => return Err(io::ErrorKind::TimedOut.into()),
        }
    };
    match Reply::decode(&packet[..length]) {
        Some(Reply::Seen(usage)) => Ok(Some(usage)),
        _ => Ok(None),
    }
}
