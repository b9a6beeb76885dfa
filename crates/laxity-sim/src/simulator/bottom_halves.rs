//! Bottom halves: where they run, and what follows when they are done.
//!
//! ```text
//!   standard Linux   top half, bottom half                    | the interrupted job goes on       (Fig. 10)
//!   PAI              top half, enqueue      | IPI | schedule, check, bottom half | switch
//!   klmirqd          top half, release      | IPI | schedule, switch, bottom half | schedule, switch   (Fig. 11)
//! ```
//!
//! Source: paper 000, sections II and III and appendix B.

use laxity_model::{CpuId, Instant, InterruptHandling, TaskId, ThreadPriority};
use laxity_policy::cpu::{self, Priority};
use laxity_trace::{Event, Sink};

use super::Simulator;
use crate::bottom_halves::{BottomHalf, Place, Then};
use crate::cpu::{Activity, Due, Interrupt, Work};
use crate::servers::Server;

/// The priority of interrupt threads under PREEMPT_RT: above every level of a job, or below.
pub(super) const ABOVE_ALL: u64 = 0;
pub(super) const BELOW_ALL: u64 = u64::MAX - 1;

impl<S: Sink> Simulator<S> {
    /// The top half on `cpu` is done and has deferred `half`.
    #[inline(never)]
    pub(super) fn after_top_half(&mut self, cpu: CpuId, half: BottomHalf) {
        let is_tasklet = match self.plan.header.handling {
            InterruptHandling::Linux => true,
            // There is no owner to be aware of.
            InterruptHandling::ProcessAware => half.job.is_none(),
            InterruptHandling::PreemptRt(_) | InterruptHandling::Klmirqd { .. } => false,
        };
        if is_tasklet {
            return self.cpus[cpu.index()].bottom_halves().tasklets.raise(half);
        }
        // Part of the same interrupt: nothing comes in between.
        let deliver = Interrupt::Deliver(half);
        if self.interrupt_cost(&deliver).1.is_zero() {
            self.deliver(cpu, half);
        } else {
            self.cpus[cpu.index()].interrupts.push_front(deliver);
        }
    }

    /// Hands `half` to the queue of its cluster, or to its thread.
    #[inline(never)]
    pub(super) fn deliver(&mut self, cpu: CpuId, half: BottomHalf) {
        if self.plan.header.handling == InterruptHandling::ProcessAware {
            self.deliver_process_aware(cpu, half);
        } else if let Some(thread) = self.threads.submit(half.device.index(), half) {
            self.wake_thread(cpu, thread);
        }
    }

    /// The effective level of a bottom half's owner; `None`: it has no owner.
    fn level_of(&self, half: &BottomHalf) -> Option<(u64, u32)> {
        self.locks.as_ref()?.level(half.job?.task)
    }

    // --- On the current stack, and in the daemon -----------------------------------------------------------------

    /// Begins `half` on the current stack of `cpu`.
    #[inline(never)]
    pub(super) fn push_bottom_half(&mut self, cpu: CpuId, half: BottomHalf, then: Then) {
        self.pause(cpu);
        self.cpus[cpu.index()].bottom_halves().push(&mut self.cx, cpu, half, then);
    }

    /// Lets the bottom half on the stack of `cpu` go on.
    #[inline(never)]
    pub(super) fn resume_bottom_half(&mut self, cpu: CpuId) {
        let state = &mut self.cpus[cpu.index()];
        let executes = Activity::BottomHalf(Place::Stack);
        if state.activity != executes {
            self.ends.set(cpu, state.bottom_halves().resume(self.cx.now));
            state.activity = executes;
        }
    }

    /// Stops the bottom half that executes on `cpu`, for a while.
    #[inline(never)]
    pub(super) fn pause_bottom_half(&mut self, cpu: CpuId, place: Place) {
        let state = &mut self.cpus[cpu.index()];
        self.ends.set(cpu, Instant::NEVER);
        state.activity = Activity::Open;
        state.bottom_halves().pause(&mut self.cx, cpu, place);
    }

    /// The daemon of an idle CPU goes on with what is left of the tasklets.
    #[inline]
    pub(super) fn run_daemon(&mut self, cpu: CpuId) {
        let state = &mut self.cpus[cpu.index()];
        let Some(halves) = &mut state.bottom_halves else { return };
        if let Some(end) = halves.run_daemon(&mut self.cx, cpu) {
            self.ends.set(cpu, end);
            state.activity = Activity::BottomHalf(Place::Daemon);
        }
    }

    /// The bottom half that executes on `cpu` ends now.
    #[inline(never)]
    pub(super) fn end_of_bottom_half(&mut self, cpu: CpuId, place: Place) {
        let state = &mut self.cpus[cpu.index()];
        self.ends.set(cpu, Instant::NEVER);
        state.activity = Activity::Open;
        state.handled_at = self.cx.now;
        self.handler = cpu;
        let (half, then) = state.bottom_halves().end(&mut self.cx, cpu, place);
        self.bottom_half_done(cpu, half);
        if then == Then::Pick {
            self.begin(cpu, Work::PaiCheck);
        }
    }

    /// `half` is done, as `cpu` knows. If it was the last of an operation, the run-time library is told, if it has a thread
    /// for that, and else the owner.
    fn bottom_half_done(&mut self, cpu: CpuId, half: BottomHalf) {
        let (Some(job), true) = (half.job, half.last) else { return };
        let Some(&Some(callback)) = self.plan.threads.callbacks.of_task.get(job.task.index()) else {
            return self.operation_done(cpu, job);
        };
        let time = self.devices.call(&self.plan, callback);
        let thread = self.plan.threads.first_callback + callback;
        if self.threads.submit_to(thread, BottomHalf { time, ..half }) {
            self.wake_thread(cpu, thread);
        }
    }

    // --- Process-aware interrupts --------------------------------------------------------------------------------

    fn deliver_process_aware(&mut self, cpu: CpuId, half: BottomHalf) {
        let owners = half.job.map(|job| self.local(job.task).0);
        let own = self.cpus[cpu.index()].cluster.map(|(cluster, _)| cluster);
        let cluster = owners.or(own).unwrap_or(0);
        self.clusters[cluster].waiting_halves.enqueue(half);
        let free = !self.cpus[cpu.index()].has_bottom_half_on_stack() && !self.in_non_preemptive_section(cpu);
        if free && self.target_of_halves(cluster) == Some(cpu) {
            // It runs at once, before this interrupt returns.
            self.take_waiting_half(cpu, Then::Return);
        } else {
            self.kick_for_bottom_halves(cpu, cluster);
        }
    }

    /// Has the CPU of `cluster` whose job is least urgent look at the waiting bottom halves, if one of them comes
    /// before that job. `cpu` has handled what made this necessary.
    #[inline(never)]
    pub(super) fn kick_for_bottom_halves(&mut self, cpu: CpuId, cluster: usize) {
        let Some(target) = self.target_of_halves(cluster) else { return };
        let latency = self.plan.header.costs.ipi_latency;
        if target == cpu || latency.is_zero() {
            self.cpus[target.index()].due.add(Due::SCHEDULE);
            self.touch(target);
        } else {
            self.cpus[target.index()].due.add(Due::BOTTOM_HALF);
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
    pub(super) fn take_waiting_half(&mut self, cpu: CpuId, then: Then) -> bool {
        let Some((cluster, local)) = self.cpus[cpu.index()].cluster else { return false };
        if self.clusters[cluster].waiting_halves.is_empty() {
            return false;
        }
        let linked = self.clusters[cluster].policy.linked(local);
        let level = linked.map(Priority::level);
        let locks = self.locks.as_ref();
        let of = |half: &BottomHalf| locks?.level(half.job?.task);
        let Some(half) = self.clusters[cluster].waiting_halves.take_before(level, of) else {
            // A more urgent job may have come here since this CPU was asked: then another CPU executes the bottom half.
            self.kick_for_bottom_halves(cpu, cluster);
            return false;
        };
        self.push_bottom_half(cpu, half, then);
        true
    }

    // --- Threads of the system -----------------------------------------------------------------------------------

    /// The task that is `thread`.
    fn thread_task(&self, thread: usize) -> TaskId {
        TaskId((self.plan.threads.first_task + thread) as u32)
    }

    /// `thread` has a bottom half, or a call, to execute from now on.
    fn wake_thread(&mut self, cpu: CpuId, thread: usize) {
        let task = self.thread_task(thread);
        let half = *self.threads.serving(thread).expect("it was given one");
        let job = self.job_id(task);
        let deadline = half.job.map_or(self.cx.now, |job| self.tasks[job.task.index()].deadline);
        self.cx.record(Event::Release { job, deadline });
        self.cx.record(Event::Serve { thread: job, device: half.device, job: half.job });
        if self.server_has_work(cpu, task) {
            self.begin_thread(cpu, task);
        }
    }

    /// The thread `task` competes for a CPU with what it was given.
    pub(super) fn begin_thread(&mut self, cpu: CpuId, task: TaskId) {
        let thread = task.index() - self.plan.threads.first_task;
        let half = *self.threads.serving(thread).expect("it was given one");
        let level = self.thread_level(thread, &half);
        let run = &mut self.tasks[task.index()];
        run.begin(half.time.as_nanos());
        run.level = level;
        let job = self.job_id(task);
        let (cluster, local) = self.local(task);
        let owner = half.job.filter(|_| matches!(self.plan.header.handling, InterruptHandling::Klmirqd { .. }));
        self.record_priority(task, level);
        self.cx.record(Event::Ready { job, cpu });
        // Only a thread of the owner's own cluster can be kept from running beside it.
        let owner = owner.map(|owner| self.local(owner.task)).filter(|&(own, _)| own == cluster);
        let event = cpu::Event::Woken {
            cpu: self.local_cpu(cpu, cluster),
            thread: local,
            owner: owner.map(|(_, owner)| owner),
            level,
        };
        self.notify_policy(cluster, event);
    }

    /// The level at which `thread` executes `half`: a fixed one under PREEMPT_RT; under klmirqd the owner's effective
    /// level, or with GPUSync that of the most urgent holder of a token of that GPU. Where no job owns it: that of the
    /// thread's server, or below all jobs. Callback threads are ordinary ones, below all jobs, but for klmirqd.
    fn thread_level(&self, thread: usize, half: &BottomHalf) -> (u64, u32) {
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
            let server = self.servers.get(task.index()).and_then(Option::as_ref);
            return (server.map_or(BELOW_ALL, Server::level), task.0);
        }
        let owner = self.level_of(half);
        let holders = self.locks.as_ref().and_then(|locks| locks.most_urgent_holder(half.device));
        owner.into_iter().chain(holders).min().unwrap_or((BELOW_ALL, thread as u32))
    }

    /// Effective priorities changed: under klmirqd those of the threads at work follow at once.
    pub(super) fn follow_owners(&mut self) {
        if !matches!(self.plan.header.handling, InterruptHandling::Klmirqd { .. }) {
            return;
        }
        for thread in 0..self.threads.len() {
            let Some(&half) = self.threads.serving(thread) else { continue };
            let (level, task) = (self.thread_level(thread, &half), self.thread_task(thread));
            let run = &mut self.tasks[task.index()];
            if run.is_active() && run.level != level {
                run.level = level;
                self.prioritize(task, level);
            }
        }
    }

    /// The interrupt thread `task` finished its bottom half on `cpu`, or the callback thread its call.
    #[inline(never)]
    pub(super) fn complete_thread(&mut self, cpu: CpuId, task: TaskId) {
        let thread = task.index() - self.plan.threads.first_task;
        let job = self.job_id(task);
        self.cx.record(Event::Complete { cpu, job });
        let (cluster, local) = self.local(task);
        let event = cpu::Event::Completed { cpu: self.local_cpu(cpu, cluster), task: local };
        self.notify_policy(cluster, event);
        self.vacate(cpu, task);
        self.tasks[task.index()].complete();
        let half = self.threads.finish(thread);
        match half.job {
            Some(job) if thread >= self.plan.threads.first_callback => self.operation_done(cpu, job),
            _ => self.bottom_half_done(cpu, half),
        }
        let more = self.threads.serving(thread).is_some();
        self.server_finished(cpu, task, more);
        if more {
            self.wake_thread(cpu, thread);
        }
    }
}
