//! Offsets in the segment of an arbitration. Sizes follow from the configuration.
//!
//! ```text
//! header of the segment | members (laxity-membership) | configuration
//! state mutex    held by the thread that changes the state
//! version        which of the two copies counts
//! owner words    for each lock: its owners while it is open, and the waiter in its waiter slot
//! followers      one cache line each: the threads of every process that follow its holders
//! bandwidth      a bit for each client that holds the bandwidth lock, and the word on which regulators sleep
//! watches        until when people look, and the word on which a process sleeps that watches holders
//! traffic        four cache lines each: the CPUs, what programs count there and what a regulator allows
//! clients        six cache lines each: the registered threads, and what they say of their operations
//! copies         the state, twice
//! ```

use laxity_membership::{CONTENTS, Home, MEMBERS_MAX};
use laxity_model::{LockId, TaskId};
use laxity_policy::lock::Arbiter;
use laxity_sys::mutex;
use laxity_sys::segment::Format;

use crate::config::{self, Config};
use crate::owner_word::REPLICAS;

/// What a segment must be to hold an arbitration.
pub(crate) const FORMAT: Format = Format { magic: *b"laxgpus\0", version: 12 };

/// The longest name of a client, in bytes.
pub const NAME_MAX: usize = 64;

/// The configuration: words of 64 bits.
pub(crate) const CONFIG: usize = CONTENTS;
/// Where its threads' numbers and mutexes mean something.
pub(crate) const HOME: Home = Home { offset: CONFIG + 8 * config::WORDS };

const LINE: usize = 64;
/// CPUs fetch cache lines in pairs.
const PAIR: usize = 2 * LINE;

/// The mutex of the state.
pub(crate) const STATE_MUTEX: usize = (HOME.offset + Home::SIZE).next_multiple_of(PAIR);
const _: () = assert!(mutex::SIZE == LINE);
/// How often the state was changed: 64 bits. An even number means the first copy.
pub(crate) const VERSION: usize = STATE_MUTEX + PAIR;
/// Whether any thread ever followed a holder: 32 bits. Beside the version, which every change reads anyway.
pub(crate) const FOLLOWED: usize = VERSION + 8;
const OWNERS: usize = VERSION + PAIR;
/// The threads of one process that may follow the holders of one GPU: one for interrupts, one for callbacks, one for
/// each engine, and some to spare.
const FOLLOWERS_OF_GPU: usize = 8;

/// The CPUs for which memory traffic can be counted: those numbered below.
pub const TRAFFIC_CPUS: usize = 256;

/// The offsets of one arbitration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Where the owner words of each lock are.
    owners: Vec<usize>,
    followers: usize,
    followers_max: usize,
    pub bandwidth: BandwidthWords,
    /// Until when a watcher looks, or 0: 64 bits.
    pub watched: usize,
    pub holder_watch: SleeperWords,
    traffic: usize,
    clients: usize,
    copies: [usize; 2],
    /// Numbers that fit into a copy.
    pub copy_length: usize,
    /// Bytes, the segment's header included.
    pub total: usize,
}

/// The words of the bandwidth lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BandwidthWords {
    /// A bit for each client: words of 64 bits.
    pub holders: usize,
    pub regulators: SleeperWords,
}

/// The words by which processes sleep until something changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SleeperWords {
    /// Whether one sleeps, or one that did was killed: 32 bits.
    pub sleepers: usize,
    /// The word on which they sleep: 32 bits.
    pub event: usize,
}

/// The words of a CPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrafficWords {
    /// Bytes counted ever, and how many there may be: 64 bits each.
    pub counted: usize,
    pub limit: usize,
    /// When the limit was exceeded (64 bits), by which thread, and how often one was: 32 bits each.
    pub exceeded_at: usize,
    pub thread: usize,
    pub exceeded: usize,
    /// The process and the thread of the regulator: 64 bits.
    pub owner: usize,
    /// What the regulator says of its work: 64 bits each.
    pub regulation: [usize; 7],
}

/// The words of a thread that follows holders.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FollowerWords {
    /// Its thread number, 0 if there is none: 32 bits.
    pub thread: usize,
    /// The GPU whose holders it follows: 32 bits.
    pub gpu: usize,
    /// The error with which Linux refused its last scheduling, else 0: 32 bits.
    pub refused: usize,
    /// Its own scheduling attributes, and those that Linux was given last: two words of 64 bits each.
    pub own: usize,
    pub applied: usize,
}

/// The words of a client, a registered thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientWords {
    /// The liveness lock: a mutex that the thread holds while it is registered and lives.
    pub liveness: usize,
    /// Whether it waits, or what it was granted: 32 bits, waited on.
    pub word: usize,
    /// The lock that it requested last: 32 bits.
    pub wanted: usize,
    /// Its last request for a token: the length, and the GPU and one more, or 0 for any; two words of 64 bits.
    pub request: usize,
    /// The level of its [`Base`](crate::Base) priority from its next request on: 64 bits.
    pub base: usize,
    /// The budget with which it holds the bandwidth lock, if it does: 64 bits.
    pub budget: usize,
    /// The member slot of its process: 32 bits.
    pub member: usize,
    /// Its thread number and the number of its process: 32 bits each.
    pub thread: usize,
    pub pid: usize,
    /// Its own scheduling attributes, and those that Linux was given last: two words of 64 bits each.
    pub own: usize,
    pub applied: usize,
    /// The error with which Linux refused to raise it last, else 0: 32 bits.
    pub refused: usize,
    /// Length of the name (32 bits), and the name.
    pub name_length: usize,
    pub name: usize,
    /// How often a thread registered with this number: 64 bits. It tells the client from one that had the number before.
    pub registrations: usize,
    /// How often it said a name, times two, and odd while it does: 32 bits. The name's length (32 bits), and the name.
    pub said: usize,
    pub said_length: usize,
    pub said_name: usize,
    /// How many operations it had, and how long it waited: 64 bits each.
    pub operations: usize,
    pub waited: usize,
}

impl Layout {
    /// For a valid configuration, whose state `arbiter` saves.
    pub fn of(config: &Config, arbiter: &Arbiter) -> Layout {
        let mut end = OWNERS;
        let mut owners = Vec::new();
        for lock in config.locks() {
            owners.push(end);
            end += (8 * owner_words(lock.replicas())).next_multiple_of(PAIR);
        }
        let followers = end;
        let followers_max = FOLLOWERS_OF_GPU * usize::from(config.gpus);
        let holders = (followers + MEMBERS_MAX * followers_max * LINE).next_multiple_of(PAIR);
        let sleepers = holders + (8 * bit_words(config.clients.into())).next_multiple_of(PAIR);
        let bandwidth = BandwidthWords { holders, regulators: SleeperWords { sleepers, event: sleepers + 4 } };
        // Read with every change of a token, and written while people look: beside each other.
        let watched = sleepers + LINE;
        let holder_watch = SleeperWords { sleepers: watched + 8, event: watched + 12 };
        let traffic = sleepers + PAIR;
        let clients = traffic + TRAFFIC_CPUS * TRAFFIC;
        end = clients + usize::from(config.clients) * CLIENT;
        // The length, which locks are open, which clients are registered, and the arbiter's numbers.
        let bits = bit_words(owners.len()) + bit_words(config.clients.into());
        let copy_length = 1 + bits + arbiter.saved_max();
        let copy = (8 * copy_length).next_multiple_of(PAIR);
        let copies = [end, end + copy];
        Layout {
            owners,
            followers,
            followers_max,
            bandwidth,
            watched,
            holder_watch,
            traffic,
            clients,
            copies,
            copy_length,
            total: end + 2 * copy,
        }
    }

    /// The first owner word of `lock`.
    pub fn owners(&self, lock: LockId) -> usize {
        self.owners[usize::from(lock.0)]
    }

    /// How many threads of a process may follow holders.
    pub fn followers_max(&self) -> usize {
        self.followers_max
    }

    /// The follower number `index` of the member in `slot`.
    pub fn follower(&self, slot: usize, index: usize) -> FollowerWords {
        let start = self.followers + (slot * self.followers_max + index) * LINE;
        FollowerWords { thread: start, gpu: start + 4, refused: start + 8, own: start + 16, applied: start + 32 }
    }

    /// The word with the bit of `task`, and the bit.
    #[inline]
    pub fn bandwidth_bit(&self, task: TaskId) -> (usize, u64) {
        (self.bandwidth.holders + 8 * (task.index() / 64), 1 << (task.index() % 64))
    }

    /// The words of `cpu`, which is below [`TRAFFIC_CPUS`].
    #[inline]
    pub fn traffic(&self, cpu: usize) -> TrafficWords {
        let start = self.traffic + cpu * TRAFFIC;
        // What programs write with every count is apart from what they only read, and from what the regulator writes.
        let (read, regulator) = (start + LINE, start + PAIR);
        TrafficWords {
            counted: start,
            exceeded_at: start + 8,
            thread: start + 16,
            exceeded: start + 20,
            limit: read,
            owner: regulator,
            regulation: std::array::from_fn(|number| regulator + 8 + 8 * number),
        }
    }

    pub fn client(&self, task: TaskId) -> ClientWords {
        let start = self.clients + task.index() * CLIENT;
        let (hot, cold, said) = (start + mutex::SIZE, start + 2 * LINE, start + 4 * LINE);
        ClientWords {
            liveness: start,
            word: hot,
            wanted: hot + 4,
            request: hot + 8,
            base: hot + 24,
            budget: hot + 32,
            member: cold,
            thread: cold + 4,
            pid: cold + 8,
            refused: cold + 12,
            own: cold + 16,
            applied: cold + 32,
            name_length: cold + 48,
            registrations: cold + 56,
            name: cold + LINE,
            said,
            said_length: said + 4,
            operations: said + 8,
            waited: said + 16,
            said_name: said + LINE,
        }
    }

    /// The copy that counts at `version`.
    pub fn copy(&self, version: u64) -> usize {
        self.copies[(version & 1) as usize]
    }
}

/// A mutex, the words that change often, those that do not, the name; what it says of its operations, and their name.
const CLIENT: usize = mutex::SIZE + 5 * LINE;
const _: () = assert!(CLIENT.is_multiple_of(PAIR) && NAME_MAX <= LINE);

/// Two pairs of cache lines.
const TRAFFIC: usize = 2 * PAIR;

/// How many owner words a lock of that many replicas has.
pub(crate) fn owner_words(replicas: u16) -> usize {
    usize::from(replicas).div_ceil(REPLICAS)
}

/// How many words of 64 bits have that many bits.
pub(crate) fn bit_words(bits: usize) -> usize {
    bits.div_ceil(64)
}
