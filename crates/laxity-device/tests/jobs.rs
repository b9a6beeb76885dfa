//! Jobs that use GPUs: with tokens and engine locks where there is an arbitration, and without.

mod support;

use std::sync::mpsc::channel;
use std::thread;

use laxity_device::{Device, DeviceError, DeviceOptions};
use laxity_gpu::{Base, Snapshot};
use laxity_model::{CopyDirection, Engine, GpuSync, Nanos};
use laxity_softgpu::{GpuError, What};
use support::{PATIENCE, Place, history, options, until};

const BASE: Base = Base::Fixed(10);

fn device(options: &DeviceOptions) -> Device {
    Device::open(options).unwrap_or_else(|error| panic!("{error}"))
}

fn snapshot(device: &Device) -> Snapshot {
    device.arbitration().expect("there is one").snapshot().expect("whole")
}

/// The holders of tokens, by name.
fn holders(device: &Device) -> Vec<String> {
    let snapshot = snapshot(device);
    let holders = snapshot.tokens.holders.iter().flatten();
    holders.map(|&id| snapshot.client(id).expect("it is registered").name.clone()).collect()
}

fn arbitrated(test: &str, sync: GpuSync) -> (Place, Device) {
    let place = Place::new(test);
    let arbitration = place.arbitrate(1, sync);
    let device = device(&DeviceOptions { arbitration: Some(arbitration), ..options(test) });
    (place, device)
}

/// In through a kernel and out.
fn use_gpu(device: &Device, with: &mut laxity_device::DeviceThread, seed: u8) {
    let bytes: Vec<u8> = (0..10_000u32).map(|number| (number % 251) as u8 ^ seed).collect();
    let buffer = device.alloc(10_100).expect("memory");
    with.copy_in(&buffer, 100, &bytes).expect("copied");
    let of_kernel = buffer.clone();
    let kernel = move |view: &laxity_device::DeviceView<'_>| {
        view.write(&of_kernel, 100..10_100)?.iter_mut().for_each(|byte| *byte = !*byte);
        Ok(())
    };
    with.launch(kernel).expect("launched");
    let mut result = vec![0; 9_000];
    with.copy_out(&buffer, 1_100, &mut result).expect("copied");
    assert!(result.iter().zip(&bytes[1_000..]).all(|(result, byte)| *result == !byte));
}

#[test]
fn bytes_go_in_through_a_kernel_and_out_with_every_arbitration() {
    let plain = device(&options("plain"));
    let mut thread = plain.thread("worker", BASE).expect("a thread");
    use_gpu(&plain, &mut thread, 1);
    assert!(!thread.holds_token(), "there are none");
    for (test, chunk) in [("whole", None), ("chunks", Some(999))] {
        let (_place, device) = arbitrated(test, GpuSync { chunk, ..GpuSync::DEFAULT });
        let mut thread = device.thread("worker", BASE).expect("a thread");
        use_gpu(&device, &mut thread, 2);
        let entries = history(&device.gpus()[0]);
        let issued = |engine| entries.iter().filter(|one| (one.what, one.engine) == (What::Issued, engine)).count();
        let copies = if chunk.is_some() { [11, 10] } else { [1, 1] };
        assert_eq!([issued(Engine::Copy(0)), issued(Engine::Copy(1))], copies);
        assert_eq!(issued(Engine::Execution), 1);
    }
}

/// Libgpui's rule: the first GPU operation takes it, the end of the job lets it go (paper 003, section 5.4.3).
#[test]
fn a_job_takes_its_token_with_the_first_operation_and_keeps_it_to_its_end() {
    let (_place, device) = arbitrated("token", GpuSync::DEFAULT);
    let mut thread = device.thread("worker", BASE).expect("a thread");
    thread.begin_job(0, BASE).expect("begun");
    assert!(!thread.holds_token() && holders(&device).is_empty(), "it used no GPU yet");
    let (tell, told) = channel();
    let of_kernel = device.clone();
    let kernel = move |_: &laxity_device::DeviceView<'_>| Ok(tell.send(snapshot(&of_kernel).engines)?);
    thread.launch(kernel).expect("launched");
    let held: Vec<bool> = told.recv().expect("it ran")[0].iter().map(|engine| engine.is_held()).collect();
    assert_eq!(held, [true, false, false], "the execution engine is locked while a kernel runs");
    assert!(thread.holds_token());
    thread.copy_timed(CopyDirection::In, 1).expect("copied");
    assert_eq!(holders(&device), ["worker"]);
    assert!(snapshot(&device).engines.iter().flatten().all(|engine| !engine.is_held()), "for operations only");
    thread.end_job();
    assert!(!thread.holds_token() && holders(&device).is_empty());
}

#[test]
fn a_token_is_let_go_early_and_taken_again_when_needed() {
    let (_place, device) = arbitrated("early", GpuSync::DEFAULT);
    let mut thread = device.thread("worker", BASE).expect("a thread");
    let mut job = thread.job(0, BASE).expect("begun");
    assert_eq!(job.acquire().expect("it is free"), 0);
    assert_eq!(holders(&device), ["worker"]);
    job.release();
    assert!(holders(&device).is_empty());
    job.launch_timed(Nanos(1)).expect("launched");
    assert_eq!(job.token_gpu(), Some(0));
    drop(job);
    assert!(holders(&device).is_empty());
    // A job that begins before another has ended ends it.
    thread.begin_job(1, BASE).expect("begun");
    thread.acquire().expect("it is free");
    thread.begin_job(2, Base::Fixed(20)).expect("begun");
    assert!(holders(&device).is_empty());
    assert_eq!(snapshot(&device).clients[0].base, Base::Fixed(20));
    thread.acquire().expect("it is free");
    drop(thread);
    assert!(snapshot(&device).clients.is_empty(), "a thread that is dropped holds nothing and is forgotten");
}

#[test]
fn a_job_that_panics_lets_go_of_its_token() {
    let (_place, device) = arbitrated("panic", GpuSync::DEFAULT);
    let mut thread = device.thread("worker", BASE).expect("a thread");
    let panics = std::panic::AssertUnwindSafe(|| {
        let mut job = thread.job(0, BASE).expect("begun");
        job.acquire().expect("it is free");
        panic!("as it may");
    });
    assert!(std::panic::catch_unwind(panics).is_err());
    assert!(!thread.holds_token() && holders(&device).is_empty());
}

/// One token: while its holder is at work no other thread issues anything, and a waiter is granted it at the job's end.
#[test]
fn jobs_wait_for_the_token_where_without_an_arbitration_their_operations_mix() {
    for is_arbitrated in [true, false] {
        let place = Place::new("turns");
        let arbitration = is_arbitrated.then(|| place.arbitrate(1, GpuSync::DEFAULT));
        let device = device(&DeviceOptions { arbitration, ..options(if is_arbitrated { "turns" } else { "mix" }) });
        let (go, gone) = channel();
        thread::scope(|scope| {
            let of_other = &device;
            scope.spawn(move || {
                let mut thread = of_other.thread("other", BASE).expect("a thread");
                gone.recv_timeout(PATIENCE).expect("told");
                thread.job(0, BASE).expect("begun").launch_timed(Nanos(1)).expect("launched");
            });
            let mut thread = device.thread("first", BASE).expect("a thread");
            let mut job = thread.job(0, BASE).expect("begun");
            job.launch_timed(Nanos(1)).expect("launched");
            go.send(()).expect("it listens");
            let count = || history(&device.gpus()[0]).iter().filter(|entry| entry.what == What::Issued).count();
            if is_arbitrated {
                until("the other waits", || !snapshot(&device).tokens.waiting.is_empty());
                assert_eq!(count(), 1, "a thread that waits for a token issues nothing");
            } else {
                until("the other was served amid this job", || count() == 2);
            }
            job.launch_timed(Nanos(1)).expect("launched");
        });
        let order = history(&device.gpus()[0]).into_iter().filter(|entry| entry.what == What::Began);
        let first = device.gpus()[0].trace().expect("there").header.tasks[0].name.clone();
        assert_eq!(first, "first");
        let streams: Vec<u32> = order.map(|entry| entry.stream).collect();
        let mixed = streams[0] != streams[1];
        assert_eq!(mixed, !is_arbitrated, "{streams:?}");
    }
}

/// A long copy in chunks: a thread that waits for the copy engine gets it between two of them.
#[test]
fn an_engine_is_locked_for_each_chunk_anew() {
    let sync = GpuSync { tokens: 2, chunk: Some(1_000), ..GpuSync::DEFAULT };
    let (_place, device) = {
        let place = Place::new("chunk");
        let mut options = options("chunk");
        options.gpu.copy_rate = Some(200_000);
        options.arbitration = Some(place.arbitrate(1, sync));
        (place, device(&options))
    };
    let (begin, begun) = channel();
    thread::scope(|scope| {
        let of_long = &device;
        scope.spawn(move || {
            let mut thread = of_long.thread("long", BASE).expect("a thread");
            let mut job = thread.job(0, BASE).expect("begun");
            job.launch_timed(Nanos(1)).expect("launched");
            begin.send(()).expect("it listens");
            job.copy_timed(CopyDirection::In, 100_000).expect("copied");
        });
        begun.recv_timeout(PATIENCE).expect("told");
        let mut thread = device.thread("short", BASE).expect("a thread");
        let is_copying = || history(&device.gpus()[0]).iter().any(|entry| entry.engine == Engine::Copy(0));
        until("the long copy is under way", is_copying);
        until("its engine is locked", || snapshot(&device).engines[0][1].is_held());
        thread.job(0, BASE).expect("begun").copy_timed(CopyDirection::In, 1).expect("copied");
    });
    let trace = device.gpus()[0].trace().expect("the server is there");
    let short = trace.header.tasks.iter().position(|task| task.name == "short").expect("it copied") as u32;
    let entries = history(&device.gpus()[0]);
    let chunks = entries.iter().filter(|entry| (entry.what, entry.engine) == (What::Began, Engine::Copy(0)));
    let order: Vec<u32> = chunks.map(|entry| entry.stream).collect();
    assert_eq!((order.len(), short), (101, 1));
    assert_ne!(order.last(), order.iter().max(), "the short copy was not the last: {order:?}");
}

#[test]
fn operations_are_for_the_jobs_that_issued_them() {
    let device = device(&options("numbers"));
    let mut thread = device.thread("detector", BASE).expect("a thread");
    for number in [5, 9] {
        let mut job = thread.job(number, BASE).expect("begun");
        job.launch_timed(Nanos(1)).expect("launched");
        job.copy_timed(CopyDirection::Out, 1).expect("copied");
    }
    thread.launch_timed(Nanos(1)).expect("launched");
    let issued = history(&device.gpus()[0]).into_iter().filter(|entry| entry.what == What::Issued);
    assert_eq!(issued.map(|entry| entry.job).collect::<Vec<_>>(), [Some(5), Some(5), Some(9), Some(9), None]);
    let trace = device.gpus()[0].trace().expect("the server is there");
    assert_eq!(trace.header.tasks[0].name, "detector");
    let report = laxity_trace::check::legality(&trace.header, &trace.records, |_| None);
    assert!(report.is_clean(), "{report}");
}

#[test]
fn a_buffer_says_which_gpu_a_job_uses() {
    let place = Place::new("several");
    let arbitration = Some(place.arbitrate(2, GpuSync::DEFAULT));
    for arbitration in [arbitration, None] {
        let is_arbitrated = arbitration.is_some();
        let device =
            device(&DeviceOptions { arbitration, gpus: 2, ..options(if is_arbitrated { "several" } else { "some" }) });
        let mut thread = device.thread("worker", BASE).expect("a thread");
        let buffers = [0, 1].map(|gpu| device.alloc_on(gpu, 10).expect("memory"));
        let mut job = thread.job(0, BASE).expect("begun");
        job.copy_in(&buffers[1], 0, &[7; 10]).expect("copied");
        if is_arbitrated {
            assert_eq!(job.token_gpu(), Some(1));
            let error = job.copy_in(&buffers[0], 0, &[7; 10]).expect_err("it has a token of GPU 1");
            assert!(matches!(error, DeviceError::Elsewhere { buffer: 0, job: 1 }), "{error}");
            job.release();
        }
        job.copy_in(&buffers[0], 0, &[7; 10]).expect("copied");
        job.release();
        job.use_gpu(Some(1)).expect("it is there");
        job.launch_timed(Nanos(1)).expect("launched");
        let kernels = |gpu: usize| {
            let entries = history(&device.gpus()[gpu]);
            entries.iter().filter(|one| (one.what, one.engine) == (What::Began, Engine::Execution)).count()
        };
        assert_eq!([kernels(0), kernels(1)], [0, 1]);
        assert!(matches!(device.alloc_on(2, 1), Err(DeviceError::NoSuchGpu { gpu: 2, gpus: 2 })));
        assert!(matches!(job.use_gpu(Some(2)), Err(DeviceError::NoSuchGpu { gpu: 2, gpus: 2 })));
    }
}

#[test]
fn what_cannot_be_is_refused_with_both_numbers() {
    let place = Place::new("refused");
    let arbitration = Some(place.arbitrate(1, GpuSync::DEFAULT));
    let text = |options: &DeviceOptions| Device::open(options).expect_err("it cannot be").to_string();
    let two = DeviceOptions { arbitration: arbitration.clone(), gpus: 2, ..options("refused") };
    assert!(text(&two).starts_with("the device has 2 GPUs and its arbitration 1;"), "{}", text(&two));
    let mut single = DeviceOptions { arbitration, ..options("refused") };
    single.gpu.copy_engines = 1;
    assert!(text(&single).starts_with("the device has 1 copy engines and its arbitration 2;"), "{}", text(&single));
    assert!(matches!(Device::open(&DeviceOptions { gpus: 0, ..options("refused") }), Err(DeviceError::NoGpus)));

    let device = device(&options("refused"));
    let buffer = device.alloc(10).expect("memory");
    let mut thread = device.thread("worker", BASE).expect("a thread");
    for (offset, bytes) in [(8, 3), (usize::MAX, 3), (11, 0)] {
        let error = thread.copy_in(&buffer, offset, &vec![0; bytes]).expect_err("it is outside");
        assert!(matches!(error, DeviceError::Gpu(GpuError::Range { length: 10, .. })), "{error}");
        let error = thread.copy_out(&buffer, offset, &mut vec![0; bytes]).expect_err("it is outside");
        assert!(matches!(error, DeviceError::Gpu(GpuError::Range { length: 10, .. })), "{error}");
    }
    let error = thread.launch(|_| Err("no luck".into())).expect_err("it failed").to_string();
    assert!(error.ends_with("no luck"), "{error}");
    let error = thread.launch(|_| panic!("no way")).expect_err("it panicked").to_string();
    assert!(error.ends_with("the GPU kernel panicked: no way"), "{error}");
    thread.launch(|_| Ok(())).expect("the engine works");
}

/// GPUSync, *budget*: the signal is masked in operations; then the job lets go of everything.
#[test]
fn a_job_without_budget_lets_go_with_its_next_operation_and_goes_on_when_it_has_some() {
    let (_place, device) = arbitrated("budget", GpuSync::DEFAULT);
    let mut thread = device.thread("worker", BASE).expect("a thread");
    let budget = thread.budget().expect("there is an arbitration");
    let mut job = thread.job(0, BASE).expect("begun");
    let of_kernel = budget.clone();
    job.launch(move |_| Ok(of_kernel.exhaust()?)).expect("what is under way becomes complete");
    assert!(job.holds_token());
    assert!(matches!(job.launch_timed(Nanos(1)), Err(DeviceError::Exhausted)));
    assert!(!job.holds_token() && holders(&device).is_empty());
    budget.replenish().expect("whole");
    job.launch_timed(Nanos(1)).expect("launched");
    drop(job);
    let plain = self::device(&options("no-budget"));
    assert!(plain.thread("worker", BASE).expect("a thread").budget().is_none());
}
