//! One trace of the logs of all programs under an arbitration, in the vocabulary of `laxity-trace`.
//!
//! A task is a stream (see `tasks`), a job what its program did between two synchronizations (or in a period, or as announced). Which
//! CPU a program's threads had is not known: a job has a CPU for an instant when it begins and when it ends.
//!
//! Programs note a request before they make it, a grant after they see it, and an unlock before they make it. So for each
//! lock the order of what they note is the order in which it was held. A lock is handed over at the instant when it is
//! unlocked: that is the instant of the grant in the trace.

mod holds;
mod jobs;
mod logs;
mod tasks;

use std::collections::{BTreeMap, BTreeSet};

use laxity_gpu::Config;
use laxity_model::{CpuId, Engine, EngineOrder, GpuId, Instant, JobId, LockId, Nanos, ReplicaId, Scheduler, TaskId};
use laxity_trace::{DeviceInfo, Event, GpuInfo, LockInfo, LockKind, Origin, Record, TraceHeader};

use holds::Hold;
pub use logs::{LogError, Logs};
use tasks::Tasks;

use crate::log::{Arbitration, Line};

/// The deadline of jobs that have none.
const NO_DEADLINE: Nanos = Nanos::LONGEST;

/// The lock of the tokens.
const TOKEN: LockId = LockId(0);

/// Two things at one instant come in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    OperationEnds,
    Unlocks,
    JobEnds,
    Releases,
    JobBegins,
    RequestsToken,
    GetsToken,
    RequestsEngine,
    GetsEngine,
    OperationBegins,
}

/// Events at one instant that nothing comes between.
#[derive(Debug)]
struct Group {
    at: u64,
    rank: Rank,
    events: Vec<Event>,
}

impl Logs {
    /// What the trace says of itself.
    pub fn header(&self) -> TraceHeader {
        let Arbitration { name, cpus, gpus, copy_engines, tokens, by_priority } = &self.arbitration;
        let mut header = TraceHeader::new(Origin::Live, name, usize::from(*cpus), Scheduler::GLOBAL_EDF);
        header.arbitration = "gpusync".to_owned();
        header.tasks = Tasks::of(&self.streams).infos;
        let names: Vec<String> = (0..*gpus).map(|gpu| format!("gpu{gpu}")).collect();
        header.devices = names.iter().map(|name| DeviceInfo { name: name.clone() }).collect();
        let gpu = |name: &String| GpuInfo { name: name.clone(), cluster: 0, copy_engines: *copy_engines };
        header.gpus = names.iter().map(gpu).collect();
        let pool: Vec<GpuId> = (0..*gpus).map(GpuId).collect();
        let replicas = u16::try_from(tokens * u32::from(*gpus)).unwrap_or(u16::MAX);
        header.locks = vec![LockInfo { name: "token".to_owned(), replicas, kind: LockKind::Tokens { gpus: pool } }];
        header.operations = self.operation_names().into_keys().map(str::to_owned).collect();
        let order = if *by_priority { EngineOrder::Priority } else { EngineOrder::Fifo };
        for gpu in 0..*gpus {
            for &engine in engines(*copy_engines) {
                let kind = LockKind::Engine { gpu: GpuId(gpu), engine, order };
                header.locks.push(LockInfo { name: format!("gpu{gpu} {}", engine.name()), replicas: 1, kind });
            }
        }
        header
    }

    /// The names of all operations, each with its number.
    fn operation_names(&self) -> BTreeMap<&str, u32> {
        let lines = self.streams.iter().flat_map(|stream| &stream.lines);
        let labels = lines.filter_map(|(_, line)| match line {
            Line::Opens { label, .. } => label.as_deref(),
            _ => None,
        });
        let names: BTreeSet<&str> = labels.collect();
        names.into_iter().zip(0..).collect()
    }

    /// What happened, from the first line of the logs on.
    pub fn records(&self) -> Vec<Record> {
        let tasks = Tasks::of(&self.streams);
        let mut holds = holds::of(self, &tasks);
        holds::settle(&mut holds, self.arbitration.by_priority);
        let start = self.streams.iter().filter_map(|stream| stream.lines.first()).map(|(at, _)| *at).min().unwrap_or(0);
        let mut groups = Vec::new();
        let names = self.operation_names();
        for hold in &holds {
            self.add_hold(hold, &names, &mut groups);
        }
        for (index, stream) in self.streams.iter().enumerate() {
            jobs::add(|job| tasks.job(index, job), stream, start, &holds, &mut groups);
        }
        groups.sort_by_key(|group| (group.at, group.rank));
        let mut records = Vec::new();
        let mut last = Instant::ZERO;
        for Group { at, events, .. } in groups {
            last = Instant(at - start);
            records.extend(events.into_iter().map(|event| Record { at: last, event }));
        }
        records.push(Record { at: last, event: Event::End });
        records
    }

    fn add_hold(&self, hold: &Hold, names: &BTreeMap<&str, u32>, groups: &mut Vec<Group>) {
        let mut add = |at, rank, events: &[Event]| groups.push(Group { at, rank, events: events.to_vec() });
        let (job, engine) = (hold.job, hold.engine);
        let lock = self.lock(hold.gpu, engine);
        let gpu = GpuId(hold.gpu);
        if let Some(token) = &hold.token {
            let replica = ReplicaId(token.replica);
            add(token.requested, Rank::RequestsToken, &[Event::Request { job, lock: TOKEN }]);
            add(token.granted, Rank::GetsToken, &[Event::Grant { job, lock: TOKEN, replica }]);
            if let Some(at) = token.released {
                add(at, Rank::Unlocks, &[Event::Unlock { job, lock: TOKEN, replica }]);
            }
        }
        add(hold.requested, Rank::RequestsEngine, &[Event::Request { job, lock }]);
        add(hold.granted, Rank::GetsEngine, &[Event::Grant { job, lock, replica: ReplicaId(0) }]);
        if let Some(at) = hold.unlocked {
            add(at, Rank::Unlocks, &[Event::Unlock { job, lock, replica: ReplicaId(0) }]);
        }
        let mut free = hold.granted;
        for operation in &hold.operations {
            let begin = operation.opened.max(free);
            let end = operation.completed.or(hold.unlocked).map(|end| end.min(hold.unlocked.unwrap_or(end)));
            // Operations of one hold may overlap, out of order; the engine does one after the other here.
            if end.is_some_and(|end| end <= begin) {
                continue;
            }
            let name = operation.label.as_deref().and_then(|label| names.get(label).copied());
            let mut begins = vec![Event::EngineBegin { gpu, engine, job }];
            begins.extend(name.map(|name| Event::EngineOperation { gpu, engine, name }));
            add(begin, Rank::OperationBegins, &begins);
            let Some(end) = end else { break };
            add(end, Rank::OperationEnds, &[Event::EngineEnd { gpu, engine, job }]);
            free = end;
        }
    }

    fn lock(&self, gpu: u16, engine: Engine) -> LockId {
        let count = engines(self.arbitration.copy_engines).len() as u16;
        LockId(1 + gpu * count + engine.index() as u16)
    }
}

fn engines(copy_engines: u8) -> &'static [Engine] {
    Config { copy_engines, ..Config::new(1, 1) }.engines()
}

/// Where jobs have a CPU for an instant.
const CPU: CpuId = CpuId(0);

fn id(task: TaskId, index: u32) -> JobId {
    JobId { task, index }
}
