//! Overhead accounting against worked examples and an independent toolkit.

mod common;

use common::{array, boolean, fraction, fractions, integer, lines, vectors};
use laxity_analysis::overheads::{
    Beyond, ExactCosts, InterruptLag, OverheadError, QuantumInterrupts, QuantumTiming, System, Windows, interpolate,
    preemption_centric, preemption_centric_exact, quantum, task_centric,
};
use laxity_analysis::{AnalysisTask, Rational, rational};
use laxity_model::{Nanos, OverheadCosts, OverheadTable, Quanta, ReleaseInterrupts};
use serde_json::Value;

/// Knots `[n, "microseconds"]` as a table.
fn table(points: &Value) -> OverheadTable {
    let picos = |value: &Value| {
        let picos = fraction(value) * rational(1_000_000, 1);
        u64::try_from(picos.to_integer()).expect("not negative")
    };
    OverheadTable::Points(array(points).iter().map(|knot| (integer(&knot[0]) as u32, picos(&knot[1]))).collect())
}

#[test]
fn tables_interpolate_exactly_at_knots_between_and_beyond_them() {
    for case in array(&vectors()["overheads_rtss09"]["interpolation"]) {
        let table = table(&case["points_us"]);
        let at = |n, left| interpolate(&table, n, left, Beyond::Extrapolate) / rational(1_000_000, 1);
        let knots = array(&case["points_us"]).iter().map(|knot| at(integer(&knot[0]), Beyond::Hold));
        assert_eq!(knots.collect::<Vec<_>>(), fractions(&case["monotone_us"]));
        for (n, expected) in case["at"].as_object().expect("an object") {
            let n: u64 = n.parse().expect("a number of tasks");
            assert_eq!(at(n, Beyond::Hold), fraction(&expected["hold_extrap"]), "{n} tasks, {}", case["kind"]);
            assert_eq!(at(n, Beyond::Extrapolate), fraction(&expected["extrap_extrap"]), "{n}, {}", case["kind"]);
            // The model's own table is this one, rounded up to the nanosecond.
            let nanos = (at(n, Beyond::Hold) * rational(1_000, 1)).ceil();
            assert_eq!(rational(table.at(n as usize).0, 1), nanos, "{n} tasks, {}", case["kind"]);
        }
    }
}

/// The two sets of the accounting examples, by name.
fn worked_set(name: &str) -> Vec<AnalysisTask> {
    let group = |count, wcet_ms: u64, period_ms: u64| {
        vec![AnalysisTask::implicit(wcet_ms * 1_000_000, period_ms * 1_000_000); count]
    };
    match name {
        "50x(2ms,20ms)" => group(50, 2, 20),
        "30x(1,10)+20x(3,33)+10x(10,100)ms" => [group(30, 1, 10), group(20, 3, 33), group(10, 10, 100)].concat(),
        other => panic!("unknown set {other}"),
    }
}

fn worked_system(case: &Value) -> System {
    let cost = |name: &str| Nanos(integer(&case["overheads_ns"][name]));
    let dedicated = case["plugin"].as_str().is_some_and(|name| name.ends_with('1'));
    System {
        cpus: integer(&case["m"]) as u32,
        interrupts: if dedicated { ReleaseInterrupts::Dedicated } else { ReleaseInterrupts::Global },
        costs: OverheadCosts {
            release: cost("release"),
            scheduling: cost("sched"),
            context_switch: cost("cxs"),
            ipi_latency: cost("ipi"),
            tick: cost("tick"),
            timer_rearming: cost("timer"),
            ..OverheadCosts::default()
        },
        quantum: Nanos::from_millis(1),
        event_latency: Nanos::ZERO,
    }
}

fn assert_tasks(expected: &Value, tasks: &[AnalysisTask], what: &str) {
    for (index, values) in expected.as_object().expect("tasks by index") {
        let task = &tasks[index.parse::<usize>().expect("an index")];
        let values = array(values);
        let last = [values.len() - 3, values.len() - 2, values.len() - 1].map(|i| integer(&values[i]));
        assert_eq!([task.wcet, task.period, task.deadline], last, "{what} of task {index}");
    }
}

#[test]
fn the_plugins_of_paper_002_inflate_the_worked_sets_as_expected() {
    let vectors = vectors();
    let cases = array(&vectors["overheads_rtss09"]["accounting"]["cases"]);
    assert_eq!(cases.len(), 18);
    for case in cases {
        let (system, tasks) = (worked_system(case), worked_set(case["set"].as_str().expect("a name")));
        assert_eq!(u64::from(system.capacity().expect("a cpu is left")), integer(&case["capacity"]));
        if let Some(expected) = case.get("task_centric") {
            let inflated = task_centric(&system, &tasks, Windows::Deadlines, InterruptLag::None, false).expect("fits");
            assert_tasks(expected, &inflated.tasks, "task-centric");
            let utilization = inflated.task_set().expect("in range").utilization();
            assert_eq!(utilization, fraction(&case["U_task_centric"]));
            for ((before, after), charges) in tasks.iter().zip(&inflated.tasks).zip(&inflated.charges) {
                assert_eq!(Some(after.wcet - before.wcet), charges.total(), "the charges add up");
            }
        }
        if let Some(expected) = case.get("preemption_centric") {
            let inflated = preemption_centric(&system, &tasks).expect("fits");
            assert_tasks(expected, &inflated.tasks, "preemption-centric");
        }
        let quanta = if case["quanta"] == "aligned" { Quanta::Aligned } else { Quanta::Staggered };
        for (key, timing) in [("quantum_paper", QuantumTiming::Hard), ("quantum_tight", QuantumTiming::HardTight)] {
            let Some(expected) = case.get(key) else { continue };
            let interrupts = QuantumInterrupts::TaskCentric(InterruptLag::None);
            let inflated = quantum(&system, &tasks, Windows::Deadlines, quanta, timing, interrupts, 32).expect("fits");
            assert_tasks(expected, &inflated.tasks, key);
            for ((before, after), charges) in tasks.iter().zip(&inflated.tasks).zip(&inflated.charges) {
                assert_eq!(after.wcet % 1_000_000, 0, "whole quanta");
                assert_eq!(Some(after.wcet - before.wcet), charges.total(), "the charges add up");
            }
        }
    }
}

#[test]
fn no_overhead_means_no_inflation() {
    let tasks = worked_set("30x(1,10)+20x(3,33)+10x(10,100)ms");
    for interrupts in [ReleaseInterrupts::Global, ReleaseInterrupts::Dedicated] {
        let costs = OverheadCosts::default();
        let quantum = Nanos::from_millis(1);
        let system = System { cpus: 8, interrupts, costs, quantum, event_latency: Nanos::ZERO };
        let by_task = task_centric(&system, &tasks, Windows::Deadlines, InterruptLag::BusyPeriod, true).expect("fits");
        assert_eq!(by_task.tasks, tasks);
        assert_eq!(preemption_centric(&system, &tasks).expect("fits").tasks, tasks);
    }
}

#[test]
fn an_overloaded_interrupt_cpu_is_refused() {
    let costs = OverheadCosts { release: Nanos::from_millis(1), ..OverheadCosts::default() };
    let interrupts = ReleaseInterrupts::Dedicated;
    let system = System { cpus: 4, interrupts, costs, quantum: Nanos::from_millis(1), event_latency: Nanos::ZERO };
    let tasks = vec![AnalysisTask::implicit(1_000, 10_000_000); 10];
    let result = task_centric(&system, &tasks, Windows::Deadlines, InterruptLag::None, false);
    assert_eq!(result, Err(OverheadError::InterruptCpuOverloaded));
    assert_eq!(preemption_centric(&system, &tasks), Err(OverheadError::InterruptCpuOverloaded));
}

/// A table of the toolkit, in microseconds, evaluated as it does: extrapolated on both sides, not below 0.
fn oracle_value(overhead: &Value, n: u64) -> Rational {
    if let Some(constant) = overhead.get("const") {
        return decimal(constant);
    }
    let picos = |value: &Value| {
        let picos = decimal(value) * rational(1_000_000, 1);
        u64::try_from(picos.to_integer()).expect("not negative")
    };
    let points = array(&overhead["points"]);
    let table = OverheadTable::Points(points.iter().map(|p| (integer(&p[0]) as u32, picos(&p[1]))).collect());
    interpolate(&table, n, Beyond::Extrapolate, Beyond::Extrapolate) / rational(1_000_000, 1)
}

/// A JSON number as the fraction its digits say.
fn decimal(value: &Value) -> Rational {
    common::parse_fraction(&value.to_string())
}

fn assert_close(ours: &Rational, theirs: &Value, what: &str) {
    let theirs = theirs.as_f64().map(|value| Rational::from_float(value).expect("finite")).expect("a number");
    let zero = rational(0, 1);
    let difference = ours - &theirs;
    let difference = if difference < zero { -difference } else { difference };
    let size = if theirs < zero { -theirs } else { theirs };
    assert!(difference <= size * rational(1, 1_000_000_000_000u64), "{what}: {ours}");
}

#[test]
fn preemption_centric_accounting_agrees_with_the_toolkit_to_twelve_digits() {
    let (mut inflated, mut refused, mut quantized) = (0, 0, 0);
    for case in lines(include_bytes!("data/gedf_overheads.jsonl.gz")) {
        let (overheads, result, n) = (&case["overheads"], &case["result"], integer(&case["n"]));
        let value = |name: &str| oracle_value(&overheads[name], n);
        let task = |task: &Value| {
            AnalysisTask::new(integer(&task["cost"]), integer(&task["period"]), integer(&task["deadline"]))
        };
        let tasks: Vec<AnalysisTask> = array(&case["tasks"]).iter().map(task).collect();
        let by_working_set = |name: &str| {
            let at = |task: &Value| oracle_value(&overheads[name], integer(&task["wss"]));
            array(&case["tasks"]).iter().map(at).collect()
        };
        let costs = ExactCosts {
            release: value("release"),
            scheduling: value("schedule"),
            context_switch: value("ctx_switch"),
            ipi_latency: value("ipi_latency"),
            tick: value("tick"),
            event_latency: value("release_latency"),
            quantum: decimal(&overheads["quantum_length"]),
            cache_delays: by_working_set("cache_affinity_loss"),
            initial_loads: by_working_set("initial_cache_load"),
            early_releasing: array(&case["tasks"]).iter().map(|task| task["early_releasing"] == true).collect(),
        };
        let cpus = integer(&case["m"]) as u32;
        let ours = preemption_centric_exact(&costs, &tasks, cpus, boolean(&case["dedicated_irq"]));
        let failed = result["failed"].as_str();
        if matches!(failed, Some("uscale==0" | "irq_overload")) {
            assert_eq!(ours, Err(OverheadError::NoCapacity), "{}", case["id"]);
            refused += 1;
            continue;
        }
        let ours = ours.unwrap_or_else(|error| panic!("{}: {error}", case["id"]));
        if failed == Some("initial_load") {
            // It gives up before it accounts for interrupts: a job does not even fit with its working set loaded.
            refused += 1;
            continue;
        }
        assert_close(&ours.left, &result["uscale"], &format!("{} share left", case["id"]));
        assert_close(&ours.preemption, &result["cpre"], &format!("{} c_pre", case["id"]));
        if let Some(expected) = result["inflated"].as_array() {
            for (index, (ours, theirs)) in ours.tasks.iter().zip(expected).enumerate() {
                for (part, value) in ours.iter().enumerate() {
                    assert_close(value, &theirs[part], &format!("{} task {index} part {part}", case["id"]));
                }
            }
            inflated += 1;
        }
        if let Some(expected) = result["quantized"].as_array() {
            let expected: Vec<AnalysisTask> = expected.iter().map(common::task).collect();
            assert_eq!(ours.rounded(), Some(expected), "{}", case["id"]);
            quantized += 1;
        }
    }
    assert_eq!((inflated, refused, quantized), (466, 23, 460));
}
