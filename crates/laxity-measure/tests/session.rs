//! Measuring on the machine that the tests run on. The costs are the machine's: the tests ask only that they are
//! possible, and that nothing is missing.

use std::sync::{Mutex, PoisonError};

use laxity_measure::{MeasureError, Options, Probe, Session};
use laxity_model::{Measurement, Nanos, Statistic};

/// Two at a time would measure each other.
static ALONE: Mutex<()> = Mutex::new(());

fn measured(options: &Options) -> Measurement {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut session = Session::new(options.clone()).expect("CPUs that this process may use");
    let mut names = Vec::new();
    while !session.is_over() {
        names.push(session.next().to_string());
        session.step().expect("a thread may be kept on its CPU");
    }
    let all = Probe::all(options.cpus.len(), options.working_set);
    let expected: Vec<String> = all.iter().map(Probe::to_string).collect();
    assert!(names.starts_with(&expected), "each is measured in turn, however short the time: {names:?}");
    session.finish()
}

#[test]
fn a_few_rounds_have_samples_of_everything_and_a_file_has_them_all() {
    let options = Options { duration: Nanos::from_millis(1_500), ..Options::new().expect("CPUs") };
    let measurement = measured(&options);
    for probe in Probe::all(options.cpus.len(), options.working_set) {
        // A CPU may be free of interrupts; and under SCHED_OTHER no thread need be switched to or handed a lock.
        let may_be_missing =
            probe == Probe::Interruption || measurement.machine.scheduler == "SCHED_OTHER" || options.cpus.len() < 2;
        let Some(found) = measurement.quantity(&probe.to_string()) else {
            assert!(may_be_missing, "{probe} has no sample");
            continue;
        };
        assert!(found.count > 0, "{probe}");
        assert!([found.min, found.median, found.p99, found.p999, found.max].is_sorted(), "{found:?}");
        assert!((found.min..=found.max).contains(&found.mean), "{found:?}");
    }
    let read = Measurement::from_text(&measurement.to_toml(), "profile.toml").expect("it is written as it is read");
    assert_eq!(read, measurement);
    let (worst, average) = (measurement.profile(Statistic::Worst).at(9), measurement.profile(Statistic::Average).at(9));
    assert!(worst.scheduling >= average.scheduling && worst.release >= average.release, "{worst:?} {average:?}");
    assert!(worst.scheduling > Nanos::ZERO, "nothing is for free");
}

#[test]
fn one_cpu_is_measured_without_what_takes_two() {
    let mut options = Options { duration: Nanos(1), ..Options::new().expect("CPUs") };
    options.cpus.truncate(1);
    let measurement = measured(&options);
    assert_eq!(measurement.machine.cpus.len(), 1);
    assert!(measurement.quantities.iter().all(|quantity| !quantity.name.contains("cross")));
    assert_eq!(measurement.worst.at(1).ipi_latency, Nanos::ZERO);
}

#[test]
fn what_cannot_be_measured_is_refused_with_the_way_out() {
    let options = Options::new().expect("CPUs");
    let refused = |options: Options| match Session::new(options) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("it is not refused"),
    };
    assert_eq!(refused(Options { cpus: vec![], ..options.clone() }), MeasureError::NoCpu.to_string());
    assert!(
        refused(Options { cpus: vec![100_000], ..options.clone() }).starts_with("CPU 100000: this process may use ")
    );
    let twice = vec![options.cpus[0]; 2];
    assert!(refused(Options { cpus: twice, ..options.clone() }).ends_with("is named twice; remove one"));
    assert!(refused(Options { working_set: 1, ..options }).contains("1 B is outside 4096 B to 67108864 B"));
}
