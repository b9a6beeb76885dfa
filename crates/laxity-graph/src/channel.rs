//! Kinds of channels and their names.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::str::FromStr;

use crate::spec::Channel;

/// What kind of channel an edge is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChannelKind {
    /// [`Channel::Counter`].
    Counter,
    /// [`Channel::Ring`].
    Ring,
    /// [`Channel::Fifo`].
    Fifo,
    /// [`Channel::Queue`].
    Queue,
    /// [`Channel::Stream`].
    Stream,
}

/// There is no such kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no kind of channel is called {name:?}; use counter, ring, fifo, mq or tcp")]
pub struct UnknownChannel {
    /// What was asked for.
    pub name: String,
}

impl ChannelKind {
    /// All kinds.
    pub const ALL: &[ChannelKind] =
        &[ChannelKind::Counter, ChannelKind::Ring, ChannelKind::Fifo, ChannelKind::Queue, ChannelKind::Stream];

    /// Its name, as [`str::parse`] reads it. That also takes `fast-fifo` and `fast-mq`, as PGM^RT calls what all pipes
    /// and queues are here: data in the channel, availability in tokens (paper 003, section 5.2).
    pub fn name(self) -> &'static str {
        match self {
            ChannelKind::Counter => "counter",
            ChannelKind::Ring => "ring",
            ChannelKind::Fifo => "fifo",
            ChannelKind::Queue => "mq",
            ChannelKind::Stream => "tcp",
        }
    }

    /// A channel of this kind for `capacity` messages of at most `message` bytes, at [`Channel::LOOPBACK`].
    pub fn channel(self, message: u32, capacity: u32) -> Channel {
        match self {
            ChannelKind::Counter => Channel::Counter,
            ChannelKind::Ring => Channel::Ring { message, capacity },
            ChannelKind::Fifo => Channel::Fifo { message, capacity },
            ChannelKind::Queue => Channel::Queue { message, capacity },
            ChannelKind::Stream => Channel::Stream { message, capacity, address: Channel::LOOPBACK },
        }
    }
}

impl Channel {
    /// This machine, to itself, at a port that Linux chooses.
    pub const LOOPBACK: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0));

    /// Its kind.
    pub fn kind(&self) -> ChannelKind {
        match self {
            Channel::Counter => ChannelKind::Counter,
            Channel::Ring { .. } => ChannelKind::Ring,
            Channel::Fifo { .. } => ChannelKind::Fifo,
            Channel::Queue { .. } => ChannelKind::Queue,
            Channel::Stream { .. } => ChannelKind::Stream,
        }
    }

    /// The name of its kind.
    pub fn name(&self) -> &'static str {
        self.kind().name()
    }

    /// The longest message, in bytes, if it carries messages.
    pub fn message(&self) -> Option<u32> {
        self.sizes().map(|(message, _)| message)
    }

    /// How many messages fit, if it carries messages.
    pub fn capacity(&self) -> Option<u32> {
        self.sizes().map(|(_, capacity)| capacity)
    }

    fn sizes(&self) -> Option<(u32, u32)> {
        match *self {
            Channel::Counter => None,
            Channel::Ring { message, capacity }
            | Channel::Fifo { message, capacity }
            | Channel::Queue { message, capacity }
            | Channel::Stream { message, capacity, .. } => Some((message, capacity)),
        }
    }

    /// Whether its messages go through a channel of Linux.
    pub(crate) fn is_link(&self) -> bool {
        !matches!(self.kind(), ChannelKind::Counter | ChannelKind::Ring)
    }
}

impl FromStr for ChannelKind {
    type Err = UnknownChannel;

    fn from_str(name: &str) -> Result<Self, UnknownChannel> {
        match name {
            "fast-fifo" => return Ok(ChannelKind::Fifo),
            "fast-mq" => return Ok(ChannelKind::Queue),
            _ => {}
        }
        let known = ChannelKind::ALL.iter().copied().find(|kind| kind.name() == name);
        known.ok_or_else(|| UnknownChannel { name: name.to_owned() })
    }
}

impl fmt::Display for ChannelKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_read_as_they_are_written_and_as_the_original_calls_them() {
        for &kind in ChannelKind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
            assert_eq!(kind.channel(8, 2).kind(), kind);
        }
        assert_eq!("fast-fifo".parse(), Ok(ChannelKind::Fifo));
        assert_eq!("fast-mq".parse(), Ok(ChannelKind::Queue));
        let error = "fif".parse::<ChannelKind>().expect_err("there is none");
        assert!(
            error.to_string().starts_with("no kind of channel is called \"fif\"; use counter, ring, fifo, mq or tcp")
        );
    }
}
