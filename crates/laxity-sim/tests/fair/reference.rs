//! The schedule of the fair class computed step by step, a millisecond at a time: lists that are searched from one end to
//! the other, no index, no events. Everything lasts whole milliseconds, so that nothing happens between steps.

use laxity_model::{Instant, Nanos, Platform, Scheduler, Task, Workload};
use proptest::prelude::*;

use crate::common::{executions, run};

/// What Linux sets, in ms: base values times 1 + log2 of the CPUs.
struct Tunables {
    latency: f64,
    min_granularity: f64,
    wakeup_granularity: f64,
}

#[derive(Clone)]
struct Thread {
    cost: i64,
    period: i64,
    next_release: i64,
    backlog: usize,
    /// 0: not runnable.
    remaining: i64,
    virtual_time: f64,
    in_slice: i64,
    cpu: usize,
    asleep_since: i64,
    /// When its last job ended: a process that ends a job gives up its CPU, even if the next begins at once.
    left_at: i64,
}

#[derive(Clone)]
struct Cpu {
    linked: Option<usize>,
    clock: f64,
    next_balance: i64,
    reschedule: bool,
}

struct Machine {
    tunables: Tunables,
    threads: Vec<Thread>,
    cpus: Vec<Cpu>,
}

impl Machine {
    fn new(tasks: &[(i64, i64, i64)], cpus: usize) -> Machine {
        let factor = [1.0, 1.0, 2.0, 2.0, 3.0][cpus];
        let thread = |(index, &(cost, period, phase)): (usize, &(i64, i64, i64))| Thread {
            cost,
            period,
            next_release: phase,
            backlog: 0,
            remaining: 0,
            virtual_time: 0.0,
            in_slice: 0,
            cpu: index % cpus,
            asleep_since: -1,
            left_at: -1,
        };
        let cpu = Cpu { linked: None, clock: 0.0, next_balance: 32 * cpus as i64, reschedule: false };
        Machine {
            tunables: Tunables { latency: 6.0 * factor, min_granularity: 0.75 * factor, wakeup_granularity: factor },
            threads: tasks.iter().enumerate().map(thread).collect(),
            cpus: vec![cpu; cpus],
        }
    }

    fn runnable(&self, cpu: usize) -> Vec<usize> {
        (0..self.threads.len()).filter(|&it| self.threads[it].remaining > 0 && self.threads[it].cpu == cpu).collect()
    }

    /// The threads that wait, the one least ahead first.
    fn waiting(&self, cpu: usize) -> Vec<usize> {
        let mut waiting = self.runnable(cpu);
        waiting.retain(|&thread| self.cpus[cpu].linked != Some(thread));
        waiting.sort_by(|&a, &b| self.threads[a].virtual_time.total_cmp(&self.threads[b].virtual_time).then(a.cmp(&b)));
        waiting
    }

    /// Before it is read. Not before: a thread that ends a job and begins the next at one instant has not been away.
    fn advance_clock(&mut self, cpu: usize) {
        let times = self.runnable(cpu).into_iter().map(|thread| self.threads[thread].virtual_time);
        let least = times.fold(f64::INFINITY, f64::min);
        if least.is_finite() {
            self.cpus[cpu].clock = self.cpus[cpu].clock.max(least);
        }
    }

    /// Everything that happens at `now`, after each linked thread executed since `now - 1`; answers which thread executes next.
    fn step(&mut self, now: i64) -> Vec<Option<usize>> {
        for cpu in 0..self.cpus.len() {
            if let Some(thread) = self.cpus[cpu].linked {
                let thread = &mut self.threads[thread];
                thread.remaining -= 1;
                thread.virtual_time += 1.0;
                thread.in_slice += 1;
                // It counts for the clock even if it is done now.
                let ended = thread.virtual_time;
                let waiting = self.waiting(cpu).first().map(|&first| self.threads[first].virtual_time);
                self.cpus[cpu].clock = self.cpus[cpu].clock.max(waiting.map_or(ended, |first| first.min(ended)));
            }
        }
        self.complete(now);
        for thread in 0..self.threads.len() {
            if self.threads[thread].next_release == now {
                self.threads[thread].next_release += self.threads[thread].period;
                self.threads[thread].backlog += 1;
                if self.threads[thread].remaining == 0 {
                    self.wake(now, thread);
                }
            }
        }
        for cpu in 0..self.cpus.len() {
            if (0..self.cpus.len()).any(|cpu| !self.waiting(cpu).is_empty()) {
                self.tick(now, cpu);
            }
        }
        self.decide(now);
        self.cpus.iter().map(|cpu| cpu.linked).collect()
    }

    fn complete(&mut self, now: i64) {
        for thread in 0..self.threads.len() {
            let cpu = self.threads[thread].cpu;
            if self.cpus[cpu].linked != Some(thread) || self.threads[thread].remaining > 0 {
                continue;
            }
            self.threads[thread].left_at = now;
            if self.threads[thread].backlog > 0 {
                self.threads[thread].backlog -= 1;
                self.threads[thread].remaining = self.threads[thread].cost;
            } else {
                self.cpus[cpu].linked = None;
                self.threads[thread].asleep_since = now;
            }
        }
    }

    fn wake(&mut self, now: i64, thread: usize) {
        let previous = self.threads[thread].cpu;
        self.threads[thread].backlog -= 1;
        let is_same_instant = now > 0 && self.threads[thread].asleep_since == now;
        if is_same_instant && self.cpus[previous].linked.is_none() {
            self.threads[thread].remaining = self.threads[thread].cost;
            self.cpus[previous].linked = Some(thread);
            return;
        }
        let count = self.cpus.len();
        let circle = (0..count).map(|step| (previous + step) % count);
        let cpu = circle.into_iter().find(|&cpu| self.runnable(cpu).is_empty()).unwrap_or(previous);
        self.advance_clock(previous);
        self.advance_clock(cpu);
        let moved = self.threads[thread].virtual_time - self.cpus[previous].clock + self.cpus[cpu].clock;
        let woken = &mut self.threads[thread];
        woken.virtual_time = moved.max(self.cpus[cpu].clock - self.tunables.latency / 2.0);
        woken.cpu = cpu;
        woken.remaining = woken.cost;
        self.preempt(cpu, thread);
    }

    fn preempt(&mut self, cpu: usize, woken: usize) {
        if let Some(linked) = self.cpus[cpu].linked {
            let behind = self.threads[linked].virtual_time - self.threads[woken].virtual_time;
            self.cpus[cpu].reschedule |= behind > self.tunables.wakeup_granularity;
        }
    }

    fn tick(&mut self, now: i64, cpu: usize) {
        self.advance_clock(cpu);
        if let (Some(linked), Some(&first)) = (self.cpus[cpu].linked, self.waiting(cpu).first()) {
            let linked = &self.threads[linked];
            let runnable = self.runnable(cpu).len() as f64;
            let slice = (self.tunables.latency / runnable).max(self.tunables.min_granularity);
            let executed = linked.in_slice as f64;
            let ahead = linked.virtual_time - self.threads[first].virtual_time;
            let is_far = executed >= self.tunables.min_granularity && ahead > slice;
            self.cpus[cpu].reschedule |= executed > slice || is_far;
        }
        if now >= self.cpus[cpu].next_balance {
            self.cpus[cpu].next_balance = now + 32 * self.cpus.len() as i64;
            while let Some(busiest) = self.busiest().filter(|&busiest| busiest != cpu) {
                let (theirs, own) = (self.runnable(busiest).len(), self.runnable(cpu).len());
                if theirs * 100 <= own * 125 || own + 1 > theirs - 1 {
                    break;
                }
                // One that executed until now has its process there still.
                let Some(thread) = self.waiting(busiest).first().copied() else { break };
                self.migrate(thread, busiest, cpu);
            }
        }
    }

    /// Of the CPUs on which a thread waits, the one with most to do.
    fn busiest(&self) -> Option<usize> {
        let waiting = (0..self.cpus.len()).filter(|&cpu| !self.waiting(cpu).is_empty());
        waiting.max_by_key(|&cpu| (self.runnable(cpu).len(), std::cmp::Reverse(cpu)))
    }

    fn migrate(&mut self, thread: usize, from: usize, to: usize) {
        self.advance_clock(from);
        self.advance_clock(to);
        self.threads[thread].virtual_time += self.cpus[to].clock - self.cpus[from].clock;
        self.threads[thread].cpu = to;
        self.preempt(to, thread);
    }

    fn pick(&mut self, cpu: usize) {
        self.advance_clock(cpu);
        let before = self.cpus[cpu].linked.take();
        self.cpus[cpu].reschedule = false;
        let first = self.waiting(cpu).first().copied();
        self.cpus[cpu].linked = first;
        if let Some(first) = first.filter(|&first| before != Some(first)) {
            self.threads[first].in_slice = 0;
        }
    }

    fn decide(&mut self, now: i64) {
        let stays = |thread: &usize| self.threads[*thread].left_at < now;
        let executing: Vec<Option<usize>> = self.cpus.iter().map(|cpu| cpu.linked.filter(stays)).collect();
        for cpu in 0..self.cpus.len() {
            if self.cpus[cpu].reschedule || self.cpus[cpu].linked.is_none() {
                self.pick(cpu);
            }
        }
        while let (Some(idle), Some(busiest)) =
            ((0..self.cpus.len()).find(|&cpu| self.runnable(cpu).is_empty()), self.busiest())
        {
            // The thread that executed there until now can only go on there.
            let movable = |thread: &usize| executing[busiest] != Some(*thread);
            if let Some(thread) = self.waiting(busiest).into_iter().find(movable) {
                self.migrate(thread, busiest, idle);
            } else {
                let occupant = self.waiting(busiest)[0];
                let linked = self.cpus[busiest].linked.replace(occupant).expect("a thread displaced it");
                self.migrate(linked, busiest, idle);
            }
            self.pick(idle);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_schedule_is_that_of_a_computation_without_events(
        tasks in prop::collection::vec((1i64..20, 20i64..60, 0i64..30), 1..9),
        cpus in 1usize..5,
    ) {
        let ms = |span: i64| Nanos::from_millis(span as u64);
        let task = |&(cost, period, phase): &(i64, i64, i64)| {
            Task { phase: ms(phase), ..Task::periodic("t", ms(cost), ms(period)) }
        };
        let workload = Workload::new("reference", Platform::identical(cpus), tasks.iter().map(task).collect());
        let scheduler: Scheduler = "G-CFS".parse().expect("a scheduler");
        let end = 400;
        let runs = executions(&run(&workload, &scheduler, Instant::from_millis(end as u64), 0));
        let mut machine = Machine::new(&tasks, cpus);
        for now in 0..end {
            let expected = machine.step(now);
            let (from, to) = (Instant::from_millis(now as u64), Instant::from_millis(now as u64 + 1));
            for (cpu, expected) in expected.into_iter().enumerate() {
                let executes = runs.iter().find(|run| run.cpu.index() == cpu && run.start <= from && to <= run.end);
                prop_assert_eq!(executes.map(|run| run.job.task.index()), expected, "cpu{} from {} ms on", cpu, now);
            }
        }
    }
}
