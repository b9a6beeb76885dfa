//! Threads that become runnable, leave their CPUs, and are switched.

use laxity_model::{CpuId, Instant, TaskId};

use super::{Fair, Thread, ThreadState};

impl Fair {
    /// `task` is runnable. One that completed a job at this very instant has not slept: its thread goes on.
    pub(super) fn wake(&mut self, now: Instant, task: TaskId, is_above: bool) {
        let Thread { state, cpu: previous, .. } = self.threads[task.index()];
        let ThreadState::Asleep(since) = state else { panic!("a runnable thread does not wake: {task} is {state:?}") };
        self.threads[task.index()].is_above = is_above;
        let is_blocked = self.queues[usize::from(previous)].blocked.at_all();
        if since == now && !is_blocked && self.executing_nothing_since(previous, now) {
            self.set_linked(previous, Some(task));
            self.add(previous, task);
            return;
        }
        let cpu = self.threads[task.index()].pinned.unwrap_or_else(|| self.loads.cpu_for(previous));
        self.charge(now, previous);
        self.charge(now, cpu);
        let (from, to) = (self.queues[usize::from(previous)].clock(), self.queues[usize::from(cpu)].clock());
        let credit = self.parameters.sleeper_credit().0 as i64;
        let entity = &mut self.threads[task.index()].entity;
        entity.translate(from, to);
        entity.wake_no_earlier_than(to.saturating_sub(credit));
        self.enqueue(cpu, task);
        self.add(cpu, task);
        self.preempt_if_behind(cpu, task);
    }

    /// Whether the CPU lost its thread at this very instant and has no other yet.
    pub(super) fn executing_nothing_since(&self, cpu: u16, now: Instant) -> bool {
        let at = usize::from(cpu);
        now > Instant::ZERO && self.queues[at].linked.is_none() && self.executing[at].is_none()
    }

    /// `task` woke on `cpu`: it preempts the linked thread if it is behind it by more than a granularity
    /// (`wakeup_preempt_entity`). Interrupt threads preempt all others.
    pub(super) fn preempt_if_behind(&mut self, cpu: u16, task: TaskId) {
        let queue = &mut self.queues[usize::from(cpu)];
        let Some(linked) = queue.linked else { return };
        let (woken, linked) = (&self.threads[task.index()], &self.threads[linked.index()]);
        let behind = linked.entity.virtual_time().saturating_sub(woken.entity.virtual_time());
        let granularity = woken.entity.virtual_span(self.parameters.wakeup_granularity);
        let preempts = match (woken.is_above, linked.is_above) {
            (false, false) => behind > granularity,
            (is_above, is_held) => is_above && !is_held,
        };
        queue.needs_reschedule |= preempts;
    }

    /// The job of `task`, whose process is on `cpu`, completed or suspended itself. The clock stays: if it wakes at this
    /// very instant, it has never been away.
    pub(super) fn leave(&mut self, now: Instant, cpu: CpuId, task: TaskId) {
        let occupant = self.executing[cpu.index()].map(|(task, _)| task);
        assert_eq!(occupant, Some(task), "a job completes or suspends where its process is");
        self.charge(now, cpu.0);
        self.executing[cpu.index()] = None;
        match self.threads[task.index()].state {
            ThreadState::Linked(linked) => {
                assert_eq!(linked, cpu.0, "a job is never linked away from where its process is");
                self.set_linked(linked, None);
                self.announced[cpu.index()] = None;
            }
            ThreadState::Waiting(queue) => {
                assert_eq!(queue, cpu.0, "a thread that waits while its process is on a CPU waits for that one");
                let key = self.key(task);
                self.queues[usize::from(queue)].waiting.remove(&key);
            }
            ThreadState::Asleep(_) => panic!("only a runnable job can leave its CPU"),
        }
        self.subtract(cpu.0, task);
        let thread = &mut self.threads[task.index()];
        thread.state = ThreadState::Asleep(now);
        thread.occupies = None;
    }

    pub(super) fn switched(&mut self, now: Instant, cpu: CpuId, task: Option<TaskId>) {
        self.charge(now, cpu.0);
        if let Some((before, _)) = self.executing[cpu.index()] {
            self.threads[before.index()].occupies = None;
        }
        self.executing[cpu.index()] = task.map(|task| (task, now));
        if self.is_restricted {
            // A thread that has left the CPU may go elsewhere now.
            self.changed(cpu.0);
        }
        if let Some(task) = task {
            let thread = &mut self.threads[task.index()];
            assert_eq!(thread.occupies, None, "a process occupies one CPU at a time");
            thread.occupies = Some(cpu.0);
        }
    }
}
