//! The regulator of a CPU, by hand and against a count of every nanosecond.

use laxity_model::{Instant, LockHeed, MemoryRegulator, Nanos, RegulatorPhase};
use laxity_policy::bandwidth::{Action, Event, Regulator, Rules};
use proptest::prelude::*;

const GB: u64 = 1_000_000_000;

/// A driver: it carries events to a regulator, timeouts between them, and keeps what happened.
struct Driver {
    regulator: Regulator,
    done: Vec<(u64, Action)>,
}

impl Driver {
    fn new(rules: Rules) -> Driver {
        Driver { regulator: Regulator::new(rules), done: Vec::new() }
    }

    fn until(&mut self, at: u64) {
        while let Some(timeout) = self.regulator.next_timeout().filter(|timeout| timeout.as_nanos() <= at) {
            self.handle(timeout.as_nanos(), Event::Timeout);
        }
    }

    fn at(&mut self, at: u64, event: Event) {
        self.until(at);
        self.handle(at, event);
    }

    fn handle(&mut self, at: u64, event: Event) {
        let mut actions = Vec::new();
        self.regulator.handle(Instant(at), event, &mut actions);
        self.done.extend(actions.into_iter().filter(|&action| action != Action::Interrupt).map(|action| (at, action)));
    }
}

fn rules(heed: LockHeed, latency: u64) -> Rules {
    Rules { period: Nanos(1_000), offset: Nanos::ZERO, latency: Nanos(latency), heed }
}

const fn lock(budget: u64) -> Event {
    Event::Lock { budget: Some(budget) }
}

const UNLOCK: Event = Event::Lock { budget: None };

const fn regulate(budget: u64) -> Action {
    Action::Regulate { budget: Some(budget) }
}

const UNREGULATED: Action = Action::Regulate { budget: None };

const fn unthrottle(lost: u64) -> Action {
    Action::Unthrottle { lost: Nanos(lost) }
}

/// Algorithm 2 of paper 004: the timer of the period looks at the lock. 3 GB/s under a budget of 1 GB/s are stopped after
/// a third of the period, in the first nanosecond that is not before it.
#[test]
fn a_lock_is_seen_when_a_period_begins_and_a_throttled_cpu_goes_on_with_the_next() {
    let mut driver = Driver::new(rules(LockHeed::Period, 0));
    driver.at(0, Event::Traffic { rate: 3 * GB });
    driver.at(100, lock(GB));
    driver.at(1_400, Event::Traffic { rate: 0 });
    driver.at(2_000, Event::Traffic { rate: 3 * GB });
    driver.at(2_100, UNLOCK);
    driver.until(9_000);
    let expected = [
        (1_000, regulate(GB)),
        (1_334, Action::Throttle),
        (2_000, unthrottle(666)),
        (2_000, regulate(GB)),
        (2_334, Action::Throttle),
        (3_000, unthrottle(666)),
        (3_000, UNREGULATED),
    ];
    assert_eq!(driver.done, expected);
    assert_eq!(driver.regulator.next_timeout(), None, "while there is no lock, there is no timer");
}

#[test]
fn a_lock_within_one_period_regulates_nothing() {
    let mut driver = Driver::new(rules(LockHeed::Period, 0));
    driver.at(0, Event::Traffic { rate: 3 * GB });
    driver.at(100, lock(GB));
    driver.at(900, UNLOCK);
    driver.until(9_000);
    assert_eq!(driver.done, []);
}

#[test]
fn heeded_at_once_a_lock_taken_twice_in_a_period_grants_one_budget() {
    let mut driver = Driver::new(rules(LockHeed::AtOnce, 0));
    driver.at(0, Event::Traffic { rate: 2 * GB });
    driver.at(100, lock(GB));
    driver.at(500, UNLOCK); // 800 B of 1,000 are used.
    driver.at(600, lock(GB));
    driver.at(800, UNLOCK);
    driver.at(900, lock(GB));
    driver.at(1_200, UNLOCK);
    let expected = [
        (100, regulate(GB)),
        (500, UNREGULATED),
        (600, regulate(GB)),
        (700, Action::Throttle),
        (800, UNREGULATED),
        (800, unthrottle(100)),
        (900, regulate(GB)),
        (900, Action::Throttle),
        (1_000, unthrottle(100)),
        (1_000, regulate(GB)),
        (1_200, UNREGULATED),
    ];
    assert_eq!(driver.done, expected);
}

#[test]
fn a_smaller_budget_of_an_inner_lock_stops_at_once_what_has_used_it_up() {
    let mut driver = Driver::new(rules(LockHeed::AtOnce, 0));
    driver.at(0, Event::Traffic { rate: GB });
    driver.at(0, lock(GB));
    driver.at(500, lock(GB / 4));
    driver.at(700, lock(GB));
    let expected = [
        (0, regulate(GB)),
        (500, regulate(GB / 4)),
        (500, Action::Throttle),
        (700, regulate(GB)),
        (700, unthrottle(200)),
    ];
    assert_eq!(driver.done, expected);
}

#[test]
fn a_latency_that_outlasts_the_period_stops_nothing() {
    let mut driver = Driver::new(rules(LockHeed::AtOnce, 700));
    driver.at(0, Event::Traffic { rate: 2 * GB });
    driver.at(0, lock(GB));
    driver.until(1_100);
    assert_eq!(driver.done, [(0, regulate(GB)), (1_000, regulate(GB))]);
    let mut driver = Driver::new(rules(LockHeed::AtOnce, 200));
    driver.at(0, Event::Traffic { rate: 2 * GB });
    driver.at(0, lock(GB));
    driver.until(999);
    assert_eq!(driver.done, [(0, regulate(GB)), (700, Action::Throttle)]);
}

#[test]
fn staggered_cpus_begin_their_periods_one_after_the_other() {
    let regulator = MemoryRegulator { phase: RegulatorPhase::Staggered, ..MemoryRegulator::default() };
    let first = |cpu, at| {
        let mut driver = Driver::new(Rules::of(&regulator, cpu, 4));
        driver.at(at, lock(GB));
        driver.regulator.next_timeout()
    };
    let ends = [0, 1, 3].map(|cpu| first(cpu, 100_000));
    assert_eq!(ends, [1_000_000, 250_000, 750_000].map(|at| Some(Instant(at))));
    assert_eq!(first(1, 250_000), Some(Instant(1_250_000)), "a lock taken when a period begins is seen by the next");
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Lock(Option<u64>),
    Traffic(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        prop::option::of(1u64..6).prop_map(|budget| Step::Lock(budget.map(|bytes| bytes * GB))),
        (0u64..12).prop_map(|rate| Step::Traffic(rate * GB / 2)),
    ]
}

/// The same rules, applied to every single nanosecond: answers when best-effort tasks stand still.
fn counted(steps: &[(u64, Step)], end: u64, rules: Rules) -> Vec<bool> {
    let (mut locked, mut rate) = (None, 0u64);
    let (mut budget, mut used, mut overflowed, mut used_in) = (None, 0u128, None, u64::MAX);
    let mut still = Vec::new();
    let period = rules.period.0;
    for now in 0..end {
        if now % period == 0 && now > 0 {
            (budget, used, overflowed) = (locked, 0, None);
        }
        for &(_, step) in steps.iter().filter(|&&(at, _)| at == now) {
            match step {
                Step::Traffic(new) => rate = new,
                Step::Lock(new) => {
                    locked = new;
                    if rules.heed == LockHeed::AtOnce && budget != new {
                        if new.is_some() && used_in != now / period {
                            used = 0;
                        }
                        budget = new;
                        if budget.is_none_or(|budget: u64| used < u128::from(budget) * u128::from(period)) {
                            overflowed = None;
                        }
                    }
                }
            }
            if budget.is_some_and(|budget| used >= u128::from(budget) * u128::from(period)) {
                overflowed.get_or_insert(now);
            }
        }
        if budget.is_some_and(|budget| used >= u128::from(budget) * u128::from(period)) {
            overflowed.get_or_insert(now);
        }
        let stands = overflowed.is_some_and(|at| now >= at + rules.latency.0);
        still.push(stands);
        if budget.is_some() {
            used_in = now / period;
            used += u128::from(if stands { 0 } else { rate });
        }
    }
    still
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// A driver that stops the traffic of a throttled CPU sees it throttled in just those nanoseconds in which a count of
    /// every nanosecond does; and no regulated period has more traffic than its budget and what comes in the latency.
    #[test]
    fn a_cpu_stands_still_when_a_count_of_every_nanosecond_says_so(
        mut steps in prop::collection::vec((0u64..300, step()), 0..12),
        at_once: bool,
        latency in 0u64..40,
    ) {
        steps.sort_by_key(|&(at, _)| at);
        let heed = if at_once { LockHeed::AtOnce } else { LockHeed::Period };
        let rules = Rules { period: Nanos(50), offset: Nanos::ZERO, latency: Nanos(latency), heed };
        let expected = counted(&steps, 300, rules);
        let mut regulator = Regulator::new(rules);
        let (mut rate, mut actions) = (0, Vec::new());
        for now in 0..300 {
            let at = Instant(now);
            if regulator.next_timeout() == Some(at) {
                regulator.handle(at, Event::Timeout, &mut actions);
            }
            let is_still = regulator.is_throttled();
            regulator.handle(at, Event::Traffic { rate: if is_still { 0 } else { rate } }, &mut actions);
            for &(_, step) in steps.iter().filter(|&&(at, _)| at == now) {
                match step {
                    Step::Lock(budget) => regulator.handle(at, Event::Lock { budget }, &mut actions),
                    Step::Traffic(new) => rate = new,
                }
                let is_still = regulator.is_throttled();
                regulator.handle(at, Event::Traffic { rate: if is_still { 0 } else { rate } }, &mut actions);
            }
            prop_assert_eq!(regulator.is_throttled(), expected[now as usize], "at {} ns", now);
            prop_assert!(regulator.next_timeout().is_none_or(|timeout| timeout > at), "time goes on");
            if let Some(budget) = regulator.budget() {
                // Rates are at most 5.5 B a nanosecond, and change within the latency.
                let most = u128::from(budget) * 50 + u128::from(11 * GB / 2) * u128::from(latency + 1);
                let least_of_all = steps.iter().any(|(_, step)| matches!(step, Step::Lock(_))) && at_once;
                prop_assert!(least_of_all || regulator.used() <= most, "{} of {most}", regulator.used());
            }
        }
    }
}
