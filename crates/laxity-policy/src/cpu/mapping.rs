//! The processor mapping: which job is linked to which CPU, and which CPU would be the first to give way.
//!
//! A heap of CPUs ordered by the priority of their linked jobs, idle CPUs first (paper 002, section 3, "Processor
//! mapping"): the most common question is whether a preemption is required, and it needs the lowest-priority linked job.

use super::Priority;

/// CPUs ordered by the job linked to them.
#[derive(Clone, Debug)]
pub struct ProcessorMapping {
    linked: Vec<Option<Priority>>,
    /// Heap of CPUs; the root gives way first.
    heap: Vec<u16>,
    /// Where each CPU is in `heap`.
    position: Vec<u16>,
    /// Heap order: the larger key gives way first.
    keys: Vec<u128>,
}

impl ProcessorMapping {
    /// `cpus` CPUs, all idle. Panics if there are none.
    pub fn idle(cpus: usize) -> Self {
        assert!(cpus > 0, "a cluster has at least one CPU");
        ProcessorMapping {
            linked: vec![None; cpus],
            heap: (0..cpus as u16).collect(),
            position: (0..cpus as u16).collect(),
            keys: (0..cpus).map(|cpu| key(cpu, None)).collect(),
        }
    }

    /// Number of CPUs.
    pub fn cpus(&self) -> usize {
        self.linked.len()
    }

    /// What is linked to `cpu`.
    pub fn linked(&self, cpu: usize) -> Option<Priority> {
        self.linked[cpu]
    }

    /// The CPU that gives way first (an idle one if there is any, then the one with the least urgent job; among idle
    /// CPUs the smallest number), and what is linked to it.
    pub fn lowest(&self) -> (usize, Option<Priority>) {
        let cpu = usize::from(self.heap[0]);
        (cpu, self.linked[cpu])
    }

    /// Links `job` to `cpu` and returns what was linked there.
    pub fn set(&mut self, cpu: usize, job: Option<Priority>) -> Option<Priority> {
        let before = std::mem::replace(&mut self.linked[cpu], job);
        self.keys[cpu] = key(cpu, job);
        let at = usize::from(self.position[cpu]);
        let at = self.sift_up(at);
        self.sift_down(at);
        before
    }

    fn sift_up(&mut self, mut at: usize) -> usize {
        while at > 0 {
            let parent = (at - 1) / 2;
            if self.key_at(parent) >= self.key_at(at) {
                break;
            }
            self.swap(parent, at);
            at = parent;
        }
        at
    }

    fn sift_down(&mut self, mut at: usize) {
        loop {
            let left = 2 * at + 1;
            if left >= self.heap.len() {
                return;
            }
            let right = left + 1;
            let child = if right < self.heap.len() && self.key_at(right) > self.key_at(left) { right } else { left };
            if self.key_at(at) >= self.key_at(child) {
                return;
            }
            self.swap(at, child);
            at = child;
        }
    }

    fn key_at(&self, at: usize) -> u128 {
        self.keys[usize::from(self.heap[at])]
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        self.position[usize::from(self.heap[a])] = a as u16;
        self.position[usize::from(self.heap[b])] = b as u16;
    }

    /// Panics if the heap order or the position index is broken.
    pub(super) fn assert_invariants(&self) {
        for at in 0..self.heap.len() {
            assert_eq!(usize::from(self.position[usize::from(self.heap[at])]), at, "the position index is exact");
            assert!(at == 0 || self.key_at((at - 1) / 2) >= self.key_at(at), "a parent gives way before its children");
        }
    }
}

/// Below the key of every idle CPU, which a CPU number has 16 bits for.
const LEAST_URGENT: u128 = u128::MAX - (1 << 16);

/// Idle CPUs above all jobs, the smallest number first; then the least urgent job first.
fn key(cpu: usize, job: Option<Priority>) -> u128 {
    match job {
        None => u128::MAX - cpu as u128,
        Some(Priority { major, tie, task }) => {
            // Only a deadline at the end of time has to be told from an idle CPU.
            let key = u128::from(major) << 64 | u128::from(tie) << 32 | u128::from(task.0);
            key.min(LEAST_URGENT)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use laxity_model::TaskId;

    #[test]
    fn the_idle_cpu_of_smallest_number_gives_way_first_and_then_the_least_urgent_job() {
        let job = |major, task| Some(Priority::of(major, TaskId(task)));
        let mut mapping = ProcessorMapping::idle(3);
        assert_eq!(mapping.lowest(), (0, None));
        mapping.set(0, job(10, 0));
        assert_eq!(mapping.lowest(), (1, None));
        mapping.set(1, job(30, 1));
        mapping.set(2, job(30, 2));
        assert_eq!(mapping.lowest(), (2, job(30, 2)), "a tie goes to the task listed first, so the other gives way");
        assert_eq!(mapping.set(2, job(5, 3)), job(30, 2));
        assert_eq!(mapping.lowest(), (1, job(30, 1)));
        mapping.set(0, None);
        assert_eq!(mapping.lowest(), (0, None));
        mapping.assert_invariants();
    }
}
