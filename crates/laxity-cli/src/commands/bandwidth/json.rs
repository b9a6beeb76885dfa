//! Bandwidth as JSON. The fields are described in `docs/reference/json.md` and are stable.

use laxity_bandwidth::{Machine, Report, Trial};
use laxity_gpu::{Arbitration, Regulation, TRAFFIC_CPUS};
use laxity_model::Nanos;
use serde::Serialize;

use crate::commands::named::pretty;

#[derive(Serialize)]
struct Reports<'a> {
    laxity: &'static str,
    arbitration: &'a str,
    cpus: Vec<Cpu>,
}

/// A regulated CPU. Rates are bytes a second.
#[derive(Serialize)]
pub struct Cpu {
    cpu: usize,
    pid: u32,
    period_ns: u64,
    /// Nothing while the CPU is not regulated.
    budget: Option<u64>,
    periods: u64,
    throttled_periods: u64,
    throttled_ns: u64,
    bytes: u64,
    allowed_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    let_run: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    excess_bytes_max: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_ns_p50: Option<u64>,
}

impl Cpu {
    /// What the regulator of `cpu` publishes.
    pub fn of(cpu: usize, sums: &Regulation) -> Cpu {
        Cpu {
            cpu,
            pid: sums.pid,
            period_ns: sums.period.0,
            budget: Some(sums.budget).filter(|&budget| budget > 0),
            periods: sums.periods,
            throttled_periods: sums.throttled_periods,
            throttled_ns: sums.throttled.0,
            bytes: sums.bytes,
            allowed_bytes: sums.allowed,
            let_run: None,
            excess_bytes_max: None,
            stop_ns_p50: None,
        }
    }
}

/// What regulators of this process did, with periods of that length: they publish it only once the lock was held.
pub fn reports(name: &str, reports: &[Report], period: Nanos) -> String {
    let cpu = |report: &Report| {
        let mut stops: Vec<u64> = report.stops.iter().map(|stop| stop.0).collect();
        stops.sort_unstable();
        Cpu {
            pid: std::process::id(),
            period_ns: period.0,
            let_run: Some(report.let_run),
            excess_bytes_max: Some(report.excess),
            stop_ns_p50: stops.get(stops.len() / 2).copied(),
            ..Cpu::of(report.cpu, &report.regulation)
        }
    };
    let cpus = reports.iter().map(cpu).collect();
    pretty(&Reports { laxity: env!("CARGO_PKG_VERSION"), arbitration: name, cpus })
}

/// The lock and the regulated CPUs of an arbitration.
#[derive(Serialize)]
pub struct State {
    arbitration: String,
    /// The least budget of the holders; nothing while the lock is free.
    budget: Option<u64>,
    holders: Vec<Holder>,
    cpus: Vec<Cpu>,
}

#[derive(Serialize)]
struct Holder {
    name: String,
    pid: u32,
    thread: u32,
    budget: u64,
}

impl State {
    /// What holders and regulators are there now.
    ///
    /// # Errors
    /// If the memory is damaged.
    pub fn of(name: &str, arbitration: &Arbitration) -> Result<State, laxity_gpu::StateError> {
        let snapshot = arbitration.snapshot()?;
        let holders = snapshot.clients.iter().filter_map(|client| {
            let budget = client.bandwidth?;
            Some(Holder { name: client.name.clone(), pid: client.pid, thread: client.thread, budget })
        });
        Ok(State {
            arbitration: name.to_owned(),
            budget: arbitration.bandwidth_budget(),
            holders: holders.collect(),
            cpus: regulated(arbitration).iter().map(|(cpu, sums)| Cpu::of(*cpu, sums)).collect(),
        })
    }
}

/// The CPUs that have regulators.
pub fn regulated(arbitration: &Arbitration) -> Vec<(usize, Regulation)> {
    (0..TRAFFIC_CPUS).filter_map(|cpu| Some((cpu, arbitration.traffic(cpu)?.regulation()?))).collect()
}

#[derive(Serialize)]
struct Status<'a> {
    laxity: &'static str,
    machine: Offer<'a>,
    arbitrations: Vec<State>,
}

#[derive(Serialize)]
struct Offer<'a> {
    cpus: &'a [usize],
    real_time: bool,
    freezer: bool,
    hardware_counter: bool,
    missing: Vec<&'a str>,
}

/// What the machine offers, and what is locked and regulated.
pub fn status(machine: &Machine, arbitrations: Vec<State>) -> String {
    let parts = [&machine.real_time, &machine.freezer, &machine.hardware_counter];
    let missing = parts.iter().filter_map(|part| part.as_ref().err().map(String::as_str)).collect();
    let machine = Offer {
        cpus: &machine.cpus,
        real_time: machine.real_time.is_ok(),
        freezer: machine.freezer.is_ok(),
        hardware_counter: machine.hardware_counter.is_ok(),
        missing,
    };
    pretty(&Status { laxity: env!("CARGO_PKG_VERSION"), machine, arbitrations })
}

/// A line of `laxity bandwidth top --json`.
pub fn line(state: &State) -> String {
    serde_json::to_string(state).expect("numbers and texts are JSON")
}

#[derive(Serialize)]
struct Threshold<'a> {
    laxity: &'static str,
    program: &'a [String],
    /// Bytes a second for each CPU; nothing if none protects the program, or none is needed.
    threshold: Option<u64>,
    unprotected_slowdown: f64,
    slowdown_max: f64,
    hog_rate: u64,
    trials: Vec<JsonTrial>,
}

#[derive(Serialize)]
struct JsonTrial {
    budget: u64,
    slowdown: f64,
}

/// What a search found.
pub fn threshold(
    program: &[String],
    threshold: Option<u64>,
    unprotected_slowdown: f64,
    slowdown_max: f64,
    hog_rate: u64,
    trials: &[Trial],
) -> String {
    let trials = trials.iter().map(|&Trial { budget, slowdown }| JsonTrial { budget, slowdown }).collect();
    let laxity = env!("CARGO_PKG_VERSION");
    pretty(&Threshold { laxity, program, threshold, unprotected_slowdown, slowdown_max, hog_rate, trials })
}
