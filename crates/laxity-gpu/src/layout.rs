//! Where things are in an arbitration's segment. Sizes follow from the configuration.
//!
//! ```text
//! header of the segment | members (laxity-membership) | configuration
//! gate           the mutex of who changes the state
//! version        which of the two copies counts
//! owners         for each lock who holds it while it is open, and who waits in its seat
//! followers      one cache line each: of every process those threads that are as urgent as its holders
//! clients        five cache lines each: the threads
//! copies         the state, twice
//! ```

use laxity_membership::{CONTENTS, MEMBERS_MAX};
use laxity_model::{LockId, TaskId};
use laxity_policy::lock::Arbiter;
use laxity_sys::mutex;
use laxity_sys::segment::Format;

use crate::arbiter_cache;
use crate::config::{self, Config};
use crate::owner_word::REPLICAS;

/// Our segments.
pub(crate) const FORMAT: Format = Format { magic: *b"laxgpus\0", version: 7 };

/// The longest name of a client, in bytes.
pub const NAME_MAX: usize = 64;

/// The configuration: words of 64 bits.
pub(crate) const CONFIG: usize = CONTENTS;
/// What mutexes look like: 64 bits.
pub(crate) const MUTEX_LAYOUT: usize = CONFIG + 8 * config::WORDS;
/// The PID namespace: 64 bits.
pub(crate) const NAMESPACE: usize = MUTEX_LAYOUT + 8;
/// The boot of the machine: 64 bits.
pub(crate) const BOOT: usize = NAMESPACE + 8;

const LINE: usize = 64;
/// CPUs fetch cache lines in pairs.
const PAIR: usize = 2 * LINE;

/// The mutex of the state.
pub(crate) const STATE_MUTEX: usize = (BOOT + 8).next_multiple_of(PAIR);
const _: () = assert!(mutex::SIZE == LINE);
/// How often the state was changed: 64 bits. An even number means the first copy.
pub(crate) const VERSION: usize = STATE_MUTEX + PAIR;
/// Whether any thread ever followed a holder: 32 bits. With the version, which is read anyway.
pub(crate) const FOLLOWED: usize = VERSION + 8;
const OWNERS: usize = VERSION + PAIR;
/// For a GPU the threads of one process that may follow its holders: those for interrupts, callbacks and each engine,
/// and some to spare.
const FOLLOWERS_OF_GPU: usize = 8;

/// The offsets of one arbitration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// For each lock where its owners are.
    owners: Vec<usize>,
    followers: usize,
    followers_max: usize,
    clients: usize,
    copies: [usize; 2],
    /// Numbers that fit into a copy.
    pub copy_length: usize,
    /// Bytes, the segment's header included.
    pub total: usize,
}

/// The words of a thread that follows holders.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FollowerWords {
    /// Its number, 0 if there is none: 32 bits.
    pub thread: usize,
    /// The GPU whose holders it follows: 32 bits.
    pub gpu: usize,
    /// Why Linux did not let it have what it was to have, else 0: 32 bits.
    pub refused: usize,
    /// How Linux schedules it, by itself and as we last said: two words of 64 bits each.
    pub own: usize,
    pub applied: usize,
}

/// The words of a client, a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientWords {
    /// The mutex that it holds while it is registered and lives.
    pub liveness: usize,
    /// Whether it waits, or what it was granted: 32 bits, waited on.
    pub word: usize,
    /// The lock that it asked for last: 32 bits.
    pub wanted: usize,
    /// What it said of the token it asked for last: its length (64 bits), its GPU and one more (32 bits).
    pub length: usize,
    pub only: usize,
    /// Its base priority, as [`Base`](crate::Base) makes a number of it, from its next request on: 64 bits.
    pub base: usize,
    /// Its process, by its place: 32 bits.
    pub member: usize,
    /// Its number and that of its process: 32 bits each.
    pub thread: usize,
    pub pid: usize,
    /// How Linux schedules it, by itself and as we last said: two words of 64 bits each.
    pub own: usize,
    pub applied: usize,
    /// Why it could not be raised when it had to be, else 0: 32 bits.
    pub refused: usize,
    /// Length of the name (32 bits), and the name.
    pub name_length: usize,
    pub name: usize,
}

impl Layout {
    /// For a valid configuration.
    pub fn of(config: &Config, arbiter: &Arbiter) -> Layout {
        let mut end = OWNERS;
        let mut owners = Vec::new();
        for lock in config.locks() {
            owners.push(end);
            end += (8 * words(lock.replicas())).next_multiple_of(PAIR);
        }
        let followers = end;
        let followers_max = FOLLOWERS_OF_GPU * usize::from(config.gpus);
        let clients = (followers + MEMBERS_MAX * followers_max * LINE).next_multiple_of(PAIR);
        end = clients + usize::from(config.clients) * CLIENT;
        // The length, which locks are open, who is registered, and the arbiter's.
        let copy_length = 1 + owners.len().div_ceil(64) + arbiter_cache::words(config.clients) + arbiter.saved_max();
        let copy = (8 * copy_length).next_multiple_of(PAIR);
        let copies = [end, end + copy];
        Layout { owners, followers, followers_max, clients, copies, copy_length, total: end + 2 * copy }
    }

    /// The words that say who holds `lock` while it is open.
    pub fn owners(&self, lock: LockId) -> usize {
        self.owners[usize::from(lock.0)]
    }

    /// How many threads of a process may follow holders.
    pub fn followers_max(&self) -> usize {
        self.followers_max
    }

    pub fn follower(&self, place: usize, slot: usize) -> FollowerWords {
        let start = self.followers + (place * self.followers_max + slot) * LINE;
        FollowerWords { thread: start, gpu: start + 4, refused: start + 8, own: start + 16, applied: start + 32 }
    }

    pub fn client(&self, task: TaskId) -> ClientWords {
        let start = self.clients + task.index() * CLIENT;
        let (hot, cold) = (start + mutex::SIZE, start + 2 * LINE);
        ClientWords {
            liveness: start,
            word: hot,
            wanted: hot + 4,
            length: hot + 8,
            only: hot + 16,
            base: hot + 24,
            member: cold,
            thread: cold + 4,
            pid: cold + 8,
            refused: cold + 12,
            own: cold + 16,
            applied: cold + 32,
            name_length: cold + 48,
            name: cold + LINE,
        }
    }

    /// The copy that counts at `version`.
    pub fn copy(&self, version: u64) -> usize {
        self.copies[(version & 1) as usize]
    }
}

/// A mutex, what changes often, what does not, the name, and one to keep pairs apart.
const CLIENT: usize = mutex::SIZE + 3 * LINE;
const _: () = assert!(CLIENT.is_multiple_of(PAIR) && NAME_MAX <= LINE);

/// Words that say who holds that many replicas.
pub(crate) fn words(replicas: u16) -> usize {
    usize::from(replicas).div_ceil(REPLICAS)
}
