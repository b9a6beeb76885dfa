//! Device memory: which process has which of it, and which of it Linux has reserved.
//!
//! ```text
//!             allocate                       all of it is reserved
//! (free) ------------------> (reserving) --------------------------> (its process's)
//!    ^                            | Linux has not as much                  |  freed, or its process is gone
//!    +------- (releasing) <-------+----------------------------------------+
//! ```
//!
//! Linux takes a good part of a second to reserve or release a gibibyte, and engines would wait for the server as long.
//! The server therefore reserves and releases chunks and does everything else in between. It takes requests in the
//! order of arrival, so that an allocation can have the memory that was freed before it. Released pages come back as
//! zeros: no process sees the bytes of another.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::ops::Range;

use laxity_sys::memory;
use laxity_sys::sparse::{Sparse, page};

use super::allocator::Allocator;

/// Bytes that are reserved or released at a time. Linux needs some hundred microseconds for them.
const CHUNK: u64 = 4 << 20;
/// Bytes that are left to the machine: other servers may ask at the same time, and processes need some to go on.
const SPARE: u64 = 128 << 20;

/// Memory whose pages can be reserved.
pub(crate) trait Pages: fmt::Debug {
    /// Bytes that could be reserved now.
    fn left(&self) -> u64;
    /// Reserves `range`, as zeros. Answers whether Linux allowed it; if not, a part may be reserved.
    fn reserve(&mut self, range: Range<u64>) -> bool;
    /// Gives `range` back to Linux. Answers whether Linux took it; if not, the bytes are there as they were.
    fn release(&mut self, range: Range<u64>) -> bool;
}

impl Pages for Sparse {
    fn left(&self) -> u64 {
        // If Linux does not say how much is left, reserving finds out.
        memory::available().map_or(u64::MAX, |available| available.saturating_sub(SPARE))
    }

    fn reserve(&mut self, range: Range<u64>) -> bool {
        Sparse::reserve(self, range).is_ok()
    }

    fn release(&mut self, range: Range<u64>) -> bool {
        Sparse::release(self, range).is_ok()
    }
}

/// The answer to an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The memory at this offset is the process's.
    Allocated(u64),
    /// The device's largest free piece has only so many bytes.
    NoMemory(u64),
    /// The machine has only so many bytes for it.
    Shortage(u64),
}

/// A piece of work.
#[derive(Debug)]
enum Task {
    Allocate {
        client: u64,
        bytes: u64,
    },
    /// From `next` on.
    Reserve {
        client: u64,
        range: Range<u64>,
        next: u64,
    },
    /// From `next` on.
    Release {
        range: Range<u64>,
        next: u64,
    },
}

/// See above.
#[derive(Debug)]
pub(crate) struct Memory<P> {
    pages: P,
    allocator: Allocator,
    tasks: VecDeque<Task>,
    /// The processes that wait for an answer.
    asking: BTreeSet<u64>,
    chunk: u64,
}

impl<P: Pages> Memory<P> {
    /// Of `size` bytes.
    pub fn new(pages: P, size: u64) -> Self {
        Memory {
            pages,
            allocator: Allocator::new(size, page()),
            tasks: VecDeque::new(),
            asking: BTreeSet::new(),
            chunk: CHUNK,
        }
    }

    pub fn pages(&self) -> &P {
        &self.pages
    }

    /// Bytes that processes have.
    pub fn used(&self) -> u64 {
        self.allocator.used()
    }

    /// Whether there is work.
    pub fn is_busy(&self) -> bool {
        !self.tasks.is_empty()
    }

    /// Whether `client` waits for an answer.
    pub fn is_asked_by(&self, client: u64) -> bool {
        self.asking.contains(&client)
    }

    /// `client`, which waits for no other answer, asks for `bytes`.
    pub fn allocate(&mut self, client: u64, bytes: u64) {
        assert!(self.asking.insert(client), "one question at a time");
        self.tasks.push_back(Task::Allocate { client, bytes });
    }

    /// `client` frees its memory at `offset`. Answers whether it had any there.
    pub fn free(&mut self, client: u64, offset: u64) -> bool {
        let range = self.allocator.disown(client, offset);
        range.map(|range| self.release(range)).is_some()
    }

    /// `client` is gone: frees all its memory and drops its question.
    pub fn free_all(&mut self, client: u64) {
        self.asking.remove(&client);
        // Memory that is being reserved for it is disowned, too, and reserved no further.
        self.tasks.retain(|task| !matches!(task, Task::Allocate { client: asking, .. } if *asking == client));
        self.allocator.disown_all(client).into_iter().for_each(|range| self.release(range));
    }

    fn release(&mut self, range: Range<u64>) {
        let next = range.start;
        self.tasks.push_back(Task::Release { range, next });
    }

    /// Does one chunk of the work. Returns an answer, and the process that waits for it, if there is one now.
    pub fn step(&mut self) -> Option<(u64, Answer)> {
        let answered = self.work()?;
        self.asking.remove(&answered.0);
        Some(answered)
    }

    fn work(&mut self) -> Option<(u64, Answer)> {
        match self.tasks.pop_front()? {
            Task::Allocate { client, bytes } => match self.allocator.allocate(client, bytes) {
                Ok(range) => self.reserve(client, range.clone(), range.start),
                Err(largest) => Some((client, Answer::NoMemory(largest))),
            },
            Task::Reserve { client, range, next } => self.reserve(client, range, next),
            Task::Release { range, next } => {
                let end = range.end.min(next.saturating_add(self.chunk));
                // What Linux does not take back keeps its bytes. Another process must not see them, so the range stays taken
                // for as long as the server lives.
                match (self.pages.release(next..end), end == range.end) {
                    (false, _) => {}
                    (true, true) => self.allocator.free(range.start),
                    (true, false) => self.tasks.push_front(Task::Release { range, next: end }),
                }
                None
            }
        }
    }

    /// Reserves a chunk of `range` from `next` on, if there is memory for all of the rest.
    fn reserve(&mut self, client: u64, range: Range<u64>, next: u64) -> Option<(u64, Answer)> {
        if self.allocator.owner(range.start) != Some(client) {
            // Its process is gone, and there is a task that releases it.
            return None;
        }
        let end = range.end.min(next.saturating_add(self.chunk));
        // For the whole rest: an allocation that will fail must not take memory from others until then.
        let left = self.pages.left();
        if left < range.end - next {
            return Some((client, self.refuse(client, range.start, next - range.start + left)));
        }
        if !self.pages.reserve(next..end) {
            return Some((client, self.refuse(client, range.start, next - range.start)));
        }
        if end == range.end {
            return Some((client, Answer::Allocated(range.start)));
        }
        self.tasks.push_front(Task::Reserve { client, range, next: end });
        None
    }

    /// `client` does not get the memory at `offset`, as the machine had only `left` bytes for it.
    fn refuse(&mut self, client: u64, offset: u64, left: u64) -> Answer {
        let range = self.allocator.disown(client, offset).expect("its process has it");
        // Before the next allocation, which may need it.
        self.tasks.push_front(Task::Release { next: range.start, range });
        Answer::Shortage(left)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    /// Reserved or released at a time here.
    const PIECE: u64 = 4 << 14;
    const SOME: u64 = 3 * PIECE;

    /// A machine that has so many pages and gives no more.
    #[derive(Debug)]
    struct Machine {
        pages: usize,
        /// Whether it knows how many it has left, or only finds out.
        knows: bool,
        /// Whether it takes back nothing.
        keeps: bool,
        there: BTreeSet<u64>,
    }

    impl Pages for Machine {
        fn left(&self) -> u64 {
            if self.knows { (self.pages - self.there.len()) as u64 * page() } else { u64::MAX }
        }

        fn reserve(&mut self, range: Range<u64>) -> bool {
            assert!(range.start < range.end && range.end - range.start <= PIECE, "{range:?}");
            for start in range.step_by(page() as usize) {
                if self.there.len() == self.pages {
                    return false;
                }
                self.there.insert(start / page());
            }
            true
        }

        fn release(&mut self, range: Range<u64>) -> bool {
            assert!(range.start < range.end && range.end - range.start <= PIECE, "{range:?}");
            for start in range.step_by(page() as usize).filter(|_| !self.keeps) {
                self.there.remove(&(start / page()));
            }
            !self.keeps
        }
    }

    fn memory(device: u64, machine: u64, knows: bool) -> Memory<Machine> {
        let machine = Machine { pages: (machine / page()) as usize, knows, keeps: false, there: BTreeSet::new() };
        Memory { chunk: PIECE, ..Memory::new(machine, device) }
    }

    /// Until nothing is to be done.
    fn settle(memory: &mut Memory<Machine>) -> Vec<(u64, Answer)> {
        let mut answers = Vec::new();
        while memory.is_busy() {
            answers.extend(memory.step());
        }
        answers
    }

    #[test]
    fn an_allocation_beyond_the_machines_memory_is_refused_with_what_is_left_and_takes_nothing() {
        let mut memory = memory(1 << 40, SOME, true);
        memory.allocate(1, SOME / 2);
        memory.allocate(2, SOME);
        memory.allocate(3, SOME / 2);
        let answers = settle(&mut memory);
        assert_eq!(answers[0], (1, Answer::Allocated(0)));
        assert_eq!(answers[1], (2, Answer::Shortage(SOME / 2)));
        assert_eq!(answers[2].0, 3);
        assert!(matches!(answers[2].1, Answer::Allocated(_)), "there was enough for it");
        assert_eq!((memory.used(), memory.pages().left()), (SOME, 0));
    }

    /// Another process may take what was left a moment ago.
    #[test]
    fn memory_that_runs_out_on_the_way_is_given_back() {
        let mut memory = memory(1 << 40, SOME, false);
        memory.allocate(1, SOME + page());
        assert_eq!(settle(&mut memory), [(1, Answer::Shortage(SOME))]);
        assert!(memory.pages().there.is_empty());
        memory.allocate(1, SOME);
        assert_eq!(settle(&mut memory), [(1, Answer::Allocated(0))]);
    }

    /// It holds what its process wrote.
    #[test]
    fn memory_that_linux_does_not_take_back_is_given_to_no_other_process() {
        let mut memory = memory(SOME, 10 * SOME, true);
        memory.pages.keeps = true;
        memory.allocate(1, page());
        assert_eq!(settle(&mut memory), [(1, Answer::Allocated(0))]);
        memory.free_all(1);
        memory.allocate(2, page());
        assert_eq!(settle(&mut memory), [(2, Answer::Allocated(page()))]);
    }

    #[test]
    fn the_device_has_no_more_than_its_size_whatever_the_machine_has() {
        let mut memory = memory(SOME, 10 * SOME, true);
        memory.allocate(1, page());
        memory.allocate(2, SOME);
        assert_eq!(settle(&mut memory), [(1, Answer::Allocated(0)), (2, Answer::NoMemory(SOME - page()))]);
    }

    #[test]
    fn freed_memory_is_there_for_the_next_allocation() {
        let mut memory = memory(SOME, SOME, true);
        memory.allocate(1, SOME);
        assert_eq!(settle(&mut memory), [(1, Answer::Allocated(0))]);
        assert!(!memory.free(2, 0), "it is another's");
        assert!(memory.free(1, 0));
        assert!(!memory.free(1, 0), "once is enough");
        memory.allocate(2, SOME);
        assert_eq!(settle(&mut memory), [(2, Answer::Allocated(0))]);
    }

    #[derive(Clone, Debug)]
    enum Move {
        Ask(u64, u64),
        Free(prop::sample::Index),
        Leave(u64),
        Step,
    }

    fn moves() -> impl Strategy<Value = Vec<Move>> {
        let one = prop_oneof![
            3 => (0u64..3, 0..2 * SOME).prop_map(|(client, bytes)| Move::Ask(client, bytes)),
            2 => any::<prop::sample::Index>().prop_map(Move::Free),
            1 => (0u64..3).prop_map(Move::Leave),
            8 => Just(Move::Step),
        ];
        prop::collection::vec(one, 1..100)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// In any order of questions, frees and deaths: granted memory is reserved, whole, and of one process alone,
        /// and everything else is given back in the end.
        #[test]
        fn exactly_the_memory_that_processes_have_is_reserved(moves in moves(), knows in any::<bool>()) {
            let mut memory = memory(5 * SOME, 2 * SOME, knows);
            let (mut given, mut asked) = (BTreeMap::new(), BTreeMap::new());
            for one in moves.into_iter().chain(vec![Move::Step; 1000]) {
                let mut answer = None;
                match one {
                    Move::Ask(client, bytes) if !memory.is_asked_by(client) => {
                        asked.insert(client, bytes);
                        memory.allocate(client, bytes);
                    }
                    Move::Ask(..) => {}
                    Move::Free(which) => {
                        let Some(&offset) = given.keys().nth(which.index(given.len().max(1))) else { continue };
                        let (client, _) = given.remove(&offset).expect("it was chosen from these");
                        prop_assert!(memory.free(client, offset));
                    }
                    Move::Leave(client) => {
                        given.retain(|_, (owner, _)| *owner != client);
                        memory.free_all(client);
                        asked.remove(&client);
                    }
                    Move::Step => answer = memory.step(),
                }
                if let Some((client, Answer::Allocated(offset))) = answer {
                    let bytes = asked.remove(&client).expect("only questions are answered");
                    let length = bytes.max(1).next_multiple_of(page());
                    let is_apart = |(&other, &(_, has)): (&u64, &(u64, u64))| other + has <= offset || offset + length <= other;
                    prop_assert!(given.iter().all(is_apart));
                    given.insert(offset, (client, length));
                } else if let Some((client, _)) = answer {
                    asked.remove(&client).expect("only questions are answered");
                }
                for (&offset, &(_, length)) in &given {
                    let mut pages = offset / page()..(offset + length) / page();
                    prop_assert!(pages.all(|page| memory.pages().there.contains(&page)));
                }
            }
            prop_assert!(asked.is_empty(), "every question of a connected process is answered");
            prop_assert!(!memory.is_busy(), "1000 steps are enough for all that is asked");
            let given: u64 = given.values().map(|(_, length)| length).sum();
            prop_assert_eq!(memory.pages().there.len() as u64 * page(), given);
            prop_assert_eq!(memory.used(), given);
        }
    }
}
