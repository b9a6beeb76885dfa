//! Best-effort tasks: they begin with the system, have the CPUs that no real-time job wants, and end if they do.

use laxity_model::{CpuId, Instant, JobId, TaskId};
use laxity_trace::{Event, Sink};

use super::Simulator;
use crate::cpu::Due;

impl<S: Sink> Simulator<S> {
    /// Releases the job of every best-effort task.
    pub(super) fn start_best_effort(&mut self) {
        let Some(mut best_effort) = self.best_effort.take() else { return };
        for task in best_effort.all() {
            let job = JobId { task, index: 0 };
            let cpu = best_effort.first_cpu();
            let deadline = Instant::ZERO + self.plan.header.tasks[task.index()].deadline;
            self.cx.record(Event::Release { job, deadline });
            let run = &mut self.tasks[task.index()];
            run.begin(0);
            run.deadline = deadline;
            self.draw_step(task);
            self.cx.record(Event::Ready { job, cpu });
            best_effort.start(self.cx.now, task);
        }
        self.best_effort = Some(best_effort);
    }

    #[inline]
    pub(super) fn is_best_effort(&self, task: TaskId) -> bool {
        self.best_effort.as_ref().is_some_and(|best_effort| best_effort.has(task))
    }

    /// The virtual time of a best-effort task, in nanoseconds of a thread of nice value 0, counted from the clock of its
    /// CPU and up to its last change there.
    pub fn virtual_time(&self, task: TaskId) -> Option<i64> {
        self.best_effort.as_ref().filter(|best_effort| best_effort.has(task)).map(|it| it.virtual_time(task))
    }

    #[inline(never)]
    pub(super) fn complete_best_effort(&mut self, cpu: CpuId, task: TaskId) {
        let job = self.job_id(task);
        self.cx.record(Event::Complete { cpu, job });
        if let Some(best_effort) = &mut self.best_effort {
            best_effort.complete(self.cx.now, cpu, task);
        }
        self.vacate(cpu, task);
        self.tasks[task.index()].complete();
    }

    pub(super) fn tick_best_effort(&mut self, cpu: CpuId) {
        if let Some(best_effort) = &mut self.best_effort {
            best_effort.tick(self.cx.now, cpu);
            // A quantum-driven CPU notices there what has changed.
            self.cpus[cpu.index()].due.add(Due::QUANTUM);
        }
    }

    /// Lets the scheduler of best-effort tasks decide, and announces every link that changed, of whatever kind.
    #[inline(never)]
    pub(super) fn decide_best_effort(&mut self) {
        let Some(best_effort) = &mut self.best_effort else { return };
        let mut links = Vec::new();
        best_effort.decide(self.cx.now, &mut links);
        for (cpu, task) in links {
            let job = task.map(|task| self.job_id(task));
            self.cx.record(Event::Link { cpu, job });
            let state = &mut self.cpus[cpu.index()];
            state.link = task;
            if state.link_is_new() && state.handled_at == self.cx.now {
                // It is noticed at once, whatever invokes the scheduler else: a regulator has interrupted the CPU.
                state.due.add(Due::SCHEDULE);
                self.touch(cpu);
            } else {
                self.deliver_link(cpu);
            }
        }
    }
}
