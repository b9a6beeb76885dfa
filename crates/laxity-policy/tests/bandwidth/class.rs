//! The fair class below others: CPUs that are taken and throttled, threads that are bound, punished and heavier.

use laxity_model::rng::SplitMix64;
use laxity_model::{CpuId, Factor, Instant, Nanos, TaskId};
use laxity_policy::cpu::fair::{Fair, FairThread, Parameters};
use laxity_policy::cpu::{Action, CpuPolicy, Event};

const CPU: CpuId = CpuId(0);

fn parameters() -> Parameters {
    let us = Nanos::from_micros;
    Parameters { latency: us(1_000), min_granularity: us(500), wakeup_granularity: us(1_000) }
}

/// A driver without overheads: what is linked is switched in at once.
struct Driver {
    fair: Fair,
    links: Vec<Option<TaskId>>,
}

impl Driver {
    fn new(threads: &[FairThread], cpus: usize, punishment: Factor) -> Driver {
        let mut driver =
            Driver { fair: Fair::with_threads(parameters(), punishment, threads, cpus), links: vec![None; cpus] };
        for task in 0..threads.len() as u32 {
            let deadline = Instant::NEVER;
            driver.fair.handle(Instant::ZERO, Event::Released { cpu: CPU, task: TaskId(task), deadline });
        }
        driver.settle(Instant::ZERO);
        driver
    }

    fn settle(&mut self, now: Instant) {
        let mut actions = Vec::new();
        loop {
            self.fair.decide(now, &mut actions);
            if actions.is_empty() {
                break;
            }
            for Action::Link { cpu, task } in actions.drain(..) {
                self.links[cpu.index()] = task;
                self.fair.handle(now, Event::Switched { cpu, task });
            }
        }
        self.fair.assert_invariants();
    }

    fn then(&mut self, now: Instant, event: impl FnOnce(&mut Fair)) {
        event(&mut self.fair);
        self.settle(now);
    }

    fn virtual_time(&self, task: u32) -> i64 {
        self.fair.entity(TaskId(task)).virtual_time()
    }
}

fn bound(cpu: u16) -> FairThread {
    FairThread { cpu: Some(CpuId(cpu)), ..FairThread::default() }
}

const fn ms(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

#[test]
fn after_throttling_the_thread_of_least_virtual_time_goes_on_and_tfs_charges_the_time_lost() {
    for (punishment, next) in [(Factor::ZERO, TaskId(0)), (Factor::whole(3), TaskId(1))] {
        let mut driver = Driver::new(&[bound(0), bound(0)], 1, punishment);
        let at = Instant(333_334);
        let mut throttled = None;
        driver.then(at, |fair| throttled = fair.throttle(at, CPU));
        assert_eq!((throttled, driver.links[0]), (Some(TaskId(0)), None), "a throttled CPU executes no thread");
        driver.then(ms(1), |fair| fair.unthrottle(ms(1), CPU, throttled, ms(1) - at));
        let charged = 333_334 + punishment.of(666_666) as i64;
        assert_eq!((driver.virtual_time(0), driver.virtual_time(1)), (charged, 0));
        assert_eq!(driver.links[0], Some(TaskId(1)), "the other has had nothing yet");
        driver.then(ms(2), |fair| fair.handle(ms(2), Event::Tick { cpu: CPU, quantum: 2 }));
        assert_eq!(driver.links[0], Some(next), "punishment {punishment}");
    }
}

#[test]
fn threads_of_a_cpu_that_is_taken_go_to_another_unless_they_are_bound() {
    let mut driver = Driver::new(&[bound(0), FairThread::default(), FairThread::default()], 2, Factor::ZERO);
    assert_eq!(driver.links, [Some(TaskId(0)), Some(TaskId(1))]);
    driver.then(ms(1), |fair| fair.take(ms(1), CpuId(1)));
    assert_eq!(driver.links, [Some(TaskId(0)), None]);
    driver.then(ms(2), |fair| fair.take(ms(2), CPU));
    driver.then(ms(2), |fair| fair.give_back(ms(2), CpuId(1)));
    assert_eq!(driver.links[0], None);
    assert_ne!(driver.links[1], Some(TaskId(0)), "a bound thread waits for its CPU");
    driver.then(ms(9), |fair| fair.give_back(ms(9), CPU));
    assert!(driver.links[0].is_some() && driver.links[1].is_some());
}

#[test]
fn a_cpu_that_is_taken_and_throttled_is_back_when_it_is_neither() {
    let mut driver = Driver::new(&[bound(0)], 1, Factor::ONE);
    driver.then(ms(1), |fair| fair.take(ms(1), CPU));
    let mut throttled = None;
    driver.then(ms(1), |fair| throttled = fair.throttle(ms(1), CPU));
    assert_eq!(throttled, Some(TaskId(0)), "the thread that was displaced had used the budget up");
    driver.then(ms(2), |fair| fair.give_back(ms(2), CPU));
    assert_eq!(driver.links[0], None);
    driver.then(ms(3), |fair| fair.unthrottle(ms(3), CPU, throttled, Nanos::from_millis(2)));
    assert_eq!((driver.links[0], driver.virtual_time(0)), (Some(TaskId(0)), 3_000_000));
}

#[test]
fn execution_is_in_proportion_to_weight() {
    let weights = [1_024, 2_048, 4_096];
    let threads = weights.map(|weight| FairThread { weight, cpu: Some(CPU) });
    let mut driver = Driver::new(&threads, 1, Factor::ZERO);
    let mut executed = [0u64; 3];
    for tick in 1..=7_000u64 {
        let now = Instant(tick * 100_000);
        executed[driver.links[0].expect("threads wait").index()] += 1;
        driver.then(now, |fair| fair.handle(now, Event::Tick { cpu: CPU, quantum: tick }));
    }
    for (share, expected) in executed.iter().zip([1_000, 2_000, 4_000]) {
        assert!(share.abs_diff(expected) < 50, "{executed:?}");
    }
}

/// Whatever is taken, throttled and completes, no invariant breaks, no bound thread leaves its CPU, and no CPU that is to
/// be had idles while a thread waits that may go there.
#[test]
fn random_takes_and_throttles_keep_every_invariant() {
    for seed in 0..300 {
        let mut rng = SplitMix64::new(seed);
        let cpus = 1 + rng.below(4) as usize;
        let thread = |rng: &mut SplitMix64| FairThread {
            weight: 1 + rng.below(4_000),
            cpu: (rng.below(2) == 0).then(|| CpuId(rng.below(cpus as u64) as u16)),
        };
        let threads: Vec<FairThread> = (0..1 + rng.below(7)).map(|_| thread(&mut rng)).collect();
        let mut driver = Driver::new(&threads, cpus, Factor(rng.below(4_000_000)));
        let mut throttled = vec![None; cpus];
        let mut taken = vec![false; cpus];
        for step in 1..200 {
            let now = Instant(step * 250_000);
            let cpu = CpuId(rng.below(cpus as u64) as u16);
            let at = cpu.index();
            match rng.below(5) {
                0 => {
                    taken[at] = !taken[at];
                    let is_taken = taken[at];
                    driver.then(now, |fair| if is_taken { fair.take(now, cpu) } else { fair.give_back(now, cpu) });
                }
                1 => match throttled[at].take() {
                    None => driver.then(now, |fair| throttled[at] = Some((now, fair.throttle(now, cpu)))),
                    Some((since, task)) => driver.then(now, |fair| fair.unthrottle(now, cpu, task, now - since)),
                },
                2 => {
                    if let Some(task) = driver.links[at].filter(|_| rng.below(8) == 0) {
                        driver.links[at] = None;
                        driver.then(now, |fair| {
                            fair.handle(now, Event::Completed { cpu, task });
                            fair.handle(now, Event::Switched { cpu, task: None });
                        });
                    }
                }
                _ => driver.then(now, |fair| {
                    (0..cpus as u16).for_each(|cpu| fair.handle(now, Event::Tick { cpu: CpuId(cpu), quantum: step }));
                }),
            }
            for (cpu, link) in driver.links.iter().enumerate() {
                let Some(task) = link else { continue };
                assert!(!taken[cpu] && throttled[cpu].is_none(), "seed {seed}: {task} on a CPU that is not to be had");
                assert!(
                    threads[task.index()].cpu.is_none_or(|only| only.index() == cpu),
                    "seed {seed}: {task} is bound"
                );
            }
        }
    }
}
