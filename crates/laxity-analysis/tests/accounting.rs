//! Overhead accounting without a schedule: what must grow, what must not matter, and what the tests then say
//! (I22 to I26).

use laxity_analysis::gedf::run_test;
use laxity_analysis::klmirqd::{
    Blocking, Costs, GpuTask, Handling, Unschedulable, analyze_blocked, analyze_cluster, inflate, interrupts,
};
use laxity_analysis::overheads::{
    Beyond, ExactCosts, Inflated, InterruptLag, OverheadError, QuantumInterrupts, QuantumTiming, System, Windows,
    interpolate, interrupt_backlog, interrupt_busy_period, preemption_centric, preemption_centric_exact, quantum,
    task_centric,
};
use laxity_analysis::{AnalysisTask, Limits, TaskSet, TaskSetError, Test, rational};
use laxity_model::{Nanos, OverheadCosts, OverheadTable, Quanta, ReleaseInterrupts};
use proptest::prelude::*;

const LAGS: [InterruptLag; 2] = [InterruptLag::None, InterruptLag::BusyPeriod];

/// Every accounting the crate offers, for comparing one with itself.
#[derive(Clone, Copy, Debug)]
enum Accounting {
    TaskCentric(InterruptLag),
    PreemptionCentric,
    Quantum(Quanta, QuantumTiming, QuantumInterrupts),
}

impl Accounting {
    fn all() -> Vec<Accounting> {
        let mut all = vec![Accounting::PreemptionCentric];
        all.extend(LAGS.map(Accounting::TaskCentric));
        let interrupts =
            LAGS.map(QuantumInterrupts::TaskCentric).into_iter().chain([QuantumInterrupts::QuantumCentric]);
        for interrupts in interrupts {
            for quanta in [Quanta::Aligned, Quanta::Staggered] {
                for timing in [QuantumTiming::Hard, QuantumTiming::HardTight, QuantumTiming::Soft] {
                    all.push(Accounting::Quantum(quanta, timing, interrupts));
                }
            }
        }
        all
    }

    fn of(self, system: &System, tasks: &[AnalysisTask], windows: Windows<'_>) -> Result<Inflated, OverheadError> {
        match self {
            Accounting::TaskCentric(lag) => task_centric(system, tasks, windows, lag, false),
            Accounting::PreemptionCentric => preemption_centric(system, tasks),
            Accounting::Quantum(quanta, timing, interrupts) => {
                quantum(system, tasks, windows, quanta, timing, interrupts, system.cpus)
            }
        }
    }
}

/// Small numbers, so that a tick more or less shows: quanta of 20, periods of several.
fn any_tasks() -> impl Strategy<Value = Vec<AnalysisTask>> {
    let task = (60u64..400)
        .prop_flat_map(|period| (1..=period / 4, Just(period), 50..=period))
        .prop_map(|(wcet, period, deadline)| AnalysisTask::new(wcet, period, deadline));
    prop::collection::vec(task, 2..7)
}

/// The sources of overhead in the order of [`with_costs`], each up to `most`.
fn any_costs(most: u64) -> impl Strategy<Value = [u64; 8]> {
    prop::array::uniform8(0..=most)
}

fn with_costs(costs: [u64; 8]) -> OverheadCosts {
    let [release, scheduling, context_switch, ipi_latency, tick, timer_rearming, preemption, migration] =
        costs.map(Nanos);
    OverheadCosts {
        release,
        scheduling,
        context_switch,
        ipi_latency,
        tick,
        timer_rearming,
        cache_preemption: preemption,
        cache_migration: migration,
        ..OverheadCosts::default()
    }
}

fn system(costs: [u64; 8], dedicated: bool) -> System {
    let interrupts = if dedicated { ReleaseInterrupts::Dedicated } else { ReleaseInterrupts::Global };
    System { cpus: 4, interrupts, costs: with_costs(costs), quantum: Nanos(20), event_latency: Nanos(0) }
}

/// `after` asks no less of each task of `before` than `before` does; what has no accounting asks for everything.
fn asks_no_less(before: &Result<Inflated, OverheadError>, after: &Result<Inflated, OverheadError>) -> bool {
    match (before, after) {
        (_, Err(_)) => true,
        (Err(_), Ok(_)) => false,
        (Ok(before), Ok(after)) => before.tasks.iter().zip(&after.tasks).all(|(before, after)| {
            before.wcet <= after.wcet && before.period >= after.period && before.deadline >= after.deadline
        }),
    }
}

proptest! {
    /// I22
    #[test]
    fn whatever_grows_costs_more(
        tasks in any_tasks(),
        costs in any_costs(2),
        which in 0usize..8,
        dedicated in any::<bool>(),
        late in prop::collection::vec(0u64..60, 7),
        later in prop::collection::vec(0u64..60, 7),
    ) {
        let mut dearer = costs;
        dearer[which] += 1;
        let (cheap, dear) = (system(costs, dedicated), system(dearer, dedicated));
        let late_event = System { event_latency: Nanos(3), ..cheap };
        let fewer = &tasks[..tasks.len() - 1];
        let late = &late[..tasks.len()];
        let later: Vec<u64> = late.iter().zip(later).map(|(late, more)| late + more).collect();
        for accounting in Accounting::all() {
            let base = accounting.of(&cheap, &tasks, Windows::Tardiness(late));
            let costly = accounting.of(&dear, &tasks, Windows::Tardiness(late));
            prop_assert!(asks_no_less(&base, &costly), "{:?}: source {} costs more", accounting, which);
            let tardy = accounting.of(&cheap, &tasks, Windows::Tardiness(&later));
            prop_assert!(asks_no_less(&base, &tardy), "{:?}: jobs are later", accounting);
            let without = accounting.of(&cheap, fewer, Windows::Tardiness(&late[..fewer.len()]));
            prop_assert!(asks_no_less(&without, &base), "{:?}: one task more", accounting);
            let noticed_late = accounting.of(&late_event, &tasks, Windows::Tardiness(late));
            prop_assert!(asks_no_less(&base, &noticed_late), "{:?}: releases are noticed late", accounting);
            let by_deadline = accounting.of(&cheap, &tasks, Windows::Deadlines);
            prop_assert!(asks_no_less(&by_deadline, &base), "{:?}: no job is late", accounting);
        }
    }

    /// I22 for klmirqd: costs, tasks and tardiness.
    #[test]
    fn gpu_interrupts_cost_more_the_more_there_are_and_the_dearer_they_are(
        tasks in prop::collection::vec((1u64..90, 1u64..90, 0u32..4, 100u64..900), 2..6),
        costs in prop::array::uniform10(0u64..5),
        which in 0usize..10,
        late in prop::collection::vec(0u64..500, 6),
        more in 0u64..500,
    ) {
        let task = |(cpu, gpu, uses, period)| {
            let gpu = if uses > 0 { gpu } else { 0 };
            GpuTask { cpu, gpu, critical_section: gpu, uses, period }
        };
        let tasks: Vec<GpuTask> = tasks.into_iter().map(task).collect();
        let late = &late[..tasks.len()];
        let mut later = late.to_vec();
        later[which % tasks.len()] += more;
        let mut dearer = costs;
        dearer[which] += 1;
        let fewer = &tasks[..tasks.len() - 1];
        for handling in [Handling::Slih, Handling::Klmirqd, Handling::Pai] {
            for index in 0..fewer.len() {
                let inflated = |tasks: &[GpuTask], late: &[u64], costs: [u64; 10], blocking| {
                    let count = interrupts(tasks, late, index);
                    inflate(&tasks[index], blocking, count, late[index], &gpu_costs(costs), handling).ticked
                };
                let base = inflated(&tasks, late, costs, 7);
                prop_assert!(base <= inflated(&tasks, late, dearer, 7), "{:?}: source {} costs more", handling, which);
                prop_assert!(base <= inflated(&tasks, &later, costs, 7), "{:?}: one task is later", handling);
                prop_assert!(base <= inflated(&tasks, late, costs, 8), "{:?}: more blocking", handling);
                prop_assert!(inflated(fewer, late, costs, 7) <= base, "{:?}: one task more", handling);
            }
        }
    }

    /// I23: a sustainable test that accepts the inflated set accepts the set itself, on all CPUs.
    #[test]
    fn what_is_accepted_with_overheads_is_accepted_without(
        tasks in any_tasks(),
        costs in any_costs(1),
        dedicated in any::<bool>(),
    ) {
        let system = system(costs, dedicated);
        let original = TaskSet::new(system.cpus, tasks.clone()).expect("in range");
        for accounting in Accounting::all() {
            let Ok(inflated) = accounting.of(&system, &tasks, Windows::Deadlines) else { continue };
            let inflated = inflated.task_set().expect("in range");
            for test in [Test::Gfb, Test::Bar, Test::BarDense, Test::FfDbf] {
                let accepts = |set: &TaskSet| run_test(set, test, &Limits::default()).is_schedulable();
                prop_assert!(!accepts(&inflated) || accepts(&original), "{:?}: {}", accounting, test);
            }
        }
    }

    /// I24: where a CPU takes the release interrupts, no job pays for those of other tasks, however often they come.
    #[test]
    fn behind_a_dedicated_cpu_only_the_own_release_is_paid_for(
        tasks in any_tasks(),
        others in any_tasks(),
        costs in any_costs(2),
    ) {
        let dedicated = system(costs, true);
        let beside = |others: &[AnalysisTask]| [&tasks[..1], others].concat();
        for accounting in Accounting::all() {
            // The safe lag counts ticks and releases of all tasks on one CPU.
            let lagging = matches!(
                accounting,
                Accounting::TaskCentric(InterruptLag::BusyPeriod)
                    | Accounting::Quantum(_, _, QuantumInterrupts::TaskCentric(InterruptLag::BusyPeriod))
            );
            let of = |others: &[AnalysisTask]| accounting.of(&dedicated, &beside(others), Windows::Deadlines);
            if let (false, Ok(some), Ok(more)) = (lagging, of(&others), of(&[&tasks[..], &others].concat())) {
                prop_assert_eq!(some.tasks[0], more.tasks[0], "{:?}", accounting);
                prop_assert_eq!(some.charges[0], more.charges[0], "{:?}", accounting);
                prop_assert_eq!(some.charges[0].other_releases, 0, "{:?}", accounting);
            }
        }
    }

    /// I25
    #[test]
    fn quantum_driven_jobs_take_whole_quanta_and_staggering_shortens_periods(
        tasks in any_tasks(),
        costs in any_costs(2),
        dedicated in any::<bool>(),
    ) {
        let system = system(costs, dedicated);
        for accounting in Accounting::all() {
            let Accounting::Quantum(Quanta::Aligned, timing, interrupts) = accounting else { continue };
            let Ok(aligned) = accounting.of(&system, &tasks, Windows::Deadlines) else { continue };
            for (before, after) in tasks.iter().zip(&aligned.tasks) {
                prop_assert!(after.wcet.is_multiple_of(system.quantum.0) && after.wcet >= before.wcet);
                let shortened = after.deadline < before.deadline && after.period < before.period;
                let tight = timing == QuantumTiming::HardTight && after.deadline < before.deadline;
                let same = (after.period, after.deadline) == (before.period, before.deadline);
                let expected = if timing == QuantumTiming::Soft { same } else { shortened || tight };
                prop_assert!(expected, "{:?}: {:?} becomes {:?}", accounting, before, after);
                prop_assert!(after.period <= before.period);
            }
            let staggered = Accounting::Quantum(Quanta::Staggered, timing, interrupts);
            let staggered = staggered.of(&system, &tasks, Windows::Deadlines);
            prop_assert!(asks_no_less(&Ok(aligned), &staggered), "{:?}", accounting);
        }
    }

    /// I26
    #[test]
    fn interpolated_overheads_pass_through_the_running_maximum_and_never_fall(
        steps in prop::collection::vec((1u32..60, 0u64..1_000), 1..8),
    ) {
        let mut tasks = 0;
        let mut knots: Vec<(u32, u64)> = Vec::new();
        for (step, value) in steps {
            tasks += step;
            knots.push((tasks, value));
        }
        let table = OverheadTable::Points(knots.clone());
        let at = |n, beyond| interpolate(&table, n, beyond, beyond);
        let mut highest = 0;
        for &(n, value) in &knots {
            highest = value.max(highest);
            for beyond in [Beyond::Hold, Beyond::Extrapolate] {
                prop_assert_eq!(at(n.into(), beyond), rational(highest, 1), "at {} of {:?}", n, knots);
            }
        }
        for n in 0..u64::from(tasks) + 50 {
            for beyond in [Beyond::Hold, Beyond::Extrapolate] {
                prop_assert!(at(n, beyond) <= at(n + 1, beyond), "after {} of {:?}", n, knots);
            }
            prop_assert!(at(n, Beyond::Hold) <= rational(highest, 1));
        }
    }
}

fn gpu_costs(costs: [u64; 10]) -> Costs {
    let [
        scheduling,
        context_switch,
        ipi,
        release,
        top_half,
        bottom_half,
        klmirqd_release,
        pai_scheduling,
        pai_release,
        tick,
    ] = costs;
    Costs {
        scheduling,
        context_switch,
        ipi,
        release,
        top_half,
        bottom_half,
        klmirqd_release,
        pai_scheduling,
        pai_release,
        tick,
        quantum: 20,
    }
}

/// The release cost of others is what distinguishes global handling: I24 is not true of it.
#[test]
fn without_a_dedicated_cpu_the_releases_of_others_are_paid_for() {
    let tasks = vec![AnalysisTask::implicit(10, 200); 3];
    let global = system([2, 0, 0, 0, 0, 0, 0, 0], false);
    for accounting in Accounting::all() {
        let of = |tasks| accounting.of(&global, tasks, Windows::Deadlines).expect("fits").tasks[0].wcet;
        match accounting {
            Accounting::Quantum(..) => assert!(of(&tasks) >= of(&tasks[..2]), "{accounting:?}"),
            _ => assert!(of(&tasks) > of(&tasks[..2]), "{accounting:?}"),
        }
    }
}

#[test]
fn tasks_without_a_period_are_refused_and_never_divided_by() {
    let tasks = [AnalysisTask::implicit(1, 100), AnalysisTask::new(1, 0, 50)];
    for dedicated in [false, true] {
        for accounting in Accounting::all() {
            let result = accounting.of(&system([1; 8], dedicated), &tasks, Windows::Deadlines);
            assert_eq!(result, Err(OverheadError::NoWindow { task: 1, lost: 0, window: 0 }), "{accounting:?}");
        }
    }
    let (missing, costly) = (OverheadError::NoWindow { task: 1, lost: 0, window: 0 }, system([1; 8], false));
    assert_eq!(interrupt_busy_period(&costly, &tasks), Err(missing.clone()));
    assert_eq!(interrupt_backlog(&costly, &tasks), Err(missing.clone()));
    let one = || rational(1, 1);
    let exact = ExactCosts {
        release: one(),
        scheduling: one(),
        context_switch: one(),
        ipi_latency: one(),
        tick: one(),
        quantum: rational(1_000, 1),
        event_latency: one(),
        cache_delays: Vec::new(),
        initial_loads: Vec::new(),
        early_releasing: Vec::new(),
    };
    assert_eq!(preemption_centric_exact(&exact, &tasks, 1, false).map(drop), Err(missing));
    let gpu_tasks = [GpuTask { cpu: 1, gpu: 0, critical_section: 0, uses: 0, period: 0 }];
    let expected = Err(Unschedulable::Invalid(TaskSetError::Parameter { task: 0, parameter: "period", value: 0 }));
    let (costs, method, limits) = (Costs::PUBLISHED, Handling::Slih, Limits::default());
    assert_eq!(analyze_blocked(&gpu_tasks, 1, vec![0], &costs, method, &limits), expected);
    assert_eq!(analyze_cluster(&gpu_tasks, 1, 1, Blocking::Aware, &costs, method, &limits), expected);
}

/// Sums that 128 bits cannot hold say that it is too much, in release builds as well.
#[test]
fn times_of_centuries_saturate() {
    let tasks = [AnalysisTask::implicit(1, 1); 9];
    let costs = OverheadCosts { release: Nanos(u64::MAX), ..OverheadCosts::default() };
    let system = System { costs, ..system([0; 8], false) };
    assert_eq!(interrupt_busy_period(&system, &tasks), Err(OverheadError::NoCapacity));
    let gpu = GpuTask { cpu: u64::MAX, gpu: u64::MAX, critical_section: 1, uses: u32::MAX, period: 1 };
    let costs = Costs { top_half: u64::MAX, bottom_half: u64::MAX, pai_release: u64::MAX, ..Costs::PUBLISHED };
    for handling in [Handling::Slih, Handling::Klmirqd, Handling::Pai] {
        let stages = inflate(&gpu, u64::MAX, u128::MAX, u64::MAX, &costs, handling);
        assert_eq!(stages.ticked, u128::MAX, "{handling:?}");
    }
}
