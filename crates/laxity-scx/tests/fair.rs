//! Virtual times in the kernel are those of laxity-policy: the C of `bpf/fair.h` beside the fair class in Rust, on the same random
//! events of one CPU.

use laxity_model::{CpuId, Factor, Instant, Nanos, TaskId};
use laxity_policy::cpu::fair::{Entity, Fair, FairThread, NICE_0_WEIGHT, Parameters};
use laxity_policy::cpu::{Action, CpuPolicy, Event};
use laxity_scx::native::{CREDIT, Clock, LEAD, PACE, punishment, virtual_span, weight};
use laxity_testing::Random;

const CPU: CpuId = CpuId(0);
/// What the clock in C shows where that in Rust shows 0: close to where numbers wrap around.
const ZERO: u64 = u64::MAX - 40_000_000;

/// A thread as the kernel has it.
#[derive(Clone, Copy)]
struct Thread {
    weight: u64,
    virtual_time: u64,
    can_run: bool,
}

/// Both, and the time.
struct Twins {
    rust: Fair,
    link: Option<TaskId>,
    clock: Clock,
    threads: Vec<Thread>,
    /// The one that has the CPU.
    chosen: Option<usize>,
    factor: Factor,
    now: u64,
}

impl Twins {
    fn new(niceness: &[i32], factor: Factor) -> Twins {
        let threads = niceness.iter().map(|&niceness| FairThread { weight: weight(niceness), cpu: Some(CPU) });
        let threads: Vec<FairThread> = threads.collect();
        // The credit of sleepers is half the latency. Threads that wake do not preempt.
        let parameters = Parameters {
            latency: Nanos(2 * CREDIT),
            min_granularity: Nanos(1),
            wakeup_granularity: Nanos::from_secs(3600),
        };
        Twins {
            rust: Fair::with_threads(parameters, factor, &threads, 1),
            link: None,
            clock: Clock::new(ZERO, 0),
            threads: threads
                .iter()
                .map(|it| Thread { weight: it.weight, virtual_time: ZERO, can_run: false })
                .collect(),
            chosen: None,
            factor,
            now: 1,
        }
    }

    fn tell(&mut self, event: impl FnOnce(&mut Fair, Instant)) {
        let now = Instant(self.now);
        event(&mut self.rust, now);
        let mut actions = Vec::new();
        loop {
            self.rust.decide(now, &mut actions);
            if actions.is_empty() {
                break;
            }
            for Action::Link { task, .. } in actions.drain(..) {
                self.link = task;
                self.rust.handle(now, Event::Switched { cpu: CPU, task });
            }
        }
    }

    /// The thread that has the CPU executes.
    fn execute(&mut self, span: u64) {
        self.now += span;
        if let Some(thread) = self.chosen {
            let thread = &mut self.threads[thread];
            thread.virtual_time = thread.virtual_time.wrapping_add(virtual_span(span, thread.weight));
        }
    }

    /// The thread that has the CPU waits again, charged that much.
    fn wait_again(&mut self, charge: u64) {
        if let Some(thread) = self.chosen.take() {
            let virtual_time = self.threads[thread].virtual_time.wrapping_add(charge);
            self.threads[thread].virtual_time = self.clock.place(virtual_time);
        }
    }

    /// The one of least virtual time has the CPU. The time does not count: what the clock does in it has a test of its own.
    fn choose(&mut self) {
        let waiting = (0..self.threads.len()).filter(|&thread| self.threads[thread].can_run);
        self.chosen =
            waiting.min_by_key(|&thread| (self.threads[thread].virtual_time.wrapping_sub(ZERO) as i64, thread));
        if let Some(thread) = self.chosen {
            self.clock.advance(self.threads[thread].virtual_time, 0);
        }
    }

    /// A slice ends: in Rust a job of a class above takes the CPU and leaves it at once.
    fn end_slice(&mut self) {
        self.wait_again(0);
        self.choose();
        self.tell(|fair, now| fair.take(now, CPU));
        self.tell(|fair, now| fair.give_back(now, CPU));
        self.compare();
    }

    fn sleep(&mut self) {
        self.end_slice();
        let Some(thread) = self.chosen.take() else { return };
        self.threads[thread].can_run = false;
        self.choose();
        self.link = None;
        self.tell(|fair, now| {
            fair.handle(now, Event::Completed { cpu: CPU, task: TaskId(thread as u32) });
            fair.handle(now, Event::Switched { cpu: CPU, task: None });
        });
        self.compare();
    }

    fn wake(&mut self, thread: usize) {
        self.end_slice();
        if self.threads[thread].can_run {
            return;
        }
        let it = &mut self.threads[thread];
        (it.can_run, it.virtual_time) = (true, self.clock.place(it.virtual_time));
        if self.chosen.is_none() {
            self.choose();
        }
        let released = Event::Released { cpu: CPU, task: TaskId(thread as u32), deadline: Instant::NEVER };
        self.tell(|fair, now| fair.handle(now, released));
        self.compare();
    }

    /// The CPU is throttled because of the thread that has it. In the kernel that one is charged where it waits again, in Rust when
    /// the time is over.
    fn throttle(&mut self, lost: u64) {
        let mut culprit = None;
        self.tell(|fair, now| culprit = fair.throttle(now, CPU));
        assert_eq!(culprit.map(TaskId::index), self.chosen);
        self.wait_again(punishment(lost, self.factor.0));
        self.now += lost;
        self.choose();
        self.tell(|fair, now| fair.unthrottle(now, CPU, culprit, Nanos(lost)));
        self.compare();
    }

    fn compare(&self) {
        assert_eq!(self.link.map(TaskId::index), self.chosen, "at {}", self.now);
        for (thread, it) in self.threads.iter().enumerate().filter(|(_, it)| it.can_run) {
            let rust = self.rust.entity(TaskId(thread as u32)).virtual_time();
            assert_eq!(it.virtual_time.wrapping_sub(ZERO) as i64, rust, "thread {thread} at {}", self.now);
        }
    }
}

#[test]
fn virtual_times_and_choices_in_c_are_those_of_the_policy() {
    for seed in 0..500 {
        let mut random = Random::of(seed);
        // Below niceness -5 one slice of another thread would be more than the clock lets it be ahead.
        let niceness: Vec<i32> = (0..1 + random.below(6)).map(|_| random.below(25) as i32 - 5).collect();
        let mut twins = Twins::new(&niceness, Factor(random.below(4_000_000)));
        for _ in 0..600 {
            twins.execute(1 + random.below(CREDIT));
            let thread = random.below(niceness.len() as u64) as usize;
            match random.below(8) {
                0 => twins.sleep(),
                1 | 2 => twins.wake(thread),
                3 | 4 => {
                    // A budget is exceeded in a slice, and not where it begins.
                    twins.end_slice();
                    twins.execute(1 + random.below(500_000));
                    twins.throttle(1 + random.below(2_000_000));
                }
                _ => twins.end_slice(),
            }
        }
    }
}

#[test]
fn weights_are_those_of_linux() {
    let known = [(-20, 88_761), (-10, 9_548), (-1, 1_277), (0, NICE_0_WEIGHT), (1, 820), (5, 335), (10, 110), (19, 15)];
    for (niceness, expected) in known {
        assert_eq!(weight(niceness), expected, "niceness {niceness}");
    }
    let steps: Vec<f64> = (-20..19).map(|niceness| weight(niceness) as f64 / weight(niceness + 1) as f64).collect();
    assert!(steps.iter().all(|step| (1.15..1.35).contains(step)), "a step is a tenth of the CPU: {steps:?}");
}

/// `Entity` and the C for one thread, up to the longest times.
#[test]
fn charges_are_those_of_an_entity() {
    let mut random = Random::of(7);
    for _ in 0..100_000 {
        let weight = weight(random.below(40) as i32 - 20);
        let (bits, of_lost) = (1 + random.below(52), 1 + random.below(36));
        let (span, lost) = (random.below(1 << bits), random.below(1 << of_lost));
        let factor = Factor(random.below(100_000_001));
        let mut entity = Entity::new(weight);
        entity.charge(Nanos(span));
        entity.punish(Nanos(lost), factor);
        assert_eq!(entity.virtual_time() as u64, virtual_span(span, weight) + punishment(lost, factor.0));
    }
}

/// Beside threads that weigh as much as threads can, which hold the virtual time back, too.
#[test]
fn the_clock_passes_each_thread_that_waits() {
    let mut clock = Clock::new(ZERO, 0);
    let (mut now, mut rival) = (0, ZERO);
    let waits = clock.place(ZERO.wrapping_add(u64::MAX / 4));
    assert_eq!(waits, ZERO.wrapping_add(LEAD));
    while (rival.wrapping_sub(waits) as i64) < 0 {
        clock.advance(rival, now);
        now += 5_000_000;
        rival = clock.place(rival.wrapping_add(virtual_span(5_000_000, weight(-20))));
    }
    assert!(now <= (LEAD + CREDIT) * PACE + 5_000_000, "{now} ns");
    assert!(now > 10_000_000_000, "{now} ns: a bound that is met");
}
