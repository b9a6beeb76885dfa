//! From records to inversions.

use laxity_model::{Instant, JobId, Nanos, OverheadKind};

use super::entities::Entities;
use super::judge::{Found, Judge};
use super::{Collect, Inversion};
use crate::replay::{Change, Replay, Source};
use crate::{DeviceId, Event, TraceHeader};

/// Observes a replay, and judges each cluster about which something changed when time goes on.
#[derive(Clone, Debug)]
pub(in crate::metrics) struct Search<C> {
    entities: Entities,
    judge: Judge,
    /// The inversion that goes on, by task.
    open: Vec<Option<Inversion>>,
    /// The tasks with one, by cluster.
    inverted: Vec<Vec<usize>>,
    /// Whether the trace shows top halves.
    top_halves_cost: bool,
    /// The ends of top halves, and the bottom halves that are ready from then on.
    handled: Vec<(Instant, DeviceId, JobId)>,
    now: Instant,
    collector: C,
}

impl<C: Collect> Search<C> {
    pub fn new(header: &TraceHeader, collector: C) -> Self {
        Search {
            entities: Entities::new(header),
            judge: Judge::new(header.tasks.len()),
            open: vec![None; header.tasks.len()],
            inverted: vec![Vec::new(); header.clusters.len()],
            top_halves_cost: !header.costs.top_half.is_zero(),
            handled: Vec::new(),
            now: Instant::ZERO,
            collector,
        }
    }

    pub fn count_entitled_only(&mut self) {
        self.judge.entitled_only = true;
    }

    pub fn finish(mut self, end: Instant, replay: &Replay) -> C {
        self.advance(end, replay);
        self.settle(replay);
        for task in 0..self.open.len() {
            self.close(task);
        }
        self.collector
    }

    pub fn collected(&self) -> &C {
        &self.collector
    }

    /// Lets the replay apply the event, and observes it before and after.
    pub fn record(&mut self, at: Instant, event: Event, replay: &mut Replay) -> Change {
        if at > self.now || !self.handled.is_empty() {
            self.advance(at, replay);
        }
        let top_half = match event {
            Event::Overhead { cpu, kind: OverheadKind::TopHalf, .. } => {
                replay.details().interrupts.handled_by(cpu, OverheadKind::TopHalf)
            }
            _ => None,
        };
        let change = replay.apply(at, event);
        self.observe(at, event, top_half, replay);
        change
    }

    /// `top_half`: the interrupt that the event begins to handle.
    fn observe(&mut self, at: Instant, event: Event, top_half: Option<Source>, replay: &Replay) {
        match event {
            Event::Ready { job, .. } | Event::Resume { job, .. } => self.entities.update_task(job.task, replay),
            Event::Link { cpu, job } => {
                self.entities.update_cpu(cpu, replay);
                if let Some(job) = job {
                    self.entities.update_task(job.task, replay);
                }
            }
            Event::Dispatch { cpu, .. } | Event::Preempt { cpu, .. } => self.entities.update_cpu(cpu, replay),
            Event::Suspend { cpu, job } => {
                self.entities.update_cpu(cpu, replay);
                self.entities.update_task(job.task, replay);
            }
            Event::Complete { cpu, job } => {
                self.entities.update_cpu(cpu, replay);
                self.entities.update_task(job.task, replay);
                self.entities.end_thread(job, replay);
            }
            Event::Priority { job, .. } => {
                self.entities.update_task(job.task, replay);
                self.entities.note_priority(job.task);
            }
            Event::Interrupt { device, job: Some(owner), .. } if !self.top_halves_cost => {
                self.handled.push((at, device, owner));
            }
            Event::Overhead { duration, .. } if self.top_halves_cost => {
                if let Some(Source { device, owner: Some(owner) }) = top_half {
                    self.handled.push((at.saturating_add(duration), device, owner));
                }
            }
            Event::BottomHalfBegin { cpu, device, job } => {
                self.entities.end_bottom_half(cpu, replay);
                if let Some(owner) = job {
                    self.arrives(device, owner, replay);
                    self.entities.begin_bottom_half(cpu, device, owner);
                }
                self.entities.update_cpu(cpu, replay);
            }
            Event::BottomHalfEnd { cpu, .. } => {
                self.entities.end_bottom_half(cpu, replay);
                self.entities.update_cpu(cpu, replay);
            }
            Event::Serve { thread, device, job: Some(owner) } => {
                self.arrives(device, owner, replay);
                self.entities.serve(thread, device, owner, replay);
            }
            _ => {}
        }
    }

    /// A bottom half begins to be served, wherever: it is no longer on its way.
    fn arrives(&mut self, device: DeviceId, owner: JobId, replay: &Replay) {
        if !self.entities.has_queued(device, owner) {
            if let Some(index) = self.handled.iter().position(|&(_, of, by)| (of, by) == (device, owner)) {
                self.handled.remove(index);
            }
            self.entities.queue_bottom_half(device, owner, replay);
        }
    }

    /// Goes on to `at`: nothing changes until then, except that top halves end.
    fn advance(&mut self, at: Instant, replay: &Replay) {
        while let Some((end, device, owner)) = self.next_handled_until(at) {
            self.move_to(end, replay);
            self.entities.queue_bottom_half(device, owner, replay);
        }
        self.move_to(at, replay);
    }

    /// Takes the first that is handled no later than `at`.
    fn next_handled_until(&mut self, at: Instant) -> Option<(Instant, DeviceId, JobId)> {
        let first = (0..self.handled.len()).min_by_key(|&index| self.handled[index].0)?;
        (self.handled[first].0 <= at).then(|| self.handled.remove(first))
    }

    #[inline]
    fn move_to(&mut self, at: Instant, replay: &Replay) {
        if at > self.now {
            self.settle(replay);
            self.now = at;
        }
    }

    /// Inversions begin and end now.
    fn settle(&mut self, replay: &Replay) {
        while let Some(cluster) = self.entities.next_changed() {
            self.judge.judge(&self.entities, replay, cluster);
            let mut ongoing = std::mem::take(&mut self.inverted[cluster]);
            ongoing.retain(|&task| {
                let goes_on = self.open[task].is_some_and(|open| self.judge.job_of(task) == Some(open.job));
                if !goes_on {
                    self.close(task);
                }
                goes_on
            });
            for &Found { task, job, kind } in self.judge.found() {
                if self.open[task].is_none() {
                    self.open[task] = Some(Inversion { job, since: self.now, length: Nanos::ZERO, kind });
                    ongoing.push(task);
                }
            }
            self.inverted[cluster] = ongoing;
        }
    }

    fn close(&mut self, task: usize) {
        if let Some(inversion) = self.open[task].take() {
            let length = self.now.saturating_since(inversion.since);
            self.collector.collect(Inversion { length, ..inversion });
        }
    }
}
