//! Device memory: whose it is, and which of it Linux has reserved.
//!
//! ```text
//!             allocate                       all of it is reserved
//! (free) ------------------> (reserving) --------------------------> (its client's)
//!    ^                            | Linux has not as much                  |  freed, or its client is gone
//!    +------- (releasing) <-------+----------------------------------------+
//! ```
//!
//! Reserving and releasing a gibibyte takes Linux a good part of a second, in which engines would wait for the server. So
//! it is done in chunks, between which the server does everything else; in the order of arrival, so that who asks gets
//! what was freed before. Pages that are released come back as zeros: nobody sees the bytes of another process.

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;

use laxity_sys::memory;
use laxity_sys::sparse::{Sparse, page};

use super::allocator::Allocator;

/// Reserved or released at a time: some hundred microseconds of Linux's.
const CHUNK: u64 = 4 << 20;
/// Left to the rest of the machine, as more servers than this may ask at once and processes need some to go on.
const SPARE: u64 = 128 << 20;

/// Pages that can be there or not.
pub(crate) trait Pages: fmt::Debug {
    /// Bytes that could be reserved now.
    fn left(&self) -> u64;
    /// Has `range` be there, and zero. Answers whether Linux lets it: if not, some of it may be.
    fn reserve(&mut self, range: Range<u64>) -> bool;
    /// `range` need not be there any more.
    fn release(&mut self, range: Range<u64>);
}

impl Pages for Sparse {
    fn left(&self) -> u64 {
        // Who does not say how much there is has it found out by trying.
        memory::available().map_or(u64::MAX, |available| available.saturating_sub(SPARE))
    }

    fn reserve(&mut self, range: Range<u64>) -> bool {
        Sparse::reserve(self, range).is_ok()
    }

    fn release(&mut self, range: Range<u64>) {
        // What Linux would not take back it has no more use for than we.
        let _ = Sparse::release(self, range);
    }
}

/// What a client is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It has what begins at this offset.
    Allocated(u64),
    /// The device has only so much in one piece.
    NoMemory(u64),
    /// The machine has only so much for it.
    Shortage(u64),
}

/// What is to be done.
#[derive(Debug)]
enum Task {
    Allocate {
        client: u32,
        bytes: u64,
    },
    /// From `next` on.
    Reserve {
        client: u32,
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
    chunk: u64,
}

impl<P: Pages> Memory<P> {
    /// Of `size` bytes.
    pub fn new(pages: P, size: u64) -> Self {
        Memory { pages, allocator: Allocator::new(size, page()), tasks: VecDeque::new(), chunk: CHUNK }
    }

    pub fn pages(&self) -> &P {
        &self.pages
    }

    /// Bytes that processes have.
    pub fn used(&self) -> u64 {
        self.allocator.used()
    }

    /// Whether something is to be done.
    pub fn is_busy(&self) -> bool {
        !self.tasks.is_empty()
    }

    /// Whether `client` waits for an answer.
    pub fn is_asked_by(&self, client: u32) -> bool {
        self.tasks.iter().any(|task| match task {
            Task::Allocate { client: asking, .. } | Task::Reserve { client: asking, .. } => *asking == client,
            Task::Release { .. } => false,
        })
    }

    /// `client` asks for `bytes`.
    pub fn allocate(&mut self, client: u32, bytes: u64) {
        self.tasks.push_back(Task::Allocate { client, bytes });
    }

    /// `client` needs what it has at `offset` no longer; answers whether it had any.
    pub fn free(&mut self, client: u32, offset: u64) -> bool {
        let range = self.allocator.disown(client, offset);
        range.map(|range| self.release(range)).is_some()
    }

    /// `client` needs nothing any longer, and nothing of what it asked for.
    pub fn free_all(&mut self, client: u32) {
        // What is being reserved for it is disowned, too, and reserved no further.
        self.tasks.retain(|task| !matches!(task, Task::Allocate { client: asking, .. } if *asking == client));
        self.allocator.disown_all(client).into_iter().for_each(|range| self.release(range));
    }

    fn release(&mut self, range: Range<u64>) {
        let next = range.start;
        self.tasks.push_back(Task::Release { range, next });
    }

    /// Does a little of what is to be done. Answers whom that lets know what.
    pub fn step(&mut self) -> Option<(u32, Answer)> {
        match self.tasks.pop_front()? {
            Task::Allocate { client, bytes } => match self.allocator.allocate(client, bytes) {
                Ok(range) => self.reserve(client, range.clone(), range.start),
                Err(largest) => Some((client, Answer::NoMemory(largest))),
            },
            Task::Reserve { client, range, next } => self.reserve(client, range, next),
            Task::Release { range, next } => {
                let end = range.end.min(next.saturating_add(self.chunk));
                self.pages.release(next..end);
                match end == range.end {
                    true => self.allocator.free(range.start),
                    false => self.tasks.push_front(Task::Release { range, next: end }),
                }
                None
            }
        }
    }

    /// A chunk of `range` from `next` on, if there is memory for all of the rest.
    fn reserve(&mut self, client: u32, range: Range<u64>, next: u64) -> Option<(u32, Answer)> {
        if self.allocator.owner(range.start) != Some(client) {
            // Its client is gone. That it be released is a task already.
            return None;
        }
        let end = range.end.min(next.saturating_add(self.chunk));
        // Not only for the chunk: what will be refused in the end had better not take memory from others until then.
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

    /// `client` does not get what was to begin at `offset`, as the machine had only `left` for it.
    fn refuse(&mut self, client: u32, offset: u64, left: u64) -> Answer {
        let range = self.allocator.disown(client, offset).expect("it was its client's just now");
        // At once, before who asks next.
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

        fn release(&mut self, range: Range<u64>) {
            assert!(range.start < range.end && range.end - range.start <= PIECE, "{range:?}");
            for start in range.step_by(page() as usize) {
                self.there.remove(&(start / page()));
            }
        }
    }

    fn memory(device: u64, machine: u64, knows: bool) -> Memory<Machine> {
        let machine = Machine { pages: (machine / page()) as usize, knows, there: BTreeSet::new() };
        Memory { chunk: PIECE, ..Memory::new(machine, device) }
    }

    /// Until nothing is to be done.
    fn settle(memory: &mut Memory<Machine>) -> Vec<(u32, Answer)> {
        let mut answers = Vec::new();
        while memory.is_busy() {
            answers.extend(memory.step());
        }
        answers
    }

    #[test]
    fn whoever_asks_for_more_than_the_machine_has_is_refused_with_what_it_has_and_takes_nothing() {
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

    #[test]
    fn the_device_has_no_more_than_its_size_whatever_the_machine_has() {
        let mut memory = memory(SOME, 10 * SOME, true);
        memory.allocate(1, page());
        memory.allocate(1, SOME);
        assert_eq!(settle(&mut memory), [(1, Answer::Allocated(0)), (1, Answer::NoMemory(SOME - page()))]);
    }

    #[test]
    fn what_is_freed_is_there_for_who_asks_next() {
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
        Ask(u32, u64),
        Free(prop::sample::Index),
        Leave(u32),
        Step,
    }

    fn moves() -> impl Strategy<Value = Vec<Move>> {
        let one = prop_oneof![
            3 => (0u32..3, 0..2 * SOME).prop_map(|(client, bytes)| Move::Ask(client, bytes)),
            2 => any::<prop::sample::Index>().prop_map(Move::Free),
            1 => (0u32..3).prop_map(Move::Leave),
            8 => Just(Move::Step),
        ];
        prop::collection::vec(one, 1..100)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// Whoever asks, frees and dies when: what a client was given is there, whole, and its own, and everything else
        /// is given back in the end.
        #[test]
        fn what_clients_have_is_there_and_nothing_else(moves in moves(), knows in any::<bool>()) {
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
                    let bytes = asked.remove(&client).expect("who does not ask is not answered");
                    let length = bytes.max(1).next_multiple_of(page());
                    let is_apart = |(&other, &(_, has)): (&u64, &(u32, u64))| other + has <= offset || offset + length <= other;
                    prop_assert!(given.iter().all(is_apart));
                    given.insert(offset, (client, length));
                } else if let Some((client, _)) = answer {
                    asked.remove(&client).expect("who does not ask is not answered");
                }
                for (&offset, &(_, length)) in &given {
                    let mut pages = offset / page()..(offset + length) / page();
                    prop_assert!(pages.all(|page| memory.pages().there.contains(&page)));
                }
            }
            prop_assert!(asked.is_empty(), "everyone who lives is answered");
            prop_assert!(!memory.is_busy(), "1000 steps are enough for all that is asked");
            let given: u64 = given.values().map(|(_, length)| length).sum();
            prop_assert_eq!(memory.pages().there.len() as u64 * page(), given);
            prop_assert_eq!(memory.used(), given);
        }
    }
}
