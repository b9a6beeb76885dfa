//! Properties of the tests that need no schedule: dominance, sustainability, scaling, and slow evaluations that must
//! agree with the fast ones (I12 to I20 of the analysis specification).

mod common;

use laxity_analysis::gedf::{
    BarVariant, HardMode, bar, bar_horizon, carry_in_demand, demand_bound, ffdbf, gfb, hard, rta, rta_slack, run_test,
};
use laxity_analysis::soft::{PriorityPoints, compliant_vector};
use laxity_analysis::{AnalysisTask, Evidence, Limits, Outcome, Rational, Reason, TaskSet, Test, rational};
use proptest::prelude::*;

fn any_task(period_max: u64, implicit: bool) -> impl Strategy<Value = AnalysisTask> {
    (1..=period_max)
        .prop_flat_map(move |period| (Just(period), if implicit { period..=period } else { 1..=period }))
        .prop_flat_map(|(period, deadline)| (Just(period), Just(deadline), 1..=deadline))
        .prop_map(|(period, deadline, wcet)| AnalysisTask::new(wcet, period, deadline))
}

/// Sets that are neither trivial nor hopeless: more tasks than CPUs, most of them light.
fn any_set(period_max: u64) -> impl Strategy<Value = TaskSet> {
    (2u32..5, any::<bool>())
        .prop_flat_map(move |(cpus, implicit)| {
            let count = cpus as usize + 1..cpus as usize + 5;
            (Just(cpus), prop::collection::vec((any_task(period_max, implicit), 0u64..4), count))
        })
        .prop_map(|(cpus, tasks)| {
            let lighter =
                |(task, divisor): (AnalysisTask, u64)| AnalysisTask { wcet: task.wcet.div_ceil(divisor + 1), ..task };
            TaskSet::new(cpus, tasks.into_iter().map(lighter).collect()).expect("in range")
        })
}

fn accepts(set: &TaskSet, test: Test) -> bool {
    run_test(set, test, &Limits::default()).is_schedulable()
}

fn map(set: &TaskSet, cpus: u32, change: impl Fn(usize, &AnalysisTask) -> AnalysisTask) -> TaskSet {
    let tasks = set.tasks().iter().enumerate().map(|(index, task)| change(index, task)).collect();
    TaskSet::new(cpus, tasks).expect("in range")
}

const SUSTAINABLE: [Test; 5] = [Test::Gfb, Test::Bar, Test::BarDense, Test::BarLe, Test::FfDbf];
const OTHERS: [Test; 4] = [Test::Bcl, Test::BclIterative, Test::Rta, Test::RtaSlack];

/// I13: a test that accepts `before` accepts `after`.
fn survives(tests: &[Test], before: &TaskSet, after: &TaskSet) -> Result<(), TestCaseError> {
    for &test in tests {
        prop_assert!(!accepts(before, test) || accepts(after, test), "{} accepts only {:?}", test, before);
    }
    Ok(())
}

/// Its slacks are whole ticks, of which the limit `D - C + 1` has one more: with shorter ticks the sweeps get on where they stop
/// with longer ones.
#[test]
fn iterative_bcl_accepts_more_with_shorter_ticks() {
    let times = [(2, 12, 7), (1, 8, 7), (1, 11, 2), (1, 1, 1)];
    let accepted = |ticks: u64| {
        let task = |(wcet, period, deadline)| AnalysisTask::new(wcet * ticks, period * ticks, deadline * ticks);
        accepts(&TaskSet::new(2, times.into_iter().map(task).collect()).expect("in range"), Test::BclIterative)
    };
    assert!(accepted(659_754) && !accepted(1));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    /// I12: the dominance list of A.9.
    #[test]
    fn stronger_tests_accept_what_weaker_ones_accept(set in any_set(14)) {
        let dominance = [
            (Test::Bcl, Test::BclIterative),
            (Test::BclIterative, Test::RtaSlack),
            (Test::RtaSlack, Test::Rta),
            (Test::BarDense, Test::Bar),
            (Test::Gfb, Test::FfDbf),
            (Test::FfDbfGrid, Test::FfDbf),
        ];
        for (weaker, stronger) in dominance {
            prop_assert!(!accepts(&set, weaker) || accepts(&set, stronger), "{} but not {}", weaker, stronger);
        }
        if set.tasks().iter().all(|task| task.deadline == task.period) {
            // I14: for implicit deadlines FF-DBF is GFB, and BAK is weaker.
            prop_assert_eq!(accepts(&set, Test::Gfb), accepts(&set, Test::FfDbf));
            prop_assert!(!accepts(&set, Test::Bak) || accepts(&set, Test::Gfb));
        }
    }

    /// I13, rows C - 1 and T + k.
    #[test]
    fn less_work_keeps_a_set_accepted(set in any_set(12), task in 0usize..3, longer in 1u64..5) {
        let cheaper = map(&set, set.cpus(), |index, parameters| {
            let less = u64::from(index == task && parameters.wcet > 1);
            AnalysisTask { wcet: parameters.wcet - less, ..*parameters }
        });
        let rarer = map(&set, set.cpus(), |index, parameters| {
            let more = if index == task { longer } else { 0 };
            AnalysisTask { period: parameters.period + more, ..*parameters }
        });
        for after in [cheaper, rarer] {
            survives(&SUSTAINABLE, &set, &after)?;
            survives(&OTHERS, &set, &after)?;
        }
    }

    /// I13, rows D + 1, m + 1 and removal. BCL keeps D + 1; BAR with <= does not keep m + 1.
    #[test]
    fn later_deadlines_more_cpus_and_fewer_tasks_keep_a_set_accepted(set in any_set(12), task in 0usize..3) {
        let later = map(&set, set.cpus(), |index, parameters| {
            let more = u64::from(index == task && parameters.deadline < parameters.period);
            AnalysisTask { deadline: parameters.deadline + more, ..*parameters }
        });
        survives(&SUSTAINABLE, &set, &later)?;
        survives(&[Test::Bcl], &set, &later)?;
        let larger = set.on(set.cpus() + 1).expect("in range");
        survives(&[Test::Gfb, Test::Bak, Test::Bar, Test::BarDense, Test::FfDbf], &set, &larger)?;
        survives(&OTHERS, &set, &larger)?;
        let mut fewer = set.tasks().to_vec();
        fewer.remove(task);
        let fewer = TaskSet::new(set.cpus(), fewer).expect("in range");
        survives(&SUSTAINABLE, &set, &fewer)?;
        survives(&OTHERS, &set, &fewer)?;
        survives(&[Test::Bak], &set, &fewer)?;
    }

    /// I13, rows scaling and permutation.
    #[test]
    fn the_unit_of_time_and_the_order_of_tasks_do_not_matter(set in any_set(12), factor in 2u64..1_000_000, turn in 0usize..9) {
        let scaled = map(&set, set.cpus(), |_, task| {
            AnalysisTask::new(task.wcet * factor, task.period * factor, task.deadline * factor)
        });
        survives(&[Test::Gfb, Test::Bak, Test::Bcl, Test::BarDense, Test::FfDbf, Test::BarLe], &set, &scaled)?;
        survives(&[Test::Gfb, Test::Bak, Test::Bcl, Test::BarDense, Test::FfDbf, Test::Bar], &scaled, &set)?;
        // Not iterative BCL: see the test below.
        survives(&[Test::Bcl, Test::Rta, Test::RtaSlack], &scaled, &set)?;
        let mut turned = set.tasks().to_vec();
        let middle = turn % turned.len();
        turned.rotate_left(middle);
        let turned = TaskSet::new(set.cpus(), turned).expect("in range");
        for test in SUSTAINABLE.into_iter().chain(OTHERS).chain([Test::Bak]) {
            prop_assert_eq!(accepts(&set, test), accepts(&turned, test), "{}", test);
        }
    }

    /// I15, I16: trivial sets are accepted, and whatever is accepted satisfies the necessary conditions.
    #[test]
    fn accepted_sets_satisfy_the_necessary_conditions(set in any_set(12)) {
        let report = hard(&set, HardMode::AllTests, &Limits::default());
        if !report.accepted.is_empty() {
            prop_assert!(set.utilization() <= rational(set.cpus(), 1));
            prop_assert!(set.tasks().iter().all(|task| task.wcet <= task.window()));
            for t in 0..200 {
                let demand: u128 = set.tasks().iter().map(|task| demand_bound(task, t)).sum();
                prop_assert!(demand <= u128::from(set.cpus()) * u128::from(t));
            }
        }
        let roomy = set.on(set.tasks().len() as u32).expect("in range");
        let verdict = hard(&roomy, HardMode::FirstAcceptance, &Limits::default()).verdict;
        prop_assert_eq!((verdict.test, verdict.is_schedulable()), (Test::Trivial, true));
    }

    /// I17: walking the kinks reaches the fixed point that plain iteration reaches.
    #[test]
    fn response_times_equal_those_of_the_plain_recurrence(set in any_set(16), factor in prop::sample::select(vec![1u64, 3, 50])) {
        let set = map(&set, set.cpus(), |_, task| {
            AnalysisTask::new(task.wcet * factor, task.period * factor, task.deadline * factor)
        });
        if set.utilization() <= rational(set.cpus(), 1) {
            prop_assert_eq!(rta(&set, &Limits::default()).response_times().map(<[u64]>::to_vec), plain_rta(&set));
            let slack = rta_slack(&set, None, &Limits::default());
            prop_assert_eq!(slack.response_times().map(<[u64]>::to_vec), plain_slack_rta(&set));
        }
    }

    /// I18: the kinks decide as all intervals do, in every variant.
    #[test]
    fn bar_at_its_kinks_equals_bar_at_every_interval(set in any_set(10)) {
        if set.utilization() < rational(set.cpus(), 1) {
            let at_steps = |t: u64| set.tasks().iter().any(|task| t >= task.deadline && (t - task.deadline).is_multiple_of(task.period));
            for variant in [BarVariant::Integer, BarVariant::Dense, BarVariant::NonStrict, BarVariant::PrintedUnsound] {
                let verdict = bar(&set, variant, &Limits::default());
                let steps_only = variant == BarVariant::NonStrict;
                let slow = slow_bar(&set, variant, &|t| !steps_only || at_steps(t));
                prop_assert_eq!(verdict.is_schedulable(), slow, "{:?}: {}", variant, verdict);
                if let Outcome::NotProven(Reason::Interval { demand, available, .. }) = verdict.outcome {
                    prop_assert!(demand >= available || variant == BarVariant::Dense);
                }
            }
        }
    }

    /// FF-DBF: the speed it finds works at every interval, and where it finds none no speed of a fine grid works.
    #[test]
    fn ffdbf_finds_a_speed_exactly_if_one_works(set in any_set(9)) {
        let verdict = ffdbf(&set, &Limits::default());
        match verdict.outcome {
            Outcome::Schedulable(Evidence::Speed(speed)) => {
                prop_assert!((1..150).all(|t| fits_at_speed(&set, t, &speed)), "speed {}", speed);
            }
            Outcome::NotProven(Reason::Speed { .. }) => {
                let densest = set.tasks().iter().map(|task| rational(task.wcet, task.window())).max().expect("tasks");
                for step in 0..=40 {
                    let speed = rational(step, 40);
                    // A failure may lie far out where the speed barely exceeds what the utilization leaves.
                    let leaves = rational(set.cpus(), 1) - set.utilization() - rational(set.cpus() - 1, 1) * &speed;
                    if speed >= densest && leaves > rational(1, 20) {
                        prop_assert!((1..400).any(|t| !fits_at_speed(&set, t, &speed)), "speed {} works", speed);
                    }
                }
            }
            _ => {}
        }
    }

    /// I20: the Newton iteration ends in a root, exactly, and the compliant vector equalises m * x + C.
    #[test]
    fn the_compliant_vector_solves_its_equation_exactly(set in any_set(14)) {
        if let Ok(vector) = compliant_vector(&set, PriorityPoints::Edf) {
            let m = rational(set.cpus(), 1);
            let least = set.tasks().iter().map(|task| task.deadline).min().expect("tasks");
            let zero = rational(0, 1);
            let (mut sum, mut lines) = (zero.clone(), Vec::new());
            for (task, x) in set.tasks().iter().zip(&vector.x) {
                let (wcet, share) = (rational(task.wcet, 1), rational(task.wcet, task.period));
                prop_assert_eq!(x * &m + &wcet, &vector.s * &m);
                let early = rational(task.deadline - least, task.period);
                let s = &wcet * (rational(1, 1) - early).max(zero.clone());
                lines.push(&wcet * (rational(1, 1) - &share / &m) - &s + &share * &vector.s);
                sum += s;
            }
            lines.sort_by(|a, b| b.cmp(a));
            let chosen = set.utilization_ceiling() as usize - 1;
            let top: Rational = lines.into_iter().take(chosen).sum();
            prop_assert_eq!(top + sum, vector.s * m);
        }
    }
}

/// The recurrence of A.6, a step at a time.
fn plain_step(set: &TaskSet, k: usize, slacks: &[u64], response: u64) -> u64 {
    let tasks = set.tasks();
    let task = tasks[k];
    let interference = |i: usize| {
        let other = tasks[i];
        let z = response + other.deadline - other.wcet - slacks[i];
        let workload = z / other.period * other.wcet + other.wcet.min(z % other.period);
        let rest = (task.deadline % other.period).saturating_sub(slacks[i]);
        let in_window = task.deadline / other.period * other.wcet + other.wcet.min(rest);
        workload.min(in_window).min(response - task.wcet + 1)
    };
    let total: u64 = (0..tasks.len()).filter(|&i| i != k).map(interference).sum();
    task.wcet + total / u64::from(set.cpus())
}

fn plain_rta(set: &TaskSet) -> Option<Vec<u64>> {
    let tasks = set.tasks();
    let mut bounds: Vec<u64> = tasks.iter().map(|task| task.wcet).collect();
    loop {
        let slacks: Vec<u64> = tasks.iter().zip(&bounds).map(|(task, bound)| task.deadline - bound).collect();
        let next: Vec<u64> = (0..tasks.len()).map(|k| plain_step(set, k, &slacks, bounds[k])).collect();
        if next.iter().zip(tasks).any(|(bound, task)| *bound > task.deadline) {
            return None;
        }
        if next == bounds {
            return Some(bounds);
        }
        bounds = next;
    }
}

fn plain_slack_rta(set: &TaskSet) -> Option<Vec<u64>> {
    let tasks = set.tasks();
    let mut slacks = vec![0; tasks.len()];
    loop {
        let (mut changed, mut bounds) = (false, Vec::new());
        for (k, task) in tasks.iter().enumerate() {
            let mut response = task.wcet;
            loop {
                let next = plain_step(set, k, &slacks, response);
                if next == response || next > task.deadline {
                    response = next;
                    break;
                }
                response = next;
            }
            if response <= task.deadline {
                bounds.push(response);
                changed |= task.deadline - response > slacks[k];
                slacks[k] = slacks[k].max(task.deadline - response);
            }
        }
        if bounds.len() == tasks.len() {
            return Some(bounds);
        }
        if !changed {
            return None;
        }
    }
}

/// BAR by its definition, at every interval that `tested` names up to well beyond the horizon. Dense time is tested at
/// half ticks.
fn slow_bar(set: &TaskSet, variant: BarVariant, tested: &dyn Fn(u64) -> bool) -> bool {
    let dense = variant == BarVariant::Dense;
    let scale = if dense { 2 } else { 1 };
    let cap_offset = u64::from(matches!(variant, BarVariant::Integer | BarVariant::NonStrict));
    let m = u64::from(set.cpus());
    let tasks: Vec<AnalysisTask> = set
        .tasks()
        .iter()
        .map(|task| AnalysisTask::new(task.wcet * scale, task.period * scale, task.deadline * scale))
        .collect();
    let horizons = bar_horizon(set, BarVariant::NonStrict).expect("U < m");
    let last = horizons.iter().max().expect("tasks").to_integer();
    let last = scale * (u64::try_from(last).unwrap_or(0).min(400) + 20);
    (0..tasks.len()).all(|k| {
        (0..=last).filter(|a| tested((a + tasks[k].deadline) / scale)).all(|a| {
            let t = a + tasks[k].deadline;
            let x = t - tasks[k].wcet;
            let at = |cap: u64| capped_sum(&tasks, k, t, a, cap, m as usize);
            let sum = at(x + cap_offset);
            match variant {
                BarVariant::Integer => sum < m * (x + 1),
                BarVariant::NonStrict | BarVariant::PrintedUnsound => sum <= m * x,
                // In tenths: does the sum grow by fewer than m per unit when the cap is raised a little?
                BarVariant::Dense => sum < m * x || (sum == m * x && raised(&tasks, k, t, a, x, m)),
            }
        })
    })
}

/// Whether the sum with the cap raised by a tenth stays below m times the raised cap.
fn raised(tasks: &[AnalysisTask], k: usize, t: u64, a: u64, x: u64, m: u64) -> bool {
    let fine: Vec<AnalysisTask> =
        tasks.iter().map(|task| AnalysisTask::new(task.wcet * 10, task.period * 10, task.deadline * 10)).collect();
    capped_sum(&fine, k, t * 10, a * 10, x * 10 + 1, m as usize) < m * (x * 10 + 1)
}

fn capped_sum(tasks: &[AnalysisTask], k: usize, t: u64, a: u64, cap: u64, m: usize) -> u64 {
    let mut total = 0;
    let mut differences = Vec::new();
    for (i, task) in tasks.iter().enumerate() {
        let (plain, carried) = (demand_bound(task, t) as u64, carry_in_demand(task, t) as u64);
        let (own, limit) = if i == k { (task.wcet, a) } else { (0, cap) };
        let (plain, carried) = ((plain - own).min(limit), (carried - own).min(limit));
        total += plain;
        differences.push(carried - plain);
    }
    differences.sort_unstable_by(|x, y| y.cmp(x));
    total + differences.iter().take(m - 1).sum::<u64>()
}

/// `sum ff(t, speed) <= (m - (m - 1) * speed) * t`.
fn fits_at_speed(set: &TaskSet, t: u64, speed: &Rational) -> bool {
    let demand: Rational = set
        .tasks()
        .iter()
        .map(|task| {
            let (jobs, rest) = (t / task.period, t % task.period);
            let cut = if rest >= task.deadline {
                rational(task.wcet, 1)
            } else {
                (rational(task.wcet, 1) - rational(task.deadline - rest, 1) * speed).max(rational(0, 1))
            };
            rational(jobs * task.wcet, 1) + cut
        })
        .sum();
    demand <= (rational(set.cpus(), 1) - rational(set.cpus() - 1, 1) * speed) * rational(t, 1)
}

#[test]
fn gfb_accepts_at_equality() {
    let set = common::set(2, &[(2, 4, 4), (2, 4, 4), (1, 2, 2)]);
    assert!(gfb(&set).is_schedulable());
    let more = common::set(2, &[(2, 4, 4), (2_001, 4_000, 4_000), (1, 2, 2)]);
    assert!(!gfb(&more).is_schedulable());
}

#[test]
fn a_limit_is_reported_and_never_silent() {
    let set = common::set(2, &[(4, 5, 5), (4, 10, 10), (4, 10, 10)]);
    let limits = Limits { points: 1, rounds: 0, steps: 0 };
    for test in [Test::Bar, Test::BclIterative, Test::Rta, Test::RtaSlack] {
        let verdict = run_test(&set, test, &limits);
        assert!(matches!(verdict.outcome, Outcome::ResourceLimit { .. }), "{verdict}");
        assert!(!verdict.is_schedulable());
    }
}

#[test]
fn verdicts_say_what_failed() {
    let limits = Limits::default();
    let overload = common::set(2, &[(5, 5, 5), (5, 5, 5), (1, 5, 5)]);
    let report = hard(&overload, HardMode::FirstAcceptance, &limits);
    assert_eq!(
        report.verdict.to_string(),
        "trivial: infeasible: the total utilization exceeds 2 cpus; lower it or add cpus"
    );
    let late = common::set(1, &[(2, 10, 3), (2, 10, 3)]);
    assert_eq!(
        hard(&late, HardMode::FirstAcceptance, &limits).verdict.to_string(),
        "uniprocessor_edf: infeasible: demand 4 exceeds an interval of 3 ticks on one cpu"
    );
    let dense = common::set(2, &[(2, 2, 2), (1, 4, 4), (1, 4, 4), (2, 4, 4)]);
    assert_eq!(gfb(&dense).to_string(), "gfb: not proven: the total density exceeds what the densest task 0 leaves");
}
