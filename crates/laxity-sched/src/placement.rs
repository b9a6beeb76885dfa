//! How Linux is to schedule the thread of a task, and how it is told.
//!
//! ```text
//! urgent     (base + 2)    waits for its next job, or handles an event
//! running    (base + 1)    linked: on its CPU
//! waiting    (base)        ready without a CPU: Linux runs it where a linked thread waits for something unknown
//! held       (base)        must not run, as an interrupt thread that works for it goes first: sleeps from its next event on
//! throttled  (SCHED_OTHER) has no budget left and does not know it: below all real-time threads
//! ```
//!
//! The demand is a word of shared memory, written under the state lock. Another thread's placement is changed by the
//! thread to which the event happened, under the lock; its own a thread changes after the lock, for a thread that lowers
//! itself may be preempted at once, and would keep the lock. In between others may have demanded something else of it: it
//! looks again until it has what is demanded. That is soon, as a linked thread shares its CPU with no other thread of the
//! running priority, so a thread that is lower than demanded is not preempted before it has looked.

use std::io;
use std::sync::atomic::Ordering;

use laxity_membership::MEMBERS_MAX;
use laxity_model::{CpuId, TaskId};
use laxity_sys::clock;
use laxity_sys::cpu_mask::CpuMask;
use laxity_sys::scheduling::Attributes;

use crate::config::Carry;
use crate::shared::Shared;
use crate::step::{self, Sleep};
use crate::task::LOOK_AGAIN;

/// How urgent a thread is for Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    Throttled,
    Held,
    Waiting,
    Running,
    Urgent,
}

/// A placement: a class, and the CPU of the cluster; `None`: all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placement {
    pub class: Class,
    pub cpu: Option<CpuId>,
}

impl Placement {
    pub fn to_word(self) -> u64 {
        let cpu = self.cpu.map_or(0, |cpu| u64::from(cpu.0) + 1);
        cpu << 8 | self.class as u64
    }

    /// What was stored; whatever cannot be is what harms least.
    pub fn of_word(word: u64) -> Placement {
        let class = match word & 0xff {
            0 => Class::Throttled,
            1 => Class::Held,
            3 => Class::Running,
            4 => Class::Urgent,
            _ => Class::Waiting,
        };
        Placement { class, cpu: (word >> 8).checked_sub(1).map(|cpu| CpuId(cpu as u16)) }
    }
}

impl Shared {
    /// Has Linux schedule the thread of `task`, another one than the caller's, as demanded. The caller holds the state
    /// lock. `before`: how the thread was to be placed until now, if that is known.
    pub fn carry(&self, task: TaskId, before: Option<Placement>, demand: Placement) {
        let words = self.task(task);
        step::point();
        self.carried(task).fetch_add(1, Ordering::SeqCst);
        step::point();
        let thread = self.scheduled_thread(task);
        let outcome = match self.may_schedule(task) {
            Ok(true) => self.place(self.number(words.cluster) as usize, thread, before, demand),
            Ok(false) => Ok(()),
            Err(error) => Err(error),
        };
        // Again: it may have looked, and risen, between the count and this placement.
        step::point();
        self.carried(task).fetch_add(1, Ordering::SeqCst);
        self.note_refusal(task, outcome);
    }

    /// The thread that gets what `task` is due: its own, or the first one of its program.
    pub fn scheduled_thread(&self, task: TaskId) -> u32 {
        self.program(task).unwrap_or_else(|| self.number(self.task(task).thread))
    }

    /// Has Linux schedule a thread.
    fn place(&self, cluster: usize, thread: u32, before: Option<Placement>, demand: Placement) -> io::Result<()> {
        if self.config.carry == Carry::Nothing {
            return Ok(());
        }
        let is_pinned = self.config.carry == Carry::PriorityAndCpu;
        let moves = before.is_none_or(|before| is_pinned && before.cpu != demand.cpu);
        // A thread that loses its CPU gives way first; one that gets a CPU goes there first. If an urgent one gave way before,
        // it would wait on the CPU that it comes from for the thread that is linked there.
        let gives_way = before.is_some_and(|before| before.class > demand.class) && demand.class != Class::Running;
        if gives_way {
            step::give_attributes(self.attributes_for(thread, demand.class)?, thread)?;
        }
        if moves {
            step::give_cpus(&self.cpus(cluster, demand.cpu.filter(|_| is_pinned)), thread)?;
        }
        if !gives_way && before.is_none_or(|before| before.class != demand.class) {
            step::give_attributes(self.attributes_for(thread, demand.class)?, thread)?;
        }
        Ok(())
    }

    /// Has Linux schedule the calling thread, that of `task`, as demanded, however often that changes meanwhile. `placed`
    /// is how it is placed if no other thread placed it since the count that goes with it. A held one sleeps here until it is
    /// held no longer.
    pub fn settle(&self, task: TaskId, placed: &mut Placed) {
        let words = self.task(task);
        let (cluster, thread) = (self.number(words.cluster) as usize, self.scheduled_thread(task));
        loop {
            let demand = self.demanded(task);
            step::point();
            let carried = self.carried(task).load(Ordering::SeqCst);
            let before = Some(placed.as_of).filter(|_| placed.carried == carried);
            if before == Some(demand) {
                if demand.class != Class::Held {
                    return;
                }
                self.sleep_until(task, |class| class != Class::Held);
                continue;
            }
            let outcome = self.place(cluster, thread, before, demand);
            self.note_refusal(task, outcome);
            *placed = Placed { as_of: demand, carried };
        }
    }

    /// How the thread of `task` is to be placed.
    pub fn demanded(&self, task: TaskId) -> Placement {
        Placement::of_word(self.demand(task).load(Ordering::SeqCst))
    }

    /// The calling thread, that of `task`, sleeps until another one demanded a class of it that `suffices`, or perhaps less
    /// long.
    pub fn sleep_until(&self, task: TaskId, suffices: impl Fn(Class) -> bool) {
        let gate = self.gate(task);
        gate.store(1, Ordering::SeqCst);
        step::point();
        // The thread that demands it says so first, and opens the gate then.
        while !suffices(self.demanded(task).class) && gate.load(Ordering::SeqCst) == 1 {
            step::sleep(task, Sleep::Gate, gate, 1, clock::now().saturating_add(LOOK_AGAIN));
        }
        gate.store(0, Ordering::SeqCst);
    }

    /// Has Linux schedule the calling thread, that of `task`, so that no task preempts it: an event happens to it.
    pub fn rise(&self, task: TaskId, placed: &mut Placed) {
        let carried = self.carried(task).load(Ordering::SeqCst);
        let is_known = placed.carried == carried;
        if is_known && placed.as_of.class == Class::Urgent {
            return;
        }
        if self.config.carry != Carry::Nothing {
            self.note_refusal(task, step::give_attributes(self.attributes(Class::Urgent), 0));
        }
        // If another thread placed it meanwhile, the CPU is not known: the count says so when it settles.
        placed.as_of.class = Class::Urgent;
    }

    fn note_refusal(&self, task: TaskId, outcome: io::Result<()>) {
        if let Err(error) = outcome {
            let number = error.raw_os_error().unwrap_or(UNKNOWN_ERROR) as u32;
            self.segment.u32(self.task(task).refused).store(number, Ordering::Relaxed);
        }
    }

    /// The attributes of a class.
    pub fn attributes(&self, class: Class) -> Attributes {
        self.attributes_of_classes[class as usize]
    }

    /// The attributes of a class, as the thread of that number may have them.
    fn attributes_for(&self, thread: u32, class: Class) -> io::Result<Attributes> {
        let attributes = self.attributes(class);
        // An ordinary user must not favour it more than Linux does now.
        if class == Class::Throttled { attributes.keeping_niceness(thread) } else { Ok(attributes) }
    }

    /// One CPU of a cluster, or all.
    pub fn cpus(&self, cluster: usize, cpu: Option<CpuId>) -> CpuMask {
        let linux = self.config.clusters.get(cluster).map_or(&[][..], Vec::as_slice);
        match cpu.and_then(|cpu| linux.get(cpu.index())) {
            Some(&cpu) => CpuMask::of([usize::from(cpu)]),
            None => CpuMask::of(linux.iter().map(|&cpu| usize::from(cpu))),
        }
    }

    /// Whether the thread of `task`, which shared memory names, is one of a member of this user; `Ok(false)`: it ended.
    pub fn may_schedule(&self, task: TaskId) -> io::Result<bool> {
        let words = self.task(task);
        // A thread of this process that became this task, or a program that it started for it and has not waited for, needs
        // no system call: this process itself remembers it.
        let thread = self.scheduled_thread(task);
        if self.own_threads[task.index()].load(Ordering::Relaxed) == thread && !self.has_ended(task) {
            return Ok(true);
        }
        let (slot, pid) = (self.number(words.member) as usize, self.number(words.pid));
        let is_members = slot < MEMBERS_MAX && self.pid(slot) == pid;
        if is_members { self.peers.has_thread(self.program(task).unwrap_or(pid), thread) } else { Ok(false) }
    }
}

/// In place of an error without a number: EINVAL.
const UNKNOWN_ERROR: i32 = 22;

/// How a thread is placed, as it knows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed {
    pub as_of: Placement,
    /// How often others had placed it then.
    pub carried: u32,
}

#[cfg(test)]
mod tests {
    use laxity_sys::scheduling::current_thread;
    use laxity_testing::TestRegistry;
    use laxity_testing::simulation::{Pause, Simulation};

    use super::*;
    use crate::step::linux;
    use crate::{Config, Registry, Rule};

    /// What Linux is told of a thread that handled an event on the first CPU and is to be at `class` on the second one.
    fn told(class: Class) {
        let registry: TestRegistry<Registry> = TestRegistry::new(&format!("placement-{class:?}"));
        let system = registry.create("s", &Config::new(Rule::Edf, vec![vec![0, 1]])).expect("a new name");
        let shared = system.shared().clone();
        let mut simulation = Simulation::new(1, 0, 1, Box::new(|_| {}));
        simulation.start(move |_| {
            let on = |class, cpu| Placement { class, cpu: Some(CpuId(cpu)) };
            shared.place(0, current_thread(), None, on(Class::Urgent, 0)).expect("nothing is refused");
            shared.place(0, current_thread(), Some(on(Class::Urgent, 0)), on(class, 1)).expect("nothing is refused");
            let between = linux::placements()[2].clone();
            let (is_urgent, is_there) = (between.0 == Some(shared.attributes(Class::Urgent)), between.1 == [1]);
            assert_eq!((is_urgent, is_there), if class == Class::Running { (true, true) } else { (false, false) });
            assert_eq!(linux::placed(), (Some(shared.attributes(class)), vec![1]));
        });
        while simulation.go_on() == Pause::Event {}
    }

    #[test]
    fn a_thread_goes_to_the_cpu_that_it_gets_before_it_gives_way() {
        told(Class::Running);
    }

    #[test]
    fn a_thread_that_gets_no_cpu_gives_way_before_it_goes() {
        told(Class::Waiting);
    }
}
