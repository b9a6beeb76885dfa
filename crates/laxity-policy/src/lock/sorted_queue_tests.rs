//! What the arbiter owes a discipline that keeps its queue sorted, unlike those that choose when they grant.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use laxity_model::{EngineOrder, Instant, LockId, Nanos, ReplicaId, TaskId};

use super::discipline::{Config, Discipline, Grant, Levels, Progress, Request, Standing};
use super::saved::{Codec, Damaged, Saved};
use super::{Arbiter, Event};

const A: LockId = LockId(0);
const B: LockId = LockId(1);

/// A mutex whose queue is sorted when a job joins and when it is told to, and that counts how often it is told to.
#[derive(Debug, Default)]
struct Sorted {
    holder: Option<TaskId>,
    waiting: Vec<TaskId>,
    told: Arc<AtomicU32>,
}

impl Sorted {
    fn grant(&mut self, task: TaskId, grants: &mut Vec<Grant>) {
        self.holder = Some(task);
        grants.push(Grant { task, replica: ReplicaId(0) });
    }
}

impl Discipline for Sorted {
    fn request(&mut self, _: Instant, request: Request, levels: Levels<'_>, grants: &mut Vec<Grant>) {
        if self.holder.is_none() {
            self.grant(request.task, grants);
        } else {
            self.waiting.push(request.task);
            self.waiting.sort_by_key(|&task| levels.priority(task));
        }
    }

    fn adopt(&mut self, _: Instant, request: Request, _: ReplicaId, _: Levels<'_>) {
        self.holder = Some(request.task);
    }

    fn unlock(&mut self, _: Instant, _: TaskId, _: Levels<'_>, grants: &mut Vec<Grant>) {
        self.holder = None;
        if !self.waiting.is_empty() {
            let next = self.waiting.remove(0);
            self.grant(next, grants);
        }
    }

    fn withdraw(&mut self, _: Instant, task: TaskId, _: Levels<'_>, _: &mut Vec<Grant>) {
        self.waiting.retain(|&waiting| waiting != task);
    }

    fn reordered(&mut self, _: Instant, levels: Levels<'_>, _: &mut Vec<Grant>) {
        self.told.fetch_add(1, Ordering::Relaxed);
        self.waiting.sort_by_key(|&task| levels.priority(task));
    }

    fn inheritance(&self, _: &mut dyn FnMut(TaskId, TaskId)) {}

    fn standings(&self, stands: &mut dyn FnMut(TaskId, Standing)) {
        self.waiting.iter().for_each(|&task| stands(task, Standing::Queue));
    }

    fn clear(&mut self) {
        (self.holder, self.waiting) = (None, Vec::new());
    }

    fn holder(&self, _: ReplicaId) -> Option<TaskId> {
        self.holder
    }

    fn assert_invariants(&self) {}
}

impl Saved for Sorted {
    fn code(&mut self, codec: &mut Codec<'_>) -> Result<(), Damaged> {
        codec.optional_task(&mut self.holder)?;
        codec.list(&mut self.waiting, codec.tasks(), Codec::task)
    }

    fn numbers_max(&self, tasks: usize) -> usize {
        2 + tasks
    }
}

/// A is sorted, B a mutex with inheritance. T1 holds B and waits for A behind T2. When T3 comes to wait for B, T1
/// inherits and overtakes T2; when T3 withdraws, it falls back.
///
/// ```text
///        0+A   1+B   1+A   2+A   3+B      3?B
///   A's  -     -     1     2 1   1=3 2    2 1
/// ```
#[test]
fn a_sorted_queue_is_sorted_again_when_a_waiting_jobs_priority_changes() {
    let overtaken = [(false, TaskId(1)), (true, TaskId(2))];
    for (withdraws, next) in overtaken {
        let told = Arc::new(AtomicU32::new(0));
        let mut arbiter = two_locks(Sorted { told: Arc::clone(&told), ..Sorted::default() });
        for (task, lock) in [(0, A), (1, B), (1, A), (2, A)] {
            request(&mut arbiter, task, lock);
        }
        assert_eq!(told.load(Ordering::Relaxed), 0, "no priority changed while its job waited");
        request(&mut arbiter, 3, B);
        assert_eq!(told.load(Ordering::Relaxed), 1);
        if withdraws {
            arbiter.handle(Instant::ZERO, Event::Withdraw { task: TaskId(3), lock: B }, &mut Vec::new());
            assert_eq!(told.load(Ordering::Relaxed), 2);
        }
        arbiter.handle(Instant::ZERO, Event::Unlock { task: TaskId(0), lock: A }, &mut Vec::new());
        assert_eq!(arbiter.holder(A, ReplicaId(0)), Some(next));
        arbiter.assert_invariants();
    }
}

/// Four pending jobs, the last of the highest priority.
fn two_locks(sorted: Sorted) -> Arbiter {
    let mutex = Config::Queue { replicas: 1, order: EngineOrder::Fifo, progress: Progress::Inheritance };
    let mut arbiter = Arbiter::new(4, &[mutex.clone(), mutex]);
    arbiter.locks[A.index()].discipline = Box::new(sorted);
    for task in 0..4 {
        let priority = crate::cpu::Priority::of(9 - u64::from(task), TaskId(task));
        arbiter.handle(Instant::ZERO, Event::Pending { priority }, &mut Vec::new());
    }
    arbiter
}

fn request(arbiter: &mut Arbiter, task: u32, lock: LockId) {
    let event = Event::Request { task: TaskId(task), lock, length: Nanos(1), only: None };
    arbiter.handle(Instant::ZERO, event, &mut Vec::new());
}
