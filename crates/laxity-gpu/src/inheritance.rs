//! Effective priorities, as the arbiter computes them, become those of threads.
//!
//! A thread that inherits is scheduled at least as urgently as the thread whose priority it has: under `SCHED_FIFO` at
//! that thread's fixed priority. It gets its own attributes back when it inherits no more.
//!
//! Thread numbers and attributes come from memory that other processes write to. So a thread is scheduled only if it is
//! one of a member of the same user ([`Peers`](laxity_sys::peers::Peers)), and never more urgently than the more urgent of two:
//! what Linux says it has, and what Linux says the lender has.

use std::io;
use std::sync::atomic::Ordering;

use laxity_membership::MEMBERS_MAX;
use laxity_model::TaskId;
use laxity_policy::cpu::Priority;
use laxity_sys::peer;
use laxity_sys::scheduling::Attributes;

use crate::memory::Memory;
use crate::shared::Shared;

/// The highest priority that a waiting thread lends under `SCHED_DEADLINE`, which has no priority: below the guardians.
const HIGHEST: u8 = 97;

/// No thread has these flags.
const UNKNOWN: u64 = u64::MAX;

/// How a thread is to be scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Demand {
    pub attributes: Attributes,
    /// The client that lends the priority, if the attributes are not the thread's own.
    pub lender: Option<TaskId>,
}

/// A thread that shared memory names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NamedThread {
    pub thread: u32,
    pub pid: u32,
    /// The member slot of its process.
    pub slot: usize,
}

/// Schedules the thread of `task` so, unless it is already. The caller holds the state lock.
pub(crate) fn apply(shared: &Shared, task: TaskId, demand: Demand) {
    let words = shared.client(task);
    let wanted = demand.attributes;
    if applied(shared, words.applied) == Some(wanted) || wanted.is_above_fixed() {
        return;
    }
    forget(shared, words.applied);
    let error = schedule(shared, named_thread(shared, task), demand).err().and_then(|error| error.raw_os_error());
    store(shared, words.applied, wanted);
    if error.is_some() || wanted != own(shared, task) {
        shared.segment.u32(words.refused).store(error.unwrap_or(0) as u32, Ordering::Relaxed);
    }
}

/// Raises the thread of `task`, whose process was killed, if it has not ended: all members wait for its end.
pub(crate) fn raise_ending_thread(shared: &Shared, task: TaskId) {
    let named = named_thread(shared, task);
    if may_schedule(shared, named).is_ok_and(|may| may) && peer::is_ending(named.thread, named.pid) {
        // Without the permission it ends later.
        let _ = Attributes::of(named.thread).and_then(|present| present.at_least(HIGHEST).give_to(named.thread));
    }
}

/// Schedules a thread as `demand` says, as far as its own and its lender's present attributes allow.
///
/// # Errors
/// EPERM if the thread belongs to another user; what Linux refuses.
pub(crate) fn schedule(shared: &Shared, named: NamedThread, demand: Demand) -> io::Result<()> {
    if !may_schedule(shared, named)? {
        return Ok(());
    }
    let present = Attributes::of(named.thread)?;
    let lender = demand.lender.map(|lender| named_thread(shared, lender));
    let lender = lender.filter(|&lender| may_schedule(shared, lender).is_ok_and(|may| may));
    let lent = lender.and_then(|lender| Attributes::of(lender.thread).ok()).and_then(lent_priority);
    let limit = raise_threshold(present).max(lent.unwrap_or(0));
    match demand.attributes.fixed_priority() {
        None => demand.attributes.keeping_niceness(named.thread)?.give_to(named.thread),
        Some(priority) if priority <= limit => demand.attributes.give_to(named.thread),
        Some(_) if limit > 0 => demand.attributes.fixed(limit)?.give_to(named.thread),
        // Neither has a fixed priority.
        Some(_) => Ok(()),
    }
}

/// Whether the thread is one of a member of this user; `Ok(false)`: it has ended without leaving.
fn may_schedule(shared: &Shared, named: NamedThread) -> io::Result<bool> {
    let is_members = named.slot < MEMBERS_MAX && shared.pid(named.slot) == named.pid;
    if is_members { shared.peers.has_thread(named.pid, named.thread) } else { Ok(false) }
}

/// The thread of `task`, as its words name it.
fn named_thread(memory: &Memory, task: TaskId) -> NamedThread {
    let words = memory.client(task);
    let [thread, pid, slot] = [words.thread, words.pid, words.member].map(|offset| memory.number(offset));
    NamedThread { thread, pid, slot: slot as usize }
}

/// How the thread that has `priority` is to be scheduled, if `base` is the base priority of its task.
pub(crate) fn demand(memory: &Memory, priority: Priority, base: Option<Priority>) -> Demand {
    let own = own(memory, priority.task);
    // Ties are broken by the task whose priority it is: that is the lender.
    let lender = TaskId(priority.tie);
    if base == Some(priority) || !memory.is_task(lender) {
        return Demand { attributes: own, lender: None };
    }
    Demand { attributes: raised(own, self::own(memory, lender)), lender: Some(lender) }
}

/// Whether `owner`, holding what `waiter` waits for, would inherit: in the arbiter's order, or as Linux schedules it.
pub(crate) fn would_raise(memory: &Memory, waiter: TaskId, owner: TaskId) -> bool {
    let (lent, has) = (memory.published_base(waiter), memory.published_base(owner));
    let is_tie = lent.major == has.major;
    // Ties are still ordered, but a tie makes no difference unless Linux schedules the two differently.
    lent < has && (!is_tie || lent_priority(own(memory, waiter)) > Some(raise_threshold(own(memory, owner))))
}

/// `own`, at least as urgent as `lender`.
pub(crate) fn raised(own: Attributes, lender: Attributes) -> Attributes {
    lent_priority(lender).map_or(own, |lent| own.at_least(lent))
}

/// The fixed priority that a thread of these attributes lends, if it lends one.
pub(crate) fn lent_priority(lender: Attributes) -> Option<u8> {
    let priority = lender.fixed_priority().or_else(|| lender.is_above_fixed().then_some(HIGHEST));
    priority.map(|priority| priority.clamp(1, 99))
}

/// A lender of at most this priority leaves a thread of these attributes as it is: [`raised`].
pub(crate) fn raise_threshold(own: Attributes) -> u8 {
    if own.is_above_fixed() { u8::MAX } else { own.fixed_priority().unwrap_or(0) }
}

/// How Linux schedules `task` when it does not inherit.
pub(crate) fn own(memory: &Memory, task: TaskId) -> Attributes {
    load(memory, memory.client(task).own)
}

/// The attributes that Linux was given last for the thread that has its word there; `None` if the thread that did so was
/// killed in between.
pub(crate) fn applied(memory: &Memory, offset: usize) -> Option<Attributes> {
    let is_known = memory.segment.u64(offset).load(Ordering::Relaxed) != UNKNOWN;
    is_known.then(|| load(memory, offset))
}

/// The attributes that were stored there.
pub(crate) fn load(memory: &Memory, offset: usize) -> Attributes {
    Attributes::from_words([0, 8].map(|word| memory.segment.u64(offset + word).load(Ordering::Relaxed)))
}

/// Linux is about to be given others: if this thread is killed before the end, the next one gives them again.
pub(crate) fn forget(memory: &Memory, offset: usize) {
    memory.segment.u64(offset).store(UNKNOWN, Ordering::Relaxed);
}

/// Stores how Linux schedules a thread. The first word comes last.
pub(crate) fn store(memory: &Memory, offset: usize, attributes: Attributes) {
    for (word, value) in [0, 8].into_iter().zip(attributes.to_words()).rev() {
        memory.segment.u64(offset + word).store(value, Ordering::Relaxed);
    }
}
