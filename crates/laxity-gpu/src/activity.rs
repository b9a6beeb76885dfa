//! What a client says of its operations, for watchers: the name of the last one, how many there were, how long it waited.
//!
//! ```text
//!  watcher (`laxity gpu top`)                        client
//!  "watched until ..." -------------------------->   reads that word, once an operation; the clock only if it is set
//!  reads the words of all clients   <-------------   the operation's name, between two odd and even numbers
//! ```
//!
//! Finding out an operation's name takes a call of a driver. So names are said only while a watcher looks. Numbers are
//! always kept: each is written by one thread at a time, in the client's own cache line. All of it is for people to read, and
//! what the memory has may be any bytes: a reader bounds them, and whatever prints them cleans them.

use std::sync::atomic::Ordering;

use laxity_model::{Instant, Nanos, TaskId};
use laxity_sys::clock;
use serde::Serialize;

use crate::layout::NAME_MAX;
use crate::memory::Memory;

/// What a client said of its operations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Activity {
    /// The name of its last operation, if one was said: at most [`NAME_MAX`] bytes.
    pub operation: Option<String>,
    /// How many operations it had.
    pub operations: u64,
    /// How long it waited for tokens and engines altogether.
    #[serde(rename = "waited_ns")]
    pub waited: Nanos,
}

/// How often a reader tries to read a name that changes meanwhile.
const TRIES: usize = 4;

impl Memory {
    /// A watcher looks, until then at most.
    pub fn watch(&self, until: Instant) {
        self.segment.u64(self.layout.watched).store(until.0, Ordering::Relaxed);
    }

    /// Whether a watcher looks.
    #[inline]
    pub fn is_watched(&self) -> bool {
        let until = self.segment.u64(self.layout.watched).load(Ordering::Relaxed);
        until != 0 && clock::now().0 < until
    }

    /// `task` has one more operation.
    #[inline]
    pub fn count_operation(&self, task: TaskId) {
        self.add(self.client(task).operations, 1);
    }

    /// `task` waited.
    pub fn add_wait(&self, task: TaskId, waited: Nanos) {
        self.add(self.client(task).waited, waited.0);
    }

    /// `name` is what `task` does, or waits to do.
    pub fn say(&self, task: TaskId, name: &str) {
        let words = self.client(task);
        let bytes = &name.as_bytes()[..name.len().min(NAME_MAX)];
        let sequence = self.segment.u32(words.said);
        let number = sequence.load(Ordering::Relaxed);
        // Odd while it is written. A reader that sees a byte of the new name sees this, too.
        sequence.store(number | 1, Ordering::Release);
        std::sync::atomic::fence(Ordering::Release);
        self.segment.u32(words.said_length).store(bytes.len() as u32, Ordering::Relaxed);
        self.segment.store_bytes(words.said_name, bytes);
        sequence.store((number | 1).wrapping_add(1), Ordering::Release);
    }

    /// A new client has this number.
    pub fn forget_activity(&self, task: TaskId) {
        let words = self.client(task);
        for offset in [words.operations, words.waited] {
            self.segment.u64(offset).store(0, Ordering::Relaxed);
        }
        self.say(task, "");
    }

    /// What `task` said.
    pub fn activity(&self, task: TaskId) -> Activity {
        let words = self.client(task);
        let number = |offset| self.segment.u64(offset).load(Ordering::Relaxed);
        let operation = (0..TRIES).find_map(|_| self.said(task)).filter(|name| !name.is_empty());
        Activity { operation, operations: number(words.operations), waited: Nanos(number(words.waited)) }
    }

    /// The name; `None`: it was being written.
    fn said(&self, task: TaskId) -> Option<String> {
        let words = self.client(task);
        let before = self.segment.u32(words.said).load(Ordering::Acquire);
        let length = (self.segment.u32(words.said_length).load(Ordering::Relaxed) as usize).min(NAME_MAX);
        let bytes = self.segment.load_bytes(words.said_name..words.said_name + length);
        std::sync::atomic::fence(Ordering::Acquire);
        let after = self.segment.u32(words.said).load(Ordering::Relaxed);
        (before == after && before & 1 == 0).then(|| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// One thread at a time adds to it.
    #[inline]
    fn add(&self, offset: usize, number: u64) {
        let word = self.segment.u64(offset);
        word.store(word.load(Ordering::Relaxed).wrapping_add(number), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::thread;

    use laxity_model::Engine;
    use laxity_testing::TestRegistry;

    use super::*;
    use crate::{Base, Config, MobileClient, Registry};

    #[test]
    fn names_are_said_while_a_watcher_looks_and_forgotten_with_the_client() {
        let registry: TestRegistry<Registry> = TestRegistry::new("activity");
        let gpus = registry.create("activity", &Config::new(2, 1)).expect("created");
        let client = || MobileClient::new(gpus.register("m", Base::Background).expect("room"), Base::Background);
        let look = || gpus.snapshot().expect("whole").clients[0].activity.clone();
        let mut mobile = client();
        assert!(!gpus.is_watched());
        registry.watch("activity", Nanos::from_secs(100)).expect("it is there");
        assert!(gpus.is_watched());
        mobile.say("blur");
        mobile.count_operation();
        mobile.count_operation();
        assert!(mobile.take_if_free(0, Engine::Execution));
        let said = Activity { operation: Some("blur".to_owned()), operations: 2, waited: Nanos::ZERO };
        assert_eq!(look(), said);
        mobile.say(&"é".repeat(100));
        let long = look().operation.expect("said");
        assert_eq!(long, "é".repeat(NAME_MAX / 2));
        registry.watch("activity", Nanos::ZERO).expect("it is there");
        assert!(!gpus.is_watched());
        drop(mobile);
        let _mobile = client();
        assert_eq!(look(), Activity::default());
    }

    #[test]
    fn a_name_that_changes_is_read_whole_or_not_at_all() {
        let registry: TestRegistry<Registry> = TestRegistry::new("torn");
        let gpus = registry.create("torn", &Config::new(2, 1)).expect("created");
        let mobile = MobileClient::new(gpus.register("m", Base::Background).expect("room"), Base::Background);
        let (task, is_over) = (mobile.id(), AtomicBool::new(false));
        let memory = &gpus.membership().shared;
        thread::scope(|scope| {
            scope.spawn(|| {
                for round in 0..20_000 {
                    memory.say(task, if round % 2 == 0 { "aaaaaaaaaaaaaaaaaaaaaaaa" } else { "bbbbbbbbb" });
                }
                is_over.store(true, Ordering::Release);
            });
            let mut seen = 0;
            while !is_over.load(Ordering::Acquire) {
                if let Some(name) = memory.said(task) {
                    assert!(["", "aaaaaaaaaaaaaaaaaaaaaaaa", "bbbbbbbbb"].contains(&&*name), "{name}");
                    seen += 1;
                }
            }
            assert!(seen > 0 || memory.said(task).is_some());
        });
    }
}
