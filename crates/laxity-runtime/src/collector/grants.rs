//! When locks were granted, and which jobs were suspended until then.

use laxity_model::{CpuId, Instant, JobId, LockId, Nanos, ReplicaId, TaskId};
use laxity_trace::{Event, Sink};

use super::{Collector, Source};
use crate::log::{Entry, JobStep};

/// Whether a later request got what an earlier one asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overtaken {
    No,
    /// A request that its thread noted at that time.
    Until(Instant),
    /// Which job got the lock is not known yet.
    Unknown,
}

impl Collector {
    /// Whether the next entry of `task` is a request for a lock that is free, and that another task gets which has not
    /// requested it yet. A thread notes its request before it makes it, and may be stopped in between by an interrupt,
    /// another thread or the hypervisor; so it made its request after the other had made its own.
    pub(super) fn overtaken(&self, task: usize, horizon: Instant, is_last: bool) -> Overtaken {
        let Some(&Entry { step: JobStep::Request(lock), at, .. }) = self.sources[task].entries.front() else {
            return Overtaken::No;
        };
        if self.is_told && self.bandwidth != Some(lock) {
            return Overtaken::No;
        }
        let has_one = self.locks.replicas(lock) == 1;
        let own = self.first_grant(task, lock);
        for replica in self.locks.free(lock) {
            match self.next_holder(lock, replica, horizon) {
                Some(other) if other != task && !self.locks.waits(other, lock) && (has_one || own == Some(replica)) => {
                    let is_request = |entry: &&Entry| entry.step == JobStep::Request(lock);
                    let request = self.sources[other].entries.iter().find(is_request);
                    if let Some(request) = request.filter(|request| request.at >= at) {
                        return Overtaken::Until(request.at);
                    }
                }
                None if has_one && !is_last && own.is_none() => return Overtaken::Unknown,
                _ => {}
            }
        }
        Overtaken::No
    }

    /// The next entry of `task` happened after `later`.
    pub(super) fn put_off(&mut self, task: usize, later: Instant) {
        let after = later.saturating_add(Nanos(1));
        // What follows is later anyway, but for the grain of the clock.
        for entry in self.sources[task].entries.iter_mut().take_while(|entry| entry.at < after) {
            entry.at = after;
        }
    }

    /// Grants replicas that are free and requested. Answers whether it is known of all of them which task got them.
    pub(super) fn decide(&mut self, horizon: Instant, is_last: bool, sink: &mut impl Sink) -> bool {
        loop {
            let mut found = None;
            for (lock, replica) in self.locks.undecided() {
                match self.next_holder(lock, replica, horizon) {
                    Some(task) if self.locks.waits(task, lock) && self.first_grant(task, lock) == Some(replica) => {
                        found = Some((task, lock, replica));
                        break;
                    }
                    // It requested the lock at the same instant as a task that waits, and was faster: its request comes next.
                    Some(_) => {}
                    // If all tasks that wait got other replicas, this one stays free: not every task may have every replica.
                    None if is_last || self.have_all_got(lock, horizon) => {}
                    None => return false,
                }
            }
            match found {
                Some((task, lock, replica)) => self.grant(task, lock, replica, sink),
                None => return true,
            }
        }
    }

    /// The task that notes next that it has `replica` of `lock`.
    fn next_holder(&self, lock: LockId, replica: ReplicaId, horizon: Instant) -> Option<usize> {
        let noted = |(task, source): (usize, &Source)| {
            let is_grant = |entry: &&Entry| entry.at <= horizon && entry.step == JobStep::Grant(lock, replica);
            source.entries.iter().find(is_grant).map(|entry| (entry.at, task))
        };
        self.sources.iter().enumerate().filter_map(noted).min().map(|(_, task)| task)
    }

    /// The replica of `lock` that `task` notes next to have.
    fn first_grant(&self, task: usize, lock: LockId) -> Option<ReplicaId> {
        self.sources[task].entries.iter().find_map(|entry| match entry.step {
            JobStep::Grant(noted, replica) if noted == lock => Some(replica),
            _ => None,
        })
    }

    /// Whether it is known of all tasks that wait for `lock` which replica they got.
    fn have_all_got(&self, lock: LockId, horizon: Instant) -> bool {
        let is_grant =
            |entry: &Entry| entry.at <= horizon && matches!(entry.step, JobStep::Grant(noted, _) if noted == lock);
        let mut sources = self.sources.iter().enumerate().filter(|&(task, _)| self.locks.waits(task, lock));
        sources.all(|(_, source)| source.entries.iter().any(is_grant))
    }

    fn grant(&mut self, task: usize, lock: LockId, replica: ReplicaId, sink: &mut impl Sink) {
        let at = self.reached;
        let (cpu, index) = self.last_seen[task];
        let job = JobId { task: TaskId(task as u32), index };
        sink.record(at, Event::Grant { job, lock, replica });
        if self.locks.wanted(task).is_some_and(|wanted| wanted.suspended) {
            sink.record(at, Event::Resume { cpu, job });
        }
        self.locks.grant(task, lock, replica);
    }

    /// Suspends the jobs that did not get the lock of a GPU at once. Of a resource the job notes that itself.
    /// Under Laxity's scheduler it notes both.
    pub(super) fn put_to_sleep(&mut self, sink: &mut impl Sink) {
        if self.is_told {
            return;
        }
        let at = self.reached;
        while let Some(task) = self.locks.awake(self.resources) {
            let (cpu, index) = self.last_seen[task];
            let job = JobId { task: TaskId(task as u32), index };
            self.occupancy.leave(job, cpu, Event::Suspend { cpu, job }, &mut |event| sink.record(at, event));
            self.locks.wanted(task).expect("it waits").suspended = true;
        }
    }

    /// The job has its lock and is on a CPU.
    pub(super) fn noted(
        &mut self,
        task: usize,
        job: JobId,
        cpu: CpuId,
        (lock, replica): (LockId, ReplicaId),
        sink: &mut impl Sink,
    ) {
        let at = self.reached;
        let wanted = self.locks.noted(task);
        if wanted.is_none_or(|wanted| !wanted.granted) {
            // The trace gave the lock to another task, which only a race of two requests explains.
            sink.record(at, Event::Grant { job, lock, replica });
            if wanted.is_some_and(|wanted| wanted.suspended) {
                sink.record(at, Event::Resume { cpu, job });
            }
            self.locks.grant(task, lock, replica);
        }
        self.occupancy.enter(job, cpu, &mut |event| sink.record(at, event));
    }
}
