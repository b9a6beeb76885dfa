//! Effective priorities, as the arbiter computes them, become those of threads.
//!
//! A thread that inherits is scheduled at least as urgently as the one whose priority it has: under `SCHED_FIFO` at its
//! fixed priority. It gets its own attributes back when it inherits no more.

use std::io;
use std::sync::atomic::Ordering;

use laxity_model::TaskId;
use laxity_policy::cpu::Priority;
use laxity_sys::scheduling::{self, Attributes};

use crate::shared::Shared;

/// Below the guardians, which nobody waits for but in an emergency: the highest that a thread which waits can lend
/// under `SCHED_DEADLINE`, which has no priority.
const HIGHEST: u8 = 97;

/// No thread has these flags.
const UNKNOWN: u64 = u64::MAX;

/// Schedules the thread of `task` so, unless it is already. At the gate.
pub(crate) fn apply(shared: &Shared, task: TaskId, wanted: Attributes) {
    if applied(shared, shared.client(task).applied) != Some(wanted) {
        give(shared, task, wanted);
    }
}

/// The thread of `task` was killed and has not ended: all wait for that, and so it is as urgent as can be.
pub(crate) fn raise_ending_thread(shared: &Shared, task: TaskId) {
    // Who may not raise it waits longer.
    let _ = give_to_thread(shared, task, own(shared, task).at_least(HIGHEST));
}

/// How the thread of `priority.task` is to be scheduled.
pub(crate) fn wanted(shared: &Shared, priority: Priority, base: Option<Priority>) -> Attributes {
    let own = own(shared, priority.task);
    if base == Some(priority) {
        return own;
    }
    // Ties are broken by the task whose priority it is, so that it says from whom it is inherited.
    let lender = TaskId(priority.tie);
    if lender.index() >= usize::from(shared.config.clients) {
        return own;
    }
    raised(own, self::own(shared, lender))
}

/// Whether `to`, holding what `from` waits for, is more urgent for it, as the arbiter has it or as Linux does.
pub(crate) fn would_raise(shared: &Shared, from: TaskId, to: TaskId) -> bool {
    let (given, has) = (shared.published_base(from), shared.published_base(to));
    let is_tie = given.major == has.major;
    // Of those that are as urgent as each other one comes first all the same, and lends to the other.
    given < has && (!is_tie || lent_priority(own(shared, from)) > Some(raise_threshold(own(shared, to))))
}

/// `own`, at least as urgent as whoever lends: `lender`.
pub(crate) fn raised(own: Attributes, lender: Attributes) -> Attributes {
    lent_priority(lender).map_or(own, |lent| own.at_least(lent))
}

/// The fixed priority that a thread of these attributes lends, if it lends one.
pub(crate) fn lent_priority(lender: Attributes) -> Option<u8> {
    let priority = lender.fixed_priority().or_else(|| lender.is_above_fixed().then_some(HIGHEST));
    priority.map(|priority| priority.clamp(1, 99))
}

/// Who lends no more than this leaves a thread of these attributes as it is: [`raised`].
pub(crate) fn raise_threshold(own: Attributes) -> u8 {
    if own.is_above_fixed() { u8::MAX } else { own.fixed_priority().unwrap_or(0) }
}

fn give(shared: &Shared, task: TaskId, wanted: Attributes) {
    if wanted.is_above_fixed() {
        return;
    }
    let words = shared.client(task);
    forget(shared, words.applied);
    let error = give_to_thread(shared, task, wanted).err().and_then(|error| error.raw_os_error());
    store(shared, words.applied, wanted);
    if error.is_some() || wanted != own(shared, task) {
        shared.segment.u32(words.refused).store(error.unwrap_or(0) as u32, Ordering::Relaxed);
    }
}

fn give_to_thread(shared: &Shared, task: TaskId, wanted: Attributes) -> io::Result<()> {
    let words = shared.client(task);
    let [pid, thread] = [words.pid, words.thread].map(|offset| shared.segment.u32(offset).load(Ordering::Relaxed));
    // A thread that ended without leaving may be forgotten late, when another has got its number.
    if scheduling::is_thread_of(thread, pid) { wanted.give_to(thread) } else { Ok(()) }
}

/// How Linux schedules `task` when it does not inherit.
pub(crate) fn own(shared: &Shared, task: TaskId) -> Attributes {
    load(shared, shared.client(task).own)
}

/// What Linux was told last of the thread that has its word there; `None` if whoever told it was killed.
pub(crate) fn applied(shared: &Shared, offset: usize) -> Option<Attributes> {
    let is_known = shared.segment.u64(offset).load(Ordering::Relaxed) != UNKNOWN;
    is_known.then(|| load(shared, offset))
}

/// What was noted there.
pub(crate) fn load(shared: &Shared, offset: usize) -> Attributes {
    Attributes::from_words([0, 8].map(|word| shared.segment.u64(offset + word).load(Ordering::Relaxed)))
}

/// Linux is about to be told something else: who is killed before the end has it done again.
pub(crate) fn forget(shared: &Shared, offset: usize) {
    shared.segment.u64(offset).store(UNKNOWN, Ordering::Relaxed);
}

/// Notes how Linux schedules a thread. The first word comes last.
pub(crate) fn store(shared: &Shared, offset: usize, attributes: Attributes) {
    for (word, value) in [0, 8].into_iter().zip(attributes.to_words()).rev() {
        shared.segment.u64(offset + word).store(value, Ordering::Relaxed);
    }
}
