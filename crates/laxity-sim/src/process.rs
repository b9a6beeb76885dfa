//! Process scheduling: what a CPU does so that the process of its linked job runs.
//!
//! ```text
//!   job runs --interrupt--> handler --> job runs
//!       |                      |
//!       | job leaves, or the link changed (noticed locally, by IPI, or at a quantum)
//!       v                      v
//!    schedule --(link enacted: pick)--> context switch --> re-arm timer --> job runs
//! ```
//!
//! The order is that of paper 002, Fig. 1(c): release, [IPI latency], scheduling, context switch, and re-arming of the
//! timer after the switch (appendix A). Scheduler and interrupt code is not interruptible; interrupts that arrive
//! during it wait. The link is read at the end of the scheduling overhead, so a change during it is still enacted; a
//! change during the context switch makes the scheduler run again.

use laxity_model::{CpuId, Instant, InterruptHandling, JobId, Nanos, OverheadKind};
use laxity_policy::cpu;
use laxity_trace::{Event, Sink};

use crate::Simulator;
use crate::simulator::{Activity, Work};
use laxity_plan::Op;

impl<S: Sink> Simulator<S> {
    /// Lets `cpu` do what is due now, until it is busy with something that takes time.
    pub(crate) fn act(&mut self, cpu: CpuId) {
        let at = cpu.index();
        if matches!(self.cpus[at].activity, Activity::Scheduler(_)) {
            return;
        }
        let has_devices = !self.plan.devices.is_empty();
        if std::mem::take(&mut self.cpus[at].boundary) && self.cpus[at].link != self.cpus[at].process {
            self.cpus[at].reschedule = true;
        }
        loop {
            if has_devices && self.cpus[at].halves.half.is_some() {
                // Only interrupts come before a bottom half that is on the stack.
                let Some(interrupt) = self.cpus[at].interrupts.pop_front() else { return self.resume_half(cpu) };
                self.pause(cpu);
                if !self.begin(cpu, Work::Interrupt(interrupt)) {
                    self.touch(cpu);
                }
                return;
            }
            if std::mem::take(&mut self.cpus[at].pick) {
                if has_devices && self.take_waiting_half(cpu) {
                    continue;
                }
                if self.enact_link(cpu) {
                    return;
                }
            }
            let state = &mut self.cpus[at];
            let rearm = std::mem::take(&mut state.switched) && std::mem::take(&mut state.rearm);
            if rearm && !self.plan.header.costs.timer_rearming.is_zero() && self.begin(cpu, Work::RearmTimer) {
                return;
            }
            if let Some(interrupt) = self.cpus[at].interrupts.pop_front() {
                self.pause(cpu);
                if !self.begin(cpu, Work::Interrupt(interrupt)) {
                    // It took no time: its policy decides before this CPU goes on.
                    self.touch(cpu);
                }
                return;
            }
            if has_devices && let Some(half) = self.cpus[at].halves.tasklets.next_on_stack() {
                self.push_half(cpu, half);
                continue;
            }
            if !self.cpus[at].reschedule || self.in_non_preemptive_section(cpu) {
                return self.run(cpu);
            }
            self.cpus[at].reschedule = false;
            self.pause(cpu);
            if self.schedule(cpu) || matches!(self.cpus[at].activity, Activity::Scheduler(_)) {
                return;
            }
        }
    }

    pub(crate) fn in_non_preemptive_section(&self, cpu: CpuId) -> bool {
        self.cpus[cpu.index()].process.is_some_and(|task| self.tasks[task.index()].non_preemptive)
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
        state.handled_at = self.now;
        if self.plan.header.handling != InterruptHandling::ProcessAware || self.plan.devices.is_empty() {
            state.pick = true;
        } else {
            self.begin(cpu, Work::PaiCheck);
        }
    }

    /// Starts `work`. If it takes no time it is done at once, and the answer is `false`.
    pub(crate) fn begin(&mut self, cpu: CpuId, work: Work) -> bool {
        let (kind, cost) = self.cost(&work);
        if cost.is_zero() {
            self.done(cpu, work);
            return false;
        }
        if let Some(cluster) = self.locked_cluster(cpu, &work) {
            // FIFO: whoever asks first has reserved the lock until its own work ends.
            let granted = self.clusters[cluster].lock_free.max(self.now);
            self.clusters[cluster].lock_free = granted + cost;
            let wait = granted - self.now;
            if !wait.is_zero() {
                self.sink.record(self.now, Event::LockWait { cpu, duration: wait });
                self.occupy(cpu, Work::Lock(Box::new(work)), wait);
                return true;
            }
        }
        self.sink.record(self.now, Event::Overhead { cpu, kind, duration: cost });
        self.occupy(cpu, work, cost);
        true
    }

    fn occupy(&mut self, cpu: CpuId, work: Work, duration: Nanos) {
        self.cpus[cpu.index()].activity = Activity::Scheduler(work);
        self.ends[cpu.index()] = self.now + duration;
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
    pub(crate) fn end_of_work(&mut self, cpu: CpuId) {
        let state = &mut self.cpus[cpu.index()];
        self.ends[cpu.index()] = Instant::NEVER;
        match std::mem::replace(&mut state.activity, Activity::Open) {
            Activity::Scheduler(Work::Lock(work)) => {
                let (kind, cost) = self.cost(&work);
                self.sink.record(self.now, Event::Overhead { cpu, kind, duration: cost });
                self.occupy(cpu, *work, cost);
            }
            Activity::Scheduler(work) => self.done(cpu, work),
            Activity::Job | Activity::Half | Activity::Daemon | Activity::Open => {
                unreachable!("only scheduler work ends here")
            }
        }
    }

    /// The effect of `work`, at its end.
    fn done(&mut self, cpu: CpuId, work: Work) {
        let state = &mut self.cpus[cpu.index()];
        match work {
            Work::Interrupt(interrupt) => self.handle_interrupt(cpu, interrupt),
            Work::Schedule => self.scheduled(cpu),
            Work::PaiCheck => state.pick = true,
            Work::ContextSwitch => state.switched = true,
            Work::RearmTimer => {}
            Work::Lock(_) => unreachable!("waiting for a lock is followed by the work it guards"),
        }
    }

    /// Switches to the process of the linked job, if it is another. Answers whether that takes time.
    fn enact_link(&mut self, cpu: CpuId) -> bool {
        let state = &mut self.cpus[cpu.index()];
        let (from, to, vacated) = (state.process, state.link, state.vacated.take());
        state.switched = true;
        if from == to && vacated.is_none() {
            return false;
        }
        if let Some(task) = from
            && std::mem::take(&mut state.dispatched)
        {
            let job = self.job_id(task);
            self.tasks[task.index()].preempted_on = Some(cpu);
            if self.tasks[task.index()].spinning {
                self.sink.record(self.now, Event::SpinEnd { cpu, job });
            }
            self.sink.record(self.now, Event::Preempt { cpu, job });
        }
        let state = &mut self.cpus[cpu.index()];
        state.process = to;
        if let (Some((cluster, local)), true) = (state.cluster, from != to) {
            let task = to.map(|task| self.plan.tasks[task.index()].local);
            self.clusters[cluster].policy.handle(self.now, cpu::Event::Switched { cpu: local, task });
        }
        if vacated.is_some() && vacated == to {
            return false; // The same process goes on with its next job.
        }
        if self.plan.header.costs.context_switch.is_zero() {
            return false;
        }
        self.cpus[cpu.index()].switched = false;
        self.begin(cpu, Work::ContextSwitch)
    }

    /// Lets the process on `cpu` execute its job, or leaves the CPU idle.
    fn run(&mut self, cpu: CpuId) {
        let state = &mut self.cpus[cpu.index()];
        if matches!(state.activity, Activity::Job | Activity::Daemon) {
            return;
        }
        state.activity = Activity::Job;
        let Some(task) = state.process else {
            self.ends[cpu.index()] = Instant::NEVER;
            if !self.plan.devices.is_empty() {
                self.run_daemon(cpu);
            }
            return;
        };
        state.since = self.now;
        let run = &mut self.tasks[task.index()];
        let dispatching = !state.dispatched;
        if dispatching {
            state.dispatched = true;
            let job = JobId { task, index: run.job };
            self.sink.record(self.now, Event::Dispatch { cpu, job });
            if let Some(before) = run.preempted_on.take() {
                let costs = &self.plan.header.costs;
                let (kind, duration) = if before == cpu {
                    (OverheadKind::CachePreemption, costs.cache_preemption)
                } else {
                    (OverheadKind::CacheMigration, costs.cache_migration)
                };
                if !duration.is_zero() {
                    run.remaining += duration.as_nanos();
                    self.sink.record(self.now, Event::CacheDelay { cpu, job, kind, duration });
                }
            }
        }
        if run.spinning && dispatching {
            let job = JobId { task, index: run.job };
            self.sink.record(self.now, Event::SpinBegin { cpu, job });
        }
        if !run.non_preemptive
            && run.remaining > 0
            && matches!(self.plan.tasks[task.index()].ops[run.op as usize], Op::NonPreemptive(_))
        {
            run.non_preemptive = true;
            let job = JobId { task, index: run.job };
            self.sink.record(self.now, Event::NonPreemptiveBegin { cpu, job });
        }
        self.ends[cpu.index()] =
            if run.spinning { Instant::NEVER } else { Instant(self.now.as_nanos() + run.remaining) };
        if !self.servers.is_empty() {
            self.server_runs(cpu, task);
        }
    }

    /// Stops what executes on `cpu`: a job, a bottom half, or nothing.
    #[inline]
    pub(crate) fn pause(&mut self, cpu: CpuId) {
        let state = &mut self.cpus[cpu.index()];
        match state.activity {
            Activity::Job => {}
            Activity::Half | Activity::Daemon => return self.pause_half(cpu),
            Activity::Open | Activity::Scheduler(_) => return,
        }
        state.activity = Activity::Open;
        self.ends[cpu.index()] = Instant::NEVER;
        let Some(task) = state.process else { return };
        if !self.tasks[task.index()].spinning {
            let executed = self.now - state.since;
            self.tasks[task.index()].remaining -= executed.as_nanos();
        }
        if !self.servers.is_empty() {
            self.server_stops(cpu, task);
        }
    }
}
