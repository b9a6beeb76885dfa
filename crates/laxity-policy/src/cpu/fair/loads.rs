//! Which CPUs are idle, and which have most to do.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::run_queue::RunQueue;

/// An index of the queues of a cluster by what they have to do.
#[derive(Clone, Debug)]
pub(super) struct Loads {
    idle: BTreeSet<u16>,
    /// Those in which a thread waits that may go elsewhere, by load; the CPU of smallest number last among equals.
    overloaded: BTreeSet<(u64, Reverse<u16>)>,
    /// The entry of each CPU there.
    entries: Vec<Option<u64>>,
}

impl Loads {
    pub fn all_idle(cpus: usize) -> Loads {
        Loads { idle: (0..cpus as u16).collect(), overloaded: BTreeSet::new(), entries: vec![None; cpus] }
    }

    /// The queue of `cpu` changed; `may_go`: a thread there could go to another CPU.
    pub fn update(&mut self, cpu: u16, queue: &RunQueue, may_go: bool) {
        if queue.runnable() == 0 && !queue.blocked.at_all() {
            self.idle.insert(cpu);
        } else {
            self.idle.remove(&cpu);
        }
        let entry = may_go.then_some(queue.load);
        let before = std::mem::replace(&mut self.entries[usize::from(cpu)], entry);
        if before == entry {
            return;
        }
        if let Some(load) = before {
            self.overloaded.remove(&(load, Reverse(cpu)));
        }
        if let Some(load) = entry {
            self.overloaded.insert((load, Reverse(cpu)));
        }
    }

    /// Where a thread wakes that was last on `previous` (`select_idle_sibling`): there if that is idle, else on the next
    /// idle CPU, counted in a circle, else there nevertheless.
    pub fn cpu_for(&self, previous: u16) -> u16 {
        let from_there = self.idle.range(previous..).next();
        *from_there.or_else(|| self.idle.first()).unwrap_or(&previous)
    }

    /// The idle CPU of smallest number.
    pub fn first_idle(&self) -> Option<u16> {
        self.idle.first().copied()
    }

    /// The queue with most to do among those in which a thread waits that may go elsewhere.
    pub fn busiest(&self) -> Option<u16> {
        self.overloaded.last().map(|&(_, Reverse(cpu))| cpu)
    }

    pub fn is_idle(&self, cpu: u16) -> bool {
        self.idle.contains(&cpu)
    }
}
