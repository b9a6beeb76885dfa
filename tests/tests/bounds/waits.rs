//! What jobs waited for, read off the records of a trace.

use std::collections::BTreeMap;

use laxity_model::{Instant, JobId, LockId, PriorityRule};
use laxity_trace::{Event, Record, TraceHeader};

/// A wait for a lock that ended in a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    pub job: JobId,
    pub lock: LockId,
    /// From the request to the grant.
    pub whole: u64,
    /// Of that, the time in which the job was pi-blocked, suspension-oblivious: fewer than m jobs of higher base
    /// priority were pending.
    pub blocked: u64,
    /// How often it ceased to be among the m highest unfinished requests for the lock, by base priority.
    pub displaced: u64,
}

/// A request that is not granted.
#[derive(Clone, Copy)]
struct Waiting {
    since: Instant,
    blocked: u64,
    displaced: u64,
    /// Whether it is among the m highest.
    is_top: bool,
}

/// All waits of a trace, in the order of their ends.
pub fn waits(header: &TraceHeader, records: &[Record]) -> Vec<Wait> {
    let mut walk = Walk::new(header);
    for record in records {
        walk.pass_until(record.at);
        walk.take(record);
    }
    walk.done
}

/// Base priority; the smaller is the higher.
type Base = (u64, JobId);

struct Walk<'a> {
    header: &'a TraceHeader,
    now: Instant,
    /// Deadlines of released jobs.
    deadlines: BTreeMap<JobId, Instant>,
    /// Ready and not complete.
    pending: BTreeMap<JobId, Base>,
    /// Unfinished requests of each lock: granted or not.
    unfinished: BTreeMap<LockId, Vec<Base>>,
    waiting: BTreeMap<(LockId, JobId), Waiting>,
    done: Vec<Wait>,
}

impl<'a> Walk<'a> {
    fn new(header: &'a TraceHeader) -> Self {
        Walk {
            header,
            now: Instant::ZERO,
            deadlines: BTreeMap::new(),
            pending: BTreeMap::new(),
            unfinished: BTreeMap::new(),
            waiting: BTreeMap::new(),
            done: Vec::new(),
        }
    }

    fn base(&self, job: JobId) -> Base {
        match self.header.scheduler.rule {
            PriorityRule::Edf => (self.deadlines[&job].0, job),
            _ => (self.header.tasks[job.task.index()].rank.into(), job),
        }
    }

    fn pass_until(&mut self, at: Instant) {
        let span = (at - self.now).0;
        self.now = at;
        for (&(_, job), waiting) in self.waiting.iter_mut().filter(|_| span > 0) {
            let own = self.pending[&job];
            let higher = self.pending.values().filter(|&&other| other < own).count();
            waiting.blocked += if higher < self.header.cpus { span } else { 0 };
        }
    }

    fn take(&mut self, record: &Record) {
        match record.event {
            Event::Release { job, deadline } => {
                self.deadlines.insert(job, deadline);
            }
            Event::Ready { job, .. } if self.header.tasks[job.task.index()].kind != laxity_trace::TaskKind::Thread => {
                self.pending.insert(job, self.base(job));
            }
            Event::Complete { job, .. } => {
                self.pending.remove(&job);
            }
            Event::Request { job, lock } => {
                let waiting = Waiting { since: self.now, blocked: 0, displaced: 0, is_top: false };
                let own = self.base(job);
                self.unfinished.entry(lock).or_default().push(own);
                self.waiting.insert((lock, job), waiting);
                self.stand(lock);
            }
            Event::Grant { job, lock, .. } => {
                let waiting = self.waiting.remove(&(lock, job)).expect("a grant follows a request");
                let Waiting { since, blocked, displaced, .. } = waiting;
                self.done.push(Wait { job, lock, whole: (self.now - since).0, blocked, displaced });
            }
            Event::Unlock { job, lock, .. } => {
                let own = self.base(job);
                self.unfinished.entry(lock).or_default().retain(|&other| other != own);
                self.stand(lock);
            }
            _ => {}
        }
    }

    /// The set of the m highest jobs changed, perhaps for no time at all.
    fn stand(&mut self, lock: LockId) {
        let unfinished = &self.unfinished[&lock];
        for (&(_, job), waiting) in self.waiting.iter_mut().filter(|((of, _), _)| *of == lock) {
            let own = self.pending[&job];
            let is_top = unfinished.iter().filter(|&&other| other < own).count() < self.header.cpus;
            waiting.displaced += u64::from(waiting.is_top && !is_top);
            waiting.is_top = is_top;
        }
    }
}
