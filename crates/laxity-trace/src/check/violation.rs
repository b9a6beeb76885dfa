//! A violation, and how to say it.

use std::fmt;

use laxity_model::{CpuId, Instant, JobId, LockId, TaskId};

use super::Problem;
use crate::TraceHeader;
use crate::metrics::ChainDeadline;
use crate::why::job_name;

/// Something a schedule must not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    /// When.
    pub at: Instant,
    /// Where, if on a CPU.
    pub cpu: Option<CpuId>,
    /// The job that did it or suffered it, if any.
    pub job: Option<JobId>,
    /// What it is.
    pub what: Problem,
}

impl Violation {
    /// The violation with the names of tasks and locks, in place of their numbers.
    pub fn in_words<'a>(&'a self, header: &'a TraceHeader) -> impl fmt::Display + 'a {
        InWords { violation: self, names: Names::Of(header) }
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, names: &Names<'_>) -> fmt::Result {
        let job_name = |job: &JobId| names.job(*job);
        let lock_name = |lock: &LockId| names.lock(*lock);
        let cpu = Named(self.cpu, "no CPU");
        let job = Named(self.job.as_ref().map(job_name), "no job");
        write!(f, "at {} ", self.at)?;
        match &self.what {
            Problem::UnknownTask => write!(f, "{job} is of a task that the header does not list"),
            Problem::UnknownDevice { device } => {
                write!(f, "a record names device {}, which the header does not list", device.0)
            }
            Problem::UnknownOperation { name } => {
                write!(f, "a record names operation {name}, which the header does not list")
            }
            Problem::UnknownCpu => write!(f, "{cpu} is a CPU that the header does not have"),
            Problem::TimeWentBack { latest } => write!(f, "a record follows one at {latest}"),
            Problem::AfterEnd => f.write_str("a record follows the trace's end"),
            Problem::ReleasedOutOfOrder { expected } => {
                write!(f, "{job} is released where job {expected} of its task is next")
            }
            Problem::ReleasedBeforeArrival { arrival } => {
                write!(f, "{job} is released before its arrival at {arrival}")
            }
            Problem::ArrivalsTooClose { separation, period } => {
                write!(f, "{job} is released, whose arrival is {separation} after its predecessor's and not {period}")
            }
            Problem::OutOfTurn { act, phase } => write!(f, "{job} {act} while {phase}"),
            Problem::BeforePredecessor { act, predecessor } => {
                write!(f, "{job} {act} before {predecessor} is complete", predecessor = job_name(predecessor))
            }
            Problem::CpuOccupied { by } => write!(f, "{cpu} gets {job} while it has {by}", by = job_name(by)),
            Problem::Elsewhere { act, on } => write!(f, "{job} {act} on {cpu} while it has {on}"),
            Problem::OutsideCluster { act, cluster } => {
                write!(f, "{job} {act} on {cpu}, which is not of its cluster {cluster}")
            }
            Problem::LeftNonPreemptive { act } => write!(f, "{job} {act} on {cpu} within a non-preemptive section"),
            Problem::ExceededBudget { executed, budget } => {
                write!(f, "{job} has executed for {executed} on a budget of {budget}")
            }
            Problem::WrongBudget { task, what } => write!(f, "the server {} {what}", names.task(*task)),
            Problem::OverheadsOverlap { until } => {
                write!(f, "{cpu} begins an overhead while one goes on until {until}")
            }
            Problem::ExecutesWaiting { lock } => {
                write!(f, "{job} executes while it waits for lock {}", lock_name(lock))
            }
            Problem::ExceededCost { kind, duration, cost } => {
                write!(f, "an overhead ({}) takes {duration}, and costs {cost} at most", kind.name())
            }
            Problem::WrongExecution { executed, demand } => {
                write!(f, "{job} completes after {executed} of execution, its demand is {demand}")
            }
            Problem::ExceededWcet { executed, limit } => {
                write!(f, "{job} completes after {executed} of execution, its worst case is {limit}")
            }
            Problem::UnknownLock { lock } => {
                write!(f, "{job} names lock {lock}, which the header does not list", lock = lock_name(lock))
            }
            Problem::UnknownReplica { lock, replica } => {
                write!(
                    f,
                    "{job} is granted replica {} of lock {lock}, which does not have it",
                    replica.0,
                    lock = lock_name(lock)
                )
            }
            Problem::RequestedTwice { lock } => {
                write!(f, "{job} asks for a lock while it waits for or holds lock {lock}", lock = lock_name(lock))
            }
            Problem::NotRequested { lock } => {
                write!(
                    f,
                    "{job} is granted or gives up waiting for lock {lock}, for which it does not wait",
                    lock = lock_name(lock)
                )
            }
            Problem::LockHeld { lock, replica, by } => {
                write!(
                    f,
                    "{job} is granted replica {} of lock {lock} while {by} holds it",
                    replica.0,
                    by = job_name(by),
                    lock = lock_name(lock)
                )
            }
            Problem::GrantOrder { lock, earlier } => {
                write!(
                    f,
                    "{job} is granted lock {lock} before {earlier}, which comes first",
                    earlier = job_name(earlier),
                    lock = lock_name(lock)
                )
            }
            Problem::ReplicaIdle { lock, replica } => {
                write!(f, "{job} waited for lock {lock} while replica {} was free", replica.0, lock = lock_name(lock))
            }
            Problem::BudgetExceeded { traffic, allowed } => {
                write!(f, "best-effort jobs caused {traffic} B of memory traffic in a period of at most {allowed} B")
            }
            Problem::Ahead { task, of, ahead, allowed } => {
                write!(f, "{task} is {ahead} of virtual time ahead of {of}, which shares its CPU, and may be {allowed}")
            }
            Problem::RunsThrottled => write!(f, "{job} got a throttled CPU"),
            Problem::Unprotected => {
                write!(f, "an operation of {job} began without the bandwidth lock at the ceiling priority")
            }
            Problem::NotHeld { lock, replica } => {
                write!(
                    f,
                    "{job} unlocks replica {} of lock {lock}, which it does not hold",
                    replica.0,
                    lock = lock_name(lock)
                )
            }
            Problem::CompletedHolding { lock } => {
                write!(f, "{job} completes holding lock {lock}", lock = lock_name(lock))
            }
            Problem::CompletedWaiting { lock } => {
                write!(f, "{job} completes waiting for lock {lock}", lock = lock_name(lock))
            }
            Problem::UnknownEngine { gpu, engine } => {
                write!(f, "{job} uses {} of {gpu}, which the header does not have", engine.name())
            }
            Problem::EngineBusy { gpu, engine, by } => {
                write!(
                    f,
                    "{job} begins an operation on {} of {gpu} while one of {by} is there",
                    engine.name(),
                    by = job_name(by)
                )
            }
            Problem::NoOperation { gpu, engine } => {
                write!(f, "{job} ends an operation on {} of {gpu} that had not begun", engine.name())
            }
            Problem::StreamOrder { gpu, engine } => {
                write!(f, "{job} begins an operation while its earlier one on {} of {gpu} goes on", engine.name())
            }
            Problem::BottomHalvesNest => write!(f, "{cpu} begins a bottom half while another is on its stack"),
            Problem::NoBottomHalf => write!(f, "{cpu} ends a bottom half that had not begun"),
            Problem::StackBorrowed { act } => write!(f, "{job} {act} on {cpu} while a bottom half has its stack"),
            Problem::NoThread => write!(f, "{job} serves as a bottom half but is not of an interrupt thread"),
            Problem::BesideOwner { owner } => {
                write!(f, "{job} runs on {cpu} beside {owner}, whose bottom half it is", owner = job_name(owner))
            }
            Problem::UnknownEdge { edge } => write!(f, "{job} names edge {}, which the header does not list", edge.0),
            Problem::WrongEnd { edge } => write!(f, "{job} moves tokens on edge {}, which is not its own", edge.0),
            Problem::TokensOutOfTurn { edge } => {
                write!(f, "{job} moves tokens on edge {} twice, or before its turn, or not at all", edge.0)
            }
            Problem::WrongTokens { edge, tokens, expected } => {
                write!(f, "{job} moves {tokens} tokens on edge {} and not {expected}", edge.0)
            }
            Problem::BelowThreshold { edge, tokens, threshold } => {
                write!(f, "{job} consumes from edge {}, which has {tokens} tokens and needs {threshold}", edge.0)
            }
            Problem::StartedWithoutTokens { edge } => {
                write!(f, "{job} is dispatched before it consumed from edge {}", edge.0)
            }
            Problem::StaleRead { reader } => {
                write!(
                    f,
                    "{job} is dispatched before {reader} has read the data that it overwrites",
                    reader = job_name(reader)
                )
            }
            Problem::NotNewest { edge, read, newest } => {
                let value =
                    |value: &Option<u32>| value.map_or("no value".to_owned(), |job| format!("that of job {job}"));
                let (read, newest) = (value(read), value(newest));
                write!(f, "{job} reads {read} from edge {}, where the newest complete one is {newest}", edge.0)
            }
            Problem::NotRead { edge } => write!(f, "{job} completes without a read of edge {}", edge.0),
            Problem::LinkedWithinQuantum { quantum } => {
                write!(f, "{job} is linked to {cpu} within a quantum of {quantum} instead of at its start")
            }
            Problem::NotDedicated => {
                write!(f, "{job} is released by {cpu}, which runs jobs, while another CPU is dedicated to interrupts")
            }
            Problem::Inversion { urgency, waiting, waiting_urgency } => {
                write!(
                    f,
                    "{cpu} runs {job} ({urgency}) while {waiting} ({waiting_urgency}) is ready and unlinked",
                    waiting = job_name(waiting)
                )
            }
            Problem::NotWorkConserving { waiting, waiting_urgency } => {
                write!(
                    f,
                    "{cpu} runs nothing while {waiting} ({waiting_urgency}) is ready and unlinked",
                    waiting = job_name(waiting)
                )
            }
            Problem::ForeignPriority { urgency, of, own } => {
                write!(
                    f,
                    "{job} has the priority of {of} ({urgency}), which is neither its own ({own}) nor that of a lock \
                     that it holds or of a job that waits for it",
                    of = names.task(*of)
                )
            }
            Problem::NotInherited { lock, urgency, waiting, waiting_urgency } => {
                write!(
                    f,
                    "{job} ({urgency}) holds lock {lock} without the priority of {waiting} ({waiting_urgency}), which \
                     waits for it",
                    lock = lock_name(lock),
                    waiting = job_name(waiting)
                )
            }
            Problem::BelowCeiling { lock, urgency } => {
                write!(f, "{job} ({urgency}) holds lock {lock} without its ceiling, above all", lock = lock_name(lock))
            }
            Problem::ThreadPriority { urgency, of, expected } => {
                write!(
                    f,
                    "the interrupt thread's {job} has the priority of {of} ({urgency}) instead of the one that it works \
                     with ({expected})",
                    of = names.task(*of)
                )
            }
            Problem::RunsUnlinked { linked: Some(linked) } => {
                write!(f, "{cpu} runs {job} while it is linked to {linked}", linked = job_name(linked))
            }
            Problem::RunsUnlinked { linked: None } => write!(f, "{cpu} runs {job} while it is linked to nothing"),
            Problem::LinkedButIdle => write!(f, "{cpu} runs nothing while it is linked to {job}"),
            Problem::Late { deadline } => {
                let tardiness = self.at.saturating_since(*deadline);
                write!(f, "{job} completes {tardiness} after its deadline {deadline}")
            }
            Problem::LateOutput { chain, deadline, span, limit } => {
                let what = match deadline {
                    ChainDeadline::DataAge => "data age",
                    ChainDeadline::ReactionTime => "reaction time",
                };
                write!(
                    f,
                    "{job} completes an output of chain {} with a {what} of {span} where {limit} is allowed",
                    names.chain(*chain)
                )
            }
            Problem::Incomplete { deadline } => write!(f, "{job} is incomplete, its deadline was {deadline}"),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, &Names::Numbers)
    }
}

/// A violation to be told with names.
struct InWords<'a> {
    violation: &'a Violation,
    names: Names<'a>,
}

impl fmt::Display for InWords<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.violation.write(f, &self.names)
    }
}

/// What jobs and locks are called.
enum Names<'a> {
    /// By their numbers, as where no header is at hand.
    Numbers,
    /// As in the header.
    Of(&'a TraceHeader),
}

impl Names<'_> {
    fn job(&self, job: JobId) -> String {
        match self {
            Names::Of(header) if job.task.index() < header.tasks.len() => job_name(header, job),
            _ => job.to_string(),
        }
    }

    fn task(&self, task: TaskId) -> String {
        match self {
            Names::Of(header) => header.tasks.get(task.index()).map(|info| info.name.clone()),
            Names::Numbers => None,
        }
        .unwrap_or_else(|| task.to_string())
    }

    fn chain(&self, chain: usize) -> String {
        match self {
            Names::Of(header) => header.chains.get(chain).map(|info| info.name.clone()),
            Names::Numbers => None,
        }
        .unwrap_or_else(|| chain.to_string())
    }

    fn lock(&self, lock: LockId) -> String {
        match self {
            Names::Of(header) => header.locks.get(lock.index()).map(|info| info.name.clone()),
            Names::Numbers => None,
        }
        .unwrap_or_else(|| lock.0.to_string())
    }
}

/// A name, or what to say where there is none.
struct Named<T>(Option<T>, &'static str);

impl<T: fmt::Display> fmt::Display for Named<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(name) => name.fmt(f),
            None => f.write_str(self.1),
        }
    }
}
