//! The memory traffic of CPUs, the bandwidth lock, and the regulators.

use laxity_model::{CpuId, Instant, LockId, TaskId};
use laxity_plan::Plan;
use laxity_policy::bandwidth::{Action, BandwidthLock, Change, Event, Hold, Regulator, Rules};

/// Memory. Policies decide; the event loop carries out their actions.
pub(crate) struct Memory {
    /// By task, in bytes a second.
    demands: Vec<u64>,
    /// Of each CPU.
    traffic: Vec<Traffic>,
    lock: Option<Lock>,
    /// The regulator of each CPU that best-effort tasks may be on.
    regulators: Vec<Option<Regulated>>,
}

/// Memory traffic of a CPU, in bytes a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    /// What the task on it causes.
    pub rate: u64,
    /// What of that counts for the CPU's budget.
    pub counted: u64,
}

struct Lock {
    id: LockId,
    /// By task.
    budgets: Vec<u64>,
    holders: BandwidthLock,
}

struct Regulated {
    regulator: Regulator,
    /// When the timer that was set last goes off.
    armed: Option<Instant>,
}

impl Memory {
    /// `None` where no traffic slows anything down and no lock is held.
    pub fn new(plan: &Plan) -> Option<Memory> {
        let memory = plan.memory.as_ref()?;
        let lock = memory.lock.as_ref();
        let cpus = plan.header.cpus;
        let is_regulated =
            |cpu: CpuId| lock.is_some() && !plan.best_effort.is_empty() && plan.best_effort.cpus.contains(&cpu);
        let regulator = |cpu: usize| {
            let rules = Rules::of(&memory.regulator, cpu, cpus);
            is_regulated(CpuId(cpu as u16)).then(|| Regulated { regulator: Regulator::new(rules), armed: None })
        };
        Some(Memory {
            demands: memory.demands.clone(),
            traffic: vec![Traffic::default(); cpus],
            lock: lock.map(|lock| Lock {
                id: lock.lock,
                budgets: lock.budgets.clone(),
                holders: BandwidthLock::new(plan.tasks.len()),
            }),
            regulators: (0..cpus).map(regulator).collect(),
        })
    }

    /// The bandwidth lock; there is one.
    pub fn lock(&self) -> LockId {
        self.lock.as_ref().expect("only a workload with a bandwidth lock takes it").id
    }

    /// The job of `task` is about to issue an operation, or has waited for all (`issues`: which); answers what that changed.
    pub fn hold(&mut self, task: TaskId, issues: bool) -> Change {
        let lock = self.lock.as_mut().expect("only a workload with a bandwidth lock takes it");
        let budget = lock.budgets[task.index()];
        let hold = if issues { Hold::Issue { stream: 0, budget } } else { Hold::AllSynchronized };
        lock.holders.handle(task, hold).expect("no job takes the lock by hand")
    }

    /// What `task` causes while it executes, in bytes a second.
    pub fn demand(&self, task: TaskId) -> u64 {
        self.demands[task.index()]
    }

    /// `cpu` has this traffic from now on; answers with what it had.
    pub fn replace(&mut self, cpu: CpuId, traffic: Traffic) -> Traffic {
        std::mem::replace(&mut self.traffic[cpu.index()], traffic)
    }

    /// What all CPUs cause together.
    pub fn traffic(&self) -> u64 {
        self.traffic.iter().fold(0, |sum, traffic| sum.saturating_add(traffic.rate))
    }

    /// Hands `event` to the regulator of `cpu`, if it has one; answers when a timer must be set. One that went off for
    /// nothing is not handed over.
    pub fn regulate(&mut self, now: Instant, cpu: CpuId, event: Event, actions: &mut Vec<Action>) -> Option<Instant> {
        let Regulated { regulator, armed } = self.regulators[cpu.index()].as_mut()?;
        if event == Event::Timeout {
            *armed = armed.filter(|&at| at != now);
            if regulator.next_timeout() != Some(now) {
                return None;
            }
        }
        regulator.handle(now, event, actions);
        let next = regulator.next_timeout()?;
        if *armed == Some(next) {
            return None;
        }
        *armed = Some(next);
        Some(next)
    }
}
