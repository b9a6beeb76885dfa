//! A whole trace as intervals, jobs and inter-processor interrupts.

use std::collections::BTreeMap;

use laxity_model::{CpuId, Instant, JobId};

use super::{Interval, JobHistory, Source, TrackError, Tracker};
use crate::{Event, Record, TraceHeader};

/// Everything that lasted or happened in a trace, clipped to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// Time of the first record.
    pub begin: Instant,
    /// Time of the last record.
    pub end: Instant,
    /// Whether the trace ended deliberately; otherwise it was cut off at `end`.
    pub complete: bool,
    /// Ordered by `from`; equals in the order in which they became known.
    pub intervals: Vec<Interval>,
    /// Every job named, ordered by the trace's first mention of it: by release, where the trace begins early enough.
    pub jobs: Vec<JobHistory>,
    /// Inter-processor interrupts, ordered by `at`.
    pub ipis: Vec<Ipi>,
    /// Interrupts of devices, ordered by `at`.
    pub interrupts: Vec<Interrupt>,
    /// The interrupt that each job of an interrupt thread handles.
    pub served: BTreeMap<JobId, Source>,
}

/// An inter-processor interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipi {
    /// When it was sent.
    pub at: Instant,
    /// When it arrives; may lie after the end of the trace.
    pub arrives: Instant,
    /// Sender.
    pub from: CpuId,
    /// Receiver.
    pub to: CpuId,
}

/// An interrupt of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupt {
    /// When it was raised; its top half may begin later.
    pub at: Instant,
    /// The CPU it is routed to.
    pub cpu: CpuId,
    /// What it is about.
    pub source: Source,
}

impl Timeline {
    /// Follows all `records` of the trace that `header` heads.
    ///
    /// Errors: [`TrackError`], at the first record that names what the header lacks, or goes back in time.
    pub fn of(header: &TraceHeader, records: &[Record]) -> Result<Timeline, TrackError> {
        let mut tracker = Tracker::new(header);
        let mut intervals = Vec::new();
        let (mut ipis, mut interrupts, mut served) = (Vec::new(), Vec::new(), BTreeMap::new());
        let mut mentions = Mentions::default();
        for record in records {
            if let Some(history) = tracker.follow(record, &mut intervals)? {
                mentions.complete(history);
            }
            match record.event {
                Event::Ipi { from, to, latency } => {
                    ipis.push(Ipi { at: record.at, arrives: record.at.saturating_add(latency), from, to });
                }
                Event::Interrupt { cpu, device, job } => {
                    interrupts.push(Interrupt { at: record.at, cpu, source: Source { device, owner: job } });
                }
                Event::Serve { thread, device, job } => {
                    served.insert(thread, Source { device, owner: job });
                }
                Event::Release { job, .. } | Event::Dispatch { job, .. } | Event::Ready { job, .. } => {
                    mentions.mention(job);
                }
                _ => {}
            }
        }
        let (end, complete) = (tracker.now(), tracker.is_complete());
        for history in tracker.finish(&mut intervals) {
            mentions.complete(history);
        }
        // An overhead's duration is recorded when it begins and may point beyond the end.
        intervals.retain_mut(|interval| {
            interval.to = interval.to.min(end);
            interval.from < interval.to
        });
        intervals.sort_by_key(|interval| interval.from);
        let begin = records.first().map_or(Instant::ZERO, |record| record.at);
        Ok(Timeline { begin, end, complete, intervals, jobs: mentions.into_jobs(), ipis, interrupts, served })
    }

    /// The jobs that missed their deadlines, those included that were pending after it when the trace ended.
    pub fn missed(&self) -> impl Iterator<Item = &JobHistory> {
        self.jobs.iter().filter(|job| job.is_missed(self.end))
    }
}

/// Puts histories, which become known on completion, into the order of their jobs' first mention.
#[derive(Default)]
struct Mentions {
    jobs: Vec<JobHistory>,
    /// Jobs mentioned and not complete: where in `jobs`.
    open: BTreeMap<JobId, usize>,
}

impl Mentions {
    fn mention(&mut self, job: JobId) {
        let next = self.jobs.len();
        if *self.open.entry(job).or_insert(next) == next {
            // The tracker's history takes its place.
            self.jobs.push(JobHistory::new(job, true));
        }
    }

    fn complete(&mut self, history: JobHistory) {
        self.mention(history.job);
        if let Some(position) = self.open.remove(&history.job) {
            self.jobs[position] = history;
        }
    }

    fn into_jobs(self) -> Vec<JobHistory> {
        self.jobs
    }
}
