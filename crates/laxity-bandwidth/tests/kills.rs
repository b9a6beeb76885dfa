//! Regulators that are killed at any instruction, and holders that are stopped and killed at any: no CPU stays throttled, and no
//! program stays frozen.

mod support;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use laxity_bandwidth::{BandwidthError, Counter, Options, Regulator, Throttle};
use laxity_gpu::{Arbitration, Base, Registry};
use laxity_sys::fairness;
use laxity_testing::{Process, Random, role, until};
use support::{Hog, MB, Place, alone, create, last_cpu, regulator};

/// Not a test by itself: a regulator, which holds the lock, too; or one that takes the lock and frees it, over and over.
#[test]
fn child() {
    let Some((role, place)) = role() else { return };
    let arbitration = Registry::at(&place).attach("g").expect("it was created");
    if role == HOLDER {
        hold_and_free(&arbitration);
    }
    let throttle: Throttle = role.parse().expect("a way of throttling");
    let options = Options { counter: Counter::Software, throttle, ..Options::new([last_cpu()]) };
    let regulator = match Regulator::start(&arbitration, options) {
        Ok(regulator) => regulator,
        Err(error) => {
            fs::write(place.join("refused"), error.to_string()).expect("it is writable");
            return;
        }
    };
    let mut spinner = Command::new("sh");
    spinner.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
    regulator.place(&mut spinner).expect("there is a group if one is needed");
    // The parent ends it: this process is killed before it could wait for it.
    #[allow(clippy::zombie_processes)]
    let spinner = spinner.spawn().expect("a shell");
    let client = arbitration.register("us", Base::Background).expect("there is room");
    // Throttled from the first chunk of each period on.
    client.begin_bandwidth(MB).expect("it excludes no thread");
    fs::write(place.join("ready.new"), spinner.id().to_string()).expect("it is writable");
    fs::rename(place.join("ready.new"), place.join("ready")).expect("it is writable");
    loop {
        thread::park();
    }
}

const HOLDER: &str = "holder";

/// Sections that nest, and the operations of two streams.
fn hold_and_free(arbitration: &Arbitration) -> ! {
    let client = arbitration.register("them", Base::Background).expect("there is room");
    loop {
        let outer = client.lock_bandwidth(64 * MB).expect("it excludes no thread");
        client.launch_bandwidth(1, 32 * MB).expect("it is registered");
        drop(client.lock_bandwidth(16 * MB).expect("it nests"));
        client.launch_bandwidth(2, 48 * MB).expect("it is registered");
        drop(outer);
        client.synchronize_bandwidth(None).expect("it is registered");
    }
}

#[test]
fn some_stops_of_holders_leave_no_cpu_throttled() {
    stops(20);
}

/// `make test-kill`.
#[test]
#[ignore = "a minute"]
fn a_thousand_stops_of_holders_leave_no_cpu_throttled() {
    stops(1_000);
}

/// A holder that is stopped holds what it held; once it goes on it frees it, and if it is killed others do.
fn stops(count: u32) {
    let _alone = alone();
    let place = Place::new(&format!("stops-{count}"));
    let arbitration = create(&place);
    let cpu = last_cpu();
    let hog = Hog::start(&arbitration, cpu);
    let options = Options { counter: Counter::Software, throttle: Throttle::Occupier, ..Options::new([cpu]) };
    let Some(regulator) = regulator(&arbitration, options) else { return };
    let goes_on = |when: &str| {
        let before = hog.count();
        until(&format!("the hog goes on {when}"), || hog.count() > before + 20 * MB);
    };
    let mut random = Random::new();
    let mut held = 0;
    let mut holder = Process::start(&place, HOLDER);
    for turn in 0..count {
        until("it takes the lock", || arbitration.bandwidth_budget().is_some());
        thread::sleep(Duration::from_micros(random.below(400)));
        stop(holder.id());
        let budget = arbitration.bandwidth_budget();
        thread::sleep(Duration::from_micros(random.below(2_000)));
        assert_eq!(arbitration.bandwidth_budget(), budget, "a stopped holder neither takes nor frees");
        held += u32::from(budget.is_some());
        match turn % 10 {
            9 => {
                holder.kill();
                until("the lock is free", || arbitration.bandwidth_budget().is_none());
                goes_on("after the kill");
                holder = Process::start(&place, HOLDER);
            }
            _ if budget.is_none() => {
                goes_on("while the lock is free");
                signal(holder.id(), "CONT");
            }
            _ => signal(holder.id(), "CONT"),
        }
    }
    holder.kill();
    until("the lock is free", || arbitration.bandwidth_budget().is_none());
    goes_on("at the end");
    assert!(held > count / 10, "of {count} stops {held} hit a holder");
    let report = regulator.reports().remove(0);
    assert_eq!(report.failed, None);
    assert!(report.regulation.throttled_periods > 0, "the hog exceeded its budget while the lock was held");
}

fn signal(pid: u32, name: &str) {
    let kill = Command::new("kill").args(["-s", name, &pid.to_string()]).status();
    assert!(kill.expect("a program").success());
}

/// Stops the process, and waits until it stands still.
fn stop(pid: u32) {
    let is_stopped = || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it lives");
        stat.rsplit_once(')').expect("a name").1.trim_start().starts_with('T')
    };
    until("it stands still", || {
        // Again each time: Linux forgets one that comes while a process with other threads executes a program.
        signal(pid, "STOP");
        is_stopped()
    });
}

#[test]
fn some_kills_leave_no_cpu_throttled() {
    kills(4);
}

/// `make test-kill`.
#[test]
#[ignore = "minutes"]
fn a_thousand_kills_leave_no_cpu_throttled() {
    kills(1_000);
}

fn kills(count: u32) {
    let _alone = alone();
    let place = Place::new(&format!("kills-{count}"));
    let arbitration = create(&place);
    let cpu = last_cpu();
    let traffic = arbitration.traffic(cpu).expect("it is counted");
    let hog = Hog::start(&arbitration, cpu);
    let mut random = Random::new();
    let folder: &Path = place.as_ref();
    for turn in 0..count {
        let throttle = if turn % 2 == 0 { Throttle::Freezer } else { Throttle::Occupier };
        let ready = folder.join("ready");
        let _ = fs::remove_file(&ready);
        let mut process = Process::start(&place, throttle.name());
        let refused = folder.join("refused");
        until("it regulates or is refused", || ready.exists() || refused.exists());
        if let Ok(reason) = fs::read_to_string(&refused) {
            return laxity_testing::skip(reason);
        }
        let spinner: u32 = fs::read_to_string(&ready).expect("it was written").parse().expect("a number");
        let _spinner = Spinner(spinner);
        let throttled = || traffic.regulation().is_some_and(|sums| sums.throttled_periods > 0);
        until("the CPU is throttled", throttled);
        thread::sleep(Duration::from_micros(random.below(3_000)));
        process.kill();
        until("the lock is free", || arbitration.bandwidth_budget().is_none());
        let before = hog.count();
        until("the hog goes on", || hog.count() > before + 20 * MB);
        let ran = || fairness::usage(spinner).map(|usage| usage.ran);
        let before = ran().expect("it lives");
        until("what was frozen goes on", || ran().is_ok_and(|ran| ran > before));
        traffic.claim().expect("its regulator is gone");
        traffic.unclaim();
    }
}

/// A program that outlives its regulator; ended with this.
struct Spinner(u32);

impl Drop for Spinner {
    fn drop(&mut self) {
        let mut kill = Command::new("kill");
        let _ = kill.args(["-9", &self.0.to_string()]).status();
    }
}

/// Without a watchdog nothing is frozen: a kill of the regulator would leave it so.
#[test]
fn a_regulator_whose_watchdog_was_killed_freezes_nothing_any_more() {
    let _alone = alone();
    let place = Place::new("watchdog");
    let arbitration = create(&place);
    let cpu = last_cpu();
    let options = Options { counter: Counter::Software, throttle: Throttle::Freezer, ..Options::new([cpu]) };
    let regulator = match Regulator::start(&arbitration, options) {
        Ok(regulator) => regulator,
        Err(error @ (BandwidthError::RealTime { .. } | BandwidthError::NoGroups | BandwidthError::Group { .. })) => {
            return laxity_testing::skip(error);
        }
        Err(error) => panic!("{error}"),
    };
    let _hog = Hog::start(&arbitration, cpu);
    let client = arbitration.register("us", Base::Background).expect("there is room");
    let _section = client.lock_bandwidth(MB).expect("it excludes no thread");
    until("it freezes", || regulator.reports()[0].regulation.throttled_periods > 0);
    for watchdog in shells_of(std::process::id()) {
        drop(Spinner(watchdog));
    }
    until("it ends", || regulator.reports()[0].failed.is_some());
    let failed = regulator.reports().remove(0).failed.expect("it ended");
    assert!(failed.contains("watchdog"), "{failed}");
}

/// The watchdogs that this process started.
fn shells_of(parent: u32) -> Vec<u32> {
    let is_watchdog = |pid: u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let parents = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse::<u32>().ok());
        let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        parents == Some(parent) && String::from_utf8_lossy(&command).contains("cgroup.freeze")
    };
    let processes = fs::read_dir("/proc").expect("it is mounted").flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_string_lossy().parse().ok());
    pids.filter(|&pid| is_watchdog(pid)).collect()
}
