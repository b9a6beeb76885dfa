//! A job's life: released, ready, step by step, complete.

use std::cmp::Reverse;

use laxity_model::{CpuId, ExecutionTime, Instant, JobId, Nanos, TaskId};
use laxity_policy::cpu;
use laxity_trace::{Event, Sink};

use crate::Simulator;
use crate::interrupt::Interrupt;
use crate::simulator::{Activity, TaskRun, Timer, TimerKind, Wait};
use laxity_plan::{NextRelease, Op};

impl<S: Sink> Simulator<S> {
    pub(crate) fn plan_first_releases(&mut self) {
        for (index, plan) in self.plan.tasks.iter().enumerate() {
            let task = TaskId(index as u32);
            let cpus = &self.plan.clusters[usize::from(plan.cluster)].cpus;
            let timer_cpu = cpus[plan.local.index() % cpus.len()];
            let next = NextRelease::first(&plan.releases, self.plan.draws(task));
            self.tasks.push(TaskRun {
                active: false,
                job: 0,
                op: 0,
                remaining: 0,
                non_preemptive: false,
                wait: Wait::Timer,
                spinning: false,
                sharing: Box::default(),
                deadline: Instant::ZERO,
                preempted_on: None,
                timer_cpu,
                backlog: Default::default(),
                next,
            });
            if plan.released_by.has_timer() {
                self.releases.set(task, next.at, timer_cpu.index());
            }
        }
    }

    /// The current job of `task`.
    pub(crate) fn job_id(&self, task: TaskId) -> JobId {
        JobId { task, index: self.tasks[task.index()].job }
    }

    /// Releases every job that is due now and raises one interrupt per timer: per cluster, or on the dedicated CPU.
    pub(crate) fn release_due(&mut self) {
        if self.releases.next() != Some(self.now) {
            return;
        }
        while let Some((task, _)) = self.releases.pop_due(self.now) {
            if !self.plan.graphs.is_empty() && self.arrive_at_graph(task) {
                self.plan_next_release(task);
                continue;
            }
            let plan = &self.plan.tasks[task.index()];
            let run = &mut self.tasks[task.index()];
            let job = JobId { task, index: run.next.index };
            let deadline = run.next.deadline(&plan.releases);
            self.sink.record(self.now, Event::Release { job, deadline });
            run.backlog.push_back(deadline);
            let cluster = &mut self.clusters[usize::from(plan.cluster)];
            if cluster.batch.is_empty() {
                cluster.batch_cpu = self.plan.dedicated.unwrap_or(run.timer_cpu);
            }
            cluster.batch.push(task);
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
    pub(crate) fn make_ready(&mut self, cpu: CpuId, task: TaskId) {
        if self.tasks[task.index()].active {
            return;
        }
        let (cluster, local) = self.local(task);
        // A job released together with its predecessor's completion may have been made ready by that already.
        if self.tasks[task.index()].backlog.is_empty() || !self.server_has_work(cpu, task) {
            return;
        }
        let run = &mut self.tasks[task.index()];
        let Some(deadline) = run.backlog.pop_front() else { return };
        run.active = true;
        run.op = 0;
        run.preempted_on = None;
        run.deadline = deadline;
        self.draw_step(task);
        let job = self.job_id(task);
        let ranked = self.server_deadline(task, deadline);
        if ranked != deadline {
            self.sink.record(self.now, Event::Priority { job, level: ranked.as_nanos(), of: task });
        }
        self.enter(task, ranked);
        self.sink.record(self.now, Event::Ready { job, cpu });
        let cpu = self.local_cpu(cpu, cluster);
        self.tell(cluster, cpu::Event::Released { cpu, task: local, deadline: ranked });
    }

    /// Determines what the current step of the task's job needs.
    fn draw_step(&mut self, task: TaskId) {
        let op = self.tasks[task.index()].op as usize;
        let span = match &self.plan.tasks[task.index()].ops[op] {
            Op::Run(time) | Op::NonPreemptive(time) | Op::Suspend(time) => self.draw_time(task, op, time),
            _ => Nanos::ZERO,
        };
        self.tasks[task.index()].remaining = span.as_nanos();
    }

    /// What `time` is for step `op` of the current job of `task`.
    pub(crate) fn draw_time(&self, task: TaskId, op: usize, time: &ExecutionTime) -> Nanos {
        self.plan.draws(task).step(time, self.tasks[task.index()].job, op)
    }

    /// The step that the job on `cpu` executes ends now.
    pub(crate) fn end_of_step(&mut self, cpu: CpuId) {
        let state = &mut self.cpus[cpu.index()];
        let task = state.process.expect("a CPU without a job has no step that ends");
        state.activity = Activity::Open;
        self.ends[cpu.index()] = Instant::NEVER;
        if !self.servers.is_empty() && self.end_of_budget(cpu, task) {
            return;
        }
        if std::mem::take(&mut self.tasks[task.index()].non_preemptive) {
            let job = self.job_id(task);
            self.sink.record(self.now, Event::NonPreemptiveEnd { cpu, job });
        }
        self.tasks[task.index()].remaining = 0;
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
                None if task.index() >= self.plan.threads.first_task => return self.complete_thread(cpu, task),
                None => return self.complete(cpu, task),
                Some(Op::Run(_) | Op::NonPreemptive(_)) => return self.draw_step(task),
                Some(Op::Suspend(_)) => {
                    self.draw_step(task);
                    return self.suspend_for_a_time(cpu, task);
                }
                Some(Op::Dispatch) => {}
                Some(&Op::UnlessMoved(steps)) => {
                    let run = &mut self.tasks[task.index()];
                    run.op += if run.sharing.left.is_some() { 0 } else { steps };
                }
                Some(Op::Issue(_)) => self.issue(task),
                Some(Op::Wait) => {
                    let run = &mut self.tasks[task.index()];
                    if run.sharing.outstanding > 0 {
                        return self.wait_for_gpu(cpu, task);
                    }
                }
                Some(Op::Lock { .. } | Op::LockEngine(_) | Op::Unlock(_) | Op::UnlockEngine(_)) => {
                    if !self.step_of_lock(cpu, task) {
                        return self.suspend(cpu, task, Wait::Lock);
                    }
                }
            }
        }
    }

    #[inline(never)]
    fn wait_for_gpu(&mut self, cpu: CpuId, task: TaskId) {
        if !self.plan.spins {
            return self.suspend(cpu, task, Wait::Gpu);
        }
        self.tasks[task.index()].spinning = true;
        let job = self.job_id(task);
        self.sink.record(self.now, Event::SpinBegin { cpu, job });
    }

    fn complete(&mut self, cpu: CpuId, task: TaskId) {
        let job = self.job_id(task);
        self.sink.record(self.now, Event::Complete { cpu, job });
        let (cluster, local) = self.local(task);
        let event = cpu::Event::Completed { cpu: self.local_cpu(cpu, cluster), task: local };
        self.tell(cluster, event);
        self.leave(task);
        self.vacate(cpu, task);
        self.cpus[cpu.index()].rearm = true;
        let run = &mut self.tasks[task.index()];
        run.active = false;
        run.job += 1;
        run.timer_cpu = cpu;
        let more = !run.backlog.is_empty();
        if !self.servers.is_empty() {
            self.server_finished(cpu, task, more);
        }
        if more {
            self.make_ready(cpu, task);
        }
        if !self.plan.graphs.is_empty() {
            self.produce_tokens(cpu, task);
        }
    }

    #[inline(never)]
    fn suspend_for_a_time(&mut self, cpu: CpuId, task: TaskId) {
        let at = self.now + Nanos(self.tasks[task.index()].remaining);
        self.suspend(cpu, task, Wait::Timer);
        self.timers.push(Reverse(Timer { at, kind: TimerKind::Resume(task) }));
    }

    /// The job of `task` gives up `cpu` until what it waits for has come; it goes on with the step after this one.
    #[inline(never)]
    fn suspend(&mut self, cpu: CpuId, task: TaskId, wait: Wait) {
        let job = self.job_id(task);
        self.sink.record(self.now, Event::Suspend { cpu, job });
        let (cluster, local) = self.local(task);
        let event = cpu::Event::Suspended { cpu: self.local_cpu(cpu, cluster), task: local };
        self.tell(cluster, event);
        self.vacate(cpu, task);
        let run = &mut self.tasks[task.index()];
        run.timer_cpu = cpu;
        run.wait = wait;
        run.op += 1;
        self.draw_step(task);
    }

    /// The job of `task` needs `cpu` no longer; its process is still there until the scheduler has run.
    pub(crate) fn vacate(&mut self, cpu: CpuId, task: TaskId) {
        let state = &mut self.cpus[cpu.index()];
        state.process = None;
        if state.link == Some(task) {
            state.link = None;
        }
        state.vacated = Some(task);
        state.dispatched = false;
        state.reschedule = true;
        state.handled_at = self.now;
        self.handler = cpu;
    }
}
