//! Chains: how old the data is that outputs use, and how late outputs react.
//!
//! ```text
//!   sampled by job   n-1 (arrival p)            n (arrival s)                          data age of an output: o - s
//!                     |                          |   o   o'                            (of all that use n: last-to-last)
//!   time  ------------+--------------------------+---+---+------->                     (of the first of them: last-to-first)
//!   outputs that use n (completions o, o')           |   |                             reaction time: o - p (first-to-first)
//!                                                                                      of the last of them: o' - p (first-to-last)
//! ```
//!
//! Samples are the arrivals of the jobs of the first node. An event just after the one at p is seen by job n at the
//! earliest. Sources: Feiertag, Richter, Nordlander and Jonsson, CRTS 2008 (the four semantics); Becker et al., J. Systems
//! Architecture 80, 2017 (data age); Duerr et al., ACM TECS 18(5s), 2019 (data age and reaction time).

use std::collections::VecDeque;

use laxity_model::{EdgeId, Instant, JobId, Nanos, TaskId};
use serde::Serialize;

use super::distribution::{Distribution, DistributionSummary};
use crate::{ChainInfo, Event, TraceHeader};

/// Complete jobs of a node whose data a later job may still read: live, a reader may be a job behind what the trace shows.
const KEPT: u32 = 4;

/// A chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChainSummary {
    /// Its name.
    pub name: String,
    /// Its nodes.
    pub path: Vec<TaskId>,
    /// Completed jobs of the last node that used a sample.
    pub outputs: u64,
    /// Of these, those that exceeded a deadline of the chain.
    pub missed: u64,
    /// The deadline of the data age.
    #[serde(rename = "data_age_max_ns")]
    pub data_age_max: Option<Nanos>,
    /// The deadline of the reaction time.
    #[serde(rename = "reaction_time_max_ns")]
    pub reaction_time_max: Option<Nanos>,
    /// Of each output: from the oldest sample that it uses to its completion. The longest is last-to-last.
    pub data_age: Option<DistributionSummary>,
    /// The same of the first output of each sample (last-to-first).
    pub data_age_first: Option<DistributionSummary>,
    /// Of the first output of each sample: from the newest sample that outputs before it used (first-to-first).
    pub reaction_time: Option<DistributionSummary>,
    /// The same of the last output of each sample (first-to-last).
    pub reaction_time_last: Option<DistributionSummary>,
}

/// An output that exceeded a deadline of its chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LateOutput {
    /// The chain, as a position in [`TraceHeader::chains`].
    pub chain: usize,
    /// The deadline that was exceeded: of both that of the data age.
    pub deadline: ChainDeadline,
    /// The data age or reaction time.
    pub span: Nanos,
    /// What it may be.
    pub limit: Nanos,
}

/// A deadline of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainDeadline {
    /// `data_age_max`.
    DataAge,
    /// `reaction_time_max`.
    ReactionTime,
}

/// The fold over chains.
#[derive(Clone, Debug)]
pub(crate) struct Chains {
    chains: Vec<Chain>,
}

#[derive(Clone, Debug)]
struct Chain {
    info: ChainInfo,
    /// By node of the path.
    nodes: Vec<Node>,
    /// The newest sample that an output used.
    last: Option<Used>,
    outputs: u64,
    missed: u64,
    data_age: Distribution,
    data_age_first: Distribution,
    reaction_time: Distribution,
    reaction_time_last: Distribution,
}

#[derive(Clone, Debug)]
struct Node {
    relative_deadline: Nanos,
    /// How its jobs get what the node before it wrote; the first node samples.
    input: Input,
    /// Its jobs that are not complete, and the last complete ones, in index order, with the samples that they use.
    jobs: VecDeque<(u32, Option<Samples>)>,
}

#[derive(Clone, Debug)]
enum Input {
    Samples,
    /// The tokens on the edge, those of one job together.
    Tokens(EdgeId, VecDeque<(u32, Option<Samples>)>),
    Latest(EdgeId),
}

/// A deadline, a span beyond it, and what that may be.
type Exceeded = (ChainDeadline, Nanos, Nanos);

/// The samples that led to something: of the jobs that took them, the arrivals of the oldest and of the newest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Samples {
    oldest: Instant,
    newest: Instant,
}

/// A sample that outputs used.
#[derive(Clone, Copy, Debug)]
struct Used {
    sample: Instant,
    /// The one before it that outputs used.
    before: Option<Instant>,
    /// Completion of the last output that used it.
    output: Instant,
}

impl Chains {
    pub fn new(header: &TraceHeader) -> Self {
        Chains { chains: header.chains.iter().map(|info| Chain::new(info, header)).collect() }
    }

    pub fn record(&mut self, at: Instant, event: Event) {
        self.record_and(at, event, |_| {});
    }

    /// Takes note of the event, and calls `late` with each output that it completes too late.
    pub fn record_and(&mut self, at: Instant, event: Event, mut late: impl FnMut(LateOutput)) {
        match event {
            Event::Release { .. }
            | Event::Consume { .. }
            | Event::Produce { .. }
            | Event::Read { .. }
            | Event::Complete { .. } => {
                for (index, chain) in self.chains.iter_mut().enumerate() {
                    if let Some((deadline, span, limit)) = chain.record(at, event) {
                        late(LateOutput { chain: index, deadline, span, limit });
                    }
                }
            }
            _ => {}
        }
    }

    pub fn summary(&self) -> Vec<ChainSummary> {
        self.chains.iter().map(Chain::summary).collect()
    }
}

impl Chain {
    fn new(info: &ChainInfo, header: &TraceHeader) -> Self {
        let node = |(position, task): (usize, &TaskId)| {
            let relative_deadline = header.tasks.get(task.index()).map_or(Nanos::ZERO, |task| task.deadline);
            let before = position.checked_sub(1).map(|before| info.path[before]);
            let input = before.map_or(Input::Samples, |before| Input::between(before, *task, header));
            Node { relative_deadline, input, jobs: VecDeque::new() }
        };
        Chain {
            info: info.clone(),
            nodes: info.path.iter().enumerate().map(node).collect(),
            last: None,
            outputs: 0,
            missed: 0,
            data_age: Distribution::default(),
            data_age_first: Distribution::default(),
            reaction_time: Distribution::default(),
            reaction_time_last: Distribution::default(),
        }
    }

    fn record(&mut self, at: Instant, event: Event) -> Option<Exceeded> {
        let [Some(job), _] = event.jobs() else { return None };
        let position = self.info.path.iter().position(|&task| task == job.task)?;
        match event {
            Event::Release { deadline, .. } => self.nodes[position].release(job, deadline),
            Event::Consume { edge, tokens, .. } => self.nodes[position].consume(job, edge, tokens),
            Event::Produce { edge, tokens, .. } => {
                let samples = self.nodes[position].samples(job.index);
                if let Some(next) = self.nodes.get_mut(position + 1) {
                    next.produce(edge, tokens, samples);
                }
            }
            Event::Read { edge, value, .. } => {
                let before = position.checked_sub(1).map(|before| &self.nodes[before]);
                let samples = before.zip(value).and_then(|(before, value)| before.samples(value));
                self.nodes[position].read(job, edge, samples);
            }
            Event::Complete { .. } => {
                let samples = self.nodes[position].complete(job);
                return self.output(at, samples.filter(|_| position + 1 == self.nodes.len())?);
            }
            _ => {}
        }
        None
    }

    fn output(&mut self, at: Instant, samples: Samples) -> Option<Exceeded> {
        let exceeded =
            |deadline, span: Nanos, limit: Option<Nanos>| Some((deadline, span, limit.filter(|&limit| span > limit)?));
        let age = at.saturating_since(samples.oldest);
        let mut late = exceeded(ChainDeadline::DataAge, age, self.info.data_age_max);
        self.outputs += 1;
        self.data_age.record(age);
        match &mut self.last {
            Some(last) if last.sample >= samples.newest => last.output = at,
            last => {
                self.data_age_first.record(age);
                if let Some(last) = last {
                    let reaction = at.saturating_since(last.sample);
                    self.reaction_time.record(reaction);
                    late = late.or(exceeded(ChainDeadline::ReactionTime, reaction, self.info.reaction_time_max));
                    if let Some(before) = last.before {
                        self.reaction_time_last.record(last.output.saturating_since(before));
                    }
                }
                *last = Some(Used { sample: samples.newest, before: last.map(|last| last.sample), output: at });
            }
        }
        self.missed += u64::from(late.is_some());
        late
    }

    fn summary(&self) -> ChainSummary {
        ChainSummary {
            name: self.info.name.clone(),
            path: self.info.path.clone(),
            outputs: self.outputs,
            missed: self.missed,
            data_age_max: self.info.data_age_max,
            reaction_time_max: self.info.reaction_time_max,
            data_age: self.data_age.summary(),
            data_age_first: self.data_age_first.summary(),
            reaction_time: self.reaction_time.summary(),
            reaction_time_last: self.reaction_time_last.summary(),
        }
    }
}

impl Input {
    /// Over the first edge from `before` to `task`, which is the only one in a valid workload.
    fn between(before: TaskId, task: TaskId, header: &TraceHeader) -> Input {
        let joins = |edge: &crate::EdgeInfo| {
            edge.kind == crate::EdgeKind::Token && (edge.producer, edge.consumer) == (before, task)
        };
        let tokens = header.edges.iter().position(joins);
        let latest = header.latest.iter().position(|edge| (edge.producer, edge.consumer) == (before, task));
        match (tokens, latest) {
            (Some(edge), _) => Input::Tokens(EdgeId(edge as u32), VecDeque::from([(header.edges[edge].initial, None)])),
            (None, Some(edge)) => Input::Latest(EdgeId((header.edges.len() + edge) as u32)),
            // No edge: nothing ever comes.
            (None, None) => Input::Latest(EdgeId(u32::MAX)),
        }
    }
}

impl Node {
    fn release(&mut self, job: JobId, deadline: Instant) {
        let arrival = Instant(deadline.0.saturating_sub(self.relative_deadline.0));
        if matches!(self.input, Input::Samples) {
            self.note(job.index, Some(Samples { oldest: arrival, newest: arrival }));
        }
    }

    fn consume(&mut self, job: JobId, edge: EdgeId, tokens: u32) {
        let Input::Tokens(own, queue) = &mut self.input else { return };
        if *own == edge {
            let taken = take(queue, tokens);
            self.note(job.index, taken);
        }
    }

    fn produce(&mut self, edge: EdgeId, tokens: u32, samples: Option<Samples>) {
        if let Input::Tokens(own, queue) = &mut self.input
            && *own == edge
        {
            queue.push_back((tokens, samples));
        }
    }

    fn read(&mut self, job: JobId, edge: EdgeId, samples: Option<Samples>) {
        if matches!(self.input, Input::Latest(own) if own == edge) {
            self.note(job.index, samples);
        }
    }

    /// The samples that `job`, which is complete, used. Forgets jobs before it that cannot be read any more.
    fn complete(&mut self, job: JobId) -> Option<Samples> {
        while self.jobs.front().is_some_and(|&(index, _)| index.saturating_add(KEPT) < job.index) {
            self.jobs.pop_front();
        }
        self.samples(job.index)
    }

    /// Job `index` uses `samples`. A job that begins again, as its process was killed, reads again.
    fn note(&mut self, index: u32, samples: Option<Samples>) {
        if self.jobs.back().is_none_or(|&(last, _)| last < index) {
            self.jobs.push_back((index, samples));
        } else if let Ok(position) = self.jobs.binary_search_by_key(&index, |&(job, _)| job) {
            self.jobs[position].1 = samples;
        }
    }

    fn samples(&self, index: u32) -> Option<Samples> {
        let position = self.jobs.binary_search_by_key(&index, |&(job, _)| job).ok()?;
        self.jobs[position].1
    }
}

/// Takes the oldest tokens; returns the samples behind them.
fn take(queue: &mut VecDeque<(u32, Option<Samples>)>, mut tokens: u32) -> Option<Samples> {
    let mut all: Option<Samples> = None;
    while tokens > 0 {
        let (available, samples) = queue.front_mut()?;
        let taken = tokens.min(*available);
        if let Some(samples) = samples.filter(|_| taken > 0) {
            let join = |all: Samples| Samples {
                oldest: all.oldest.min(samples.oldest),
                newest: all.newest.max(samples.newest),
            };
            all = Some(all.map_or(samples, join));
        }
        tokens -= taken;
        *available -= taken;
        if *available == 0 {
            queue.pop_front();
        }
    }
    all
}
