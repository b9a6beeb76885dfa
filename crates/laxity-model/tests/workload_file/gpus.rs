//! How GPUs are shared: the section `[gpu_management]`, and GPU sections of bodies.

use laxity_model::{
    CpuId, Distribution, EngineOrder, ErrorKind, ExecutionTime, GpuArbitration, GpuManagement, GpuSync,
    InterruptHandling, MigrationPath, Nanos, Step, ThreadPriority, TokenHold, Warning, Workload,
};

use crate::examples::example;
use crate::validation::breaks_in;

use ErrorKind::{BadValue, Contradiction};

const HEAD: &str = "laxity = 1\nname = \"w\"\nplatform.cpus = 1\n";

fn management(fields: &str) -> GpuManagement {
    let text = format!("{HEAD}[gpu_management]\n{fields}");
    Workload::from_toml(&text, "f.toml").unwrap_or_else(|errors| panic!("{errors}")).gpu_management
}

fn refuse(fields: &str) -> String {
    let text = format!("{HEAD}[gpu_management]\n{fields}");
    Workload::from_toml(&text, "f.toml").expect_err("a mistake").to_string()
}

/// Checks that `change` to the example breaks exactly one rule, at `path`, with a message that contains `words`.
#[track_caller]
fn breaks(kind: ErrorKind, path: &str, words: &str, change: impl FnOnce(&mut Workload)) {
    breaks_in("gpu_pool.toml", kind, path, words, change);
}

#[test]
fn every_arbitration_is_a_word_and_some_have_parameters() {
    let read = |text: &str| management(&format!("arbitration = {text}")).arbitration;
    let words = ["driver", "driver_spinning", "semaphore", "k_fmlp", "gpusync"];
    for word in words {
        assert_eq!(read(&format!("{word:?}")).name(), word);
        assert_eq!(read(&format!("{{ protocol = {word:?} }}")), read(&format!("{word:?}")));
    }
    assert_eq!(management("").arbitration, GpuArbitration::Driver);
    assert_eq!(read("\"k_fmlp\""), GpuArbitration::KFmlp { length_aware: false });
    let aware = GpuArbitration::KFmlp { length_aware: true };
    assert_eq!(read("{ protocol = \"k_fmlp\", length_aware = true }"), aware);
    assert_eq!(read("\"gpusync\""), GpuArbitration::GpuSync(GpuSync::default()));
    let all = "{ protocol = \"gpusync\", tokens = 3, fifo_length = 2, fifo_requests = 6, engine_order = \"priority\", \
               chunk = \"1 MiB\", hold = \"section\", migration = \"2 ms\", migration_path = \"host\" }";
    let expected = GpuSync {
        tokens: 3,
        fifo_length: Some(2),
        fifo_requests: Some(6),
        engine_order: EngineOrder::Priority,
        chunk: Some(1 << 20),
        hold: TokenHold::Section,
        migration: Some(Nanos::from_millis(2)),
        migration_path: MigrationPath::Host,
    };
    assert_eq!(read(all), GpuArbitration::GpuSync(expected));
}

#[test]
fn every_handling_is_a_word_and_klmirqd_may_have_threads() {
    let read = |text: &str| management(&format!("handling = {text}")).handling;
    for word in ["linux", "preempt_rt_low", "preempt_rt_high", "pai", "klmirqd"] {
        assert_eq!(read(&format!("{word:?}")).name(), word);
        assert_eq!(read(&format!("{{ method = {word:?} }}")), read(&format!("{word:?}")));
    }
    assert_eq!(read("\"preempt_rt_high\""), InterruptHandling::PreemptRt(ThreadPriority::High));
    let four = InterruptHandling::Klmirqd { threads: Some(4) };
    assert_eq!(read("{ method = \"klmirqd\", threads = 4 }"), four);
}

#[test]
fn a_half_is_a_span_or_a_worst_case_and_what_it_takes() {
    let found = management("top_half = \"16 us\"\nbottom_half = { wcet = \"16 ms\", actual = \"30 us\" }");
    assert_eq!(found.top_half, Some(ExecutionTime::constant(Nanos::from_micros(16))));
    let actual = Distribution::Constant(Nanos::from_micros(30));
    assert_eq!(found.bottom_half, Some(ExecutionTime { wcet: Nanos::from_millis(16), actual }));
    assert_eq!(management("callback = \"5 us\"").callback, Some(ExecutionTime::constant(Nanos::from_micros(5))));
}

#[test]
fn what_cannot_be_read_is_shown_with_the_way_out() {
    assert_eq!(
        refuse("arbitration = \"gpusinc\"\nhandling = \"klmirq\"\nbotom_half = \"1 us\""),
        "f.toml:5:15: gpu_management: `arbitration` is the unknown word \"gpusinc\"; did you mean `gpusync`?\n\
         f.toml:6:12: gpu_management: `handling` is the unknown word \"klmirq\"; did you mean `klmirqd`?\n\
         f.toml:7:1: gpu_management: unknown field `botom_half`; did you mean `bottom_half`?"
    );
    assert_eq!(
        refuse("arbitration = { protocol = \"k_fmlp\", tokens = 2 }"),
        "f.toml:5:38: gpu_management.arbitration: unknown field `tokens`; write one of `protocol`, `length_aware`"
    );
    assert_eq!(
        refuse("arbitration = { tokens = 2 }"),
        "f.toml:5:15: gpu_management.arbitration: `protocol` is missing; write `protocol = \"gpusync\"`"
    );
    assert_eq!(
        refuse("arbitration = 3"),
        "f.toml:5:15: gpu_management: `arbitration` is the number 3; write a name, as in \"gpusync\", or a table with \
         `protocol`"
    );
    assert_eq!(
        refuse("bottom_half = { actual = \"1 us\" }"),
        "f.toml:5:15: gpu_management.bottom_half: `wcet` is missing; write `wcet = \"1 ms\"`"
    );
}

#[test]
fn parameters_of_management_make_sense() {
    let gpusync = |change: fn(&mut GpuSync)| {
        move |w: &mut Workload| {
            let GpuArbitration::GpuSync(gpusync) = &mut w.gpu_management.arbitration else { panic!("GPUSync") };
            change(gpusync);
        }
    };
    let at = |key: &str| format!("gpu_management.arbitration.{key}");
    breaks(BadValue, &at("tokens"), "at least 1", gpusync(|it| it.tokens = 0));
    breaks(BadValue, &at("fifo_length"), "at least 1", gpusync(|it| it.fifo_length = Some(0)));
    breaks(BadValue, &at("fifo_requests"), "at least 1", gpusync(|it| it.fifo_requests = Some(0)));
    breaks(BadValue, &at("chunk"), "at least 1 B", gpusync(|it| it.chunk = Some(0)));
    let too_long = Nanos(Nanos::LONGEST.0 + 1);
    breaks(BadValue, &at("migration"), "longest span", move |w| {
        w.gpu_management.arbitration =
            GpuArbitration::GpuSync(GpuSync { migration: Some(too_long), ..GpuSync::default() });
    });
    breaks(Contradiction, &at("migration_path"), "nothing to copy", |w| {
        let gpusync = GpuSync { migration_path: MigrationPath::Host, ..GpuSync::default() };
        w.gpu_management.arbitration = GpuArbitration::GpuSync(gpusync);
    });
    // 2 GPUs, 3 tokens each, 2 requests each.
    let requests = |requests| {
        gpusync(match requests {
            12 => |it: &mut GpuSync| (it.fifo_length, it.fifo_requests) = (Some(2), Some(12)),
            _ => |it: &mut GpuSync| (it.fifo_length, it.fifo_requests) = (Some(2), Some(13)),
        })
    };
    breaks(Contradiction, &at("fifo_requests"), "13 exceeds 12, what the queues of a cluster hold", requests(13));
    let mut full = example("gpu_pool.toml");
    requests(12)(&mut full);
    assert_eq!(full.validate(), Ok(()));
    breaks(BadValue, "gpu_management.handling.threads", "at least 1", |w| {
        w.gpu_management.handling = InterruptHandling::Klmirqd { threads: Some(0) };
    });
}

#[test]
fn the_halves_of_interrupts_are_execution_times_of_an_hour_at_most() {
    let bottom =
        |wcet, actual| move |w: &mut Workload| w.gpu_management.bottom_half = Some(ExecutionTime { wcet, actual });
    let above = Distribution::Constant(Nanos(11));
    breaks(Contradiction, "gpu_management.bottom_half.actual", "exceeds the wcet, 10 ns", bottom(Nanos(10), above));
    let worst = || Distribution::WorstCase;
    breaks(BadValue, "gpu_management.bottom_half.wcet", "at least 1 ns", bottom(Nanos::ZERO, worst()));
    breaks(BadValue, "gpu_management.bottom_half.wcet", "1 h", bottom(Nanos::from_secs(3_601), worst()));
    breaks(BadValue, "gpu_management.bottom_half.wcet", "longest span", bottom(Nanos(u64::MAX), worst()));
}

/// The planner: CPU | section (in, GPU kernel, CPU, GPU kernel, out) | CPU.
fn section(workload: &mut Workload) -> &mut Vec<Step> {
    let Step::GpuSection { body } = &mut workload.tasks[0].body[1] else { panic!("a section") };
    body
}

#[test]
fn cpu_time_inside_a_section_counts() {
    let workload = example("gpu_pool.toml");
    assert_eq!(workload.tasks[0].wcet(), Nanos::from_millis(4 + 1 + 2));
    let suspension = Step::Suspend(ExecutionTime::constant(Nanos(5)));
    assert_eq!(Step::GpuSection { body: vec![suspension] }.suspension(), Nanos(5));
}

#[test]
fn gpu_sections_are_flat_and_hold_one_gpu() {
    breaks(BadValue, "task[0].body[1].gpu_section", "empty", |w| section(w).clear());
    breaks(Contradiction, "task[0].body[1].gpu_section[0].gpu_section", "inside another", |w| {
        let inner = Step::GpuSection { body: section(w).clone() };
        section(w)[0] = inner;
    });
    breaks(Contradiction, "task[0].body[1].gpu_section[0].body[0].gpu_section", "inside another", |w| {
        w.resources.push(laxity_model::Resource {
            name: "map".to_owned(),
            protocol: laxity_model::ResourceProtocol::Fifo,
            replicas: 1,
        });
        let inner = Step::GpuSection { body: section(w).clone() };
        section(w)[0] = Step::Critical { resource: 0, body: vec![inner] };
    });
    breaks(Contradiction, "task[0].body[2]", "outside the GPU sections", |w| {
        let operation = section(w)[1].clone();
        w.tasks[0].body[2] = operation;
    });
    breaks(Contradiction, "task[0].body[1].gpu_section[3].gpu", "on GPU \"second\", but", |w| {
        for (step, gpu) in [(1, 0), (3, 1)] {
            let Step::Gpu(operation) = &mut section(w)[step] else { panic!("a GPU kernel") };
            operation.gpu = Some(gpu);
        }
    });
    breaks(BadValue, "task[0].body", "no CPU time", |w| {
        section(w).remove(2);
        w.tasks[0].body = vec![w.tasks[0].body[1].clone()];
    });
}

#[test]
fn a_section_needs_a_gpu_in_reach_even_without_operations() {
    breaks(Contradiction, "task[0].body[1].gpu_section", "cluster 1 has no GPU", |w| {
        w.platform.clusters = vec![vec![CpuId(0)], (1..6).map(CpuId).collect()];
        w.tasks[0].cluster = Some(1);
        let Step::Cpu(time) = section(w)[2].clone() else { panic!("a CPU step") };
        *section(w) = vec![Step::Cpu(time)];
    });
}

#[test]
fn management_of_nothing_is_a_warning() {
    let warnings = |fields: &str| {
        let text = format!("{HEAD}[gpu_management]\n{fields}");
        Workload::from_toml(&text, "f.toml").expect("legal").warnings()
    };
    assert_eq!(warnings(""), []);
    assert_eq!(warnings("arbitration = \"driver\"\nhandling = \"linux\""), []);
    for fields in ["arbitration = \"gpusync\"", "handling = \"pai\"", "top_half = \"1 us\"", "bottom_half = \"1 us\""] {
        assert_eq!(warnings(fields), [Warning::NoGpu], "{fields}");
    }
    assert_eq!(Warning::NoGpu.to_string(), "`gpu_management` has no effect: the platform has no GPU");
    let mut devices_alone = example("gpu_pool.toml");
    devices_alone.platform.gpus.clear();
    devices_alone.gpu_management =
        GpuManagement { handling: InterruptHandling::ProcessAware, ..GpuManagement::default() };
    assert!(!devices_alone.warnings().contains(&Warning::NoGpu), "the device's interrupts are handled so");
}
