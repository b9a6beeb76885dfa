//! Does every best-effort task get its fair share?

use std::collections::BTreeMap;

use laxity_model::{CpuId, Instant, Nanos, TaskId};

use super::{Problem, Report, Violation};
use crate::replay::{Change, Replay};
use crate::{Event, Sink, TraceHeader};

/// Recomputes the virtual time of each best-effort task from the records alone (paper 004, equations 1 and 2):
///
/// `V = executed * 1024 / weight + punishment * time lost by throttling`
///
/// Of two endless tasks that share one CPU from the start, neither gets ahead of the other by more than it may: the fair
/// class, and the Throttle Fair Scheduler on top, choose the task with the least virtual time. A task may be ahead by
/// what it executes in one `slice` at its weight, and by the charge for two regulated periods.
///
/// Judged are tasks that executed on one CPU only, from the first release on and while neither is complete; whenever a
/// CPU goes on after it was throttled, and at the end. Each pair is reported once.
#[derive(Clone, Debug)]
pub struct FairnessCheck {
    replay: Replay,
    /// In millionths.
    punishment: u64,
    period: Nanos,
    slice: Nanos,
    tasks: BTreeMap<TaskId, Account>,
    /// When tasks were released that are judged.
    start: Option<Instant>,
    now: Instant,
    reported: Vec<(TaskId, TaskId)>,
    report: Report,
}

#[derive(Clone, Debug)]
struct Account {
    weight: u64,
    /// In millionths of a nanosecond.
    virtual_time: u128,
    seat: Seat,
    is_judged: bool,
}

/// Where a task executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seat {
    Nowhere,
    One(CpuId),
    Several,
}

/// The weight of a thread that is neither favoured nor disfavoured, in millionths: virtual time is that of such a thread.
const WEIGHT: u128 = 1_024 * 1_000_000;

impl FairnessCheck {
    /// Nothing seen yet. `slice`: how long a thread may keep its CPU before another is chosen.
    pub fn new(header: &TraceHeader, slice: Nanos) -> Self {
        let memory = header.memory.as_ref();
        let best_effort = (0..header.tasks.len() as u32).map(TaskId).filter(|&task| header.is_best_effort(task));
        let weights = memory.map(|memory| memory.weights.as_slice()).unwrap_or_default();
        let account = |(task, &weight): (TaskId, &u64)| {
            let account = Account { weight: weight.max(1), virtual_time: 0, seat: Seat::Nowhere, is_judged: false };
            (task, account)
        };
        FairnessCheck {
            replay: Replay::of_jobs_and_cpus(header),
            punishment: memory.map_or(0, |memory| memory.punishment),
            period: memory.map_or(Nanos::ZERO, |memory| memory.period),
            slice,
            tasks: best_effort.zip(weights).map(account).collect(),
            start: None,
            now: Instant::ZERO,
            reported: Vec::new(),
            report: Report::default(),
        }
    }

    /// What was found.
    pub fn finish(mut self) -> Report {
        for cpu in 0..self.replay.cpus().len() as u16 {
            self.judge(CpuId(cpu));
        }
        self.report
    }

    /// The virtual time of `task` until now, if it is a best-effort task of a trace with memory.
    pub fn virtual_time(&self, task: TaskId) -> Option<Nanos> {
        let account = self.tasks.get(&task)?;
        let total = account.virtual_time + self.running(task, account);
        Some(Nanos(u64::try_from(total / 1_000_000).unwrap_or(u64::MAX)))
    }

    /// What a task that has its CPU now executed since it got it, as virtual time in millionths.
    fn running(&self, task: TaskId, account: &Account) -> u128 {
        let Seat::One(cpu) = account.seat else { return 0 };
        let running = self.replay.cpu(cpu).filter(|cpu| cpu.job().is_some_and(|job| job.task == task));
        running.map_or(0, |cpu| weighted(cpu.executed_by(self.now), account.weight))
    }

    /// Compares the tasks of `cpu`.
    fn judge(&mut self, cpu: CpuId) {
        let there = |account: &Account| account.is_judged && account.seat == Seat::One(cpu);
        let tasks: Vec<(TaskId, u64, u128)> = self
            .tasks
            .iter()
            .filter(|(_, account)| there(account))
            .map(|(&task, account)| (task, account.weight, account.virtual_time + self.running(task, account)))
            .collect();
        for &(task, weight, time) in &tasks {
            for &(of, _, least) in &tasks {
                let ahead = time.saturating_sub(least);
                let charge = u128::from(self.punishment) * u128::from(self.period.0) * 2;
                let allowed = weighted(self.slice, weight) + charge;
                if ahead > allowed && !self.reported.contains(&(task, of)) {
                    self.reported.push((task, of));
                    let nanos = |time: u128| Nanos(u64::try_from(time / 1_000_000).unwrap_or(u64::MAX));
                    let what = Problem::Ahead { task, of, ahead: nanos(ahead), allowed: nanos(allowed) };
                    self.report.push(Violation { at: self.now, cpu: Some(cpu), job: None, what });
                }
            }
        }
    }
}

/// Virtual time of `executed`, in millionths of a nanosecond. Below 2^64 times 2^30.
fn weighted(executed: Nanos, weight: u64) -> u128 {
    u128::from(executed.0) * WEIGHT / u128::from(weight)
}

impl Sink for FairnessCheck {
    fn record(&mut self, at: Instant, event: Event) {
        self.now = self.now.max(at);
        let change = self.replay.apply(at, event);
        let executed = match change {
            Change::Stopped { executed } => Some(executed),
            Change::Completed { executed, .. } => executed,
            _ => None,
        };
        match event {
            Event::Release { job, .. } => {
                if let Some(account) = self.tasks.get_mut(&job.task) {
                    account.is_judged = *self.start.get_or_insert(at) == at && job.index == 0;
                }
            }
            Event::Dispatch { cpu, job } => {
                if let Some(account) = self.tasks.get_mut(&job.task) {
                    let is_new = account.seat == Seat::Nowhere || account.seat == Seat::One(cpu);
                    account.seat = if is_new { Seat::One(cpu) } else { Seat::Several };
                }
            }
            Event::Preempt { job, .. } | Event::Suspend { job, .. } | Event::Complete { job, .. } => {
                if let Some(account) = self.tasks.get_mut(&job.task) {
                    account.virtual_time += executed.map_or(0, |executed| weighted(executed, account.weight));
                    account.is_judged &= !matches!(event, Event::Complete { .. });
                }
            }
            Event::Unthrottle { cpu, task, lost } => {
                if let Some(account) = task.and_then(|task| self.tasks.get_mut(&task)) {
                    account.virtual_time += u128::from(self.punishment) * u128::from(lost.0);
                }
                self.judge(cpu);
            }
            _ => {}
        }
    }
}
