//! From the recorders of all nodes to one trace, while the graph runs or after it.

mod header;
mod merge;

use laxity_model::{EdgeId, Instant, JobId, Nanos, TaskId};
use laxity_policy::graph::EdgeKind;
use laxity_sys::clock;
use laxity_trace::{CpuOccupancy, Event, Sink, TraceHeader};

use self::merge::{Happening, Merge};
use crate::graph::Graph;
use crate::recorder::{Entry, Found};
use crate::releases::{NoRecorder, Releases};

/// Reads what the nodes of a graph recorded and writes the records of a trace, in the order of cause and effect.
///
/// ```text
/// at its release, or when it begins early       Release
/// when it begins                                Consume, from every inbound edge; Ready; Dispatch
/// when it completes                             Complete; Produce, on every outbound edge
/// when another job begins on its CPU            Preempt
/// ```
///
/// A job's `Ready` is the end of its wait: it had its tokens, and room. That a job left its CPU is not seen but
/// concluded: from another that begins there, or from its completing elsewhere; it is taken to go on there when the
/// other completes. Whether it had the CPU all the time otherwise only Linux knows.
///
/// Times count from [`Collector::origin`]. Jobs have the lower 32 bits of their index.
#[derive(Debug)]
pub struct Collector {
    graph: Graph,
    header: TraceHeader,
    origin: Instant,
    readers: Vec<Reader>,
    merge: Merge,
    occupancy: CpuOccupancy,
    /// The time of the last record.
    reached: Instant,
    collected: Collected,
}

/// What a [`Collector`] did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Records written.
    pub records: u64,
    /// Jobs that were over, and forgotten, when it came: the trace does not begin with job 0 of all nodes.
    pub missed: u64,
    /// Jobs that were forgotten since, before it read them, and are not in the trace: collect more often, or make the
    /// recorder deeper. The trace then ends without its `End`, as one that was cut off.
    pub lost: u64,
    /// Releases, beginnings and completions that were recorded so late that later ones had been written, as their thread
    /// was preempted in between: they have the time of these.
    pub late: u64,
}

/// How far a node was read.
#[derive(Clone, Copy, Debug)]
struct Reader {
    /// The first job whose completion was not read.
    next: u64,
    /// When that job began, if that was read.
    began: Option<Instant>,
}

/// How long what was recorded is held back for what was recorded late, while a graph runs. A thread takes the time and
/// writes it down within nanoseconds unless it is preempted in between.
const HOLD_BACK: Nanos = Nanos::from_millis(1);

/// How much is held back at most for jobs that were released and do not begin, about 50 MB: a node that waits
/// for one that is not claimed should not fill the memory.
const HELD_MAX: usize = 1 << 20;

impl Collector {
    /// Of `graph`, from the oldest jobs that its recorders have.
    ///
    /// # Errors
    /// [`NoRecorder`].
    pub fn new(graph: &Graph) -> Result<Collector, NoRecorder> {
        let shared = graph.shared();
        if shared.recorded() == 0 {
            return Err(NoRecorder { graph: shared.spec.graph().name.clone() });
        }
        let nodes = 0..shared.nodes();
        let oldest = |node| shared.completed(node).saturating_sub(shared.recorded());
        let readers: Vec<Reader> = nodes.map(|node| Reader { next: oldest(node), began: None }).collect();
        let missed = readers.iter().map(|reader| reader.next).sum();
        let header = header::of(graph.spec());
        Ok(Collector {
            origin: origin(graph, &readers),
            occupancy: CpuOccupancy::new(header.cpus, header.tasks.len()),
            merge: Merge::new(header.tasks.len()),
            header,
            readers,
            reached: Instant::ZERO,
            collected: Collected { missed, ..Collected::default() },
            graph: graph.clone(),
        })
    }

    /// What the trace begins with. Node i of the graph is task i, edge i of its plan edge i. It names G-EDF, as
    /// deadlines are counted so; this does not say that Linux schedules by them.
    pub fn header(&self) -> &TraceHeader {
        &self.header
    }

    /// Time 0 of the trace on the monotonic clock: when the first of the jobs that it begins with was released.
    pub fn origin(&self) -> Instant {
        self.origin
    }

    /// Writes what happened since the last time, but for the last millisecond, and for what came after the release of a
    /// job that did not begin: as a rule it will, and its release comes first. To be called more often than a node has as
    /// many jobs as the recorder remembers.
    pub fn collect(&mut self, sink: &mut impl Sink) -> Collected {
        let until = Instant(clock::now().0.saturating_sub(HOLD_BACK.0));
        self.read_all();
        let until = if self.merge.len() > HELD_MAX { until } else { self.releases().fold(until, Instant::min) };
        self.write_until(until, sink)
    }

    /// Writes all that happened up to now, and `End` unless something was lost.
    pub fn finish(mut self, sink: &mut impl Sink) -> Collected {
        let now = clock::now();
        self.read_all();
        let mut collected = self.write_until(now, sink);
        if collected.lost == 0 {
            sink.record(self.reached, Event::End);
            collected.records += 1;
        }
        collected
    }

    /// When each node's first job was released that has its tokens and had not begun when it was looked for. That is
    /// written down when it begins, however late.
    fn releases(&self) -> impl Iterator<Item = Instant> {
        let shared = self.graph.shared();
        let nodes = self.readers.iter().enumerate();
        nodes.filter(|(node, _)| !shared.has_terminated(*node)).filter_map(|(node, &Reader { next, began })| {
            let waiting = next + u64::from(began.is_some());
            Releases::before(shared, node, waiting).settled(shared, waiting)
        })
    }

    fn read_all(&mut self) {
        (0..self.readers.len()).for_each(|node| self.read(node));
    }

    /// Everything that led to something before `until`, a time that was over before all was read, is visible before that
    /// was: so all of it was read, in whatever order.
    fn write_until(&mut self, until: Instant, sink: &mut impl Sink) -> Collected {
        while let Some((node, at, happening)) = self.merge.next_until(until) {
            self.write(node, at, happening, sink);
        }
        self.collected
    }

    fn read(&mut self, node: usize) {
        loop {
            let Reader { next, began } = self.readers[node];
            match self.graph.shared().recorded_job(node, next) {
                Found::NotYet => return,
                Found::Overwritten => self.skip(node),
                Found::Entry(entry) => {
                    if began != Some(entry.began) {
                        self.note_begin(node, next, entry, began.is_some());
                    }
                    let Some((at, cpu)) = entry.completed else {
                        self.readers[node].began = Some(entry.began);
                        return;
                    };
                    self.merge.push(node, at.max(entry.began), Happening::Complete { index: next, cpu });
                    self.readers[node] = Reader { next: next + 1, began: None };
                }
            }
        }
    }

    fn note_begin(&mut self, node: usize, index: u64, entry: Entry, again: bool) {
        if !again {
            let release = entry.release.at;
            let deadline = release.saturating_add(self.header.tasks[node].deadline);
            self.merge.push(node, release.min(entry.began), Happening::Release { index, deadline });
        }
        self.merge.push(node, entry.began, Happening::Begin { index, cpu: entry.cpu, again });
    }

    /// The slot of the next job is that of a later one: goes on with the oldest that may be left.
    fn skip(&mut self, node: usize) {
        let (shared, Reader { next, .. }) = (self.graph.shared(), self.readers[node]);
        let oldest = shared.completed(node).saturating_sub(shared.recorded()).max(next + 1);
        self.collected.lost += oldest - next;
        self.readers[node] = Reader { next: oldest, began: None };
        self.merge.push_gap(node);
    }

    fn write(&mut self, node: usize, at: Instant, happening: Happening, sink: &mut impl Sink) {
        let relative = |at: Instant| Instant(at.0.saturating_sub(self.origin.0));
        let is_late = relative(at) < self.reached && happening != Happening::Gap;
        self.collected.late += u64::from(is_late);
        self.reached = self.reached.max(relative(at));
        let (at, records) = (self.reached, &mut self.collected.records);
        let mut record = |event| {
            *records += 1;
            sink.record(at, event);
        };
        let job = |index: u64| JobId { task: TaskId(node as u32), index: index as u32 };
        let edges = self.graph.spec().plan().edges().iter().enumerate();
        match happening {
            Happening::Release { index, deadline } => {
                record(Event::Release { job: job(index), deadline: relative(deadline) });
            }
            Happening::Begin { index, cpu, again } => {
                self.occupancy.withdraw(TaskId(node as u32), &mut record);
                let cpu = self.occupancy.cpu(cpu);
                if !again {
                    // Tokens, then feedback tokens, as in paper 003, Fig. 5.5.
                    for is_feedback in [false, true] {
                        let inbound = edges.clone().filter(|(_, edge)| edge.consumer == node);
                        for (edge, rule) in inbound.filter(|(_, edge)| is_feedback == (edge.kind == EdgeKind::Feedback))
                        {
                            let edge = EdgeId(edge as u32);
                            record(Event::Consume { job: job(index), edge, tokens: rule.consume });
                        }
                    }
                    record(Event::Ready { job: job(index), cpu });
                }
                self.occupancy.enter(job(index), cpu, &mut record);
            }
            Happening::Complete { index, cpu } => {
                let cpu = self.occupancy.cpu(cpu);
                let complete = Event::Complete { cpu, job: job(index) };
                self.occupancy.leave(job(index), cpu, complete, &mut record);
                // Feedback tokens, then tokens.
                for is_feedback in [true, false] {
                    let outbound = edges.clone().filter(|(_, edge)| edge.producer == node);
                    for (edge, rule) in outbound.filter(|(_, edge)| is_feedback == (edge.kind == EdgeKind::Feedback)) {
                        let edge = EdgeId(edge as u32);
                        record(Event::Produce { job: job(index), edge, tokens: rule.produce });
                    }
                }
            }
            Happening::Gap => self.occupancy.withdraw(TaskId(node as u32), &mut record),
        }
    }
}

/// The first instant of what the recorders have: no release that follows is earlier. If they have nothing it is the start,
/// which may lie ahead.
fn origin(graph: &Graph, readers: &[Reader]) -> Instant {
    let shared = graph.shared();
    let first = readers.iter().enumerate().filter_map(|(node, reader)| match shared.recorded_job(node, reader.next) {
        Found::Entry(entry) => Some(entry.began.min(entry.release.at)),
        Found::NotYet | Found::Overwritten => None,
    });
    // A graph that has run for long is not shown from its start.
    let is_whole = readers.iter().all(|reader| reader.next == 0);
    first.chain(shared.start().filter(|_| is_whole)).min().unwrap_or_else(clock::now)
}
