//! A job's life: released, ready, step by step, complete.

use laxity_model::{CpuId, ExecutionTime, GpuId, Instant, JobId, Nanos, TaskId};
use laxity_plan::{GpuChoice, Op, OperationTime, ReleasedBy};
use laxity_policy::cpu;
use laxity_trace::{Event, Sink};

use super::Simulator;
use crate::context::TimerKind;
use crate::cpu::{Activity, Due, Interrupt, Process};
use crate::task::JobState;

impl<S: Sink> Simulator<S> {
    /// Releases every job that is due now and raises one interrupt per timer: per cluster, or on the dedicated CPU.
    pub(super) fn release_due(&mut self) {
        if self.releases.next() != Some(self.cx.now) {
            return;
        }
        while let Some((task, _)) = self.releases.pop_due(self.cx.now) {
            let plan = &self.plan.tasks[task.index()];
            if plan.released_by == ReleasedBy::TimeAndTokens {
                self.with_tokens(None, |graphs, cx, ready| graphs.arrive(cx, task, ready));
            } else {
                let run = &mut self.tasks[task.index()];
                let job = JobId { task, index: run.next.index };
                let deadline = run.next.deadline(&plan.releases);
                self.cx.record(Event::Release { job, deadline });
                run.backlog.push_back(deadline);
                let cluster = &mut self.clusters[usize::from(plan.cluster)];
                if cluster.batch.is_empty() {
                    cluster.batch_cpu = self.plan.dedicated.unwrap_or(run.timer_cpu);
                }
                cluster.batch.push(task);
            }
            self.plan_next_release(task);
        }
        for index in 0..self.clusters.len() {
            let cluster = &mut self.clusters[index];
            if cluster.batch.is_empty() {
                continue;
            }
            let spare = self.spare_batches.pop().unwrap_or_default();
            let batch = std::mem::replace(&mut cluster.batch, spare);
            let cpu = cluster.batch_cpu;
            self.raise(cpu, Interrupt::Release(batch));
        }
    }

    fn plan_next_release(&mut self, task: TaskId) {
        let plan = &self.plan.tasks[task.index()];
        let run = &mut self.tasks[task.index()];
        run.next.advance(&plan.releases, self.plan.draws(task));
        self.releases.set(task, run.next.at, run.timer_cpu.index());
    }

    /// The release of a job of `task` was handled on `cpu`: it is ready unless its predecessor is still pending.
    pub(super) fn make_ready(&mut self, cpu: CpuId, task: TaskId) {
        let run = &self.tasks[task.index()];
        // A job released together with its predecessor's completion may have been made ready by that already.
        if run.is_active() || run.backlog.is_empty() {
            return;
        }
        if !self.servers.is_empty() && !self.server_has_work(cpu, task) {
            return;
        }
        let run = &mut self.tasks[task.index()];
        let Some(deadline) = run.backlog.pop_front() else { return };
        run.begin(0);
        run.deadline = deadline;
        self.draw_step(task);
        let job = self.job_id(task);
        let ranked = self.ranked_deadline(task, deadline);
        if ranked != deadline {
            self.cx.record(Event::Priority { job, level: ranked.as_nanos(), of: task });
        }
        self.enter(task, ranked);
        self.cx.record(Event::Ready { job, cpu });
        let (cluster, local) = self.local(task);
        let cpu = self.local_cpu(cpu, cluster);
        self.notify_policy(cluster, cpu::Event::Released { cpu, task: local, deadline: ranked });
    }

    /// Determines what the current step of the task's job needs.
    pub(super) fn draw_step(&mut self, task: TaskId) {
        let op = self.tasks[task.index()].op as usize;
        let span = match &self.plan.tasks[task.index()].ops[op] {
            Op::Run(time) | Op::NonPreemptive(time) | Op::Suspend(time) => self.draw_time(task, op, time),
            _ => Nanos::ZERO,
        };
        self.tasks[task.index()].remaining = span.as_nanos();
    }

    /// What `time` is for step `op` of the current job of `task`.
    fn draw_time(&self, task: TaskId, op: usize, time: &ExecutionTime) -> Nanos {
        self.plan.draws(task).step(time, self.tasks[task.index()].job, op)
    }

    /// The step that the job on `cpu` executes ends now.
    pub(super) fn end_of_step(&mut self, cpu: CpuId) {
        let state = &mut self.cpus[cpu.index()];
        let task = state.process.task().expect("a CPU without a job has no step that ends");
        state.activity = Activity::Open;
        self.ends.set(cpu, Instant::NEVER);
        if !self.servers.is_empty() && self.end_of_budget(cpu, task) {
            return;
        }
        let run = &mut self.tasks[task.index()];
        run.remaining = 0;
        if run.state == JobState::NonPreemptive {
            run.state = JobState::Pending;
            let job = self.job_id(task);
            self.cx.record(Event::NonPreemptiveEnd { cpu, job });
        }
        self.advance(cpu, task);
    }

    /// On to the next step; those that take no time are carried out, until the job executes, waits or is complete.
    fn advance(&mut self, cpu: CpuId, task: TaskId) {
        loop {
            let op = self.tasks[task.index()].op as usize + 1;
            let is_last = || op >= self.plan.tasks[task.index()].ops.len();
            if !self.servers.is_empty() && !is_last() && self.must_give_up(task) {
                return self.give_up(cpu, task);
            }
            self.tasks[task.index()].op += 1;
            match self.plan.tasks[task.index()].ops.get(op) {
                None if self.is_best_effort(task) => return self.complete_best_effort(cpu, task),
                None if task.index() >= self.plan.threads.first_task => return self.complete_thread(cpu, task),
                None => return self.complete(cpu, task),
                Some(Op::Run(_) | Op::NonPreemptive(_)) => return self.draw_step(task),
                Some(Op::Suspend(_)) => return self.suspend_for_a_time(cpu, task),
                Some(Op::Dispatch) => {}
                Some(&Op::UnlessMoved(steps)) => {
                    let has_moved = self.locks.as_ref().is_some_and(|locks| locks.left(task).is_some());
                    self.tasks[task.index()].op += if has_moved { 0 } else { steps };
                }
                Some(Op::Issue(_)) => self.issue(task),
                Some(Op::HoldBandwidth) => self.hold_bandwidth(cpu, task),
                Some(Op::EndBandwidth) => self.end_bandwidth(cpu, task),
                Some(Op::Wait) => {
                    if self.tasks[task.index()].outstanding > 0 {
                        return self.wait_for_gpu(cpu, task);
                    }
                }
                Some(Op::Lock { .. } | Op::LockEngine(_) | Op::Unlock(_) | Op::UnlockEngine(_)) => {
                    if !self.step_of_lock(cpu, task) {
                        return self.suspend(cpu, task, JobState::WaitsForLock);
                    }
                }
            }
        }
    }

    fn complete(&mut self, cpu: CpuId, task: TaskId) {
        let job = self.job_id(task);
        self.cx.record(Event::Complete { cpu, job });
        if let Some(latest) = &mut self.latest {
            latest.complete(job);
        }
        let (cluster, local) = self.local(task);
        let event = cpu::Event::Completed { cpu: self.local_cpu(cpu, cluster), task: local };
        self.notify_policy(cluster, event);
        self.leave(task);
        self.vacate(cpu, task);
        if !self.plan.header.costs.timer_rearming.is_zero() {
            self.cpus[cpu.index()].due.add(Due::REARM);
        }
        let run = &mut self.tasks[task.index()];
        run.complete();
        run.timer_cpu = cpu;
        let more = !run.backlog.is_empty();
        let is_node =
            matches!(self.plan.tasks[task.index()].released_by, ReleasedBy::TimeAndTokens | ReleasedBy::Tokens);
        if !self.servers.is_empty() {
            // One that is released at this very instant finds the server idle. A node's may have waited for this one.
            let now = self.cx.now;
            let waited = self.has_waited(task) || is_node && self.graphs.has_waited(task, now);
            self.server_finished(cpu, task, waited);
        }
        if more {
            self.make_ready(cpu, task);
        }
        if is_node {
            self.with_tokens(Some(cpu), |graphs, cx, ready| graphs.complete(cx, task, ready));
        }
    }

    /// Whether a job of `task` arrived before now and waits for its predecessor.
    fn has_waited(&self, task: TaskId) -> bool {
        let relative = self.plan.tasks[task.index()].releases.deadline;
        let next = self.tasks[task.index()].backlog.front();
        next.is_some_and(|deadline| deadline.0 < self.cx.now.0.saturating_add(relative.0))
    }

    #[inline(never)]
    fn suspend_for_a_time(&mut self, cpu: CpuId, task: TaskId) {
        self.draw_step(task);
        let at = self.cx.now + Nanos(self.tasks[task.index()].remaining);
        self.suspend(cpu, task, JobState::Pending);
        self.cx.set_timer(at, TimerKind::Resume(task));
    }

    /// The job of `task` gives up `cpu` until what `state` says it waits for has come; it goes on with the step after this
    /// one.
    #[inline(never)]
    fn suspend(&mut self, cpu: CpuId, task: TaskId, state: JobState) {
        self.withdraw(cpu, task);
        let run = &mut self.tasks[task.index()];
        run.state = state;
        run.op += 1;
        self.draw_step(task);
    }

    /// The job of `task`, which is not complete, leaves `cpu`.
    pub(super) fn withdraw(&mut self, cpu: CpuId, task: TaskId) {
        let job = self.job_id(task);
        self.cx.record(Event::Suspend { cpu, job });
        let (cluster, local) = self.local(task);
        let event = cpu::Event::Suspended { cpu: self.local_cpu(cpu, cluster), task: local };
        self.notify_policy(cluster, event);
        self.vacate(cpu, task);
        self.tasks[task.index()].timer_cpu = cpu;
    }

    /// The job of `task` needs `cpu` no longer.
    pub(super) fn vacate(&mut self, cpu: CpuId, task: TaskId) {
        self.cpus[cpu.index()].vacate(self.cx.now, task);
        self.handler = cpu;
        if let Some(best_effort) = &mut self.best_effort {
            best_effort.vacate(self.cx.now, cpu, task);
        }
    }

    /// The suspended job of `task` can resume, as `cpu` has noticed.
    pub(super) fn wake(&mut self, cpu: CpuId, task: TaskId) {
        self.tasks[task.index()].state = JobState::Pending;
        self.raise(cpu, Interrupt::Resume(task));
    }

    // --- GPU operations ------------------------------------------------------------------------------------------

    /// The job of `task` hands the operation of its current step to its GPU.
    #[inline(never)]
    fn issue(&mut self, task: TaskId) {
        let op = self.tasks[task.index()].op as usize;
        let Op::Issue(operation) = &self.plan.tasks[task.index()].ops[op] else {
            unreachable!("the current step issues an operation")
        };
        let gpu = self.chosen(task, operation.gpu);
        let duration = match &operation.time {
            OperationTime::Given(time) => self.draw_time(task, op, time),
            OperationTime::Bytes(bytes) => self.plan.gpus[gpu.index()].copy_time(*bytes),
        };
        let job = self.job_id(task);
        self.tasks[task.index()].outstanding += 1;
        self.devices.issue(&mut self.cx, &self.plan, job, (gpu, operation), duration);
    }

    fn chosen(&self, task: TaskId, choice: GpuChoice) -> GpuId {
        let locks = || self.locks.as_ref().expect("a GPU that is granted has a lock");
        match choice {
            GpuChoice::Gpu(gpu) => gpu,
            GpuChoice::Granted => locks().granted(task),
            GpuChoice::Left => locks().left(task).expect("only a task that moved copies its state"),
        }
    }

    #[inline(never)]
    fn wait_for_gpu(&mut self, cpu: CpuId, task: TaskId) {
        if !self.plan.spins {
            return self.suspend(cpu, task, JobState::WaitsForGpu);
        }
        self.tasks[task.index()].state = JobState::Spinning;
        let job = self.job_id(task);
        self.cx.record(Event::SpinBegin { cpu, job });
    }

    /// An operation of `job` is complete, and `cpu` knows.
    #[inline(never)]
    pub(super) fn operation_done(&mut self, cpu: CpuId, job: JobId) {
        let run = &mut self.tasks[job.task.index()];
        assert_eq!(run.job, job.index, "a job does not end before its operations");
        run.outstanding -= 1;
        if run.outstanding > 0 {
            return;
        }
        match run.state {
            JobState::Spinning => self.stop_spinning(job.task),
            JobState::WaitsForGpu => self.wake(cpu, job.task),
            _ => {}
        }
    }

    /// The job of `task` need not spin any longer.
    #[inline(never)]
    fn stop_spinning(&mut self, task: TaskId) {
        let job = self.job_id(task);
        let run = &mut self.tasks[task.index()];
        run.state = JobState::Pending;
        let left = Nanos(run.remaining);
        let spins = |cpu: &usize| self.cpus[*cpu].process == Process::Dispatched(task);
        let Some(cpu) = (0..self.cpus.len()).find(spins) else { return };
        self.cx.record(Event::SpinEnd { cpu: CpuId(cpu as u16), job });
        let state = &mut self.cpus[cpu];
        if state.activity == Activity::Job {
            // Nothing, or what a preemption while it spun cost it.
            state.since = self.cx.now;
            self.ends.set(CpuId(cpu as u16), self.cx.now + left);
        }
    }
}
