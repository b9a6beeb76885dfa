//! Which processes are attached, and what is done about those that died.
//!
//! As at a live graph (decision 13) each process has a thread that holds a word, which Linux marks when the process
//! dies. What the dead left is told by their threads: each client holds a mutex, its *life*, which Linux marks when
//! that very thread will not carry out another instruction.

use std::sync::atomic::Ordering;

use laxity_model::TaskId;
use laxity_policy::lock::Event;
use laxity_sys::mutex::Attempt;
use laxity_sys::process::{Process, Standing};
use laxity_sys::robust::Holder;
use laxity_sys::{clock, futex};

use crate::gate::{Inside, StateError};
use crate::inheritance;
use crate::layout::{COMINGS, MEMBERS_MAX};
use crate::shared::{Shared, Word};

/// What is left to do about the dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Burial {
    /// Nothing.
    Done,
    /// A process was killed and still has threads that have not ended.
    Pending,
}

impl Shared {
    pub fn holder(&self, place: usize) -> Holder {
        Holder::of(self.segment.u32(self.layout.member(place).word).load(Ordering::SeqCst))
    }

    /// Takes a free place for this process, under the segment's lock. It counts once its word is held.
    pub fn take_place(&self) -> Option<usize> {
        let place = (0..MEMBERS_MAX).find(|&place| self.holder(place) == Holder::Nobody)?;
        // Threads of the one who had it before.
        for slot in 0..self.layout.followers_max() {
            self.segment.u32(self.layout.follower(place, slot).thread).store(0, Ordering::Relaxed);
        }
        let start = self.layout.member(place).process;
        let Process { pid, started, namespace, boot } = Process::current();
        for (number, value) in [pid.into(), started, namespace, boot].into_iter().enumerate() {
            self.segment.u64(start + 8 * number).store(value, Ordering::Relaxed);
        }
        Some(place)
    }

    /// Tells all guardians that a process came, or that they should look for another reason.
    pub fn announce(&self) {
        let comings = self.segment.u32(COMINGS);
        comings.fetch_add(1, Ordering::SeqCst);
        futex::wake_all(comings);
    }

    /// Who took a place last.
    pub fn process(&self, place: usize) -> Process {
        let start = self.layout.member(place).process;
        let [pid, started, namespace, boot] =
            [0, 8, 16, 24].map(|offset| self.segment.u64(start + offset).load(Ordering::Relaxed));
        Process { pid: pid as u32, started, namespace, boot }
    }

    /// Whether a process lives that is attached. Two witnesses: the word, and, as Linux could not mark it if the
    /// machine lost power, who the process was.
    pub fn is_in_use(&self) -> bool {
        let lives =
            |place: usize| self.holder(place) == Holder::Alive && self.process(place).standing() != Standing::Gone;
        (0..MEMBERS_MAX).any(lives)
    }

    fn dead(&self) -> impl Iterator<Item = usize> {
        (0..MEMBERS_MAX).filter(|&place| self.holder(place) == Holder::Died)
    }

    /// Retires the clients of processes that died: what they hold goes to the next, by the arbiter's rules. Anyone may
    /// do it, several at once, and whoever dies while doing it leaves the rest to the next, as a member's word is
    /// cleared last.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn bury(&self) -> Result<Burial, StateError> {
        let dead: Vec<usize> = self.dead().collect();
        if dead.is_empty() {
            return Ok(Burial::Done);
        }
        // Linux wakes one guardian; before anything else it sees to it that there are more.
        dead.iter().for_each(|&place| futex::wake_all(self.segment.u32(self.layout.member(place).word)));
        let (mut ending, mut waiters) = (Vec::new(), Vec::new());
        // One at a time, so that the gate is free in between.
        for task in self.tasks() {
            let mut inside = self.enter(clock::now())?;
            if inside.desk.arbiter.base(task).is_none() {
                continue;
            }
            match self.life(task).try_lock().map_err(StateError::System)? {
                Attempt::Taken(life) => {
                    inside.retire(task);
                    // Before the gate, so that nobody ever finds a life taken but by its own thread.
                    drop(life);
                    inside.publish();
                }
                Attempt::Busy => {
                    let member = self.segment.u32(self.client(task).member).load(Ordering::Relaxed) as usize;
                    if dead.contains(&member) {
                        inheritance::hasten(self, task);
                        ending.push(member);
                    }
                    waiters.push(task);
                }
            }
        }
        // Those whom the dead were about to wake.
        waiters.into_iter().for_each(|task| self.wake(task));
        // At the gate, where nobody registers any more: whoever does looks at this word.
        let inside = self.enter(clock::now())?;
        let (pending, buried): (Vec<usize>, Vec<usize>) = dead.iter().partition(|place| ending.contains(*place));
        for place in buried {
            let word = self.segment.u32(self.layout.member(place).word);
            let value = word.load(Ordering::SeqCst);
            if Holder::of(value) == Holder::Died && !self.has_clients(&inside, place) {
                let _ = word.compare_exchange(value, 0, Ordering::SeqCst, Ordering::SeqCst);
            }
        }
        Ok(if pending.is_empty() && self.dead().next().is_none() { Burial::Done } else { Burial::Pending })
    }

    /// Whether a thread of the process at `place` is registered.
    fn has_clients(&self, inside: &Inside<'_>, place: usize) -> bool {
        let is_theirs = |&task: &TaskId| {
            let member = self.segment.u32(self.client(task).member).load(Ordering::Relaxed);
            inside.desk.arbiter.base(task).is_some() && member as usize == place
        };
        self.tasks().any(|task| is_theirs(&task))
    }
}

impl Inside<'_> {
    /// Takes back all that `task` holds and asks for, and forgets it: a thread that leaves, or has ended.
    pub fn retire(&mut self, task: TaskId) {
        let shared = self.shared();
        for lock in shared.lock_ids() {
            if self.owned(task, lock).is_some() {
                self.arbitrate(lock);
            }
        }
        if let Some(lock) = self.desk.arbiter.waits_for(task) {
            self.handle(Event::Withdraw { task, lock });
        }
        let held: Vec<_> = self.desk.arbiter.holds(task).map(|(lock, _)| lock).collect();
        for lock in held.into_iter().rev() {
            self.handle(Event::Unlock { task, lock });
        }
        self.handle(Event::Complete { task });
        shared.word(task).store(Word::Idle.value(), Ordering::Relaxed);
    }
}
