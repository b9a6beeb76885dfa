//! I32 and I35 of the specification: the cap rule, bounds and exact sums; the same bytes everywhere.

use laxity_gen::{
    Decimal, FixedSum, FixedSumMethod, GeneratedSet, GeneratorSpec, PerTask, PeriodDistribution, Provenance,
    Utilization, UtilizationDistribution, generate, task_set_seed,
};
use laxity_model::{GpuWork, Nanos, Step, Task};
use proptest::prelude::*;

fn set(line: &str, seed: u64) -> GeneratedSet {
    generate(&line.parse().unwrap_or_else(|error| panic!("{line}: {error}")), seed).expect("a task set")
}

/// FNV-1a over everything a generator decides, independent of how types print.
fn digest(set: &GeneratedSet) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut word = |value: u64| {
        for byte in value.to_le_bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    for (task, utilization) in set.tasks.iter().zip(&set.utilizations) {
        for value in [utilization.units(), task.period.0, task.deadline.0, task.body.len() as u64] {
            word(value);
        }
        for step in &task.body {
            words_of(step).into_iter().for_each(&mut word);
        }
    }
    hash
}

fn words_of(step: &Step) -> Vec<u64> {
    let Step::Gpu(operation) = step else { return vec![0, step.cpu_wcet().0] };
    let interrupts = u64::from(operation.interrupts);
    match &operation.work {
        GpuWork::Kernel(time) => vec![1, interrupts, time.wcet.0],
        GpuWork::Copy { direction, bytes, time } => {
            let time = time.as_ref().expect("generated copies have a duration");
            vec![2, interrupts, *direction as u64, *bytes, time.wcet.0]
        }
    }
}

/// GPU work of a task: operations on any engine.
fn on_gpu(task: &Task) -> Nanos {
    let time = |step: &Step| match step {
        Step::Gpu(operation) => match &operation.work {
            GpuWork::Kernel(time) => time.wcet,
            GpuWork::Copy { time, .. } => time.as_ref().map_or(Nanos::ZERO, |time| time.wcet),
        },
        _ => Nanos::ZERO,
    };
    task.body.iter().map(time).sum()
}

fn millis(thousandths: u64) -> Decimal {
    Decimal::from_thousandths(thousandths)
}

fn periods() -> impl Strategy<Value = PeriodDistribution> {
    let log = (1u64..50, 0u64..1_000, 1u64..5).prop_map(|(min, width, step)| {
        let at = |steps| Nanos::from_millis(steps * step);
        PeriodDistribution::log_uniform(at(min), at(min + width), at(1))
    });
    prop_oneof![proptest::sample::select(PeriodDistribution::NAMED.map(|(_, named)| named).to_vec()), log]
}

fn distributions() -> impl Strategy<Value = UtilizationDistribution> {
    let uniform =
        (1u64..500, 1u64..=500).prop_map(|(min, width)| UtilizationDistribution::uniform_thousandths(min, min + width));
    prop_oneof![
        proptest::sample::select(UtilizationDistribution::NAMED.map(|(_, named)| named).to_vec()),
        uniform,
        (0u8..=9).prop_map(|light_ninths| UtilizationDistribution::Bimodal { light_ninths }),
        (1u64..=1_000).prop_map(|mean| UtilizationDistribution::Exponential { mean: millis(mean) }),
    ]
}

/// Bounds of 1 to 12 tasks in thousandths, and a total between their sums.
fn bounded_sums() -> impl Strategy<Value = (Vec<u64>, Vec<u64>, u64)> {
    let bounds = proptest::collection::vec((0u64..=1_000, 0u64..=1_000), 1..12)
        .prop_map(|pairs| pairs.into_iter().map(|(one, other)| (one.min(other), one.max(other))).unzip());
    bounds.prop_flat_map(|(min, max): (Vec<u64>, Vec<u64>)| {
        let (low, high) = (min.iter().sum::<u64>().max(1), max.iter().sum::<u64>().max(1));
        (Just(min), Just(max), low..=high.max(low))
    })
}

/// `total` in units, and by how much rounding of the largest utilizations may have lowered it.
fn assert_sum(set: &GeneratedSet, total: Decimal) {
    let (wanted, found) = (total.utilization().units(), set.total_utilization().units());
    assert!(found <= wanted && wanted - found <= set.tasks.len() as u64, "{found} instead of {wanted}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// I35: `cap - max < total <= cap`; costs are `max(1, floor(u T))`, periods lie on their grid.
    #[test]
    fn the_cap_rule_holds(distribution in distributions(), periods in periods(), above in 0u64..3_000, seed: u64) {
        let cap = Decimal::from_billionths(distribution.max().billionths() + millis(above).billionths());
        let spec = GeneratorSpec::until_cap(distribution, periods, cap);
        let set = generate(&spec, seed).expect("a task set");
        let total = set.total_utilization();
        prop_assert!(total <= cap.utilization());
        prop_assert!(total.units() + distribution.max().utilization().units() > cap.utilization().units());
        prop_assert!(!set.tasks.is_empty());
        for (index, (task, utilization)) in set.tasks.iter().zip(&set.utilizations).enumerate() {
            prop_assert_eq!(&task.name, &format!("t{index}"));
            prop_assert!(*utilization <= distribution.max().utilization());
            prop_assert!((periods.min..=periods.max).contains(&task.period));
            prop_assert_eq!(task.period.0 % periods.granularity.0, 0);
            prop_assert_eq!(task.deadline, task.period);
            let cost = (u128::from(utilization.units()) * u128::from(task.period.0)) >> 53;
            prop_assert_eq!(u128::from(task.wcet().0), cost.max(1));
        }
    }

    #[test]
    fn a_written_generator_and_its_provenance_read_back(
        distribution in distributions(), periods in periods(), above in 0u64..3_000, seed: u64,
    ) {
        let cap = Decimal::from_billionths(distribution.max().billionths() + above);
        let provenance = Provenance::new(GeneratorSpec::until_cap(distribution, periods, cap), seed);
        prop_assert_eq!(provenance.to_string().parse(), Ok(provenance));
    }

    #[test]
    fn sums_are_exact_and_bounds_are_kept((min, max, total) in bounded_sums(), seed: u64) {
        let each = |bounds: &[u64]| PerTask::Each(bounds.iter().map(|&bound| millis(bound)).collect());
        for method in [FixedSumMethod::DirichletRescale, FixedSumMethod::PairExchange] {
            let fixed = FixedSum::new(method, min.len(), millis(total)).within(each(&min), each(&max));
            let spec = GeneratorSpec::fixed_sum(fixed, PeriodDistribution::SHORT);
            if max.iter().sum::<u64>() < total {
                prop_assert!(spec.validate().is_err());
                continue;
            }
            prop_assert_eq!(&spec.to_string().parse(), &Ok(spec.clone()));
            let set = generate(&spec, seed).expect("a task set");
            assert_sum(&set, millis(total));
            for (task, value) in set.utilizations.iter().enumerate() {
                prop_assert!(*value >= millis(min[task]).utilization() && *value <= millis(max[task]).utilization());
            }
        }
    }

    #[test]
    fn randfixedsum_meets_any_total_between_common_bounds(
        tasks in 1usize..40, low in 0u64..=1_000, high in 0u64..=1_000, part in 0u64..=1_000, seed: u64,
    ) {
        let (min, max) = (low.min(high), low.max(high));
        let total = Decimal::from_billionths(tasks as u64 * (min * 1_000 + (max - min) * part) * 1_000);
        prop_assume!(total > Decimal::ZERO);
        let fixed = FixedSum::new(FixedSumMethod::RandFixedSum, tasks, total)
            .within(PerTask::All(millis(min)), PerTask::All(millis(max)));
        let set = generate(&GeneratorSpec::fixed_sum(fixed, PeriodDistribution::LONG), seed).expect("a task set");
        assert_sum(&set, total);
        let within = |value: &Utilization| *value >= millis(min).utilization() && *value <= millis(max).utilization();
        prop_assert!(set.utilizations.iter().all(within));
    }

    /// The share of GPU-using tasks is in its band but for rounding, and bodies keep every nanosecond.
    #[test]
    fn gpu_parts_split_the_cost_that_was_drawn(band in 0usize..10, interrupts in 0u32..10, seed: u64) {
        let distribution = GeneratorSpec::KLMIRQD_DISTRIBUTIONS[band % 6];
        let (low, high) = GeneratorSpec::KLMIRQD_BANDS[band];
        let spec = GeneratorSpec::klmirqd_schedulability(distribution, (low, high), interrupts, millis(9_000));
        prop_assert_eq!(&spec.to_string().parse(), &Ok(spec.clone()));
        let set = generate(&spec, seed).expect("a task set");
        let without = generate(&GeneratorSpec { gpu: None, ..spec }, seed).expect("a task set");
        prop_assert_eq!(&set.utilizations, &without.utilizations);
        let mut users = 0u64;
        for (task, plain) in set.tasks.iter().zip(&without.tasks) {
            let gpu = on_gpu(task);
            prop_assert_eq!(task.wcet() + gpu, plain.wcet());
            if gpu > Nanos::ZERO {
                users += 1;
                prop_assert_eq!(gpu.0, plain.wcet().0 * 3 / 4);
                let raised = |step: &Step| if let Step::Gpu(operation) = step { operation.interrupts } else { 0 };
                prop_assert_eq!(task.body.iter().map(raised).sum::<u32>(), interrupts);
            }
        }
        let share = |decimal: Decimal| decimal.billionths() * set.tasks.len() as u64;
        let half = Decimal::ONE.billionths() / 2;
        prop_assert!(users * 2 * half + half >= share(low) && users * 2 * half <= share(high) + half, "{} users", users);
    }

    #[test]
    fn no_text_is_a_panic(text in "[a-z0-9(),./= -]{0,60}") {
        let _ = text.parse::<GeneratorSpec>();
        let _ = text.parse::<Provenance>();
    }

    /// Near misses of real lines, which get further into the parser than noise does.
    #[test]
    fn no_mutilated_line_is_a_panic(line in 0usize..5, at in 0usize..80, put in "[a-z0-9(),./= -]{0,3}", cut in 0usize..4) {
        let line = GOLDEN[line].0;
        let at = at.min(line.len());
        let text = format!("{}{put}{}", &line[..at], &line[(at + cut).min(line.len())..]);
        if let Ok(spec) = text.parse::<GeneratorSpec>() {
            prop_assert_eq!(spec.to_string().parse(), Ok(spec));
        }
    }
}

/// One line for each draw there is, and the digest of its set for seed `task_set_seed(1, 2, 3)`. A change here is a
/// change of what every stored provenance means: raise `GENERATOR_VERSION` with it.
const GOLDEN: [(&str, u64); 12] = [
    ("uni-light/short cap=4", 0x2d44_8f42_307a_ea8a),
    ("bimo-medium/long cap=8", 0x6f68_0e97_5697_2f3c),
    ("exp-heavy/multimedia cap=8 gpu=0.2..0.3 part=0.8 transfer=0.2 interrupts=3", 0x755b_f74c_d4d4_2cc8),
    ("uniform(0.5,0.9)/multimedia cap=6 gpu=0.5..0.6 part=0.75 transfer=0.2 interrupts=6", 0x7839_02e1_ba0d_9709),
    ("exponential(0.3)/log-uniform(1ms,1s,100us) cap=2.5", 0xf9ae_78c5_d75d_7357),
    ("uunifast-discard/moderate n=12 total=4.5", 0xf341_8e4d_f734_3721),
    ("randfixedsum/moderate n=12 total=4.5", 0xefe4_6c4d_52dd_629b),
    ("randfixedsum/moderate n=200 total=150 min=0.1 max=0.9", 0x1d36_34ae_cece_0143),
    ("dirichlet-rescale/moderate n=4 total=1.2 min=0.1 max=0.2,0.5,0.9,0.3", 0xa3d1_3677_f2a2_e332),
    ("dirichlet-rescale/moderate n=12 total=4.5", 0x8b1f_fdce_e9b9_53bb),
    ("pair-exchange/moderate n=4 total=1.2 min=0.1 max=0.2,0.5,0.9,0.3", 0xbaa9_334f_29d8_de93),
    ("exp-heavy/multimedia cap=8 gpu=0.2..0.3 part=0.8 transfer=0.2 interrupts=3 overlap=0.333", 0x21d6_d6ce_927e_cadf),
];

#[test]
fn the_bytes_of_every_generator_are_pinned() {
    let found = GOLDEN.map(|(line, _)| (line, digest(&set(line, task_set_seed(1, 2, 3)))));
    assert_eq!(found, GOLDEN);
}

/// I32: eight threads, each drawing every eighth set, yield what one thread yields.
#[test]
fn threads_do_not_matter() {
    const SETS: u64 = 96;
    let draw = |index: u64| digest(&set(GOLDEN[index as usize % GOLDEN.len()].0, task_set_seed(7, 1, index)));
    let alone: Vec<u64> = (0..SETS).map(draw).collect();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..8)
            .map(|worker| {
                scope.spawn(move || (worker..SETS).step_by(8).map(|index| (index, draw(index))).collect::<Vec<_>>())
            })
            .collect();
        for worker in workers {
            for (index, digest) in worker.join().expect("no panic") {
                assert_eq!(digest, alone[index as usize], "set {index}");
            }
        }
    });
}

#[test]
fn a_stored_provenance_replays_its_set() {
    for (line, _) in GOLDEN {
        let first = set(line, 42);
        let replayed: Provenance = first.provenance.to_string().parse().expect("a provenance");
        assert_eq!(generate(&replayed.spec, replayed.seed).expect("a task set"), first);
    }
}

#[test]
fn another_seed_is_another_set() {
    let digests: std::collections::BTreeSet<u64> =
        (0..100).map(|replicate| digest(&set("uni-light/short cap=4", task_set_seed(0, 0, replicate)))).collect();
    assert_eq!(digests.len(), 100);
}

#[test]
fn a_hopeless_discard_says_so_and_names_the_way_out() {
    let spec: GeneratorSpec = "uunifast-discard/short n=30 total=29".parse().expect("valid, if hopeless");
    let error = generate(&spec, 1).expect_err("one vector in 10^40 is kept").to_string();
    for part in ["uunifast-discard", "10000 draws", "30 tasks", "total utilization 29", "randfixedsum"] {
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(set("randfixedsum/short n=30 total=29", 1).total_utilization(), millis(29_000).utilization());
    assert_eq!(set("pair-exchange/short n=30 total=29", 1).total_utilization(), millis(29_000).utilization());
    assert_eq!(set("dirichlet-rescale/short n=30 total=29", 1).total_utilization(), millis(29_000).utilization());
}

#[test]
fn more_tasks_than_supported_are_an_error() {
    let spec: GeneratorSpec = "uniform(0.001,0.002)/short cap=100".parse().expect("a generator");
    let error = generate(&spec, 1).expect_err("66,000 tasks").to_string();
    assert!(error.contains("10000 tasks") && error.contains("cap 100"), "{error}");
}
