//! The fair class as a [`CpuPolicy`] of one cluster: who waits where, who is linked, who moves.

use laxity_model::{CpuId, Instant, Nanos, TaskId};

use super::loads::Loads;
use super::run_queue::{Key, RunQueue};
use super::{Entity, NICE_0_WEIGHT, Parameters};
use crate::cpu::{Action, CpuPolicy, Event, Priority};

/// How long a busy CPU waits before it looks again whether others have more to do: 1 ms for each CPU that could
/// (`sd->balance_interval`), times `busy_factor`.
const BUSY_FACTOR: u64 = 32;
/// It takes over only from who has more by a quarter (`imbalance_pct`), in percent.
const IMBALANCE_PERCENT: u128 = 125;

/// Where a thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Not runnable since then.
    Asleep(Instant),
    /// In the queue of this CPU.
    Waiting(u16),
    /// Assigned to this CPU.
    Linked(u16),
}

#[derive(Clone, Copy, Debug)]
struct Thread {
    place: Place,
    entity: Entity,
    /// An interrupt thread with real-time priority, above the fair class.
    is_above: bool,
    /// The CPU it is on, or was on last: its virtual time is counted from that one's clock.
    cpu: u16,
    /// The CPU that its process occupies, linked there or not: it can go on nowhere else.
    occupies: Option<u16>,
}

/// CFS on the CPUs of one cluster. All threads weigh the same, as if of nice value 0.
#[derive(Clone, Debug)]
pub struct Fair {
    parameters: Parameters,
    balance_interval: Nanos,
    threads: Vec<Thread>,
    queues: Vec<RunQueue>,
    loads: Loads,
    /// Whose process occupies each CPU, and up to when that is charged.
    executing: Vec<Option<(TaskId, Instant)>>,
    /// The link last announced for each CPU, and the CPUs touched since.
    announced: Vec<Option<TaskId>>,
    touched: Vec<u16>,
}

impl Fair {
    /// A scheduler of `tasks` tasks on `cpus` CPUs.
    pub fn new(parameters: Parameters, tasks: usize, cpus: usize) -> Fair {
        let balance_interval = Nanos::from_millis(BUSY_FACTOR * cpus as u64);
        let thread = |task| Thread {
            place: Place::Asleep(Instant::ZERO),
            entity: Entity::new(NICE_0_WEIGHT),
            is_above: false,
            cpu: (task % cpus.max(1)) as u16,
            occupies: None,
        };
        Fair {
            parameters,
            balance_interval,
            threads: (0..tasks).map(thread).collect(),
            queues: vec![RunQueue::new(Instant::ZERO + balance_interval); cpus],
            loads: Loads::all_idle(cpus),
            executing: vec![None; cpus],
            announced: vec![None; cpus],
            touched: Vec::with_capacity(2 * cpus),
        }
    }

    /// The account of `task`.
    pub fn entity(&self, task: TaskId) -> &Entity {
        &self.threads[task.index()].entity
    }

    // --- Accounts -----------------------------------------------------------------------------------------------------

    /// Charges whoever occupies `cpu` up to `now` (`update_curr`). One that was preempted and not switched out yet waits
    /// already: its place moves.
    fn charge(&mut self, now: Instant, cpu: u16) {
        let at = usize::from(cpu);
        if let Some((task, until)) = &mut self.executing[at] {
            let (task, executed) = (*task, now - std::mem::replace(until, now));
            let waits = self.threads[task.index()].place == Place::Waiting(cpu);
            let before = self.key(task);
            self.threads[task.index()].entity.charge(executed);
            if waits && !executed.is_zero() {
                self.queues[at].waiting.remove(&before);
                let after = self.key(task);
                self.queues[at].waiting.insert(after);
            }
        }
        let linked = self.queues[at].linked.map(|task| &self.threads[task.index()]);
        self.queues[at].advance_clock(linked.filter(|thread| !thread.is_above).map(|thread| &thread.entity));
    }

    fn key(&self, task: TaskId) -> Key {
        let thread = &self.threads[task.index()];
        Key { is_fair: !thread.is_above, virtual_time: thread.entity.virtual_time(), task }
    }

    // --- Waking and sleeping ------------------------------------------------------------------------------------------

    /// `task` is runnable. One that completed a job at this very instant has not slept: its thread goes on.
    fn wake(&mut self, now: Instant, task: TaskId, is_above: bool) {
        let Thread { place, cpu: previous, .. } = self.threads[task.index()];
        let Place::Asleep(since) = place else { panic!("a runnable thread does not wake: {task} is {place:?}") };
        self.threads[task.index()].is_above = is_above;
        if since == now && self.executing_nothing_since(previous, now) {
            self.set_linked(previous, Some(task));
            self.add(previous, task);
            return;
        }
        let cpu = self.loads.cpu_for(previous);
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
    fn executing_nothing_since(&self, cpu: u16, now: Instant) -> bool {
        let at = usize::from(cpu);
        now > Instant::ZERO && self.queues[at].linked.is_none() && self.executing[at].is_none()
    }

    /// `task` woke on `cpu`: it preempts who is linked there if it is behind by more than a granularity
    /// (`wakeup_preempt_entity`). Interrupt threads preempt all others.
    fn preempt_if_behind(&mut self, cpu: u16, task: TaskId) {
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
    fn leave(&mut self, now: Instant, cpu: CpuId, task: TaskId) {
        let occupant = self.executing[cpu.index()].map(|(task, _)| task);
        assert_eq!(occupant, Some(task), "a job completes or suspends where its process is");
        self.charge(now, cpu.0);
        self.executing[cpu.index()] = None;
        match self.threads[task.index()].place {
            Place::Linked(linked) => {
                assert_eq!(linked, cpu.0, "a job is never linked away from where its process is");
                self.set_linked(linked, None);
                self.announced[cpu.index()] = None;
            }
            Place::Waiting(queue) => {
                assert_eq!(queue, cpu.0, "who waits while its process is on a CPU waits for that one");
                let key = self.key(task);
                self.queues[usize::from(queue)].waiting.remove(&key);
            }
            Place::Asleep(_) => panic!("only a runnable job can leave its CPU"),
        }
        self.subtract(cpu.0, task);
        let thread = &mut self.threads[task.index()];
        thread.place = Place::Asleep(now);
        thread.occupies = None;
    }

    fn switched(&mut self, now: Instant, cpu: CpuId, task: Option<TaskId>) {
        self.charge(now, cpu.0);
        if let Some((before, _)) = self.executing[cpu.index()] {
            self.threads[before.index()].occupies = None;
        }
        self.executing[cpu.index()] = task.map(|task| (task, now));
        if let Some(task) = task {
            let thread = &mut self.threads[task.index()];
            assert_eq!(thread.occupies, None, "a process occupies one CPU at a time");
            thread.occupies = Some(cpu.0);
        }
    }

    // --- Ticks --------------------------------------------------------------------------------------------------------

    fn tick(&mut self, now: Instant, cpu: u16) {
        self.charge(now, cpu);
        self.end_slice(cpu);
        let queue = &mut self.queues[usize::from(cpu)];
        if now >= queue.next_balance {
            queue.next_balance = now + self.balance_interval;
            self.balance(now, cpu);
        }
    }

    /// Who is linked gives way if its slice is over, or if somebody is behind it by more than that
    /// (`check_preempt_tick`).
    fn end_slice(&mut self, cpu: u16) {
        let queue = &mut self.queues[usize::from(cpu)];
        let (Some(linked), Some(first)) = (queue.linked, queue.first_fair()) else { return };
        let linked = &self.threads[linked.index()];
        if linked.is_above {
            return;
        }
        let slice = self.parameters.slice(linked.entity.weight(), queue.load, queue.runnable());
        let executed = linked.entity.in_slice();
        let ahead = linked.entity.virtual_time().saturating_sub(first.virtual_time);
        let is_far_ahead = executed >= self.parameters.min_granularity && ahead > slice.0 as i64;
        if executed > slice || is_far_ahead {
            queue.needs_reschedule = true;
            self.touched.push(cpu);
        }
    }

    // --- Balancing ----------------------------------------------------------------------------------------------------

    /// The busy `cpu` takes threads from the one that has most to do, as long as it has less than that even then.
    fn balance(&mut self, now: Instant, cpu: u16) {
        while let Some(busiest) = self.loads.busiest().filter(|&busiest| busiest != cpu) {
            let [theirs, own] = [busiest, cpu].map(|cpu| self.queues[usize::from(cpu)].load);
            let is_imbalanced = u128::from(theirs) * 100 > u128::from(own) * IMBALANCE_PERCENT;
            let Some(task) = self.first_movable(busiest).filter(|_| is_imbalanced) else { return };
            let weight = self.threads[task.index()].entity.weight();
            if own + weight > theirs.saturating_sub(weight) {
                return;
            }
            self.migrate(now, task, busiest, cpu);
        }
    }

    /// Who has waited most for `cpu` of those that may go elsewhere: all but the one whose process is still there.
    fn first_movable(&self, cpu: u16) -> Option<TaskId> {
        let waiting = self.queues[usize::from(cpu)].waiting.iter().map(|key| key.task);
        waiting.into_iter().find(|task| self.threads[task.index()].occupies.is_none())
    }

    /// The idle `cpu` takes a thread from the one that has most to do (`newidle_balance`).
    fn pull(&mut self, now: Instant, cpu: u16, busiest: u16) {
        if let Some(task) = self.first_movable(busiest) {
            return self.migrate(now, task, busiest, cpu);
        }
        // Only one waits there, the preempted one that still occupies the CPU: the other, which has not started yet,
        // moves, and it goes on.
        let queue = &self.queues[usize::from(busiest)];
        let linked = queue.linked.expect("a CPU on which threads wait is linked to one");
        let occupant = queue.waiting.first().expect("somebody waits on an overloaded CPU").task;
        let key = self.key(occupant);
        self.queues[usize::from(busiest)].waiting.remove(&key);
        self.set_linked(busiest, Some(occupant));
        self.enqueue(busiest, linked);
        self.migrate(now, linked, busiest, cpu);
    }

    /// The waiting `task` goes from one CPU to another.
    fn migrate(&mut self, now: Instant, task: TaskId, from: u16, to: u16) {
        self.charge(now, from);
        self.charge(now, to);
        let key = self.key(task);
        let was_there = self.queues[usize::from(from)].waiting.remove(&key);
        assert!(was_there, "who moves waits where it comes from");
        self.subtract(from, task);
        let clocks = [from, to].map(|cpu| self.queues[usize::from(cpu)].clock());
        self.threads[task.index()].entity.translate(clocks[0], clocks[1]);
        self.enqueue(to, task);
        self.add(to, task);
        self.preempt_if_behind(to, task);
    }

    // --- Queues -------------------------------------------------------------------------------------------------------

    fn enqueue(&mut self, cpu: u16, task: TaskId) {
        let thread = &mut self.threads[task.index()];
        (thread.place, thread.cpu) = (Place::Waiting(cpu), cpu);
        let key = self.key(task);
        self.queues[usize::from(cpu)].waiting.insert(key);
    }

    fn set_linked(&mut self, cpu: u16, task: Option<TaskId>) {
        self.queues[usize::from(cpu)].linked = task;
        if let Some(task) = task {
            self.threads[task.index()].place = Place::Linked(cpu);
        }
        self.touched.push(cpu);
    }

    /// `task` is one of the runnable threads of `cpu` from now on. Interrupt threads are no load of the fair class.
    fn add(&mut self, cpu: u16, task: TaskId) {
        self.queues[usize::from(cpu)].load += self.weight(task);
        self.changed(cpu);
    }

    fn subtract(&mut self, cpu: u16, task: TaskId) {
        self.queues[usize::from(cpu)].load -= self.weight(task);
        self.changed(cpu);
    }

    fn weight(&self, task: TaskId) -> u64 {
        let thread = &self.threads[task.index()];
        if thread.is_above { 0 } else { thread.entity.weight() }
    }

    fn changed(&mut self, cpu: u16) {
        self.loads.update(cpu, &self.queues[usize::from(cpu)]);
        self.touched.push(cpu);
    }

    // --- Decisions ----------------------------------------------------------------------------------------------------

    /// Gives `cpu` to who is first among those that want it (`pick_next_task_fair`).
    fn pick(&mut self, now: Instant, cpu: u16) {
        self.charge(now, cpu);
        let at = usize::from(cpu);
        self.queues[at].needs_reschedule = false;
        let before = self.queues[at].linked.take();
        if let Some(before) = before {
            self.enqueue(cpu, before);
        }
        let Some(first) = self.queues[at].waiting.pop_first() else { return };
        self.set_linked(cpu, Some(first.task));
        if before != Some(first.task) {
            self.threads[first.task.index()].entity.begin_slice();
        }
        self.changed(cpu);
    }

    /// Picks where somebody must be picked, and pulls until no CPU idles while threads wait.
    fn settle(&mut self, now: Instant) {
        let mut touched = std::mem::take(&mut self.touched);
        touched.sort_unstable();
        touched.dedup();
        for &cpu in &touched {
            let queue = &self.queues[usize::from(cpu)];
            if queue.needs_reschedule || queue.linked.is_none() {
                self.pick(now, cpu);
            }
        }
        self.touched.append(&mut touched);
        while let (Some(idle), Some(busiest)) = (self.loads.first_idle(), self.loads.busiest()) {
            self.pull(now, idle, busiest);
            self.pick(now, idle);
        }
    }

    /// Appends the links that differ from those announced before, by CPU.
    fn announce(&mut self, actions: &mut Vec<Action>) {
        self.touched.sort_unstable();
        self.touched.dedup();
        for cpu in self.touched.drain(..) {
            let at = usize::from(cpu);
            let task = self.queues[at].linked;
            if self.announced[at] != task {
                self.announced[at] = task;
                actions.push(Action::Link { cpu: CpuId(cpu), task });
            }
        }
    }

    /// What stands for the priority of `task` where one is asked for: its place among those who wait.
    fn standing(&self, task: TaskId) -> Priority {
        let Key { is_fair, virtual_time, .. } = self.key(task);
        let (major, tie) = Priority::HIGHEST;
        let fair = (virtual_time as u64) ^ (1 << 63);
        Priority { major: if is_fair { fair.max(1) } else { major }, tie: if is_fair { task.0 } else { tie }, task }
    }
}

impl CpuPolicy for Fair {
    fn handle(&mut self, now: Instant, event: Event) {
        match event {
            Event::Released { task, .. } | Event::Resumed { task, .. } => self.wake(now, task, false),
            // Who works for whom is klmirqd's, which needs priorities.
            Event::Woken { thread, level, .. } => self.wake(now, thread, level.0 == Priority::HIGHEST.0),
            Event::Completed { cpu, task } | Event::Suspended { cpu, task } => self.leave(now, cpu, task),
            Event::Tick { cpu, .. } => self.tick(now, cpu.0),
            Event::Switched { cpu, task } => self.switched(now, cpu, task),
            // What a job inherits is a priority, and the fair class has none.
            Event::Prioritized { .. } => {}
        }
    }

    fn decide(&mut self, now: Instant, actions: &mut Vec<Action>) {
        self.settle(now);
        self.announce(actions);
    }

    fn lowest(&self) -> (CpuId, Option<Priority>) {
        if let Some(idle) = self.loads.first_idle() {
            return (CpuId(idle), None);
        }
        let standing = |cpu: usize| (self.linked(CpuId(cpu as u16)), cpu);
        let last = (0..self.queues.len()).max_by_key(|&cpu| standing(cpu)).unwrap_or(0);
        (CpuId(last as u16), self.linked(CpuId(last as u16)))
    }

    fn linked(&self, cpu: CpuId) -> Option<Priority> {
        self.queues[cpu.index()].linked.map(|task| self.standing(task))
    }

    fn heeds_ticks(&self) -> bool {
        self.loads.busiest().is_some()
    }

    fn assert_invariants(&self) {
        let mut runnable = 0;
        for (at, queue) in self.queues.iter().enumerate() {
            let cpu = at as u16;
            let members = || queue.waiting.iter().map(|key| key.task).chain(queue.linked);
            runnable += queue.runnable();
            assert_eq!(queue.load, members().map(|task| self.weight(task)).sum::<u64>(), "loads are sums of weights");
            assert_eq!(self.loads.is_idle(cpu), queue.runnable() == 0, "an idle CPU is known to be idle");
            for key in &queue.waiting {
                assert_eq!(self.key(key.task), *key, "a queue is ordered by what its members have now");
                assert_eq!(self.threads[key.task.index()].place, Place::Waiting(cpu), "places agree with queues");
            }
            if let Some(linked) = queue.linked {
                assert_eq!(self.threads[linked.index()].place, Place::Linked(cpu), "places agree with links");
            }
            for task in members() {
                let occupies = self.threads[task.index()].occupies;
                assert!(occupies.is_none_or(|on| on == cpu), "a thread is where its process is");
            }
            if let Some((task, _)) = self.executing[at] {
                assert_eq!(self.threads[task.index()].occupies, Some(cpu), "processes agree in both directions");
            }
        }
        let awake = self.threads.iter().filter(|thread| !matches!(thread.place, Place::Asleep(_))).count();
        assert_eq!(runnable, awake, "every runnable thread is in one queue");
        let both = self.loads.first_idle().is_some() && self.loads.busiest().is_some();
        assert!(!both, "no CPU idles while threads wait");
    }
}
