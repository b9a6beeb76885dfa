//! Hogs on a regulated CPU: what they have while the lock is held, while it is free, and after the regulator has ended.

mod support;

use std::thread;
use std::time::Duration;

use laxity_bandwidth::{BandwidthError, Counter, Options, Regulator, Throttle};
use laxity_gpu::Base;
use laxity_measure::memory::CHUNK;
use laxity_model::{LockHeed, Nanos};
use laxity_sys::clock::now;
use laxity_testing::until;
use support::{Hog, MB, Place, alone, create, last_cpu, regulator};

fn software(cpu: usize) -> Options {
    Options { counter: Counter::Software, ..Options::new([cpu]) }
}

/// By its sums: its budget, and what the hog has until the regulator runs.
#[test]
fn a_hog_has_its_budget_while_the_lock_is_held_and_all_that_it_wants_while_it_is_free() {
    let _alone = alone();
    let place = Place::new("budget");
    let arbitration = create(&place);
    let cpu = last_cpu();
    let traffic = arbitration.traffic(cpu).expect("it is counted");
    let budget = 500 * MB;
    let hog = Hog::start(&arbitration, cpu);
    let Some(regulator) = regulator(&arbitration, Options { throttle: Throttle::Occupier, ..software(cpu) }) else {
        return;
    };
    let client = arbitration.register("us", Base::Background).expect("there is room");
    let section = client.lock_bandwidth(budget).expect("it excludes no thread");
    until("periods are regulated", || regulator.reports()[0].regulation.periods >= 200);
    drop(section);
    until("the CPU is free", || traffic.regulation().is_some_and(|sums| sums.budget == 0));
    let report = regulator.reports().remove(0);
    let sums = report.regulation;
    assert_eq!((report.failed, report.let_run), (None, 0), "the occupier has enough");
    assert!(sums.throttled_periods > 0, "a hog exceeds {budget} B/s");
    assert!(!report.stops.is_empty() && report.stops.len() as u64 == sums.throttled_periods);
    // Beyond a budget of 500 kB a period: a chunk, and what a hog of at most 40 GB/s has until the regulator runs.
    let latency: u64 = report.stops.iter().map(|stop| stop.0).sum();
    let excess = sums.throttled_periods * CHUNK as u64 + 40 * latency;
    assert!(sums.bytes <= sums.allowed + excess, "{} B of {} B and {excess} B", sums.bytes, sums.allowed);
    let before = hog.count();
    until("the hog has more than a budget allows", || hog.count() - before > 100 * MB);
    drop(regulator);
    assert_eq!(traffic.regulation(), None, "the CPU has no regulator any more");
}

#[test]
fn without_its_scheduler_the_kernel_throttles_nothing_and_says_so() {
    if laxity_scx::Membership::join().is_ok() {
        return laxity_testing::skip("Laxity's scheduler is in this machine's kernel");
    }
    let place = Place::new("no-scheduler");
    let arbitration = create(&place);
    let options = Options { throttle: Throttle::Kernel, punishment: Some(1.0), ..software(last_cpu()) };
    let refused = Regulator::start(&arbitration, options).expect_err("nothing is loaded");
    assert!(matches!(refused, BandwidthError::Scheduler(_)));
    let text = refused.to_string();
    assert!(text.contains("not in the kernel") && text.contains("laxity sched start"), "{text}");
}

#[test]
fn the_occupier_takes_no_more_of_a_second_than_linux_leaves_to_it() {
    let _alone = alone();
    let place = Place::new("most");
    let arbitration = create(&place);
    let cpu = last_cpu();
    let hog = Hog::start(&arbitration, cpu);
    let options = Options { throttle: Throttle::Occupier, ..software(cpu) };
    let Some(regulator) = regulator(&arbitration, options) else { return };
    let client = arbitration.register("us", Base::Background).expect("there is room");
    let began = now();
    // Next to nothing: throttled for more than 99 % of each period.
    let _section = client.lock_bandwidth(MB).expect("it excludes no thread");
    until("it was throttled for a second", || regulator.reports()[0].regulation.periods >= 1_500);
    let report = regulator.reports().remove(0);
    assert!(report.let_run > 0, "some periods must be left to others");
    let share = report.regulation.throttled.0 as f64 / (now() - began).0 as f64;
    assert!(share < 0.95, "{share} of the time");
    drop(hog);
}

#[test]
fn a_lock_that_is_heeded_at_the_next_period_leaves_the_first_one_unhindered() {
    let _alone = alone();
    let place = Place::new("heed");
    let arbitration = create(&place);
    let cpu = last_cpu();
    let period = Nanos::from_millis(100);
    let options = Options { heed: LockHeed::Period, period, ..software(cpu) };
    let Some(regulator) = regulator(&arbitration, options) else { return };
    let client = arbitration.register("us", Base::Background).expect("there is room");
    // From the middle of a period on: the regulator is asleep, and waits for the next one.
    let into = now().0 % period.0;
    thread::sleep(Duration::from_nanos((period.0 * 3 / 2 - into) % period.0));
    let taken = now();
    let _section = client.lock_bandwidth(MB).expect("it excludes no thread");
    until("a period was regulated", || regulator.reports()[0].regulation.periods >= 1);
    assert!(now().0 / period.0 >= taken.0 / period.0 + 2, "that of the lock was not, and one was whole");
}

#[test]
fn what_cannot_be_regulated_is_refused_by_name() {
    let _alone = alone();
    let place = Place::new("refused");
    let arbitration = create(&place);
    let refused = |options: Options| Regulator::start(&arbitration, options).expect_err("it cannot be").to_string();
    let cpu = last_cpu();
    assert_eq!(refused(Options::new([])), "no CPU to regulate; name at least one");
    assert!(refused(software(4_000)).starts_with("CPU 4000 cannot be regulated: this process may use 0"));
    assert!(refused(Options { cpus: vec![cpu, cpu], ..software(cpu) }).contains("it is named twice"));
    let short = Options { period: Nanos(1), ..software(cpu) };
    assert_eq!(refused(short), "a period of 1 ns is outside 200 us to 100 ms; choose one within");
    for punishment in [-1.0, 1000.5] {
        let many = Options { punishment: Some(punishment), ..software(cpu) };
        let expected = format!("a punishment of {punishment} is outside 0 to 1000; choose one within");
        assert_eq!(refused(many), expected);
    }
    let Some(_first) = regulator(&arbitration, software(cpu)) else { return };
    let twice = Regulator::start(&arbitration, software(cpu)).expect_err("it is claimed");
    assert!(matches!(twice, BandwidthError::Claimed { .. }), "{twice}");
}

#[test]
fn a_machine_without_counters_refuses_to_count_by_hardware() {
    let _alone = alone();
    let place = Place::new("hardware");
    let arbitration = create(&place);
    let options = Options { counter: Counter::Hardware, ..Options::new([last_cpu()]) };
    match Regulator::start(&arbitration, options) {
        Ok(regulator) => assert!(regulator.reports()[0].failed.is_none()),
        Err(BandwidthError::NoCounter { reason, .. }) => {
            assert!(!reason.is_empty());
            laxity_testing::skip(format!("hardware counters: {reason}"));
        }
        Err(BandwidthError::RealTime { .. } | BandwidthError::SelfTest { .. }) => {}
        Err(error) => panic!("{error}"),
    }
}
