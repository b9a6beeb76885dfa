//! What tasks share: locks, budgets and tokens. The parts decide; here their decisions are carried out.

use laxity_model::{CpuId, Instant, LockId, Nanos, ReplicaId, TaskId};
use laxity_plan::Op;
use laxity_policy::cpu::{self, Priority};
use laxity_policy::lock::{self, budget};
use laxity_policy::server;
use laxity_trace::{Event, Sink};

use super::Simulator;
use super::bottom_halves::{ABOVE_ALL, BELOW_ALL};
use crate::context::{Context, TimerKind};
use crate::cpu::{Activity, Interrupt};
use crate::graphs::{Graphs, Ready};
use crate::servers::{Server, Throttled};
use crate::task::JobState;

impl<S: Sink> Simulator<S> {
    // --- Locks ---------------------------------------------------------------------------------------------------

    /// The job of `task` is pending from now on.
    pub(super) fn enter(&mut self, task: TaskId, deadline: Instant) {
        let Some(locks) = &mut self.locks else { return };
        let plan = &self.plan.tasks[task.index()];
        let ranking = &self.plan.clusters[usize::from(plan.cluster)].ranking;
        let priority = ranking.priority(plan.local, deadline).given_to(task);
        locks.notify(self.cx.now, lock::Event::Pending { priority });
    }

    /// The job of `task` is complete.
    pub(super) fn leave(&mut self, task: TaskId) {
        if let Some(locks) = &mut self.locks {
            locks.notify(self.cx.now, lock::Event::Complete { task });
        }
    }

    /// Carries out the current step of the job of `task`, which is about a lock; answers whether the job goes on.
    #[inline(never)]
    pub(super) fn step_of_lock(&mut self, cpu: CpuId, task: TaskId) -> bool {
        let locks = self.locks.as_ref().expect("a workload with locks has an arbiter");
        match self.plan.tasks[task.index()].ops[self.tasks[task.index()].op as usize] {
            Op::Lock { lock, length, only } => self.request(cpu, task, lock, length, only),
            Op::LockEngine(target) => {
                let lock = locks.engine(&self.plan, task, target);
                self.request(cpu, task, lock, Nanos::ZERO, None)
            }
            Op::Unlock(lock) => {
                self.unlock(cpu, task, lock);
                true
            }
            Op::UnlockEngine(target) => {
                let lock = locks.engine(&self.plan, task, target);
                self.unlock(cpu, task, lock);
                true
            }
            _ => unreachable!("the current step is about a lock"),
        }
    }

    /// The job of `task`, on `cpu`, requests `lock`. Answers whether it has it at once.
    pub(super) fn request(&mut self, cpu: CpuId, task: TaskId, lock: LockId, length: Nanos, only: Option<u16>) -> bool {
        let job = self.job_id(task);
        self.cx.record(Event::Request { job, lock });
        // From the first lock that it holds to the last it is not interrupted by the end of its budget.
        if self.locks().holds_none(task) {
            self.enforce(cpu, task, budget::Event::CallEntered);
        }
        self.enforce(cpu, task, budget::Event::Request { lock });
        self.arbitrate(cpu, lock::Event::Request { task, lock, length, only });
        self.locks().holds(task, lock)
    }

    /// The job of `task`, on `cpu`, gives `lock` up.
    pub(super) fn unlock(&mut self, cpu: CpuId, task: TaskId, lock: LockId) {
        let job = self.job_id(task);
        let replica = self.locks().give_up(task, lock);
        self.cx.record(Event::Unlock { job, lock, replica });
        self.arbitrate(cpu, lock::Event::Unlock { task, lock });
        self.enforce(cpu, task, budget::Event::Unlocked { lock });
        if self.locks().holds_none(task) {
            self.enforce(cpu, task, budget::Event::CallLeft);
        }
    }

    fn locks(&mut self) -> &mut crate::locks::Locks {
        self.locks.as_mut().expect("a workload with locks has an arbiter")
    }

    /// Has the arbiter decide on `event`, which `cpu` has handled, and carries its decisions out.
    #[inline(never)]
    fn arbitrate(&mut self, cpu: CpuId, event: lock::Event) {
        let now = self.cx.now;
        let mut actions = self.locks().decide(now, event);
        let mut prioritized = false;
        for action in actions.drain(..) {
            match action {
                lock::Action::Grant { task, lock, replica } => self.granted(cpu, task, lock, replica),
                lock::Action::Prioritize { priority } => {
                    prioritized = true;
                    self.prioritize(priority.task, priority.level());
                }
            }
        }
        self.locks().reuse(actions);
        // The holders of tokens may have changed even where no priority did.
        self.follow_owners();
        if prioritized {
            for cluster in 0..self.clusters.len() {
                self.kick_for_bottom_halves(cpu, cluster);
            }
        }
    }

    fn granted(&mut self, cpu: CpuId, task: TaskId, lock: LockId, replica: ReplicaId) {
        let job = self.job_id(task);
        self.cx.record(Event::Grant { job, lock, replica });
        self.enforce(cpu, task, budget::Event::Granted);
        self.locks().hold(task, lock, replica);
        if self.tasks[task.index()].state == JobState::WaitsForLock {
            self.wake(cpu, task);
        }
    }

    /// The job of `task` has that effective priority from now on.
    pub(super) fn prioritize(&mut self, task: TaskId, level: (u64, u32)) {
        self.record_priority(task, level);
        let (cluster, local) = self.local(task);
        self.notify_policy(cluster, cpu::Event::Prioritized { task: local, level });
    }

    pub(super) fn record_priority(&mut self, task: TaskId, (level, tie): (u64, u32)) {
        // A boosted job and a thread of fixed priority have no other task's priority.
        let of = if level == ABOVE_ALL || level == BELOW_ALL { task } else { TaskId(tie) };
        let job = self.job_id(task);
        self.cx.record(Event::Priority { job, level, of });
    }

    // --- Budgets -------------------------------------------------------------------------------------------------

    fn server(&mut self, task: TaskId) -> Option<&mut Server> {
        self.servers.get_mut(task.index())?.as_mut()
    }

    /// There is a job, or a bottom half, for `task` to begin; answers whether it may begin now. If not, it is begun as
    /// soon as it may.
    #[inline(never)]
    pub(super) fn server_has_work(&mut self, cpu: CpuId, task: TaskId) -> bool {
        let now = self.cx.now;
        let Some(server) = self.server(task) else { return true };
        if server.throttled() == Throttled::BeforeWork {
            return false;
        }
        let actions = server.wake(now);
        self.follow_server(cpu, task, &actions, Throttled::BeforeWork);
        let Some(level) = self.server(task).and_then(Server::begin) else { return false };
        self.tasks[task.index()].level = (level, task.0);
        true
    }

    /// The deadline by which the job of `task` that is due at `deadline` is ranked.
    pub(super) fn ranked_deadline(&self, task: TaskId, deadline: Instant) -> Instant {
        let server = self.servers.get(task.index()).and_then(Option::as_ref);
        server.map_or(deadline, |server| server.ranked_deadline(deadline))
    }

    /// `task` executes on `cpu` from now on: no longer than it has budget.
    #[inline(never)]
    pub(super) fn server_runs(&mut self, cpu: CpuId, task: TaskId) {
        let now = self.cx.now;
        if let Some(exhausted) = self.server(task).and_then(|server| server.run(now)) {
            self.ends.set(cpu, exhausted.min(self.ends.of(cpu)));
        }
    }

    /// `task`, whose job is not complete, stops executing on `cpu`.
    #[inline(never)]
    pub(super) fn server_stops(&mut self, cpu: CpuId, task: TaskId) {
        let now = self.cx.now;
        let Some(server) = self.server(task) else { return };
        let actions = server.stop(now);
        self.follow_server(cpu, task, &actions, Throttled::InSection);
    }

    /// A segment of `task` on `cpu` has ended. Answers whether that is all: its step is not done.
    #[inline(never)]
    pub(super) fn end_of_budget(&mut self, cpu: CpuId, task: TaskId) -> bool {
        if self.server(task).is_none() {
            return false;
        }
        let executed = (self.cx.now - self.cpus[cpu.index()].since).as_nanos();
        self.server_stops(cpu, task);
        let run = &mut self.tasks[task.index()];
        if run.state != JobState::Spinning {
            run.remaining -= executed;
            if run.remaining == 0 {
                return false;
            }
        }
        if self.must_give_up(task) {
            self.give_up(cpu, task);
        }
        self.touch(cpu);
        true
    }

    /// Whether the job of `task` has no budget, and no section to end first.
    #[inline(never)]
    pub(super) fn must_give_up(&mut self, task: TaskId) -> bool {
        self.tasks[task.index()].state != JobState::NonPreemptive
            && self.server(task).is_some_and(|server| server.must_give_up())
    }

    /// The job of `task` leaves `cpu` until there is budget again.
    #[inline(never)]
    pub(super) fn give_up(&mut self, cpu: CpuId, task: TaskId) {
        self.server(task).expect("only a task with a budget can exhaust it").throttle(Throttled::AmidWork);
        if self.tasks[task.index()].state == JobState::Spinning {
            let job = self.job_id(task);
            self.cx.record(Event::SpinEnd { cpu, job });
        }
        self.withdraw(cpu, task);
    }

    /// The job of `task`, on `cpu`, is complete; `more`: the next has been released.
    #[inline(never)]
    pub(super) fn server_finished(&mut self, cpu: CpuId, task: TaskId, more: bool) {
        let now = self.cx.now;
        let Some(server) = self.server(task) else { return };
        let actions = server.finish(now, more);
        self.follow_server(cpu, task, &actions, Throttled::BeforeWork);
    }

    /// The server of `task` may have a budget again.
    #[inline(never)]
    pub(super) fn replenish(&mut self, task: TaskId) {
        let now = self.cx.now;
        let cpu = self.tasks[task.index()].timer_cpu;
        let server = self.server(task).expect("only servers are replenished");
        let Some((throttled, actions)) = server.replenish(now) else { return };
        self.follow_server(cpu, task, &actions, throttled);
        match throttled {
            Throttled::BeforeWork if task.index() < self.plan.threads.first_task => self.make_ready(cpu, task),
            Throttled::BeforeWork => self.begin_thread(cpu, task),
            Throttled::AmidWork => {
                let cpu = self.plan.dedicated.unwrap_or(cpu);
                self.raise(cpu, Interrupt::Resume(task));
            }
            Throttled::InSection => {
                let executes = |cpu: &usize| {
                    self.cpus[*cpu].process.task() == Some(task) && self.cpus[*cpu].activity == Activity::Job
                };
                if let Some(cpu) = (0..self.cpus.len()).find(executes) {
                    self.server_runs(CpuId(cpu as u16), task);
                }
            }
            Throttled::No => {}
        }
    }

    /// Carries out what the server of `task` decided; `throttled` waits for budget if there is none.
    fn follow_server(&mut self, cpu: CpuId, task: TaskId, actions: &[server::Action], throttled: Throttled) {
        for action in actions {
            match *action {
                server::Action::Ready { deadline } => self.server_ready(cpu, task, deadline),
                server::Action::Throttled { until } => {
                    self.server(task).expect("it acts").throttle(throttled);
                    self.tasks[task.index()].timer_cpu = cpu;
                    self.cx.set_timer(until, TimerKind::Replenish(task));
                    if throttled == Throttled::InSection {
                        self.enforce(cpu, task, budget::Event::Exhausted);
                    }
                }
                server::Action::Replenished { budget, deadline } => {
                    self.cx.record(Event::Replenish { task, budget, deadline });
                }
            }
        }
    }

    /// The server of `task` competes with that deadline; a job that is pending follows at once.
    fn server_ready(&mut self, cpu: CpuId, task: TaskId, deadline: Instant) {
        let level = (self.server(task).expect("it acts").compete(deadline), task.0);
        let run = &mut self.tasks[task.index()];
        if !run.is_active() || run.level == level {
            return;
        }
        run.level = level;
        if task.index() < self.plan.threads.first_task && self.locks.is_some() {
            let priority = Priority::of(level.0, task);
            return self.arbitrate(cpu, lock::Event::Rebase { priority });
        }
        self.prioritize(task, level);
    }

    /// `event` happens to a lock that the job of `task` requests or holds, or to its budget.
    fn enforce(&mut self, cpu: CpuId, task: TaskId, event: budget::Event) {
        let Some(server) = self.server(task) else { return };
        for lock in server.enforce(event) {
            self.arbitrate(cpu, lock::Event::Overrun { task, lock });
        }
    }

    // --- Tokens --------------------------------------------------------------------------------------------------

    /// Lets `event` happen to a graph, on `cpu` if it is the completion of a job there, and releases the jobs that it makes
    /// ready.
    ///
    /// Jobs made ready by a completion are released in one go, in an interrupt handler of the producer's CPU, which nothing
    /// preempts: that is the producer's boost while it signals (paper 003, section 5.2.3). Others are released by the timer
    /// of their task.
    #[inline(never)]
    pub(super) fn with_tokens(
        &mut self,
        cpu: Option<CpuId>,
        event: impl FnOnce(&mut Graphs, &mut Context<S>, &mut Vec<Ready>),
    ) {
        let mut ready = std::mem::take(&mut self.ready);
        event(&mut self.graphs, &mut self.cx, &mut ready);
        for &(task, deadline) in &ready {
            self.tasks[task.index()].backlog.push_back(deadline);
        }
        match cpu {
            Some(cpu) if !ready.is_empty() => self.release_nodes(cpu, ready.drain(..)),
            Some(_) => {}
            None => {
                for node in ready.drain(..) {
                    let cpu = self.plan.dedicated.unwrap_or(self.tasks[node.0.index()].timer_cpu);
                    self.release_nodes(cpu, std::iter::once(node));
                }
            }
        }
        self.ready = ready;
    }

    fn release_nodes(&mut self, cpu: CpuId, ready: impl Iterator<Item = Ready>) {
        let mut batch = self.spare_batches.pop().unwrap_or_default();
        batch.extend(ready.map(|(task, _)| task));
        self.raise(cpu, Interrupt::Release(batch));
    }
}
