//! What processes and the server of a soft GPU say to each other: one packet each, of 64-bit words.
//!
//! ```text
//! process --> server                                      server --> process
//! Hello(config)                                           Welcome(config), with the device memory and what engines hear
//! Stream(name)            Name(stream)                    Stream(number)         Name(name)
//! Allocate(bytes)         Free(offset)                    Allocated(offset)      NoMemory(largest)  Shortage(left)
//! Issue(operation)                                        Begin(operation), to its engine: carry out its work, then say
//! Worked(operation)                                       Complete(operation): the interrupt
//! History(from)                                           History(first, entries)
//! Look, also instead of Hello                             Seen(usage)
//! ```

use laxity_model::{Engine, Nanos};

use crate::config::{Config, NAME_MAX};
use crate::server::history::{Entry, WORDS};
use crate::usage::Usage;

/// Of the language; processes with another one are turned away.
pub(crate) const VERSION: u64 = 4;
/// The longest packet in bytes.
pub(crate) const PACKET_MAX: usize = 4096;
/// Entries of a history in one packet.
pub(crate) const ENTRIES_MAX: usize = (PACKET_MAX / 8 - 2) / WORDS;

/// An operation, as it is issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Issue {
    /// What its process knows it by.
    pub operation: u64,
    /// Whose order it keeps.
    pub stream: u32,
    /// For which job of its owner, if that was said.
    pub job: Option<u32>,
    /// What runs it.
    pub engine: Engine,
    /// How long the engine is busy with it at least.
    pub duration: Nanos,
    /// Whether its process carries out work while the engine is busy.
    pub has_work: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    Hello(Config),
    Stream(String),
    Name(u32),
    Allocate(u64),
    Free(u64),
    Issue(Issue),
    Worked(u64),
    History(u64),
    Look,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Welcome(Config),
    Stream(u32),
    Name(String),
    Allocated(u64),
    NoMemory(u64),
    Shortage(u64),
    Begin(u64),
    Complete(u64),
    History { first: u64, entries: Vec<Entry> },
    Seen(Usage),
}

impl Request {
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Request::Hello(config) => packet(1, [VERSION].into_iter().chain(config.to_words())),
            Request::Stream(name) => named(2, name),
            Request::Name(stream) => packet(3, [u64::from(*stream)]),
            Request::Allocate(bytes) => packet(4, [*bytes]),
            Request::Free(offset) => packet(5, [*offset]),
            Request::Issue(Issue { operation, stream, job, engine, duration, has_work }) => {
                let job = job.map_or(0, |job| u64::from(job) + 1);
                let (stream, engine) = (u64::from(*stream), engine.index() as u64);
                packet(6, [*operation, stream, engine, duration.0, u64::from(*has_work), job])
            }
            Request::Worked(operation) => packet(7, [*operation]),
            Request::History(from) => packet(8, [*from]),
            Request::Look => packet(9, []),
        }
    }

    /// Nothing if it is not one.
    pub fn decode(bytes: &[u8]) -> Option<Request> {
        if let Some(name) = name_in(2, bytes) {
            return Some(Request::Stream(name));
        }
        Some(match *words(bytes)? {
            [1, VERSION, a, b, c, d] => Request::Hello(Config::from_words([a, b, c, d])?),
            [3, stream] => Request::Name(u32::try_from(stream).ok()?),
            [4, bytes] => Request::Allocate(bytes),
            [5, offset] => Request::Free(offset),
            [6, operation, stream, engine, duration, has_work @ 0..=1, job] => Request::Issue(Issue {
                operation,
                stream: u32::try_from(stream).ok()?,
                job: job.checked_sub(1).map(u32::try_from).transpose().ok()?,
                engine: *Engine::ALL.get(usize::try_from(engine).ok()?)?,
                duration: Nanos(duration),
                has_work: has_work == 1,
            }),
            [7, operation] => Request::Worked(operation),
            [8, from] => Request::History(from),
            [9] => Request::Look,
            _ => return None,
        })
    }
}

impl Reply {
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Reply::Welcome(config) => packet(1, config.to_words()),
            Reply::Stream(number) => packet(2, [u64::from(*number)]),
            Reply::Name(name) => named(3, name),
            Reply::Allocated(offset) => packet(4, [*offset]),
            Reply::NoMemory(largest) => packet(5, [*largest]),
            Reply::Shortage(left) => packet(9, [*left]),
            Reply::Begin(operation) => packet(6, [*operation]),
            Reply::Complete(operation) => packet(7, [*operation]),
            Reply::History { first, entries } => {
                packet(8, [*first].into_iter().chain(entries.iter().flat_map(|entry| entry.to_words())))
            }
            Reply::Seen(usage) => packet(10, usage.to_words()),
        }
    }

    /// Nothing if it is not one.
    pub fn decode(bytes: &[u8]) -> Option<Reply> {
        if let Some(name) = name_in(3, bytes) {
            return Some(Reply::Name(name));
        }
        let words = words(bytes)?;
        Some(match words[..] {
            [1, a, b, c, d] => Reply::Welcome(Config::from_words([a, b, c, d])?),
            [2, number] => Reply::Stream(u32::try_from(number).ok()?),
            [4, offset] => Reply::Allocated(offset),
            [5, largest] => Reply::NoMemory(largest),
            [9, left] => Reply::Shortage(left),
            [10, a, b, c, d, used, reserved, processes] => {
                Reply::Seen(Usage { config: Config::from_words([a, b, c, d])?, used, reserved, processes })
            }
            [6, operation] => Reply::Begin(operation),
            [7, operation] => Reply::Complete(operation),
            [8, first, ref rest @ ..] => {
                let (entries, []) = rest.as_chunks::<WORDS>() else { return None };
                Reply::History { first, entries: entries.iter().map(Entry::from_words).collect::<Option<_>>()? }
            }
            _ => return None,
        })
    }
}

fn packet(kind: u64, words: impl IntoIterator<Item = u64>) -> Vec<u8> {
    let bytes: Vec<u8> = [kind].into_iter().chain(words).flat_map(u64::to_ne_bytes).collect();
    assert!(bytes.len() <= PACKET_MAX, "what is longer is cut off");
    bytes
}

fn named(kind: u64, name: &str) -> Vec<u8> {
    assert!(name.len() <= NAME_MAX, "checked where it came from");
    let mut bytes = packet(kind, []);
    bytes.extend_from_slice(name.as_bytes());
    bytes
}

fn name_in(kind: u64, bytes: &[u8]) -> Option<String> {
    let (head, name) = bytes.split_first_chunk()?;
    let name = (u64::from_ne_bytes(*head) == kind && name.len() <= NAME_MAX).then_some(name)?;
    String::from_utf8(name.to_owned()).ok()
}

fn words(bytes: &[u8]) -> Option<Box<[u64]>> {
    let (words, []) = bytes.as_chunks::<8>() else { return None };
    Some(words.iter().map(|word| u64::from_ne_bytes(*word)).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn request() -> impl Strategy<Value = Request> {
        let config = (1u8..3, 1u64..1 << 40, prop::option::of(1u64..), any::<u64>());
        let config = config.prop_map(|(copy_engines, memory, copy_rate, linger)| Config {
            copy_engines,
            memory,
            copy_rate,
            linger: Nanos(linger),
        });
        let issue = (any::<u64>(), any::<u32>(), any::<Option<u32>>(), 0usize..3, any::<u64>(), any::<bool>());
        prop_oneof![
            config.prop_map(Request::Hello),
            "[a-zé]{0,30}".prop_map(Request::Stream),
            any::<u64>().prop_map(Request::Allocate),
            issue.prop_map(|(operation, stream, job, engine, duration, has_work)| Request::Issue(Issue {
                operation,
                stream,
                job,
                engine: Engine::ALL[engine],
                duration: Nanos(duration),
                has_work,
            })),
        ]
    }

    proptest! {
        #[test]
        fn what_is_said_is_understood(request in request()) {
            prop_assert_eq!(Request::decode(&request.encode()), Some(request));
        }

        #[test]
        fn whatever_comes_is_decoded_or_refused(words in prop::collection::vec(0u64..10, 0..9), cut in 0usize..9) {
            let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
            bytes.truncate(bytes.len().saturating_sub(cut));
            let _ = (Request::decode(&bytes), Reply::decode(&bytes));
        }
    }
}
