//! The results. Field names in JSON are stable; times are integers in nanoseconds, their names end in `_ns`.

use laxity_model::{CpuId, Nanos, OverheadKind, SignedNanos, TaskId};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::{
    ChainSummary, EngineSummary, GraphSummary, InterruptSummary, InversionSummary, MemorySummary, WaitSummary,
};
use crate::replay::occupies_cpu;

/// All measurements from the start to `duration`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// How long the schedule was watched.
    #[serde(rename = "duration_ns")]
    pub duration: Nanos,
    /// All jobs but those of threads that handle interrupts.
    pub total: JobSummary,
    /// The jobs of each task, by `TaskId`; threads that handle interrupts apart.
    pub tasks: Vec<TaskSummary>,
    /// The jobs of each interrupt thread, bottom halves, and of each callback thread, calls. They are not in `total`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<TaskSummary>,
    /// Each CPU, by `CpuId`.
    pub cpus: Vec<CpuSummary>,
    /// All CPUs together.
    pub machine: MachineSummary,
    /// Each engine of each GPU.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub engines: Vec<EngineSummary>,
    /// Interrupts and bottom halves; `None` without devices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupts: Option<InterruptSummary>,
    /// Priority inversions that bottom halves caused; `None` without devices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inversions: Option<InversionSummary>,
    /// Each graph.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub graphs: Vec<GraphSummary>,
    /// Each chain.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub chains: Vec<ChainSummary>,
    /// Best-effort tasks, and what memory traffic did; `None` without them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemorySummary>,
    /// The CPUs that were stolen from all threads; empty where none was, or nothing looked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stolen: Vec<StolenSummary>,
    /// The CPUs that other threads or interrupts had; empty where none did, or the operating system was not asked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<OutsideSummary>,
}

/// What had a CPU and was no task of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct OutsideSummary {
    /// Which CPU.
    pub cpu: CpuId,
    /// Other threads of the machine. A time that interrupts cut in two counts twice.
    pub threads: OutsideUse,
    /// Interrupts, soft ones too.
    pub interrupts: OutsideUse,
    /// Records of the operating system that were lost: what had the CPU meanwhile is not known.
    pub lost_records: u64,
}

/// How often something had a CPU, and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct OutsideUse {
    /// How often.
    pub count: u64,
    /// How long in all.
    #[serde(rename = "total_ns")]
    pub total: Nanos,
    /// How long at most at once.
    #[serde(rename = "longest_ns")]
    pub longest: Nanos,
}

/// How long a CPU carried out no thread, as the hypervisor, firmware or interrupts had it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct StolenSummary {
    /// Which CPU.
    pub cpu: CpuId,
    /// How often.
    pub count: u64,
    /// How long in all.
    #[serde(rename = "total_ns")]
    pub total: Nanos,
    /// How long at most at once.
    #[serde(rename = "longest_ns")]
    pub longest: Nanos,
}

impl Summary {
    /// Deadlines missed: by jobs, and by outputs of chains.
    pub fn missed(&self) -> u64 {
        self.total.missed + self.chains.iter().map(|chain| chain.missed).sum::<u64>()
    }
}

/// The jobs of one task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TaskSummary {
    /// Which task.
    pub task: TaskId,
    /// Its name.
    pub name: String,
    /// Its jobs.
    #[serde(flatten)]
    pub jobs: JobSummary,
    /// Their waits, by cause; only causes that occurred.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<WaitSummary>,
}

/// A set of jobs.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize)]
pub struct JobSummary {
    /// Jobs released.
    pub released: u64,
    /// Jobs completed.
    pub completed: u64,
    /// Jobs that completed after their deadline, or are incomplete at the end with a deadline no later than that.
    pub missed: u64,
    /// Of those, the incomplete ones.
    pub missed_incomplete: u64,
    /// How often a job was switched out though it could go on.
    pub preemptions: u64,
    /// How often a job was switched in on another CPU than where it last executed.
    pub migrations: u64,
    /// How often a job suspended itself.
    pub suspensions: u64,
    /// Completion minus arrival, of the completed jobs; `None` if there are none.
    #[serde(rename = "response_time_ns")]
    pub response_time: Option<ResponseTimeSummary>,
    /// Completion minus deadline, of the completed jobs; `None` if there are none.
    #[serde(rename = "lateness_ns")]
    pub lateness: Option<LatenessSummary>,
    /// Lateness where positive, else zero, of the completed jobs; `None` if there are none.
    #[serde(rename = "tardiness_ns")]
    pub tardiness: Option<TardinessSummary>,
    /// The least laxity at completion (deadline minus completion): the tightest any completed job made it.
    #[serde(rename = "laxity_min_ns")]
    pub laxity_min: Option<SignedNanos>,
    /// The index of the first job of that laxity, within its task.
    pub laxity_min_job: Option<u32>,
    /// CPU time that jobs used, cache-related delay included.
    #[serde(rename = "execution_ns")]
    pub execution: Nanos,
    /// The part of it that refilled caches after preemptions and migrations.
    #[serde(rename = "cache_delay_ns")]
    pub cache_delay: Nanos,
}

/// Response times. Percentiles are at most 1/64 above the exact value and never below it; the others are exact, the
/// mean rounded down to the nanosecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ResponseTimeSummary {
    /// The shortest.
    pub min: Nanos,
    /// The mean.
    pub mean: Nanos,
    /// Half of the jobs took no longer.
    pub p50: Nanos,
    /// 90 % of the jobs took no longer.
    pub p90: Nanos,
    /// 99 % of the jobs took no longer.
    pub p99: Nanos,
    /// The longest.
    pub max: Nanos,
}

/// Lateness: negative where a job completed before its deadline. The mean is rounded down to the nanosecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LatenessSummary {
    /// The least.
    pub min: SignedNanos,
    /// The mean.
    pub mean: SignedNanos,
    /// The greatest.
    pub max: SignedNanos,
}

/// Tardiness. The mean is over all completed jobs, punctual ones counting zero, rounded down to the nanosecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TardinessSummary {
    /// The mean.
    pub mean: Nanos,
    /// The longest.
    pub max: Nanos,
}

/// One CPU.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CpuSummary {
    /// Which CPU.
    pub cpu: CpuId,
    /// How its time was used.
    #[serde(flatten)]
    pub usage: MachineSummary,
}

/// How the time of one or more CPUs was used. `busy`, `lock_wait`, `spin`, `idle` and the overheads that occupy a CPU (all
/// but IPI latency and the cache-related delays, which are part of `busy`) add up to the time there was.
#[derive(Clone, Debug, PartialEq, Default, Serialize)]
pub struct MachineSummary {
    /// Executing tasks: jobs, those of interrupt threads included, and best-effort tasks.
    #[serde(rename = "busy_ns")]
    pub busy: Nanos,
    /// The part of `busy` that best-effort tasks had.
    #[serde(rename = "best_effort_ns", skip_serializing_if = "is_zero")]
    pub best_effort: Nanos,
    /// Each source of overhead.
    pub overheads: OverheadSummary,
    /// Spinning for a scheduler lock.
    #[serde(rename = "lock_wait_ns")]
    pub lock_wait: Nanos,
    /// Spinning on behalf of jobs that wait so.
    #[serde(rename = "spin_ns", skip_serializing_if = "is_zero")]
    pub spin: Nanos,
    /// Doing none of these.
    #[serde(rename = "idle_ns")]
    pub idle: Nanos,
    /// `busy` as a fraction of the time there was, 0 to 1; for tables and plots.
    pub utilization: f64,
}

/// One source of overhead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize)]
pub struct OverheadUse {
    /// How often it occurred.
    pub count: u64,
    /// How long it took in all.
    #[serde(rename = "time_ns")]
    pub time: Nanos,
}

/// All sources of overhead; in JSON a map from their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct OverheadSummary {
    pub(super) by_kind: [OverheadUse; OverheadKind::ALL.len()],
}

impl MachineSummary {
    /// Executing jobs, those of interrupt threads included.
    pub fn of_jobs(&self) -> Nanos {
        self.busy.saturating_sub(self.best_effort)
    }
}

impl OverheadSummary {
    /// The use of one source. IPI latency is counted at the receiver.
    pub fn of(&self, kind: OverheadKind) -> OverheadUse {
        self.by_kind[kind as usize]
    }

    /// The time in which CPUs ran scheduler and interrupt code: all sources but IPI latency, during which a CPU goes
    /// on, and cache-related delay, which jobs spend.
    pub fn cpu_time(&self) -> Nanos {
        let times = OverheadKind::ALL.into_iter().filter(|&kind| occupies_cpu(kind)).map(|kind| self.of(kind).time);
        times.fold(Nanos::ZERO, |total, time| Nanos(total.0.saturating_add(time.0)))
    }
}

impl Serialize for OverheadSummary {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(OverheadKind::ALL.len()))?;
        for kind in OverheadKind::ALL {
            map.serialize_entry(kind.name(), &self.of(kind))?;
        }
        map.end()
    }
}

fn is_zero(span: &Nanos) -> bool {
    span.is_zero()
}
