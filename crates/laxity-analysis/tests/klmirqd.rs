//! k-FMLP blocking, klmirqd accounting and cluster assignment against worked examples.

mod common;

use common::{array, boolean, fraction, fractions, integer, integers, vectors};
use laxity_analysis::klmirqd::{
    Blocking, Costs, GpuTask, Handling, Unschedulable, analyze_cluster, blocking, inflate, interrupts,
};
use laxity_analysis::partition::{Fit, Order, Overflow, partition};
use laxity_analysis::{Limits, Rational, rational};
use proptest::prelude::*;
use serde_json::Value;

fn bounds(lengths: &[u64], k: u32, kind: Blocking) -> Vec<Rational> {
    blocking(lengths, k, kind, 1_000_000)
        .into_iter()
        .map(|bound| {
            assert!(bound.is_exact);
            bound.bound
        })
        .collect()
}

#[test]
fn blocking_matches_the_worked_examples() {
    let vectors = vectors();
    let cases = array(&vectors["klmirqd"]["kfmlp"]);
    assert_eq!(cases.len(), 9);
    for case in cases {
        let (lengths, k) = (integers(&case["l"]), integer(&case["k"]) as u32);
        for (key, kind) in [
            ("aware", Blocking::Aware),
            ("oblivious", Blocking::Oblivious),
            ("oblivious_int", Blocking::ObliviousInteger),
            ("exact", Blocking::Exact),
        ] {
            assert_eq!(bounds(&lengths, k, kind), fractions(&case[key]), "{key} {case}");
        }
    }
}

fn gpu_task(value: &Value) -> GpuTask {
    GpuTask {
        cpu: integer(&value["e"]),
        gpu: integer(&value["s"]),
        critical_section: integer(&value["l"]),
        uses: integer(&value["eta"]) as u32,
        period: integer(&value["p"]),
    }
}

fn handling(name: &Value) -> Handling {
    match name.as_str() {
        Some("klmirqd") => Handling::Klmirqd,
        Some("slih") => Handling::Slih,
        Some("pai") => Handling::Pai,
        other => panic!("unknown method {other:?}"),
    }
}

#[test]
fn the_worked_fixed_points_are_reached_round_by_round() {
    let vectors = vectors();
    let cases = array(&vectors["klmirqd"]["fixpoint"]["cases"]);
    assert_eq!(cases.len(), 6);
    for case in cases {
        let tasks: Vec<GpuTask> = array(&case["tasks"]).iter().map(gpu_task).collect();
        let (cpus, gpus) = (integer(&case["m"]) as u32, integer(&case["k"]) as u32);
        let method = handling(&case["method"]);
        let limits = Limits::default();
        let result = analyze_cluster(&tasks, cpus, gpus, Blocking::Aware, &Costs::PUBLISHED, method, &limits);
        let rounds = match &result {
            Ok(result) => {
                assert!(boolean(&case["ok"]), "{case}");
                assert_eq!(result.tardiness, integers(&case["x"]), "{case}");
                assert_eq!(result.wcets, integers(&case["e"]), "{case}");
                &result.rounds
            }
            Err(Unschedulable::Utilization { rounds, .. }) => {
                assert_eq!(case["reason"], "(5)", "{case}");
                rounds
            }
            Err(other) => panic!("{other}"),
        };
        let expected = array(&case["trace"]);
        assert_eq!(rounds.len(), expected.len(), "{case}");
        for (round, expected) in rounds.iter().zip(expected) {
            assert_eq!(round.tardiness, integers(&expected["x"]));
            assert_eq!(round.wcets, integers(&expected["e"]));
        }
    }
}

#[test]
fn worst_fit_packs_gpu_users_first() {
    let vectors = vectors();
    let case = &vectors["klmirqd"]["worst_fit"];
    let utilizations = fractions(&case["utils"]);
    let pass: Vec<u32> = array(&case["is_gpu"]).iter().map(|gpu| u32::from(integer(gpu) == 0)).collect();
    for (key, order) in [("input_order", Order::Input), ("decreasing", Order::Decreasing)] {
        let result = partition(&utilizations, &pass, &[6, 6], Fit::Worst, order, Overflow::Refuse).expect("all fit");
        let clusters: Vec<u64> = result.clusters.iter().map(|&cluster| cluster as u64).collect();
        assert_eq!(clusters, integers(&case[key]["where"]));
        assert_eq!(result.loads, fractions(&case[key]["load"]));
    }
}

#[test]
fn first_and_best_fit_differ_and_refuse_what_fits_nowhere() {
    let thirds = [2, 1, 1, 2].map(|n| rational(n, 3));
    let fit = |fit| partition(&thirds, &[], &[1, 1], fit, Order::Input, Overflow::Refuse).map(|a| a.clusters);
    assert_eq!(fit(Fit::First), Ok(vec![0, 0, 1, 1]));
    assert_eq!(fit(Fit::Best), Ok(vec![0, 0, 1, 1]));
    assert_eq!(fit(Fit::Worst), Err(3), "two clusters at 2/3 leave no room for another 2/3");
    let allowed = partition(&thirds, &[], &[1, 1], Fit::Worst, Order::Input, Overflow::Allow).expect("always fits");
    assert_eq!(allowed.clusters, [0, 1, 1, 0]);
}

#[test]
fn effective_utilization_counts_gpu_time_times_the_speedup() {
    let vectors = vectors();
    let case = &vectors["klmirqd"]["effective_utilization"];
    let task = GpuTask {
        cpu: integer(&case["e"]),
        gpu: integer(&case["s"]),
        critical_section: 0,
        uses: 1,
        period: integer(&case["p"]),
    };
    for (speedup, expected) in case["values"].as_object().expect("an object") {
        assert_eq!(task.effective_utilization(speedup.parse().expect("a number")), fraction(expected));
    }
}

fn any_task() -> impl Strategy<Value = GpuTask> {
    (1u64..2_000_000, 0u64..2_000_000, 0u32..4, 15_000_000u64..60_000_000).prop_map(|(cpu, gpu, uses, period)| {
        let gpu = if uses > 0 { gpu + 1 } else { 0 };
        GpuTask { cpu, gpu, critical_section: gpu, uses, period }
    })
}

proptest! {
    /// I28: the bounds are ordered, fall with k, and vanish or coincide at the extremes.
    #[test]
    fn exact_blocking_is_least_and_falls_with_more_replicas(
        lengths in prop::collection::vec(0u64..40, 1..8),
        k in 1u32..5,
    ) {
        let kinds = [Blocking::Exact, Blocking::Aware, Blocking::Oblivious];
        let [exact, aware, oblivious] = kinds.map(|kind| bounds(&lengths, k, kind));
        let fewer = bounds(&lengths, k + 1, Blocking::Exact);
        let requesters = lengths.iter().filter(|&&length| length > 0).count();
        for i in 0..lengths.len() {
            prop_assert!(exact[i] <= aware[i] && aware[i] <= oblivious[i]);
            prop_assert!(fewer[i] <= exact[i]);
            prop_assert!(k as usize <= requesters.saturating_sub(1) || exact[i] == rational(0, 1));
            prop_assert!(k > 1 || exact[i] == aware[i]);
        }
    }

    /// Equation 3 against all assignments, tried one by one.
    #[test]
    fn exact_blocking_is_that_of_the_worst_assignment(lengths in prop::collection::vec(1u64..30, 2..7), k in 1usize..4) {
        let others = &lengths[1..];
        let mut worst = 0;
        for code in 0..k.pow(others.len() as u32) {
            let (mut rest, mut queues) = (code, vec![0; k]);
            for &length in others {
                queues[rest % k] += length;
                rest /= k;
            }
            worst = worst.max(*queues.iter().min().expect("k is at least 1"));
        }
        prop_assert_eq!(&bounds(&lengths, k as u32, Blocking::Exact)[0], &rational(worst, 1));
    }

    /// I27: how the three methods relate at equal tardiness, exactly.
    #[test]
    fn pai_never_costs_less_than_slih_and_klmirqd_differs_by_a_formula(
        tasks in prop::collection::vec(any_task(), 1..6),
        late in prop::collection::vec(0u64..50_000_000, 6),
    ) {
        let costs = Costs::PUBLISHED;
        for (index, task) in tasks.iter().enumerate() {
            let count = interrupts(&tasks, &late[..tasks.len()], index);
            let of = |handling| inflate(task, 1_000, count, late[index], &costs, handling).ticked as i128;
            let (slih, klmirqd, pai) = (of(Handling::Slih), of(Handling::Klmirqd), of(Handling::Pai));
            prop_assert!(pai >= slih);
            let saved = count as i128 * i128::from(costs.bottom_half - costs.klmirqd_release);
            let pair = 2 * i128::from(costs.scheduling + costs.context_switch);
            prop_assert_eq!(slih - klmirqd, saved - i128::from(task.uses) * (pair + i128::from(costs.ipi)));
            if tasks.iter().all(|task| !task.uses_gpu()) {
                prop_assert_eq!(slih, klmirqd);
                prop_assert_eq!(slih, pai - 2 * i128::from(costs.pai_scheduling));
            }
            let free = inflate(&GpuTask { uses: 0, gpu: 0, ..*task }, 0, 0, late[index], &Costs::ZERO, Handling::Slih);
            prop_assert_eq!(free.ticked, u128::from(task.cpu));
        }
    }

    /// I27: tardiness never falls between rounds, the last round reproduces itself, PAI is not schedulable alone.
    #[test]
    fn the_fixed_point_climbs_and_reproduces_itself(tasks in prop::collection::vec(any_task(), 1..8), m in 1u32..4) {
        let run = |handling| {
            analyze_cluster(&tasks, m, 1, Blocking::Aware, &Costs::PUBLISHED, handling, &Limits::default())
        };
        let slih = run(Handling::Slih);
        prop_assert!(slih.is_ok() || run(Handling::Pai).is_err());
        for result in [slih, run(Handling::Klmirqd)].into_iter().flatten() {
            for pair in result.rounds.windows(2) {
                prop_assert!(pair[0].tardiness.iter().zip(&pair[1].tardiness).all(|(a, b)| a <= b));
                prop_assert!(pair[0].wcets.iter().zip(&pair[1].wcets).all(|(a, b)| a <= b));
            }
            let last = result.rounds.last().expect("at least one round");
            prop_assert_eq!((&last.tardiness, &last.wcets), (&result.tardiness, &result.wcets));
        }
    }

    /// I29: worst fit balances to within one task.
    #[test]
    fn worst_fit_loads_differ_by_at_most_the_largest_task(shares in prop::collection::vec(1u32..100, 1..20)) {
        let utilizations: Vec<Rational> = shares.iter().map(|&share| rational(share, 100)).collect();
        let result = partition(&utilizations, &[], &[20, 20, 20], Fit::Worst, Order::Input, Overflow::Refuse);
        let loads = result.expect("room for all").loads;
        let largest = utilizations.iter().max().expect("at least one");
        prop_assert!(loads.iter().max().expect("three") - loads.iter().min().expect("three") <= *largest);
    }
}
