//! Bottom halves: where they run, and what follows when they are done.
//!
//! ```text
//!   standard Linux   top half, bottom half                    | the interrupted job goes on       (Fig. 10)
//!   PAI              top half, enqueue      | IPI | schedule, check, bottom half | switch
//!   klmirqd          top half, release      | IPI | schedule, switch, bottom half | schedule, switch   (Fig. 11)
//! ```
//!
//! Source: paper 000, sections II and III and appendix B.

use laxity_model::{CpuId, Instant, InterruptHandling, JobId, Nanos, TaskId, ThreadPriority};
use laxity_policy::cpu::{self, Priority};
use laxity_policy::interrupt::Tasklets;
use laxity_trace::{DeviceId, Event, Sink};

use crate::Simulator;
use crate::interrupt::Interrupt;
use crate::servers::Served;
use crate::simulator::{Activity, Work};

/// A bottom half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Half {
    pub device: DeviceId,
    /// The owner: the job whose operation raised the interrupt.
    pub job: Option<JobId>,
    /// Whether the operation is complete when this is done.
    pub last: bool,
    /// How long it takes.
    pub time: Nanos,
}

/// The bottom halves that one CPU runs on its stack or in its daemon.
#[derive(Default)]
pub(crate) struct CpuHalves {
    /// On the current stack: the job cannot go on, nor be switched out, before it ends.
    pub half: Option<HalfRun>,
    /// What standard Linux has left to do.
    pub tasklets: Tasklets<Half>,
    /// The tasklet that the daemon is at, running while the CPU is otherwise idle.
    pub daemon: Option<HalfRun>,
}

/// A bottom half that has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HalfRun {
    pub half: Half,
    remaining: Nanos,
    since: Instant,
    /// It runs in place of a job that was picked: the pick is due afterwards.
    then_pick: bool,
}

/// The priority of interrupt threads under PREEMPT_RT: above every level of a job, or below.
pub(crate) const ABOVE_ALL: u64 = 0;
pub(crate) const BELOW_ALL: u64 = u64::MAX - 1;

impl<S: Sink> Simulator<S> {
    /// The top half on `cpu` is done.
    #[inline(never)]
    pub(crate) fn after_top_half(&mut self, cpu: CpuId, half: Half) {
        match self.plan.header.handling {
            InterruptHandling::Linux => self.cpus[cpu.index()].halves.tasklets.raise(half),
            // There is no owner to be aware of.
            InterruptHandling::ProcessAware if half.job.is_none() => self.cpus[cpu.index()].halves.tasklets.raise(half),
            InterruptHandling::PreemptRt(_) | InterruptHandling::ProcessAware | InterruptHandling::Klmirqd { .. } => {
                // Part of the same interrupt: nothing comes in between.
                let deliver = Interrupt::Deliver(half);
                if self.interrupt_cost(&deliver).1.is_zero() {
                    self.deliver(cpu, half);
                } else {
                    self.cpus[cpu.index()].interrupts.push_front(deliver);
                }
            }
        }
    }

    /// The bottom half is with whoever runs it.
    #[inline(never)]
    pub(crate) fn deliver(&mut self, cpu: CpuId, half: Half) {
        if self.plan.header.handling == InterruptHandling::ProcessAware {
            self.deliver_process_aware(cpu, half);
        } else if let Some(thread) = self.devices.threads.submit(half.device.index(), half) {
            self.wake_thread(cpu, thread);
        }
    }

    /// The effective level of a bottom half's owner; `None`: anonymous.
    fn level_of(&self, half: &Half) -> Option<(u64, u32)> {
        self.locking.as_ref()?.level(half.job?.task)
    }

    // --- On the stack of whoever is there ------------------------------------------------------------------------

    /// Begins `half` on the current stack of `cpu`.
    #[inline(never)]
    pub(crate) fn push_half(&mut self, cpu: CpuId, half: Half) {
        self.pause(cpu);
        let Half { device, job, time, .. } = half;
        self.sink.record(self.now, Event::BottomHalfBegin { cpu, device, job });
        let run = HalfRun { half, remaining: time, since: self.now, then_pick: false };
        self.cpus[cpu.index()].halves.half = Some(run);
    }

    /// Lets the bottom half on the stack of `cpu` go on.
    #[inline(never)]
    pub(crate) fn resume_half(&mut self, cpu: CpuId) {
        let now = self.now;
        let state = &mut self.cpus[cpu.index()];
        if state.activity == Activity::Half {
            return;
        }
        let run = state.halves.half.as_mut().expect("a bottom half is on the stack");
        run.since = now;
        self.ends[cpu.index()] = now + run.remaining;
        state.activity = Activity::Half;
    }

    /// Stops the bottom half that executes on `cpu`, for a while.
    #[inline(never)]
    pub(crate) fn pause_half(&mut self, cpu: CpuId) {
        let now = self.now;
        let state = &mut self.cpus[cpu.index()];
        self.ends[cpu.index()] = Instant::NEVER;
        let is_daemon = state.activity == Activity::Daemon;
        state.activity = Activity::Open;
        let run = if is_daemon { &mut state.halves.daemon } else { &mut state.halves.half };
        let run = run.as_mut().expect("what executes is there");
        run.remaining -= now - run.since;
        if is_daemon {
            let Half { device, job, .. } = run.half;
            self.sink.record(now, Event::BottomHalfEnd { cpu, device, job });
        }
    }

    /// The daemon of an idle CPU goes on with what is left of the tasklets.
    #[inline(never)]
    pub(crate) fn run_daemon(&mut self, cpu: CpuId) {
        let now = self.now;
        let state = &mut self.cpus[cpu.index()];
        if state.halves.daemon.is_none() {
            let Some(half) = state.halves.tasklets.next_for_daemon() else { return };
            state.halves.daemon = Some(HalfRun { half, remaining: half.time, since: now, then_pick: false });
        }
        let Some(run) = state.halves.daemon.as_mut() else { return };
        run.since = now;
        self.ends[cpu.index()] = now + run.remaining;
        state.activity = Activity::Daemon;
        let Half { device, job, .. } = run.half;
        self.sink.record(now, Event::BottomHalfBegin { cpu, device, job });
    }

    /// The bottom half that executes on the stack of `cpu`, or in its daemon, ends now.
    #[inline(never)]
    pub(crate) fn end_of_half(&mut self, cpu: CpuId) {
        let state = &mut self.cpus[cpu.index()];
        self.ends[cpu.index()] = Instant::NEVER;
        let is_daemon = std::mem::replace(&mut state.activity, Activity::Open) == Activity::Daemon;
        let run = if is_daemon { state.halves.daemon.take() } else { state.halves.half.take() };
        let HalfRun { half, then_pick, .. } = run.expect("what executes is there");
        state.handled_at = self.now;
        self.handler = cpu;
        let Half { device, job, .. } = half;
        self.sink.record(self.now, Event::BottomHalfEnd { cpu, device, job });
        self.half_done(cpu, half);
        if then_pick {
            self.begin(cpu, Work::PaiCheck);
        }
    }

    fn half_done(&mut self, cpu: CpuId, half: Half) {
        if let (Some(job), true) = (half.job, half.last) {
            self.operation_handled(cpu, half.device, job);
        }
    }

    // --- Process-aware interrupts --------------------------------------------------------------------------------

    fn deliver_process_aware(&mut self, cpu: CpuId, half: Half) {
        let owners = half.job.map(|job| self.local(job.task).0);
        let own = self.cpus[cpu.index()].cluster.map(|(cluster, _)| cluster);
        let cluster = owners.or(own).unwrap_or(0);
        self.clusters[cluster].waiting_halves.enqueue(half);
        let free = self.cpus[cpu.index()].halves.half.is_none() && !self.in_non_preemptive_section(cpu);
        if free && self.target_of_halves(cluster) == Some(cpu) {
            // It runs at once, before this interrupt returns.
            self.take_waiting_half(cpu);
            if let Some(run) = &mut self.cpus[cpu.index()].halves.half {
                run.then_pick = false;
            }
        } else {
            self.kick(cpu, cluster);
        }
    }

    /// Has the CPU of `cluster` whose job is least urgent look at the waiting bottom halves, if one of them comes
    /// before that job. `cpu` has handled what made this necessary.
    #[inline(never)]
    pub(crate) fn kick(&mut self, cpu: CpuId, cluster: usize) {
        let Some(target) = self.target_of_halves(cluster) else { return };
        let latency = self.plan.header.costs.ipi_latency;
        if target == cpu || latency.is_zero() {
            self.cpus[target.index()].reschedule = true;
            self.touch(target);
        } else {
            self.cpus[target.index()].wanted = true;
            self.send_ipi(target, latency);
        }
    }

    /// The CPU of `cluster` whose job is least urgent, if a waiting bottom half comes before that job.
    fn target_of_halves(&self, cluster: usize) -> Option<CpuId> {
        let waiting = &self.clusters[cluster].waiting_halves;
        if waiting.is_empty() {
            return None;
        }
        let (lowest, job) = self.clusters[cluster].policy.lowest();
        let most_urgent = waiting.iter().filter_map(|half| self.level_of(half)).min();
        let level = job.map(Priority::level);
        let precedes = level.is_none_or(|level| most_urgent.is_some_and(|urgent| urgent <= level));
        precedes.then(|| self.plan.clusters[cluster].cpus[lowest.index()])
    }

    /// At the end of a scheduling decision on `cpu`: if a waiting bottom half comes before the job picked, the switch is
    /// aborted and the bottom half runs on the stack of the process that is still there.
    #[inline(never)]
    pub(crate) fn take_waiting_half(&mut self, cpu: CpuId) -> bool {
        let state = &self.cpus[cpu.index()];
        let Some((cluster, local)) = state.cluster else { return false };
        if self.clusters[cluster].waiting_halves.is_empty() {
            return false;
        }
        let linked = self.clusters[cluster].policy.linked(local);
        let level = linked.map(Priority::level);
        let locking = self.locking.as_ref();
        let of = |half: &Half| locking?.level(half.job?.task);
        let Some(half) = self.clusters[cluster].waiting_halves.take_before(level, of) else {
            // This CPU may have been asked before it was given a more urgent job: then it is another's turn now.
            self.kick(cpu, cluster);
            return false;
        };
        self.push_half(cpu, half);
        if let Some(run) = &mut self.cpus[cpu.index()].halves.half {
            run.then_pick = true;
        }
        true
    }

    // --- Interrupt threads ---------------------------------------------------------------------------------------

    /// The task that is `thread`.
    fn thread_task(&self, thread: usize) -> TaskId {
        TaskId((self.plan.threads.first_task + thread) as u32)
    }

    /// `thread` has a bottom half to run, from now on.
    pub(crate) fn wake_thread(&mut self, cpu: CpuId, thread: usize) {
        let task = self.thread_task(thread);
        let half = *self.devices.threads.serving(thread).expect("it was given one");
        let job = self.job_id(task);
        let deadline = half.job.map_or(self.now, |job| self.tasks[job.task.index()].deadline);
        self.sink.record(self.now, Event::Release { job, deadline });
        self.sink.record(self.now, Event::Serve { thread: job, device: half.device, job: half.job });
        if self.server_has_work(cpu, task) {
            self.begin_bottom_half(cpu, task);
        }
    }

    /// The interrupt thread `task` competes for a CPU with the bottom half that it was given.
    pub(crate) fn begin_bottom_half(&mut self, cpu: CpuId, task: TaskId) {
        let thread = task.index() - self.plan.threads.first_task;
        let half = *self.devices.threads.serving(thread).expect("it was given one");
        let level = self.thread_level(thread, &half);
        let run = &mut self.tasks[task.index()];
        run.active = true;
        run.op = 0;
        run.remaining = half.time.as_nanos();
        run.preempted_on = None;
        run.sharing.level = level;
        let job = self.job_id(task);
        let (cluster, local) = self.local(task);
        let owner = half.job.filter(|_| matches!(self.plan.header.handling, InterruptHandling::Klmirqd { .. }));
        self.record_priority(task, level);
        self.sink.record(self.now, Event::Ready { job, cpu });
        // Only a thread of the owner's own cluster can be kept from running beside it.
        let owner = owner.map(|owner| self.local(owner.task)).filter(|&(own, _)| own == cluster);
        let event = cpu::Event::Woken {
            cpu: self.local_cpu(cpu, cluster),
            thread: local,
            owner: owner.map(|(_, owner)| owner),
            level,
        };
        self.tell(cluster, event);
    }

    /// The level at which `thread` runs `half`: a fixed one under PREEMPT_RT; under klmirqd the owner's effective level,
    /// or with GPUSync that of the most urgent holder of a token of that GPU. Where no job owns it: that of the thread's
    /// server, or below all jobs. Callback threads are ordinary ones, below all jobs, but for klmirqd.
    fn thread_level(&self, thread: usize, half: &Half) -> (u64, u32) {
        let is_callback = thread >= self.plan.threads.first_callback;
        match self.plan.header.handling {
            InterruptHandling::Klmirqd { .. } => {}
            _ if is_callback => return (BELOW_ALL, thread as u32),
            InterruptHandling::PreemptRt(ThreadPriority::High) => return (ABOVE_ALL, thread as u32),
            InterruptHandling::PreemptRt(ThreadPriority::Low) => return (BELOW_ALL, thread as u32),
            InterruptHandling::Linux | InterruptHandling::ProcessAware => {}
        }
        if half.job.is_none() {
            let task = self.thread_task(thread);
            let served = self.servers.get(task.index()).and_then(Option::as_ref);
            return (served.map_or(BELOW_ALL, Served::level), task.0);
        }
        let owner = self.level_of(half);
        let holders = self.locking.as_ref().and_then(|locking| locking.most_urgent_holder(half.device));
        owner.into_iter().chain(holders).min().unwrap_or((BELOW_ALL, thread as u32))
    }

    /// Effective priorities changed: those of the threads at work follow at once.
    pub(crate) fn follow_owners(&mut self) {
        if !matches!(self.plan.header.handling, InterruptHandling::Klmirqd { .. }) {
            return;
        }
        for thread in 0..self.devices.threads.len() {
            let Some(&half) = self.devices.threads.serving(thread) else { continue };
            let (level, task) = (self.thread_level(thread, &half), self.thread_task(thread));
            let run = &mut self.tasks[task.index()];
            if !run.active || run.sharing.level == level {
                continue;
            }
            run.sharing.level = level;
            let (cluster, local) = self.local(task);
            self.record_priority(task, level);
            self.tell(cluster, cpu::Event::Prioritized { task: local, level });
        }
    }

    /// The interrupt thread `task` finished its bottom half on `cpu`, or the callback thread its call.
    #[inline(never)]
    pub(crate) fn complete_thread(&mut self, cpu: CpuId, task: TaskId) {
        let thread = task.index() - self.plan.threads.first_task;
        let job = self.job_id(task);
        self.sink.record(self.now, Event::Complete { cpu, job });
        let (cluster, local) = self.local(task);
        let event = cpu::Event::Completed { cpu: self.local_cpu(cpu, cluster), task: local };
        self.tell(cluster, event);
        self.vacate(cpu, task);
        let run = &mut self.tasks[task.index()];
        run.active = false;
        run.job += 1;
        let half = self.devices.threads.finish(thread);
        match half.job {
            Some(job) if thread >= self.plan.threads.first_callback => self.operation_done(cpu, job),
            _ => self.half_done(cpu, half),
        }
        let more = self.devices.threads.serving(thread).is_some();
        self.server_finished(cpu, task, more);
        if more {
            self.wake_thread(cpu, thread);
        }
    }
}
