//! Nodes that use a GPU.

mod support;

use std::sync::{Arc, Mutex};

use laxity_device::{Device, DeviceOptions};
use laxity_gpu::{Arbitration, Config, Registry};
use laxity_model::{GpuArbitration, GpuSync, Nanos};
use laxity_vx::{Bytes, Context, Parameter, SpawnOptions, Verified};
use support::{Place, frames, server};

const BYTES: usize = 4096;

fn device(test: &str, arbitration: Option<Arbitration>) -> Device {
    let mut options = DeviceOptions::new(&format!("vx-{}-{test}", std::process::id()));
    options.gpu.memory = 1 << 20;
    options.gpu.linger = Nanos::from_millis(50);
    options.server = Some(server());
    let copy_engines = arbitration.as_ref().map(|arbitration| arbitration.config().copy_engines);
    options.gpu.copy_engines = copy_engines.unwrap_or(options.gpu.copy_engines);
    Device::open(&DeviceOptions { arbitration, ..options }).unwrap_or_else(|error| panic!("{error}"))
}

/// What was seen of tokens: before the first operation, behind it, and after letting go early.
type Seen = Arc<Mutex<Vec<[bool; 3]>>>;

/// What a GPU kernel makes of a byte.
type Change = fn(u8) -> u8;

/// fill -> two nodes that invert and add on the GPU -> a check. Whether each holds a token is seen on the way.
fn inverting(context: &Context, device: &Device, seen: &Seen) -> Verified {
    let mut graph = context.graph("inverting");
    let [raw, inverted, added] = ["raw", "inverted", "added"].map(|name| graph.object(name, Bytes(BYTES)));
    graph.node("fill", [Parameter::output(raw)], move |job| {
        let shade = job.index() as u8;
        job.write(raw)?.fill(shade);
        Ok(())
    });
    let invert: Change = |byte| !byte;
    let add: Change = |byte| byte.wrapping_add(1);
    for (name, from, to, change) in [("invert", raw, inverted, invert), ("add", inverted, added, add)] {
        let buffer = device.alloc(BYTES).expect("memory");
        let seen = seen.clone();
        graph.node(name, [Parameter::input(from), Parameter::output(to)], move |job| {
            let (inputs, mut outputs, gpu) = job.objects_and_gpu()?;
            let before = gpu.holds_token();
            gpu.copy_in(&buffer, 0, inputs.read(from)?)?;
            let of_kernel = buffer.clone();
            gpu.launch(move |view| {
                view.write(&of_kernel, 0..BYTES)?.iter_mut().for_each(|byte| *byte = change(*byte));
                Ok(())
            })?;
            gpu.copy_out(&buffer, 0, outputs.write(to)?)?;
            let behind = gpu.holds_token();
            if name == "invert" {
                gpu.release();
            }
            seen.lock().expect("no panic").push([before, behind, gpu.holds_token()]);
            Ok(())
        });
    }
    graph.node("check", [Parameter::input(added)], move |job| {
        let expected = (!(job.index() as u8)).wrapping_add(1);
        let wrong = job.read(added)?.iter().filter(|&&byte| byte != expected).count();
        if wrong == 0 { Ok(()) } else { Err(format!("{wrong} bytes are not {expected}").into()) }
    });
    graph.verify().expect("it can be")
}

fn run(place: &Place, device: &Device) -> Vec<[bool; 3]> {
    let seen = Seen::default();
    let graph = inverting(&place.context(), device, &seen);
    let options = SpawnOptions { gpu: Some(device.clone()), ..frames(20) };
    let times = graph.spawn(&options).expect("it can be").wait().unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(times.completed, 20);
    seen.lock().expect("no panic").clone()
}

#[test]
fn nodes_use_a_gpu_without_an_arbitration() {
    let place = Place::new("gpu-plain");
    let seen = run(&place, &device("plain", None));
    assert!(seen.iter().flatten().all(|holds| !holds), "there are no tokens");
}

/// Paper 003, section 5.4.3: taken with the first operation, let go at the end, or earlier (Fig. 5.7).
#[test]
fn each_job_takes_one_token_and_lets_it_go() {
    let place = Place::new("gpu-token");
    let folder = Place::new("gpu-token-arbitration");
    let config = Config { arbitration: GpuArbitration::GpuSync(GpuSync::DEFAULT), ..Config::new(4, 1) };
    let registry = Registry::at(folder.path());
    let arbitration = registry.create_or_attach("g", &config).expect("the configuration can be");
    let seen = run(&place, &device("token", Some(arbitration.clone())));
    assert_eq!(seen.len(), 40);
    assert!(seen.iter().all(|[before, behind, _]| !before && *behind), "one job, one token: {seen:?}");
    assert_eq!(seen.iter().filter(|[.., early]| *early).count(), 20, "the one node keeps it, the other does not");
    let holders = arbitration.snapshot().expect("whole").tokens.holders;
    assert!(holders.iter().flatten().next().is_none(), "the end of a job lets it go");
}

#[test]
fn a_graph_without_a_gpu_says_so() {
    let place = Place::new("gpu-none");
    let mut graph = place.context().graph("none");
    graph.node("n", [], |job| job.gpu().map(drop).map_err(Into::into));
    let graph = graph.verify().expect("it can be");
    let failure = graph.spawn(&frames(1)).expect("it can be").wait().expect_err("there is none");
    assert_eq!(failure.to_string(), "graph none: node n, frame 0: the graph has no GPU; spawn it with one");
}
