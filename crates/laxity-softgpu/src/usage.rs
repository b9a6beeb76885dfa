//! How much of a soft GPU is used, for those that only look.

use std::io;
use std::os::fd::AsFd;

use laxity_model::Nanos;
use laxity_sys::clock;
use laxity_sys::packets::{self, Packets, Received};

use crate::config::Config;
use crate::message::{PACKET_MAX, Reply, Request};
use crate::server;

/// A server that is there answers in far less.
const PATIENCE: Nanos = Nanos::from_secs(1);

/// What a soft GPU is like, and how much of it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// What it is like.
    pub config: Config,
    /// Bytes of device memory that processes have, in whole pages.
    pub used: u64,
    /// Bytes of this machine's memory that the soft GPU takes for that, as Linux counts them. Less while memory is being
    /// allocated, more while it is being given back.
    pub reserved: u64,
    /// Processes, or devices in them, that have it open.
    pub processes: u64,
}

impl Usage {
    /// As numbers, for another process.
    pub(crate) fn to_words(self) -> [u64; 7] {
        let [a, b, c, d] = self.config.to_words();
        [a, b, c, d, self.used, self.reserved, self.processes]
    }
}

/// The names of the soft GPUs that this user's processes have now, ascending.
///
/// # Errors
/// If there is no `/proc`.
pub fn names() -> io::Result<Vec<String>> {
    packets::names(&server::address_prefix())
}

/// How much of the soft GPU `name` is used; `None` if there is none now, or its server speaks another language. Nobody
/// need open it for that, and it does not stay longer.
///
/// # Errors
/// What Linux says, but for that nobody has the name; [`io::ErrorKind::TimedOut`] if its server is stopped.
pub fn look(name: &str) -> io::Result<Option<Usage>> {
    let packets = match Packets::connect(&server::address(name)) {
        Ok(packets) => packets,
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut packet = [0; PACKET_MAX];
    if packets.send(&Request::Look.encode()).is_err() {
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
