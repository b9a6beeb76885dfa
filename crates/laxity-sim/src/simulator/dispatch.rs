//! What a CPU does so that the process of its linked job runs.
//!
//! The order is that of paper 002, Fig. 1(c): release, [IPI latency], scheduling, context switch, and re-arming of the
//! timer after the switch (appendix A). Scheduler and interrupt code is not interruptible; interrupts that arrive
//! during it wait. The link is read at the end of the scheduling overhead, so a change during it is still enacted; a
//! change during the context switch makes the scheduler run again. [`crate::cpu::Cpu::next`] has the order of a CPU's
//! work.

use laxity_model::{CpuId, Instant, InterruptHandling, JobId, Nanos, OverheadKind, TaskId};
use laxity_plan::Op;
use laxity_policy::cpu;
use laxity_trace::{Event, Sink};

use super::Simulator;
use crate::bottom_halves::{Place, Then};
use crate::cpu::{Activity, Due, Next, Process, Work};
use crate::task::JobState;

impl<S: Sink> Simulator<S> {
    /// Lets `cpu` do what is due now, until it is busy with something that takes time.
    pub(super) fn act(&mut self, cpu: CpuId) {
        let state = &mut self.cpus[cpu.index()];
        if matches!(state.activity, Activity::Scheduler(_)) {
            return;
        }
        if state.due.take(Due::QUANTUM) && state.link_is_new() {
            state.due.add(Due::SCHEDULE);
        }
        loop {
            let tasks = &self.tasks;
            let next = self.cpus[cpu.index()].next(|task| tasks[task.index()].state == JobState::NonPreemptive);
            match next {
                Next::Interrupt(interrupt) => {
                    self.pause(cpu);
                    if !self.begin(cpu, Work::Interrupt(interrupt)) {
                        // It took no time: its policy decides before this CPU goes on.
                        self.touch(cpu);
                    }
                    return;
                }
                Next::ResumeBottomHalf => return self.resume_bottom_half(cpu),
                Next::Tasklet(half) => self.push_bottom_half(cpu, half, Then::Return),
                Next::EnactLink => {
                    let has_bottom_halves = self.cpus[cpu.index()].bottom_halves.is_some();
                    if !(has_bottom_halves && self.take_waiting_half(cpu, Then::Pick)) && self.enact_link(cpu) {
                        return;
                    }
                }
                Next::RearmTimer => {
                    if self.begin(cpu, Work::RearmTimer) {
                        return;
                    }
                }
                Next::Schedule => {
                    self.pause(cpu);
                    if self.schedule(cpu) || matches!(self.cpus[cpu.index()].activity, Activity::Scheduler(_)) {
                        return;
                    }
                }
                Next::Run => return self.run(cpu),
            }
        }
    }

    pub(super) fn in_non_preemptive_section(&self, cpu: CpuId) -> bool {
        let process = self.cpus[cpu.index()].process.task();
        process.is_some_and(|task| self.tasks[task.index()].state == JobState::NonPreemptive)
    }

    /// Runs the scheduler: [`Self::begin`] without a detour where it takes no time.
    fn schedule(&mut self, cpu: CpuId) -> bool {
        if !self.plan.header.costs.scheduling.is_zero() {
            return self.begin(cpu, Work::Schedule);
        }
        self.scheduled(cpu);
        false
    }

    /// The scheduler has run.
    fn scheduled(&mut self, cpu: CpuId) {
        let state = &mut self.cpus[cpu.index()];
        state.handled_at = self.cx.now;
        if state.bottom_halves.is_none() || self.plan.header.handling != InterruptHandling::ProcessAware {
            state.due.add(Due::PICK);
        } else {
            self.begin(cpu, Work::PaiCheck);
        }
    }

    /// Starts `work`. If it takes no time it is done at once, and the answer is `false`.
    pub(super) fn begin(&mut self, cpu: CpuId, work: Work) -> bool {
        let (kind, cost) = self.cost(&work);
        if cost.is_zero() {
            self.done(cpu, work);
            return false;
        }
        if let Some(cluster) = self.locked_cluster(cpu, &work) {
            let wait = self.clusters[cluster].lock(self.cx.now, cost);
            if !wait.is_zero() {
                self.cx.record(Event::LockWait { cpu, duration: wait });
                self.occupy(cpu, Work::Lock(Box::new(work)), wait);
                return true;
            }
        }
        self.cx.record(Event::Overhead { cpu, kind, duration: cost });
        self.occupy(cpu, work, cost);
        true
    }

    fn occupy(&mut self, cpu: CpuId, work: Work, duration: Nanos) {
        self.cpus[cpu.index()].activity = Activity::Scheduler(work);
        self.ends.set(cpu, self.cx.now + duration);
    }

    fn cost(&self, work: &Work) -> (OverheadKind, Nanos) {
        let costs = &self.plan.header.costs;
        match work {
            Work::Lock(inner) => self.cost(inner),
            Work::Interrupt(interrupt) => self.interrupt_cost(interrupt),
            Work::Schedule => (OverheadKind::Scheduling, costs.scheduling),
            Work::PaiCheck => (OverheadKind::PaiCheck, costs.pai_check),
            Work::ContextSwitch => (OverheadKind::ContextSwitch, costs.context_switch),
            Work::RearmTimer => (OverheadKind::TimerRearming, costs.timer_rearming),
        }
    }

    /// The segment of scheduler or interrupt code on `cpu` ends now.
    pub(super) fn end_of_work(&mut self, cpu: CpuId) {
        let state = &mut self.cpus[cpu.index()];
        self.ends.set(cpu, Instant::NEVER);
        match std::mem::replace(&mut state.activity, Activity::Open) {
            Activity::Scheduler(Work::Lock(work)) => {
                let (kind, cost) = self.cost(&work);
                self.cx.record(Event::Overhead { cpu, kind, duration: cost });
                self.occupy(cpu, *work, cost);
            }
            Activity::Scheduler(work) => self.done(cpu, work),
            Activity::Job | Activity::BottomHalf(_) | Activity::Open => unreachable!("only scheduler work ends here"),
        }
    }

    /// The effect of `work`, at its end.
    fn done(&mut self, cpu: CpuId, work: Work) {
        match work {
            Work::Interrupt(interrupt) => self.handle_interrupt(cpu, interrupt),
            Work::Schedule => self.scheduled(cpu),
            Work::PaiCheck => self.cpus[cpu.index()].due.add(Due::PICK),
            Work::ContextSwitch => self.cpus[cpu.index()].due.add(Due::AFTER_SWITCH),
            Work::RearmTimer => {}
            Work::Lock(_) => unreachable!("waiting for a lock is followed by the work it guards"),
        }
    }

    /// Switches to the process of the linked job, if it is another. Answers whether that takes time.
    fn enact_link(&mut self, cpu: CpuId) -> bool {
        let state = &mut self.cpus[cpu.index()];
        let (from, to, vacated) = (state.process, state.link, state.vacated.take());
        state.due.add(Due::AFTER_SWITCH);
        if from.task() == to && vacated.is_none() {
            return false;
        }
        if let Process::Dispatched(task) = from {
            let job = self.job_id(task);
            let run = &mut self.tasks[task.index()];
            run.preempted_on = Some(cpu);
            if run.state == JobState::Spinning {
                self.cx.record(Event::SpinEnd { cpu, job });
            }
            self.cx.record(Event::Preempt { cpu, job });
        }
        let state = &mut self.cpus[cpu.index()];
        state.process = Process::of(to);
        let (mut above_from, mut above_to) = (from.task(), to);
        if let Some(best_effort) = &mut self.best_effort {
            best_effort.switch(self.cx.now, cpu, from.task(), to);
            above_from = above_from.filter(|&task| !best_effort.has(task));
            above_to = above_to.filter(|&task| !best_effort.has(task));
        }
        let state = &mut self.cpus[cpu.index()];
        if let (Some((cluster, local)), true) = (state.cluster, above_from != above_to) {
            let task = above_to.map(|task| self.plan.tasks[task.index()].local);
            self.clusters[cluster].policy.handle(self.cx.now, cpu::Event::Switched { cpu: local, task });
        }
        if vacated.is_some() && vacated == to {
            return false; // The same process goes on with its next job.
        }
        if self.plan.header.costs.context_switch.is_zero() {
            return false;
        }
        state.due.take(Due::AFTER_SWITCH);
        self.begin(cpu, Work::ContextSwitch)
    }

    /// Lets the process on `cpu` execute its job, or leaves the CPU idle.
    fn run(&mut self, cpu: CpuId) {
        let state = &mut self.cpus[cpu.index()];
        if matches!(state.activity, Activity::Job | Activity::BottomHalf(Place::Daemon)) {
            return;
        }
        state.activity = Activity::Job;
        let is_daemons = |task: &TaskId| {
            // The daemon goes before tasks that may never end.
            self.best_effort.as_ref().is_some_and(|best_effort| best_effort.has(*task))
                && state.bottom_halves.as_ref().is_some_and(|halves| halves.daemon_has_work())
        };
        let Some(task) = state.process.task().filter(|task| !is_daemons(task)) else {
            self.ends.set(cpu, Instant::NEVER);
            return self.run_daemon(cpu);
        };
        state.since = self.cx.now;
        let run = &mut self.tasks[task.index()];
        let job = JobId { task, index: run.job };
        if let Process::SwitchedIn(_) = state.process {
            state.process = Process::Dispatched(task);
            self.cx.record(Event::Dispatch { cpu, job });
            if let Some(latest) = &mut self.latest {
                latest.begin(job, |edge, value| self.cx.record(Event::Read { job, edge, value }));
            }
            if let Some(before) = run.preempted_on.take() {
                let costs = &self.plan.header.costs;
                let (kind, duration) = if before == cpu {
                    (OverheadKind::CachePreemption, costs.cache_preemption)
                } else {
                    (OverheadKind::CacheMigration, costs.cache_migration)
                };
                if !duration.is_zero() {
                    run.remaining += duration.as_nanos();
                    self.cx.record(Event::CacheDelay { cpu, job, kind, duration });
                }
            }
            if run.state == JobState::Spinning {
                self.cx.record(Event::SpinBegin { cpu, job });
            }
        }
        let ops = &self.plan.tasks[task.index()].ops;
        if run.state == JobState::Pending && run.remaining > 0 && matches!(ops[run.op as usize], Op::NonPreemptive(_)) {
            run.state = JobState::NonPreemptive;
            self.cx.record(Event::NonPreemptiveBegin { cpu, job });
        }
        let spins = run.state == JobState::Spinning;
        self.ends.set(cpu, if spins { Instant::NEVER } else { self.cx.now.saturating_add(Nanos(run.remaining)) });
        if !self.servers.is_empty() {
            self.server_runs(cpu, task);
        }
    }

    /// Stops what executes on `cpu`: a job, a bottom half, or nothing.
    #[inline]
    pub(super) fn pause(&mut self, cpu: CpuId) {
        let state = &mut self.cpus[cpu.index()];
        match state.activity {
            Activity::Job => {}
            Activity::BottomHalf(place) => return self.pause_bottom_half(cpu, place),
            Activity::Open | Activity::Scheduler(_) => return,
        }
        state.activity = Activity::Open;
        self.ends.set(cpu, Instant::NEVER);
        let Some(task) = state.process.task() else { return };
        let run = &mut self.tasks[task.index()];
        if run.state != JobState::Spinning {
            run.remaining -= (self.cx.now - state.since).as_nanos();
        }
        if !self.servers.is_empty() {
            self.server_stops(cpu, task);
        }
    }
}
