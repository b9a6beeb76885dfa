//! The example workloads of the repository.

use laxity_model::{Instant, Nanos, Scope, Step, Warning, Workload};

/// Every file in `examples/workloads`, with its text.
pub const EXAMPLES: &[(&str, &str)] = &[
    ("camera.toml", include_str!("../../../../examples/workloads/camera.toml")),
    ("fusion.toml", include_str!("../../../../examples/workloads/fusion.toml")),
    ("gpu_pool.toml", include_str!("../../../../examples/workloads/gpu_pool.toml")),
    ("interrupts.toml", include_str!("../../../../examples/workloads/interrupts.toml")),
    ("live-gpu.toml", include_str!("../../../../examples/workloads/live-gpu.toml")),
    ("paper002_fig1.toml", include_str!("../../../../examples/workloads/paper002_fig1.toml")),
    ("pedestrians.toml", include_str!("../../../../examples/workloads/pedestrians.toml")),
    ("pipeline.toml", include_str!("../../../../examples/workloads/pipeline.toml")),
    ("protected.toml", include_str!("../../../../examples/workloads/protected.toml")),
    ("quickstart.toml", include_str!("../../../../examples/workloads/quickstart.toml")),
    ("rover.toml", include_str!("../../../../examples/workloads/rover.toml")),
    ("stabilizer.toml", include_str!("../../../../examples/workloads/stabilizer.toml")),
    ("waters2019.toml", include_str!("../../../../examples/workloads/waters2019.toml")),
];

pub fn example(name: &str) -> Workload {
    let (file, text) = EXAMPLES.iter().find(|(file, _)| *file == name).expect("an example of this name");
    Workload::from_text(text, file).unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn the_list_above_has_every_example() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/workloads");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .expect("the folder of examples")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name in UTF-8"))
        .filter(|name| name.ends_with(".toml") || name.ends_with(".json"))
        .collect();
    files.sort();
    let listed: Vec<&str> = EXAMPLES.iter().map(|(file, _)| *file).collect();
    assert_eq!(files, listed);
}

#[test]
fn every_example_is_valid_and_survives_both_formats() {
    for (file, _) in EXAMPLES {
        let workload = example(file);
        assert_eq!(workload.validate(), Ok(()), "{file}");
        assert_eq!(Workload::from_toml(&workload.to_toml(), "written.toml").as_ref(), Ok(&workload), "{file}");
        assert_eq!(Workload::from_json(&workload.to_json(), "written.json").as_ref(), Ok(&workload), "{file}");
    }
}

#[test]
fn quickstart_has_cpu_steps_only_and_its_schedulers_overheads() {
    let workload = example("quickstart.toml");
    assert_eq!((workload.platform.cpus, workload.tasks.len()), (4, 8));
    assert!(workload.tasks.iter().flat_map(|task| &task.body).all(|step| matches!(step, Step::Cpu(_))));
    assert_eq!(workload.platform.overheads.name, "brandenburg2009-CEm-worst-aligned");
    assert_eq!(workload.warnings(), []);
}

/// Paper 002, Fig. 1.
#[test]
fn paper002_fig1_has_the_figures_three_jobs() {
    let workload = example("paper002_fig1.toml");
    let jobs: Vec<_> =
        workload.tasks.iter().map(|task| (task.wcet(), task.period, Instant::ZERO + task.phase)).collect();
    let us = Nanos::from_micros;
    assert_eq!(
        jobs,
        [
            (us(2_500), us(8_000), Instant::ZERO + us(6_500)),
            (us(6_000), us(11_000), Instant::ZERO + us(3_900)),
            (us(6_500), us(12_000), Instant::ZERO + us(1_500)),
        ]
    );
}

#[test]
fn waters2019_overloads_its_gpu_as_the_challenge_does() {
    let workload = example("waters2019.toml");
    assert_eq!(workload.tasks.len(), 10);
    // About 0.239 + 0.310 + 0.414 + 0.580 of an execution engine, to the nearest thousandth in all.
    assert_eq!(workload.warnings(), [Warning::GpuOverload { permille: 1544, gpus: 1 }]);
}

#[test]
fn pipeline_has_the_rates_of_its_comment() {
    let rates = example("pipeline.toml").graphs[0].rates().expect("rates");
    let rates: Vec<String> = rates.iter().map(ToString::to_string).collect();
    assert_eq!(rates, ["1 job in 4 ms", "4 jobs in 28 ms", "20 jobs in 84 ms"]);
}

#[test]
fn stabilizer_uses_every_kind_of_step_and_item() {
    let workload = example("stabilizer.toml");
    assert_eq!(workload.scheduler.scope, Scope::Clustered);
    assert_eq!(workload.graphs[0].edges.len(), 4);
    assert_eq!((workload.resources.len(), workload.best_effort.len(), workload.platform.gpus.len()), (2, 1, 2));
}
