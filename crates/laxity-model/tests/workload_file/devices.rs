//! Interrupt sources besides GPUs: `[[platform.device]]`, and the servers of their threads.

use laxity_model::{
    Arrival, CpuId, Device, Distribution, ErrorKind, ExecutionTime, InterruptHandling, Nanos, Server, ServerKind,
    Warning, Workload,
};

use crate::examples::example;
use crate::validation::breaks_in;

use ErrorKind::{BadValue, Contradiction, Duplicate, UnknownName};

const HEAD: &str =
    "laxity = 1\nname = \"w\"\n[platform]\ncpus = 4\nclusters = 2\n[[platform.device]]\nname = \"disk\"\n";

fn read(fields: &str) -> Result<Device, String> {
    let mut workload =
        Workload::from_toml(&format!("{HEAD}{fields}"), "f.toml").map_err(|errors| errors.to_string())?;
    Ok(workload.platform.devices.remove(0))
}

#[track_caller]
fn breaks(kind: ErrorKind, path: &str, words: &str, change: impl FnOnce(&mut Workload)) {
    breaks_in("gpu_pool.toml", kind, path, words, change);
}

#[test]
fn a_device_needs_a_period_and_two_halves() {
    let expected = Device {
        name: "disk".to_owned(),
        cluster: 1,
        arrival: Arrival::Periodic,
        period: Nanos::from_millis(1),
        top_half: ExecutionTime::constant(Nanos::from_micros(2)),
        bottom_half: ExecutionTime::constant(Nanos::from_micros(9)),
        interrupt_cpus: vec![CpuId(2), CpuId(3)],
        server: None,
    };
    let fields = "cluster = 1\nperiod = \"1 ms\"\ntop_half = \"2 us\"\nbottom_half = \"9 us\"";
    assert_eq!(read(fields), Ok(expected));
    assert_eq!(
        read("perod = \"1 ms\"").expect_err("nothing of that"),
        "f.toml:6:1: device 0 \"disk\": `period` is missing; write `period = \"1 ms\"`\n\
         f.toml:6:1: device 0 \"disk\": `top_half` is missing; write `top_half = \"5 us\"`\n\
         f.toml:6:1: device 0 \"disk\": `bottom_half` is missing; write `bottom_half = \"20 us\"`\n\
         f.toml:8:1: device 0 \"disk\": unknown field `perod`; did you mean `period`?"
    );
}

#[test]
fn a_sporadic_device_may_have_a_gap_and_a_thread_a_server() {
    let device = example("gpu_pool.toml").platform.devices.remove(0);
    let gap = Distribution::Uniform { min: Nanos::ZERO, max: Nanos::from_millis(2) };
    assert_eq!(device.arrival, Arrival::Sporadic { gap });
    assert_eq!(device.interrupt_cpus, [CpuId(0)]);
    let server = Server {
        kind: ServerKind::CbsHard,
        budget: Nanos::from_micros(500),
        period: Nanos::from_millis(5),
        priority: None,
    };
    assert_eq!(device.server, Some(server));
    let halves = "period = \"1 ms\"\ntop_half = \"2 us\"\nbottom_half = \"9 us\"";
    for kind in ["cbs_hard", "cbs_soft", "sporadic"] {
        let server = format!("server = {{ kind = {kind:?}, budget = \"1 ms\", period = \"9 ms\", priority = 3 }}");
        let server = read(&format!("{halves}\n{server}")).expect("a server").server.expect("it is there");
        assert_eq!((server.kind.name(), server.priority), (kind, Some(3)));
    }
    assert_eq!(
        read(&format!("{halves}\nserver = {{ kind = \"cbs_hart\", period = \"9 ms\" }}")).expect_err("two mistakes"),
        "f.toml:11:10: device 0 \"disk\" server: `budget` is missing; write `budget = \"1 ms\"`\n\
         f.toml:11:19: device 0 \"disk\" server: `kind` is the unknown word \"cbs_hart\"; did you mean `cbs_hard`?"
    );
    assert_eq!(
        read(&format!("{halves}\ngap = \"1 ms\"")).expect_err("periodic"),
        "f.toml:11:7: device 0 \"disk\": `gap` belongs to sporadic devices; write `arrival = \"sporadic\"` or remove it"
    );
}

#[test]
fn devices_are_consistent() {
    let at = |key: &str| format!("platform.device[0].{key}");
    breaks(BadValue, &at("name"), "empty", |w| w.platform.devices[0].name.clear());
    breaks(Duplicate, "platform.device[1].name", "platform.device[0]", |w| {
        let device = w.platform.devices[0].clone();
        w.platform.devices.push(device);
    });
    breaks(UnknownName, &at("cluster"), "no cluster 1", |w| w.platform.devices[0].cluster = 1);
    breaks(BadValue, &at("period"), "at least 1 ns", |w| w.platform.devices[0].period = Nanos::ZERO);
    breaks(Contradiction, &at("gap"), "longest span", |w| {
        w.platform.devices[0].arrival = Arrival::Sporadic { gap: Distribution::Constant(Nanos(u64::MAX)) };
    });
    breaks(BadValue, &at("top_half.wcet"), "at least 1 ns", |w| w.platform.devices[0].top_half.wcet = Nanos::ZERO);
    breaks(Contradiction, &at("bottom_half.actual.uniform"), "exceeds the wcet", |w| {
        w.platform.devices[0].bottom_half.wcet = Nanos(1);
    });
    breaks(BadValue, &at("interrupt_cpus"), "empty", |w| w.platform.devices[0].interrupt_cpus.clear());
    breaks(UnknownName, &at("interrupt_cpus"), "no cpu6", |w| w.platform.devices[0].interrupt_cpus.push(CpuId(6)));
}

#[test]
fn servers_fit_their_period_and_the_scheduler() {
    let server = |change: fn(&mut Server)| {
        move |w: &mut Workload| change(w.platform.devices[0].server.as_mut().expect("the example's"))
    };
    let at = |key: &str| format!("platform.device[0].server.{key}");
    breaks(BadValue, &at("budget"), "at least 1 ns", server(|it| it.budget = Nanos::ZERO));
    breaks(BadValue, &at("period"), "at least 1 ns", server(|it| it.period = Nanos::ZERO));
    breaks(
        Contradiction,
        &at("budget"),
        "budget` 500 us exceeds the server's period 499 us",
        server(|it| {
            it.period = Nanos::from_micros(499);
        }),
    );
    breaks(Contradiction, &at("priority"), "which C-FP ranks jobs and servers by", |w| {
        w.scheduler = "C-FP".parse().expect("a scheduler");
        w.tasks[0].priority = Some(1);
        w.graphs.clear();
    });
}

#[test]
fn a_device_that_never_rests_and_a_server_of_no_use_are_warnings() {
    let mut workload = example("gpu_pool.toml");
    assert_eq!(workload.warnings(), []);
    workload.platform.devices[0].bottom_half = ExecutionTime::constant(Nanos::from_micros(97));
    workload.gpu_management.handling = InterruptHandling::Linux;
    assert_eq!(
        workload.warnings().iter().map(ToString::to_string).collect::<Vec<_>>(),
        [
            "the interrupts of device \"network\" need 101 us every 100 us; they pile up without bound",
            "the server of device \"network\" has no effect: only klmirqd threads have one, and bottom halves are \
             handled by linux",
        ]
    );
    workload.platform.devices[0].bottom_half = ExecutionTime::constant(Nanos::from_micros(96));
    let device = "network".to_owned();
    assert_eq!(workload.warnings(), [Warning::UnusedServer { device, handling: "linux" }]);
}
