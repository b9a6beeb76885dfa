//! `laxity bandwidth`: budgets of memory traffic, live.

use std::fs;

use laxity_gpu::{Base, Config, Registry};
use laxity_sys::scheduling;
use laxity_testing::{Alone, Directory, Late, on_a_calm_machine};

use crate::support::run;

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Where Linux permits no regulator, the test is skipped by the reason that the command gives.
fn is_refused(code: i32, err: &str) -> bool {
    let is_refused = code == 1 && err.contains("SCHED_FIFO");
    if is_refused {
        laxity_testing::skip(err);
    }
    is_refused
}

#[test]
fn status_says_what_the_machine_offers_and_which_threads_hold_the_lock() {
    let place = Directory::new("bandwidth-status");
    let folder = place.path().display().to_string();
    let registry = Registry::at(place.path());
    let arbitration = registry.create("car", &Config::new(2, 1)).expect("the name is free");
    let client = arbitration.register("detector", Base::Background).expect("there is room");
    let _section = client.lock_bandwidth(64_000_000).expect("it excludes no thread");
    let (code, out, err) = run(["bandwidth", "status", "--folder", &folder]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.contains("car: the bandwidth lock is held by detector") && out.contains("64.0 MB/s"), "{out}");
    let (code, out, _) = run(["bandwidth", "status", "car", "--json", "--folder", &folder]);
    let status = json(&out);
    assert_eq!(code, 0);
    assert_eq!(status["arbitrations"][0]["budget"], 64_000_000);
    assert_eq!(status["arbitrations"][0]["holders"][0]["name"], "detector");
    let offered = ["real_time", "freezer", "hardware_counter"].iter().filter(|part| status["machine"][part] == true);
    let missing = status["machine"]["missing"].as_array().expect("a list").len();
    assert_eq!(offered.count() + missing, 3, "each is offered, or its reason said: {out}");
    let (code, _, err) = run(["bandwidth", "status", "cat", "--folder", &folder]);
    assert_eq!(code, 2);
    assert!(err.contains("did you mean `car`?"), "{err}");
    let (code, out, _) = run(["bandwidth", "top", "--once", "--json", "--folder", &folder]);
    assert_eq!((code, &json(&out)["arbitration"]), (0, &serde_json::Value::from("car")));
}

#[test]
fn a_program_holds_the_lock_for_as_long_as_it_runs() {
    let place = Directory::new("bandwidth-lock");
    let folder = place.path().display().to_string();
    let out = place.path().join("seen");
    let laxity = assert_cmd::cargo::cargo_bin!("laxity").display().to_string();
    let look = format!("{laxity} bandwidth top car --once --json --folder {folder} > {}", out.display());
    let locked = ["bandwidth", "lock", "car", "--budget", "32 MB/s", "--folder", &folder, "--", "sh", "-c", &look];
    let (code, _, err) = run(locked);
    assert_eq!((code, err.as_str()), (0, ""));
    let seen = json(&fs::read_to_string(&out).expect("the program wrote it"));
    assert_eq!(seen["budget"], 32_000_000);
    assert_eq!(
        Registry::at(place.path()).names().expect("readable"),
        Vec::<String>::new(),
        "it ended with its process"
    );
    let (code, _, err) = run(["bandwidth", "lock", "car", "--budget", "1 MB/s", "--folder", &folder, "--", "false"]);
    assert_eq!(code, 1);
    assert!(err.contains("false ended with exit code 1"), "{err}");
    let (code, _, err) = run(["bandwidth", "lock", "car", "--budget", "0 B/s", "--folder", &folder, "--", "true"]);
    assert_eq!(code, 2);
    assert!(err.contains("a budget of nothing"), "{err}");
}

/// Where Linux holds back real-time threads that had a CPU for 950 ms of a second, the hog has 50 ms in which no regulator runs: other
/// tests must not be such threads.
#[test]
fn a_hog_is_regulated_while_the_lock_is_held() {
    let _alone = Alone::with_the_scheduler();
    let place = Directory::new("bandwidth-regulate");
    let folder = place.path().display().to_string();
    let registry = Registry::at(place.path());
    let arbitration = registry.create("car", &Config::new(2, 1)).expect("the name is free");
    let client = arbitration.register("detector", Base::Background).expect("there is room");
    let _section = client.lock_bandwidth(100_000_000).expect("it excludes no thread");
    let cpu = scheduling::usable_cpus().expect("Linux says which").last().expect("one").to_string();
    let laxity = assert_cmd::cargo::cargo_bin!("laxity").display().to_string();
    let hog = [laxity.as_str(), "bandwidth", "hog", "--for", "1s"];
    let regulate =
        ["bandwidth", "regulate", "car", "--cpus", &cpu, "--counter", "software", "--json", "--folder", &folder];
    let words: Vec<&str> = regulate.into_iter().chain(["--"]).chain(hog).collect();
    on_a_calm_machine(|| {
        let (code, out, err) = run(&words);
        if is_refused(code, &err) {
            return Ok(());
        }
        assert_eq!(code, 0, "{err}");
        // The hog's own line comes before the JSON.
        let text = out.find('{').map(|start| &out[start..]).expect("JSON");
        let report = &json(text)["cpus"][0];
        assert!(report["throttled_periods"].as_u64().expect("a number") > 0, "{out}");
        let bytes = |field: &str| report[field].as_u64().expect("a number");
        if bytes("bytes") <= bytes("allowed_bytes") * 3 / 2 { Ok(()) } else { Err(Late::from(out)) }
    });
    assert_eq!(arbitration.traffic(cpu.parse().expect("a number")).expect("counted").regulation(), None);
}

#[test]
fn a_hog_ends_after_the_traffic_that_it_is_asked_for() {
    let (code, out, err) = run(["bandwidth", "hog", "--bytes", "64 MB"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let rate = out.split(" in ").next().and_then(|rate| laxity_model::parse_rate(rate).ok()).expect("a rate");
    let seconds: f64 = out.split(" in ").nth(1).and_then(|rest| rest.split(' ').next()?.parse().ok()).expect("a time");
    // The time is printed to a millisecond.
    let (least, most) = (rate as f64 * (seconds - 0.001), rate as f64 * (seconds + 0.001));
    assert!(most >= 64e6 && least <= 128e6, "64 MB, and what is left of the chunks at the end: {out}");
    let (code, _, err) = run(["bandwidth", "hog", "--bytes", "much"]);
    assert_eq!(code, 2);
    assert!(err.contains("much"), "{err}");
}

#[test]
fn a_hog_has_a_cpu_for_no_longer_than_it_takes() {
    let (code, out, err) = run(["bandwidth", "hog", "--for", "10ms"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let second = |text: &str| text.split(' ').next().and_then(|number| number.parse::<f64>().ok()).expect("seconds");
    let (elapsed, cpu) = out.split_once(" s, ").expect("two times");
    let elapsed = second(elapsed.split(" in ").nth(1).expect("a time"));
    assert!(second(cpu) <= elapsed, "the time of its set-up is not counted: {out}");
}

#[test]
fn a_regulator_whose_lock_was_never_held_is_one_of_this_process_all_the_same() {
    let _alone = Alone::with_the_scheduler();
    let place = Directory::new("bandwidth-idle");
    let folder = place.path().display().to_string();
    let cpu = scheduling::usable_cpus().expect("Linux says which").last().expect("one").to_string();
    let words = [
        "bandwidth",
        "regulate",
        "car",
        "--cpus",
        &cpu,
        "--counter",
        "software",
        "--json",
        "--period",
        "2ms",
        "--folder",
    ];
    let (code, out, err) = run(words.into_iter().chain([folder.as_str(), "--", "true"]));
    if is_refused(code, &err) {
        return;
    }
    let report = &json(&out)["cpus"][0];
    assert_eq!(report["periods"], 0);
    assert_eq!(report["period_ns"], 2_000_000);
    assert!(report["pid"].as_u64().expect("a number") > 0, "{out}");
}

#[test]
fn what_cannot_be_regulated_is_bad_usage_or_refused_with_the_reason() {
    let place = Directory::new("bandwidth-refused");
    let folder = place.path().display().to_string();
    let regulate = |options: &[&str]| {
        let (code, _, err) = run(["bandwidth", "regulate", "car", "--folder", &folder]
            .into_iter()
            .chain(options.iter().copied())
            .chain(["--", "true"]));
        (code, err)
    };
    let (code, err) = regulate(&["--cpus", "255", "--counter", "software"]);
    assert_eq!(code, 2);
    assert!(err.contains("CPU 255 cannot be regulated"), "{err}");
    let (code, err) = regulate(&["--cpus", "0", "--period", "1s", "--counter", "software"]);
    assert_eq!(code, 2);
    assert!(err.contains("a period of 1 s is outside"), "{err}");
    let (code, err) = regulate(&["--cpus", "0", "--counter", "guess"]);
    assert_eq!(code, 2);
    assert!(err.contains("write auto, software or hardware"), "{err}");
}

#[test]
fn a_curve_of_contention_begins_with_no_traffic() {
    let usable = scheduling::usable_cpus().expect("Linux says which");
    let &[first, second, ..] = &usable[..] else { return laxity_testing::skip("one CPU has no interference") };
    let cpus = format!("{first},{second}");
    let (code, out, err) = run(["measure", "--memory", "--for", "1ms", "--cpus", &cpus, "--json"]);
    if code == 1 && err.contains("disturbed") {
        return laxity_testing::skip(err);
    }
    assert_eq!(code, 0, "{err}");
    let curve = json(&out)["contention"].as_array().expect("a list").clone();
    assert_eq!(curve[0], serde_json::json!([0, 1.0]));
    assert!(curve.windows(2).all(|pair| pair[0][1].as_f64() <= pair[1][1].as_f64()), "{out}");
    let (code, _, err) = run(["measure", "--memory", "--cpus", &first.to_string()]);
    assert_eq!(code, 2);
    assert!(err.contains("interference takes two CPUs"), "{err}");
}
