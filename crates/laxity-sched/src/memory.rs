//! The words of a system in shared memory, without the clusters' states.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use laxity_model::{Instant, Nanos, TaskId};
use laxity_policy::lock::Damaged;
use laxity_sys::cpu_mask::{self, CpuMask};
use laxity_sys::mutex;
use laxity_sys::scheduling::Attributes;
use laxity_sys::segment::Segment;

use crate::config::Config;
use crate::layout::{ClusterWords, Layout, NAME_MAX, TaskWords};
use crate::step;
use crate::task::Parameters;

/// The memory of a system. Other processes write to it, so every number that is read from it is checked.
#[derive(Debug)]
pub(crate) struct Memory {
    pub segment: Segment,
    pub layout: Layout,
    pub name: String,
    pub config: Config,
}

impl Memory {
    /// The mutex that guards the state of `cluster`.
    pub fn state_mutex(&self, cluster: usize) -> mutex::Mutex<'_> {
        self.mutex(self.layout.cluster(cluster).mutex)
    }

    /// The mutex that the thread of `task` holds while it is a task.
    pub fn liveness(&self, task: TaskId) -> mutex::Mutex<'_> {
        self.mutex(self.layout.task(task).liveness)
    }

    #[expect(unsafe_code, reason = "only the registry knows that the mutexes were made")]
    fn mutex(&self, offset: usize) -> mutex::Mutex<'_> {
        // SAFETY: the registry makes these mutexes in every draft, before it is published. A segment with another layout
        // of mutexes, another PID namespace or another boot is not admitted (`Kind::admit`), so no thread attaches to it
        // or reaps in it.
        unsafe { self.segment.mutex(offset) }
    }

    /// A word of 32 bits.
    pub fn number(&self, offset: usize) -> u32 {
        self.segment.u32(offset).load(Ordering::Relaxed)
    }

    /// A word of 64 bits.
    pub fn long(&self, offset: usize) -> u64 {
        self.segment.u64(offset).load(Ordering::Relaxed)
    }

    pub fn cluster_words(&self, cluster: usize) -> ClusterWords {
        self.layout.cluster(cluster)
    }

    /// How often the state of `cluster` was changed.
    pub fn version(&self, cluster: usize) -> &AtomicU64 {
        self.segment.u64(self.layout.cluster(cluster).version)
    }

    pub fn task(&self, task: TaskId) -> TaskWords {
        self.layout.task(task)
    }

    pub fn tasks(&self) -> impl Iterator<Item = TaskId> + use<> {
        (0..u32::from(self.config.tasks)).map(TaskId)
    }

    /// Where the state of the locks is: after those of the clusters.
    pub fn locks_index(&self) -> usize {
        self.config.clusters.len()
    }

    /// Writes the state that is to count at `version`. A reader without the state lock that sees one of these numbers also
    /// sees that the version before counts.
    pub fn write_state(&self, index: usize, version: u64, numbers: &[u64]) {
        assert!(numbers.len() <= self.layout.copy_length, "a state is no longer than the longest");
        let copy = self.cluster_words(index).copy(version);
        fence(Ordering::Release);
        self.segment.u64(copy).store(numbers.len() as u64, Ordering::Relaxed);
        step::point();
        for (word, &number) in self.segment.u64s(copy + 8, numbers.len()).iter().zip(numbers) {
            word.store(number, Ordering::Relaxed);
        }
    }

    /// Reads the state of `version`, of `least` numbers or more.
    ///
    /// # Errors
    /// [`Damaged`].
    pub fn read_state(&self, index: usize, version: u64, least: usize, numbers: &mut Vec<u64>) -> Result<(), Damaged> {
        let copy = self.cluster_words(index).copy(version);
        let length = self.segment.u64(copy).load(Ordering::Relaxed);
        if !(least as u64..=self.layout.copy_length as u64).contains(&length) {
            return Err(Damaged { position: 0, expected: "a possible length" });
        }
        numbers.clear();
        let words = self.segment.u64s(copy + 8, length as usize);
        numbers.extend(words.iter().map(|word| word.load(Ordering::Relaxed)));
        Ok(())
    }

    pub fn clusters(&self) -> std::ops::Range<usize> {
        0..self.config.clusters.len()
    }

    /// How Linux is to schedule the thread of `task`.
    pub fn demand(&self, task: TaskId) -> &AtomicU64 {
        self.segment.u64(self.task(task).demand)
    }

    /// How often another thread changed how Linux schedules that of `task`.
    pub fn carried(&self, task: TaskId) -> &AtomicU32 {
        self.segment.u32(self.task(task).carried)
    }

    /// Waited on by a thread that is to have its CPU before it goes on.
    pub fn gate(&self, task: TaskId) -> &AtomicU32 {
        self.segment.u32(self.task(task).gate)
    }

    /// What became of the request of `task` for a lock.
    pub fn request(&self, task: TaskId) -> &AtomicU32 {
        self.segment.u32(self.task(task).request)
    }

    /// Non-preemptive sections that the thread of `task` is in.
    pub fn sections(&self, task: TaskId) -> &AtomicU32 {
        self.segment.u32(self.task(task).sections)
    }

    /// Whether `task` is to give up its CPU after its non-preemptive section.
    pub fn is_due(&self, task: TaskId) -> &AtomicU32 {
        self.segment.u32(self.task(task).is_due)
    }

    /// Whether the suspended job of `task` has no budget left.
    pub fn is_throttled(&self, task: TaskId) -> bool {
        self.number(self.task(task).throttled) != 0
    }

    /// The job of `task` has no budget left, or has one again. Under the state lock.
    pub fn set_throttled(&self, task: TaskId, is_throttled: bool) {
        self.segment.u32(self.task(task).throttled).store(is_throttled.into(), Ordering::Relaxed);
    }

    /// Stores what `task` is, and which thread. Under the state lock, before it is a task.
    pub fn store_task(&self, task: TaskId, parameters: &Parameters, identity: Identity) {
        let words = self.task(task);
        let Identity { slot, thread, program, own, cpus } = identity;
        let level = parameters.level(self.config.rule);
        let short = [
            (words.sections, 0),
            (words.is_due, 0),
            (words.gate, 0),
            (words.request, 0),
            (words.refused, 0),
            (words.throttled, 0),
            (words.member, slot as u32),
            (words.thread, thread),
            (words.pid, std::process::id()),
            (words.cluster, parameters.cluster as u32),
            (words.program, program.unwrap_or(0)),
            (words.name_length, parameters.name.len() as u32),
        ];
        short.into_iter().for_each(|(offset, value)| self.segment.u32(offset).store(value, Ordering::Relaxed));
        let long = [
            (words.job, 0),
            (words.release, 0),
            (words.deadline, 0),
            (words.completed, 0),
            (words.late, 0),
            (words.tardiness, 0),
            (words.period, parameters.period.0),
            (words.relative, parameters.deadline.0),
            (words.wcet, parameters.wcet.0),
            (words.budget, parameters.budget.map_or(0, |budget| budget.0)),
            (words.level, level),
        ];
        long.into_iter().for_each(|(offset, value)| self.segment.u64(offset).store(value, Ordering::Relaxed));
        self.segment.store_bytes(words.name, parameters.name.as_bytes());
        let store = |offset: usize, words: &[u64]| {
            for (at, &word) in words.iter().enumerate() {
                self.segment.u64(offset + 8 * at).store(word, Ordering::Relaxed);
            }
        };
        store(words.own, &own.to_words());
        store(words.own_cpus, &cpus.to_words());
    }

    /// How Linux scheduled the thread of `task` before it was one.
    pub fn own(&self, task: TaskId) -> (Attributes, CpuMask) {
        let words = self.task(task);
        let attributes = Attributes::from_words([0, 8].map(|word| self.long(words.own + word)));
        let cpus: [u64; cpu_mask::WORDS] = std::array::from_fn(|word| self.long(words.own_cpus + 8 * word));
        (attributes, CpuMask::from_words(cpus))
    }

    /// The process whose first thread is scheduled for `task`, if that is not the task's own thread.
    pub fn program(&self, task: TaskId) -> Option<u32> {
        Some(self.number(self.task(task).program)).filter(|&pid| pid != 0)
    }

    /// The name of `task`.
    pub fn task_name(&self, task: TaskId) -> String {
        let words = self.task(task);
        let length = (self.number(words.name_length) as usize).min(NAME_MAX);
        let bytes = self.segment.load_bytes(words.name..words.name + length);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The job of `task` is number `index`, released at `release` and due at `deadline`. Only its thread says so.
    pub fn begin_job(&self, task: TaskId, index: u64, release: Instant, deadline: Instant) {
        let words = self.task(task);
        for (offset, value) in [(words.job, index), (words.release, release.0), (words.deadline, deadline.0)] {
            self.segment.u64(offset).store(value, Ordering::Relaxed);
        }
    }

    /// Whether the job of `task` gave itself the top priority.
    pub fn is_above(&self, task: TaskId) -> bool {
        self.number(self.task(task).above) != 0
    }

    /// The job of `task` gives itself the top priority, or back. Only its thread says so.
    pub fn set_above(&self, task: TaskId, is_above: bool) {
        self.segment.u32(self.task(task).above).store(is_above.into(), Ordering::Relaxed);
    }

    /// The job of `task` completed at `now`. Only its thread says so.
    pub fn end_job(&self, task: TaskId, now: Instant) {
        let words = self.task(task);
        let tardiness = now.saturating_since(Instant(self.long(words.deadline)));
        let store = |offset, value| self.segment.u64(offset).store(value, Ordering::Relaxed);
        store(words.completed, self.long(words.completed).wrapping_add(1));
        if tardiness > Nanos::ZERO {
            store(words.late, self.long(words.late).wrapping_add(1));
            store(words.tardiness, self.long(words.tardiness).max(tardiness.0));
        }
    }
}

/// Which thread becomes a task, and how Linux schedules it now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity {
    /// The member slot of its process.
    pub slot: usize,
    pub thread: u32,
    /// The program whose first thread it is to be scheduled for.
    pub program: Option<u32>,
    pub own: Attributes,
    pub cpus: CpuMask,
}
