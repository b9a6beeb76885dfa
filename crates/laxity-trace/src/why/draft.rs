//! The pieces of a job's life while it lasts; some get their cause only later.

use laxity_model::{CpuId, Engine, GpuId, Instant, JobId, Nanos, OverheadKind};

use super::{Account, Cause, Piece};
use crate::replay::Operation;

/// A job that was released and is not complete.
#[derive(Clone, Debug)]
pub(super) struct Life {
    pub arrival: Instant,
    pub release: Instant,
    pub deadline: Instant,
    /// What it still has to execute because it lost its cache.
    pub refill: Option<(OverheadKind, Nanos)>,
    /// Whether it has taken its tokens, if it is a node's: it waits for none any more.
    pub has_tokens: bool,
    /// What is there that it waited for, and it has not gone on since.
    pub after: After,
    /// When the interrupt that releases it was handled, as far as that took time.
    handled: Option<Instant>,
    drafts: Vec<(Instant, Instant, Draft)>,
    /// The drafts before this one have their causes.
    settled: usize,
}

/// What happened since the job last executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// Nothing that would wake it up.
    Nothing,
    /// An operation of its own is complete.
    Operation(GpuId),
    /// It was granted a lock.
    Grant,
    /// Its server has a budget again.
    Budget,
}

/// The cause of a piece, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Draft {
    /// In full.
    Known(Vec<Cause>),
    /// It is suspended, or spins, for no lock; none of its operations is on an engine. These operations of others are.
    Waits(Vec<Operation>, After),
    /// It is released and not ready.
    Unready,
}

impl Draft {
    /// What it becomes where `cpu` was taken `by` something, if that changes it: what has a name keeps it. A job that waits to
    /// be released or woken up waits for the CPU where it is to go on, which is `cpu` if `is_woken`.
    fn taken(&self, cpu: CpuId, is_woken: bool, by: Cause) -> Option<Draft> {
        let is_named = |cause: &Cause| matches!(cause, Cause::Stolen(_) | Cause::Outside(..));
        let is_there = |cause: &Cause| cause.cpu() == Some(cpu) && !is_named(cause);
        match self {
            Draft::Known(causes) if causes.iter().any(is_there) => {
                let of = |cause: &Cause| if is_there(cause) { by } else { *cause };
                Some(Draft::Known(causes.iter().map(of).collect()))
            }
            Draft::Unready | Draft::Waits(_, After::Operation(_) | After::Grant | After::Budget) if is_woken => {
                Some(Draft::Known(vec![by]))
            }
            _ => None,
        }
    }
}

impl Life {
    pub fn new(arrival: Instant, release: Instant, deadline: Instant) -> Life {
        let mut life = Life {
            arrival,
            release,
            deadline,
            refill: None,
            has_tokens: false,
            after: After::Nothing,
            handled: None,
            drafts: Vec::new(),
            settled: 0,
        };
        life.push(arrival, release, Draft::Known(vec![Cause::Jitter]));
        life
    }

    /// What the job did next. Time before the arrival is left out.
    pub fn push(&mut self, from: Instant, to: Instant, draft: Draft) {
        let from = from.max(self.arrival);
        if from >= to {
            return;
        }
        if matches!(&draft, Draft::Known(causes) if matches!(causes[..], [Cause::Execution(_)])) {
            return self.execute(from, to, draft);
        }
        self.put(from, to, draft);
    }

    /// The job executes: what it waited for is over, and its cache comes first.
    fn execute(&mut self, from: Instant, to: Instant, draft: Draft) {
        self.settle();
        let Some((kind, left)) = self.refill else { return self.put(from, to, draft) };
        let Draft::Known(causes) = &draft else { return };
        let cpu = causes[0].cpu().expect("a job executes on a CPU");
        let until = from.saturating_add(left).min(to);
        self.put(from, until, Draft::Known(vec![Cause::CacheRefill(cpu, kind)]));
        let left = Nanos(left.0.saturating_sub(until.saturating_since(from).0));
        self.refill = Some((kind, left)).filter(|_| !left.is_zero());
        if until < to {
            self.put(until, to, draft);
        }
    }

    fn put(&mut self, from: Instant, to: Instant, draft: Draft) {
        match self.drafts.last_mut() {
            Some((_, end, last)) if *last == draft && *end == from => *end = to,
            _ => self.drafts.push((from, to, draft)),
        }
    }

    /// An operation of the job begins on the engine: that is what it waited for.
    pub fn operation_begins(&mut self, gpu: GpuId, engine: Engine) {
        self.explain(|draft, _| match draft {
            Draft::Waits(operations, _) => {
                let there = operations.iter().find(|operation| (operation.gpu, operation.engine) == (gpu, engine));
                Some(Cause::Engine { gpu, engine, by: there.map(|operation| operation.job) })
            }
            Draft::Known(_) | Draft::Unready => None,
        });
    }

    /// Since when it is not known what the job waits for.
    pub fn open_since(&self) -> Option<Instant> {
        let is_open = |(.., draft): &&(Instant, Instant, Draft)| !matches!(draft, Draft::Known(_));
        self.drafts[self.settled..].iter().find(is_open).map(|&(from, ..)| from)
    }

    /// `cpu` was taken `by` something from one time to the other: what the job did there then, or waited for there, is put
    /// down to that. With `is_woken` the job goes on there now, and so it was there that it was to be released or woken up.
    pub fn take(&mut self, cpu: CpuId, (from, to): (Instant, Instant), is_woken: bool, by: Cause) {
        let mut drafts = Vec::with_capacity(self.drafts.len() + 2);
        for (begin, end, draft) in std::mem::take(&mut self.drafts) {
            let (first, last) = (begin.max(from), end.min(to));
            match draft.taken(cpu, is_woken, by).filter(|_| first < last) {
                Some(stolen) => {
                    let parts = [(begin, first, draft.clone()), (first, last, stolen), (last, end, draft)];
                    drafts.extend(parts.into_iter().filter(|(begin, end, _)| begin < end));
                }
                None => drafts.push((begin, end, draft)),
            }
        }
        self.drafts = drafts;
        self.settled = 0;
        self.explain(|_, _| None);
    }

    /// The handler of a release interrupt has a CPU from `at` on, for `duration`: the first since the job's release is that of its own.
    pub fn release_is_handled(&mut self, at: Instant, duration: Nanos) {
        if at >= self.release {
            self.handled.get_or_insert(at.saturating_add(duration));
        }
    }

    /// The budget of the job's task is replenished: that is what it waited for, once its release was handled.
    pub fn budget_comes(&mut self) {
        let handled = self.handled.unwrap_or(self.release);
        let open = self.drafts.split_off(self.settled);
        for (from, to, draft) in open {
            let until = handled.clamp(from, to);
            if draft == Draft::Unready && from < until && until < to {
                self.drafts.extend([(from, until, draft.clone()), (until, to, draft)]);
            } else {
                self.drafts.push((from, to, draft));
            }
        }
        self.explain(|draft, to| match draft {
            Draft::Unready if to <= handled => Some(Cause::Release),
            Draft::Waits(..) | Draft::Unready => Some(Cause::Throttled),
            Draft::Known(_) => None,
        });
    }

    /// The job goes on, and nothing more will be known of why it waited.
    pub fn settle(&mut self) {
        self.explain(|draft, _| match draft {
            Draft::Waits(_, After::Nothing) => Some(Cause::Suspension),
            Draft::Waits(_, After::Operation(gpu)) => Some(Cause::WakeUp(Some(*gpu))),
            Draft::Waits(_, After::Grant | After::Budget) => Some(Cause::WakeUp(None)),
            Draft::Unready => Some(Cause::Release),
            Draft::Known(_) => None,
        });
        self.after = After::Nothing;
    }

    /// Gives the open drafts the cause that `of` knows of one, and of when it ends; none stays open.
    fn explain(&mut self, of: impl Fn(&Draft, Instant) -> Option<Cause>) {
        for (_, to, draft) in &mut self.drafts[self.settled..] {
            if let Some(cause) = of(draft, *to) {
                *draft = Draft::Known(vec![cause]);
            }
        }
        // The last may go on, and be one with what follows.
        let open = |(.., draft): &(_, _, Draft)| !matches!(draft, Draft::Known(_));
        let first = self.drafts[self.settled..].iter().position(open);
        self.settled = first.map_or(self.drafts.len().saturating_sub(1), |index| self.settled + index);
    }

    pub fn account(mut self, job: JobId, to: Instant, completed: bool) -> Account {
        self.settle();
        let mut pieces: Vec<Piece> = Vec::with_capacity(self.drafts.len());
        let end = to;
        for (from, to, draft) in self.drafts {
            let Draft::Known(causes) = draft else { unreachable!("it was settled") };
            // In a damaged trace a job may have been somewhere before it arrived.
            let (from, to) = (from.max(self.arrival), to.min(end));
            if from >= to {
                continue;
            }
            match pieces.last_mut() {
                Some(last) if last.causes == causes && last.to == from => last.to = to,
                _ => pieces.push(Piece { from, to, causes }),
            }
        }
        let Life { arrival, release, deadline, .. } = self;
        Account { job, arrival, release, deadline, to, completed, pieces }
    }
}
