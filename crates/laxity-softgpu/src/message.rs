//! What processes and the server of a soft GPU say to each other: one message a packet, in postcard's encoding.
//!
//! ```text
//! process --> server                                      server --> process
//! Hello(version)                                          Welcome(config), with the device memory and the connections
//!                                                                          on which engine threads hear Begin
//! Stream(name)   Release(stream)   Name(stream)           Stream(number)        Name(name) Allocate(bytes)
//! Free(offset)           Allocated(offset)     NoMemory(largest)     Shortage(left) Issue(operation)
//! Begin(operation), to its engine's thread: execute it, then say Worked(operation)
//! Complete(operation): the interrupt History(from)                                           History(first, entries)
//! Look(version), also instead of Hello                    Seen(usage)
//! ```

use laxity_model::{Engine, Nanos};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::config::{Config, NAME_MAX};
use crate::server::history::Entry;
use crate::usage::Usage;

/// The version of the protocol. The server turns away processes that have another one.
pub(crate) const VERSION: u32 = 5;
/// The longest packet in bytes.
pub(crate) const PACKET_MAX: usize = 4096;
/// The most entries of a history in one packet.
pub(crate) const ENTRIES_MAX: usize = (PACKET_MAX - 16) / ENTRY_MAX;
/// The most bytes of an encoded entry, in the order of its fields.
const ENTRY_MAX: usize = 10 + 1 + 2 + 3 + 5 + 5 + 6;

/// An operation, as it is issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Issue {
    /// The number that its process gave it.
    pub operation: u64,
    /// The stream whose order it keeps.
    pub stream: u32,
    /// The job of the stream's owner, if the owner said which.
    pub job: Option<u32>,
    /// The engine that executes it.
    pub engine: Engine,
    /// How long the engine is busy with it at least.
    pub duration: Nanos,
    /// Whether its process carries out work while the engine is busy.
    pub has_work: bool,
}

/// What a process says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Request {
    Hello(u32),
    Look(u32),
    Stream(String),
    Release(u32),
    Name(u32),
    Allocate(u64),
    Free(u64),
    Issue(Issue),
    Worked(u64),
    History(u64),
}

/// What the server says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Reply {
    Welcome(Config),
    Seen(Usage),
    Stream(u32),
    Name(String),
    Allocated(u64),
    NoMemory(u64),
    Shortage(u64),
    Begin(u64),
    Complete(u64),
    History { first: u64, entries: Vec<Entry> },
}

/// A message of either direction.
pub(crate) trait Message: Serialize + DeserializeOwned {
    /// Whether a correct peer can have sent it.
    fn is_valid(&self) -> bool;

    fn encode(&self) -> Vec<u8> {
        let bytes = postcard::to_allocvec(self).expect("memory suffices for a packet");
        assert!(bytes.len() <= PACKET_MAX, "a longer packet would be cut off");
        bytes
    }

    /// `None` if `bytes` are not one valid message and nothing else.
    fn decode(bytes: &[u8]) -> Option<Self> {
        let (message, []) = postcard::take_from_bytes::<Self>(bytes).ok()? else { return None };
        message.is_valid().then_some(message)
    }
}

impl Message for Request {
    fn is_valid(&self) -> bool {
        match self {
            Request::Hello(version) | Request::Look(version) => *version == VERSION,
            Request::Stream(name) => name.len() <= NAME_MAX,
            Request::Issue(issue) => Engine::ALL.contains(&issue.engine),
            _ => true,
        }
    }
}

impl Message for Reply {
    fn is_valid(&self) -> bool {
        match self {
            Reply::Welcome(config) | Reply::Seen(Usage { config, .. }) => config.check().is_ok(),
            Reply::Name(name) => name.len() <= NAME_MAX,
            Reply::History { entries, .. } => entries.iter().all(|entry| Engine::ALL.contains(&entry.engine)),
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use laxity_model::Instant;
    use proptest::prelude::*;

    use super::*;
    use crate::server::history::What;

    fn issue() -> impl Strategy<Value = Issue> {
        let fields = (any::<u64>(), any::<u32>(), any::<Option<u32>>(), 0usize..3, any::<u64>(), any::<bool>());
        fields.prop_map(|(operation, stream, job, engine, duration, has_work)| Issue {
            operation,
            stream,
            job,
            engine: Engine::ALL[engine],
            duration: Nanos(duration),
            has_work,
        })
    }

    fn request() -> impl Strategy<Value = Request> {
        prop_oneof![
            Just(Request::Hello(VERSION)),
            "[a-zé]{0,30}".prop_map(Request::Stream),
            any::<u64>().prop_map(Request::Allocate),
            issue().prop_map(Request::Issue),
        ]
    }

    proptest! {
        #[test]
        fn a_decoded_request_is_the_one_that_was_encoded(request in request()) {
            prop_assert_eq!(Request::decode(&request.encode()), Some(request));
        }

        /// `PROPTEST_CASES` makes it longer.
        #[test]
        fn arbitrary_bytes_are_refused_or_a_message_that_can_be_sent(
            kind in 0u8..11, bytes in prop::collection::vec(any::<u8>(), 0..200)
        ) {
            let bytes = [vec![kind], bytes].concat();
            if let Some(request) = Request::decode(&bytes) {
                prop_assert_eq!(Request::decode(&request.encode()), Some(request));
            }
            if let Some(reply) = Reply::decode(&bytes) {
                prop_assert_eq!(Reply::decode(&reply.encode()), Some(reply));
            }
        }

        #[test]
        fn bytes_after_a_message_and_missing_bytes_are_refused(request in request()) {
            let mut bytes = request.encode();
            prop_assert_eq!(Request::decode(&bytes[..bytes.len() - 1]), None);
            bytes.push(0);
            prop_assert_eq!(Request::decode(&bytes), None);
        }
    }

    #[test]
    fn other_versions_long_names_and_engines_that_no_gpu_has_are_refused() {
        let copy = |engine| {
            let (operation, stream, job, duration) = (0, 0, None, Nanos::ZERO);
            Request::Issue(Issue { operation, stream, job, engine: Engine::Copy(engine), duration, has_work: false })
        };
        for refused in [Request::Hello(VERSION + 1), Request::Stream("x".repeat(NAME_MAX + 1)), copy(2)] {
            assert_eq!(Request::decode(&refused.encode()), None, "{refused:?}");
        }
        for accepted in [Request::Hello(VERSION), Request::Stream("x".repeat(NAME_MAX)), copy(1)] {
            assert_eq!(Request::decode(&accepted.encode()).as_ref(), Some(&accepted));
        }
    }

    #[test]
    fn the_longest_history_fits_into_a_packet() {
        let entry = Entry {
            at: Instant(u64::MAX),
            what: What::Interrupted,
            engine: Engine::Copy(1),
            cpu: u16::MAX,
            stream: u32::MAX,
            index: u32::MAX,
            job: Some(u32::MAX),
        };
        let longest = Reply::History { first: u64::MAX, entries: vec![entry; ENTRIES_MAX] };
        assert_eq!(Reply::decode(&longest.encode()), Some(longest));
    }
}
