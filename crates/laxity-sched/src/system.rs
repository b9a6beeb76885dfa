//! A system that this process is attached to.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use laxity_membership::Kind;
use laxity_model::{Nanos, TaskId};
use laxity_sys::cpu_mask::CpuMask;
use laxity_sys::mutex::{Attempt, Guard};
use laxity_sys::robust::Holder;
use laxity_sys::scheduling::{self, Attributes};

use crate::config::{Carry, Config};
use crate::layout::NAME_MAX;
use crate::memory::Identity;
use crate::placement::{Class, Placed, Placement};
use crate::registration::Registration;
use crate::served;
use crate::shared::Shared;
use crate::snapshot::Snapshot;
use crate::state_lock::{ClusterGuard, StateError};
use crate::step;
use crate::task::{Parameters, Task};

/// A system that this process is attached to, until the last copy of this and the last of its tasks are dropped. The last
/// process to leave takes the name and the memory with it.
///
/// Threads share it. A child made by `fork` does not take part: it attaches by itself, or executes another program.
#[derive(Clone, Debug)]
pub struct System {
    membership: Arc<Membership>,
}

#[derive(Debug)]
pub(crate) struct Membership {
    pub shared: Arc<Shared>,
    /// The member slot of this process.
    slot: usize,
    member: laxity_membership::Membership<Shared>,
}

/// Why a thread cannot become a task.
#[derive(Debug, thiserror::Error)]
pub enum BeginError {
    /// The name cannot be one.
    #[error("task name {name:?} has {} bytes; use 1 to {NAME_MAX}", name.len())]
    Name {
        /// The name.
        name: String,
    },
    /// The name would do something to a terminal.
    #[error("task name {name:?} contains a control character; remove it")]
    Control {
        /// The name.
        name: String,
    },
    /// The thread is a task already: how Linux schedules it belongs to that one.
    #[error(
        "task {task}: this thread is task {other} of system {system} already; release that one, or take another thread"
    )]
    Already {
        /// The task.
        task: String,
        /// What the thread is.
        other: String,
        /// Of which system.
        system: String,
    },
    /// There is no such cluster.
    #[error("task {task}: cluster {cluster} is not one of the system's {clusters}, which are numbered from 0")]
    Cluster {
        /// The task.
        task: String,
        /// The number.
        cluster: usize,
        /// How many there are.
        clusters: usize,
    },
    /// A time cannot be.
    #[error("task {task}: its {what} is 0 ns; it must be longer")]
    Zero {
        /// The task.
        task: String,
        /// Which time.
        what: &'static str,
    },
    /// A program's budget is too short to be enforced.
    #[error("task {task}: a wcet of {wcet} cannot be enforced; a program's must be longer than {least}")]
    Short {
        /// The task.
        task: String,
        /// Of each job.
        wcet: Nanos,
        /// What is too short.
        least: Nanos,
    },
    /// A program's budget is not one of each period.
    #[error(
        "task {task}: deadline {deadline}, period {period}, wcet {wcet}: a program gets its wcet in each period, so it \
         needs wcet <= deadline <= period"
    )]
    Deadline {
        /// The task.
        task: String,
        /// Of each job.
        wcet: Nanos,
        /// Relative.
        deadline: Nanos,
        /// Of releases.
        period: Nanos,
    },
    /// As many threads as can be are tasks.
    #[error("task {task}: {tasks} threads are tasks, which is all that the system was created for; raise `tasks`")]
    Full {
        /// The task.
        task: String,
        /// How many.
        tasks: u16,
    },
    /// Its budget is to be enforced, and it has none.
    #[error("task {task}: its budget is to be enforced and none is said; say what a job may take")]
    NoBudget {
        /// The task.
        task: String,
    },
    /// There is no such server.
    #[error("task {task}: {error}")]
    Server {
        /// The task.
        task: String,
        /// Why.
        error: laxity_policy::server::ConfigError,
    },
    /// Another thread has the number, or the system has no such one.
    #[error("task {task}: number {} of {tasks} is not free; end its thread, or take another", number.0)]
    Taken {
        /// The task.
        task: String,
        /// The number.
        number: TaskId,
        /// How many numbers there are.
        tasks: u16,
    },
    /// Linux does not let the thread have its priority or its CPUs.
    #[error(
        "task {task}: cannot {action}: {error}; allow SCHED_FIFO (CAP_SYS_NICE, or `ulimit -r 99`) and the system's CPUs"
    )]
    Refused {
        /// The task.
        task: String,
        /// What was tried.
        action: &'static str,
        /// Why not.
        #[source]
        error: io::Error,
    },
    /// This process was forked from the one that attached, or is being killed.
    #[error("this process was forked from the one that attached to the system; attach here")]
    NotAttached,
    /// The state of the system.
    #[error("{0}")]
    State(#[from] StateError),
}

impl Membership {
    /// Whether this is the process that attached, not one forked from it.
    pub fn is_ours(&self) -> bool {
        self.member.is_ours()
    }
}

impl System {
    pub(crate) fn new((member, ()): (laxity_membership::Membership<Shared>, ())) -> Self {
        let (shared, slot) = (member.memory().clone(), member.id().slot);
        System { membership: Arc::new(Membership { shared, slot, member }) }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.membership.shared
    }

    /// The member slot of this process.
    #[cfg(test)]
    pub(crate) fn slot(&self) -> usize {
        self.membership.slot
    }

    /// What it schedules, where, and by which policy.
    pub fn config(&self) -> &Config {
        &self.membership.shared.config
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.membership.shared.name
    }

    /// All tasks, and which of them is linked where, now. Looking changes nothing and delays no thread.
    ///
    /// # Errors
    /// [`StateError`] if the memory is damaged.
    pub fn snapshot(&self) -> Result<Snapshot, StateError> {
        Snapshot::of(&self.membership.shared)
    }

    /// As [`System::begin`], as the task of that number.
    ///
    /// # Errors
    /// [`BeginError`]; another thread may have the number.
    pub fn begin_as(&self, parameters: Parameters, number: TaskId) -> Result<Task, BeginError> {
        self.begin_any(parameters, Wanted::Number(number), None)
    }

    /// As [`System::begin`], with the largest number that is free: among threads that are as urgent it is behind the others.
    /// In traces and simulations threads that handle interrupts come after all tasks.
    ///
    /// # Errors
    /// [`BeginError`].
    pub fn begin_behind(&self, parameters: Parameters) -> Result<Task, BeginError> {
        self.begin_any(parameters, Wanted::Last, None)
    }

    /// The calling thread becomes a task. From now on it is urgent until its first job, has the CPUs of its cluster, and
    /// what it starts is scheduled as usual.
    ///
    /// # Errors
    /// [`BeginError`].
    pub fn begin(&self, parameters: Parameters) -> Result<Task, BeginError> {
        self.begin_any(parameters, Wanted::First, None)
    }

    /// As [`System::begin`], but the thread that the policy places is the first one of `program`, a child that the caller
    /// has not waited for.
    pub(crate) fn begin_for(&self, parameters: Parameters, program: u32) -> Result<Task, BeginError> {
        self.begin_any(parameters, Wanted::First, Some(program))
    }

    fn begin_any(&self, parameters: Parameters, wanted: Wanted, program: Option<u32>) -> Result<Task, BeginError> {
        let Membership { shared, slot, .. } = &*self.membership;
        check(&parameters, &shared.config)?;
        let budget = served::budget(&parameters, shared.config.rule)?;
        if !self.membership.is_ours() {
            return Err(BeginError::NotAttached);
        }
        if program.is_none()
            && shared.config.carry != Carry::Nothing
            && let Some((other, system)) = Registration::of_this_thread()
        {
            // Of the two it would keep what the first one made of it.
            return Err(BeginError::Already { task: parameters.name, other, system });
        }
        let refused = |action| {
            let task = parameters.name.clone();
            move |error| BeginError::Refused { task, action, error }
        };
        let thread = scheduling::current_thread();
        let scheduled = program.unwrap_or(thread);
        let own = Attributes::of(scheduled).map_err(refused("read its scheduling class"))?;
        let cpus = CpuMask::of_thread(scheduled).map_err(refused("read its CPUs"))?;
        let mut state = shared.lock(parameters.cluster)?;
        // Once the word of a dead process is cleared, no process would look for this task.
        if shared.members().holder(*slot) != Holder::Alive {
            return Err(BeginError::NotAttached);
        }
        let mut found = state.free_task(wanted)?;
        if found.is_none() {
            drop(state);
            shared.retire_ended(parameters.cluster, |_| false)?;
            state = shared.lock(parameters.cluster)?;
            found = state.free_task(wanted)?;
        }
        let Some((task, liveness)) = found else {
            let (task, tasks) = (parameters.name, shared.config.tasks);
            return Err(match wanted {
                Wanted::Number(number) => BeginError::Taken { task, number, tasks },
                Wanted::First | Wanted::Last => BeginError::Full { task, tasks },
            });
        };
        shared.store_task(task, &parameters, Identity { slot: *slot, thread, program, own, cpus });
        shared.own_threads[task.index()].store(scheduled, Ordering::Relaxed);
        let class = if program.is_some() { Class::Waiting } else { Class::Urgent };
        let demand = Placement { class, cpu: None };
        shared.demand(task).store(demand.to_word(), Ordering::SeqCst);
        state.cache.set_member(task, true);
        state.publish(None);
        step::point();
        liveness.keep();
        // What an ended thread that had the number held, if it was not found before.
        shared.unlock_all_of(task)?;
        // As if it were placed in another way: all of it is new.
        let carried = shared.carried(task).load(Ordering::SeqCst);
        let mut placed = Placed { as_of: demand, carried: carried.wrapping_sub(1) };
        shared.settle(task, &mut placed);
        let handle = Task::new(self.membership.clone(), task, parameters, placed);
        if let Some(error) = handle.refused() {
            let task = handle.parameters().name.clone();
            return Err(BeginError::Refused { task, action: "have its priority and its CPUs", error });
        }
        budget.map(|budget| handle.enforce(budget)).transpose()?;
        Ok(handle)
    }
}

fn check(parameters: &Parameters, config: &Config) -> Result<(), BeginError> {
    let Parameters { name, cluster, period, deadline, .. } = parameters;
    let task = || name.clone();
    if !(1..=NAME_MAX).contains(&name.len()) {
        return Err(BeginError::Name { name: task() });
    }
    if name.chars().any(char::is_control) {
        return Err(BeginError::Control { name: task() });
    }
    let clusters = config.clusters.len();
    if *cluster >= clusters {
        return Err(BeginError::Cluster { task: task(), cluster: *cluster, clusters });
    }
    for (what, span) in [("period", period), ("deadline", deadline)] {
        if span.0 == 0 {
            return Err(BeginError::Zero { task: task(), what });
        }
    }
    Ok(())
}

/// The number that a thread wants as a task, of those that are free.
#[derive(Clone, Copy)]
enum Wanted {
    First,
    Last,
    Number(TaskId),
}

impl<'a> ClusterGuard<'a> {
    /// A number that no thread has, and its liveness lock.
    fn free_task(&self, wanted: Wanted) -> Result<Option<(TaskId, Guard<'a>)>, StateError> {
        let shared = self.shared();
        let mut tasks: Vec<TaskId> = shared.tasks().collect();
        match wanted {
            Wanted::First => {}
            Wanted::Last => tasks.reverse(),
            Wanted::Number(number) => tasks.retain(|&task| task == number),
        }
        for task in tasks {
            if self.cache.is_member(task) || !self.claim(task) {
                continue;
            }
            if let Attempt::Taken(guard) = shared.liveness(task).try_lock().map_err(StateError::System)? {
                return Ok(Some((task, guard)));
            }
        }
        Ok(None)
    }
}
