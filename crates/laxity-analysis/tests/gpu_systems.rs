//! BWLOCK++, PGM graphs and GPUSync against worked examples.

mod common;

use common::{array, boolean, fraction, fractions, integer, integers, vectors};
use laxity_analysis::bwlock::{BwlockError, BwlockTask, SliceKind, TfsTask, response_times, schedule};
use laxity_analysis::gpusync::{
    EngineCompetitor, GpuSyncError, TokenConfiguration, engine_blocking_fifo, engine_blocking_priority, token_hold,
};
use laxity_analysis::pgm::{
    EndToEndError, RateError, TokenEdge, TokenGraph, end_to_end, rates, replicas, shift, sporadic_source_offset,
};
use laxity_analysis::{Limits, Rational, rational};
use serde_json::Value;

fn bwlock_task(value: &Value) -> BwlockTask {
    let segments = array(&value["segs"]).iter().map(|segment| integer(&segment[1])).collect();
    BwlockTask { cpu: integer(&value["C"]), segments, period: integer(&value["P"]), suspends: false }
}

#[test]
fn bandwidth_locked_tasks_get_the_worked_response_times() {
    let vectors = vectors();
    for (key, syscall) in [("rta", 0), ("rta_syscall", 1_840)] {
        let case = &vectors["bwlock"][key];
        let tasks: Vec<BwlockTask> = array(&case["tasks"]).iter().map(bwlock_task).collect();
        let bounds = response_times(&tasks, syscall, &Limits::default()).expect("applies");
        for (bound, expected) in bounds.iter().zip(array(&case["result"])) {
            assert_eq!(bound.execution, integer(&expected["E"]));
            assert_eq!(bound.blocking, integer(&expected["B"]));
            assert!(boolean(&expected["ok"]));
            assert_eq!(bound.response_time, Some(integer(&expected["R"])));
        }
    }
}

#[test]
fn suspending_gpu_work_is_refused_by_the_bandwidth_lock_analysis() {
    let tasks = [BwlockTask { cpu: 1, segments: vec![2], period: 10, suspends: true }];
    assert_eq!(response_times(&tasks, 0, &Limits::default()), Err(BwlockError::Suspends { task: 0 }));
}

#[test]
fn the_throttle_fair_scheduler_gives_the_schedules_of_figure_4() {
    for case in array(&vectors()["bwlock"]["tfs"]) {
        let budget = |task: &Value| (!task["budget"].is_null()).then(|| fraction(&task["budget"]));
        let tasks: Vec<TfsTask> = array(&case["tasks"])
            .iter()
            .map(|task| TfsTask { work: fraction(&task["work"]), weight: 1, budget: budget(task) })
            .collect();
        let names: Vec<&str> = array(&case["tasks"]).iter().filter_map(|task| task["name"].as_str()).collect();
        let (rho, period, until) = (fraction(&case["rho"]), fraction(&case["period"]), fraction(&case["rt_until"]));
        let result = schedule(&tasks, &rho, &period, &until, 100).expect("finite");
        let expected = array(&case["log"]);
        assert_eq!(result.slices.len(), expected.len(), "rho {rho}");
        for (slice, expected) in result.slices.iter().zip(expected) {
            assert_eq!([&slice.start, &slice.end], [&fraction(&expected[0]), &fraction(&expected[1])], "rho {rho}");
            assert_eq!(names[slice.task], expected[2]);
            assert_eq!(slice.kind == SliceKind::Run, expected[3] == "run");
        }
        for ((instant, times), expected) in result.virtual_times.iter().zip(array(&case["vruntime"])) {
            assert_eq!(*instant, fraction(&expected[0]));
            for (name, time) in names.iter().zip(times) {
                assert_eq!(*time, fraction(&expected[1][name]), "rho {rho}, {name} at {instant}");
            }
        }
        assert_eq!(result.throttled(), fraction(&case["throttled"]));
        for (index, name) in names.iter().enumerate() {
            assert_eq!(result.finish[index], fraction(&case["finish"][name]));
            assert_eq!(result.lost[index], fraction(&case["lost_vruntime"][name]));
        }
    }
}

fn graph(case: &Value) -> (TokenGraph, Vec<String>) {
    let names: Vec<String> = array(&case["nodes"]).iter().map(|n| n.as_str().expect("a name").to_owned()).collect();
    let node = |name: &Value| names.iter().position(|known| name == known).expect("a known node");
    let edge = |edge: &Value| {
        let (producer, consumer) = (node(&edge["src"]), node(&edge["dst"]));
        let tokens = |key: &str| integer(&edge[key]) as u32;
        TokenEdge {
            producer,
            consumer,
            produce: tokens("rho"),
            consume: tokens("kappa"),
            threshold: tokens("phi"),
            initial: tokens("init"),
            back_edge: consumer <= producer,
        }
    };
    let source = |name: &String| case["source"].get(name).map(|rate| fraction(&rate[1]));
    let sources = names.iter().map(source).collect();
    (TokenGraph { sources, edges: array(&case["edges"]).iter().map(edge).collect() }, names)
}

#[test]
fn the_worked_graphs_get_their_rates_and_end_to_end_bounds() {
    let vectors = vectors();
    let cases = array(&vectors["pgm"]);
    assert_eq!(cases.len(), 6);
    for case in cases {
        let (graph, names) = graph(case);
        let rates = rates(&graph).expect("consistent rates");
        let by_name = |key: &str| names.iter().map(|name| fraction(&case[key][name])).collect::<Vec<_>>();
        for (rate, name) in rates.iter().zip(&names) {
            assert_eq!(rational(rate.jobs.clone(), 1), fraction(&case["rate"][name][0]), "{name} of {}", case["id"]);
            assert_eq!(rate.time, fraction(&case["rate"][name][1]), "{name} of {}", case["id"]);
        }
        let periods: Vec<Rational> = rates.iter().map(|rate| rate.period()).collect();
        assert_eq!(periods, by_name("period"));
        let shifts: Vec<Rational> = graph.edges.iter().map(|edge| shift(edge, &periods[edge.producer])).collect();
        assert_eq!(shifts, fractions(&case["shift"]), "{}", case["id"]);
        let jitters = vec![rational(0, 1); names.len()];
        let bounds = end_to_end(&graph, &rates, &by_name("R"), &jitters);
        if case["O"].is_null() {
            assert!(matches!(bounds, Err(EndToEndError::SelfThrottles { .. })), "{}", case["id"]);
            continue;
        }
        let bounds = bounds.unwrap_or_else(|error| panic!("{}: {error}", case["id"]));
        assert_eq!(bounds.offsets, by_name("O"), "{}", case["id"]);
        assert_eq!(bounds.completions, by_name("e2e"), "{}", case["id"]);
    }
}

#[test]
fn a_chain_of_three_needs_six_replicas_and_not_five() {
    let vectors = vectors();
    let case = array(&vectors["pgm"]).iter().find(|case| case["id"] == "feedback-ok").expect("there");
    let (graph, _) = graph(case);
    let rates = rates(&graph).expect("rates");
    let (responses, phases) = (vec![rational(20, 1); 3], vec![rational(0, 1); 3]);
    let needed = |pairs: &[_]| replicas(&graph, &rates, &responses, &phases, pairs, &rational(10, 1));
    assert_eq!(needed(&[(0, 2)]), Ok(6), "no throttling with six tokens");
    assert_eq!(needed(&[(0, 1), (1, 2)]), Ok(4));
}

#[test]
fn producers_that_disagree_and_unmarked_cycles_are_named() {
    let edge = |producer, consumer, produce| TokenEdge {
        producer,
        consumer,
        produce,
        consume: 1,
        threshold: 1,
        initial: 0,
        back_edge: false,
    };
    let sources = vec![Some(rational(10, 1)), Some(rational(10, 1)), None];
    let disagree = TokenGraph { sources: sources.clone(), edges: vec![edge(0, 2, 1), edge(1, 2, 2)] };
    let asked = Box::new([rational(1, 5), rational(1, 10)]);
    assert_eq!(rates(&disagree), Err(RateError::Inconsistent { node: 2, asked }));
    let cycle = TokenGraph { sources: vec![None, None], edges: vec![edge(0, 1, 1), edge(1, 0, 1)] };
    assert_eq!(rates(&cycle), Err(RateError::NoRate { node: 0 }));
    let unknown = TokenGraph { sources, edges: vec![edge(0, 7, 1)] };
    assert_eq!(rates(&unknown), Err(RateError::Edge { edge: 0 }));
    // rho = 4, kappa = 3 behind a sporadic source of period 8: 8 * (4 - 1) / 4.
    assert_eq!(sporadic_source_offset(&TokenEdge { consume: 3, ..edge(0, 1, 4) }, &rational(8, 1)), rational(6, 1));
}

#[test]
fn token_blocking_counts_twice_the_fifo_less_one() {
    let vectors = vectors();
    for case in array(&vectors["gpusync"]["token_blocking"]) {
        let [cpus, gpus, tokens, fifo] = ["c", "g", "rho", "f"].map(|key| integer(&case[key]) as u32);
        let configuration = TokenConfiguration { cpus, gpus, tokens, fifo };
        assert_eq!(TokenConfiguration::balanced(cpus, gpus, tokens), Some(configuration));
        assert_eq!(configuration.blocking_requests(100), Ok(integer(&case["requests_multiple"])));
    }
    let fine = &vectors["gpusync"]["token_blocking_fine"];
    let configuration = TokenConfiguration { cpus: 6, gpus: 1, tokens: 2, fifo: integer(&fine["f"]) as u32 };
    // The own hold of 4 is the fifth.
    assert_eq!(integer(&fine["own"]), integers(&fine["L"])[4]);
    assert_eq!(configuration.token_blocking_fine(&integers(&fine["L"]), 4), Ok(u128::from(integer(&fine["value"]))));
    let short = TokenConfiguration { cpus: 6, gpus: 1, tokens: 1, fifo: 5 };
    assert_eq!(short.blocking_requests(9), Err(GpuSyncError::ShortFifos { places: 5, cpus: 6 }));
    let long = TokenConfiguration { cpus: 6, gpus: 1, tokens: 1, fifo: 20 };
    assert_eq!(long.blocking_requests(4), Ok(7), "a queue of 20 never holds more than the 4 tasks that request");
}

#[test]
fn engine_blocking_sums_one_operation_of_each_other_holder() {
    let vectors = vectors();
    let case = &vectors["gpusync"]["engine_fifo"];
    let names = ["T1", "T2", "T3"];
    let operations: Vec<Vec<u64>> = names.iter().map(|name| integers(&case["ops_ms"][name])).collect();
    let longest: Vec<u64> = operations.iter().map(|ops| *ops.iter().max().expect("some")).collect();
    let tokens = integer(&case["rho"]) as u32;
    for (own, name) in names.iter().enumerate() {
        let blocking = engine_blocking_fifo(&longest, own, tokens);
        assert_eq!(blocking, u128::from(integer(&case["per_op_bound"][name])));
        assert_eq!(blocking * operations[own].len() as u128, u128::from(integer(&case["total"][name])));
        assert_eq!(engine_blocking_fifo(&longest, own, 1), 0, "an exclusive token leaves no other user to wait for");
    }
    assert_eq!(token_hold(5, &[(4, 10), (2, 10)], 1), 5 + 15 + 13);
}

#[test]
fn engine_blocking_by_priority_counts_whatever_higher_priorities_may_issue() {
    let higher = [EngineCompetitor { operations: 2, period: 10, response_time: 10 }];
    // B = 3 + ceil((B + 1 + 10) / 10) * 2: 3 -> 7 -> 7.
    assert_eq!(engine_blocking_priority(1, 3, &higher), Ok(7));
    let saturated = [EngineCompetitor { operations: 10, ..higher[0] }];
    assert!(engine_blocking_priority(1, 3, &saturated).is_err());
}
