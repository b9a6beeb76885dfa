//! What a soft GPU does for one process.

mod support;

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{channel, sync_channel};
use std::sync::{Arc, Mutex};

use laxity_model::{CopyDirection, Engine, Nanos};
use laxity_softgpu::{Config, GpuError, OpenError, Options, SoftGpu, Wait, What};
use laxity_sys::clock;
use laxity_trace::check;

use support::{PATIENCE, config, history, name, open, try_open};

#[test]
fn bytes_go_in_through_a_kernel_and_out_in_the_order_of_the_stream() {
    let gpu = open(&name("bytes"));
    let stream = gpu.stream("s").expect("a stream");
    let (input, output) = (gpu.alloc(10_000).expect("memory"), gpu.alloc(10_000).expect("memory"));
    let bytes: Vec<u8> = (0..10_000u32).map(|number| (number % 251) as u8).collect();
    stream.copy_in(&input, 0, bytes.clone()).expect("issued");
    let (from, to) = (input.clone(), output.clone());
    stream
        .launch(move |device| {
            let from = device.read(&from, 0..10_000)?;
            device.write(&to, 0..10_000)?.iter_mut().zip(from.iter()).for_each(|(to, from)| *to = !from);
            Ok(())
        })
        .expect("issued");
    let part = stream.copy_out(&output, 5..8_005).expect("issued");
    let expected: Vec<u8> = bytes[5..8_005].iter().map(|byte| !byte).collect();
    assert_eq!(part.wait(Wait::Blocking).expect("done"), expected);
    // Of the size of a word, where no word is; and none at all, at the very end.
    let word = stream.copy_out(&input, 3..11).expect("issued");
    assert_eq!(word.wait(Wait::Blocking).expect("done"), bytes[3..11]);
    let nothing = stream.copy_out(&input, 10_000..10_000).expect("issued");
    assert!(nothing.wait(Wait::Blocking).expect("done").is_empty());
    let all = stream.copy_out(&input, 0..10_000).expect("issued");
    assert_eq!(all.wait(Wait::Spinning).expect("done"), bytes);
}

/// Kernels of four streams, each of which notes whether another one runs.
#[test]
fn the_execution_engine_runs_one_kernel_at_a_time_in_the_order_of_issue() {
    let gpu = open(&name("exclusive"));
    let streams: Vec<_> = (0..4).map(|number| gpu.stream(&format!("s{number}")).expect("a stream")).collect();
    let (running, order) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
    let (go, gone) = sync_channel::<()>(0);
    let gate = gpu.stream("gate").expect("a stream");
    gate.launch(move |_| Ok(gone.recv()?)).expect("issued");
    for number in 0..40 {
        let (running, order) = (running.clone(), order.clone());
        streams[number % 4]
            .launch(move |_| {
                assert_eq!(running.fetch_add(1, Ordering::SeqCst), 0, "an engine runs one at a time");
                order.lock().expect("no panic").push(number);
                std::thread::yield_now();
                running.fetch_sub(1, Ordering::SeqCst);
                Ok(())
            })
            .expect("issued");
    }
    assert!(order.lock().expect("no panic").is_empty(), "the engine is not preempted");
    go.send(()).expect("the gate waits");
    streams.iter().for_each(|stream| stream.synchronize(Wait::Blocking).expect("no kernel failed"));
    let order = std::mem::take(&mut *order.lock().expect("no panic"));
    // While the gate was closed one of each stream queued for the engine; the next queues as its predecessor ends.
    assert_eq!(order, (0..40).collect::<Vec<_>>());
}

/// Each waits for the others to be under way: if one engine waited for another, none would go on.
#[test]
fn three_engines_work_at_once_and_a_single_copy_engine_takes_both_directions() {
    let gpu = open(&name("overlap"));
    let buffer = gpu.alloc(16).expect("memory");
    let [kernels, ins, outs] = ["k", "i", "o"].map(|name| gpu.stream(name).expect("a stream"));
    let (in_began, in_begun) = channel::<()>();
    let (go, gone) = channel::<()>();
    kernels.launch(move |_| Ok(gone.recv_timeout(PATIENCE)?)).expect("issued");
    /// Holds its copy engine until the test says so.
    struct Held(Mutex<std::sync::mpsc::Receiver<()>>, Mutex<std::sync::mpsc::Sender<()>>);
    impl AsRef<[u8]> for Held {
        fn as_ref(&self) -> &[u8] {
            if std::thread::current().name().is_some_and(|name| name.starts_with("softgpu-ce")) {
                let _ = self.1.lock().expect("no panic").send(());
                let _ = self.0.lock().expect("no panic").recv_timeout(PATIENCE);
            }
            &[1; 8]
        }
    }
    let (go_in, gone_in) = channel();
    ins.copy_in(&buffer, 0, Held(Mutex::new(gone_in), Mutex::new(in_began))).expect("issued");
    in_begun.recv_timeout(PATIENCE).expect("a copy in beside a kernel");
    let out = outs.copy_out(&buffer, 8..16).expect("issued");
    assert_eq!(out.wait(Wait::Blocking).expect("beside both").len(), 8);
    assert!(!ins.event().is_complete() && !kernels.event().is_complete());
    go_in.send(()).expect("it waits");
    go.send(()).expect("it waits");
    ins.synchronize(Wait::Blocking).expect("done");
    kernels.synchronize(Wait::Blocking).expect("done");

    let single = try_open(&name("single"), Config { copy_engines: 1, ..config() }).expect("a soft GPU");
    let (buffer, stream) = (single.alloc(1).expect("memory"), single.stream("s").expect("a stream"));
    stream.copy_in(&buffer, 0, [1]).expect("issued");
    stream.copy_out(&buffer, 0..1).expect("issued").wait(Wait::Blocking).expect("done");
    let engines: Vec<_> = history(&single).iter().map(|entry| entry.engine).collect();
    assert!(engines.iter().all(|engine| *engine == laxity_model::Engine::Copy(0)), "{engines:?}");
}

#[test]
fn a_model_keeps_an_engine_busy_no_shorter_than_it_says() {
    let gpu = try_open(&name("model"), Config { copy_rate: Some(1_000_000), ..config() }).expect("a soft GPU");
    let (stream, buffer) = (gpu.stream("s").expect("a stream"), gpu.alloc(3_000).expect("memory"));
    stream.launch_timed(Nanos::from_millis(2)).expect("issued");
    stream.copy_in(&buffer, 0, vec![0; 3_000]).expect("issued");
    stream.launch_for(Nanos::from_millis(1), |_| Ok(())).expect("issued");
    stream.synchronize(Wait::Blocking).expect("done");
    let entries = history(&gpu);
    let times = |what| entries.iter().filter(move |entry| entry.what == what).map(|entry| entry.at);
    let busy: Vec<u64> = times(What::Began).zip(times(What::Ended)).map(|(a, b)| b.saturating_since(a).0).collect();
    assert!(busy[0] >= 2_000_000 && busy[1] >= 3_000_000 && busy[2] >= 1_000_000, "{busy:?}");
}

/// A time of CPU, not of a clock: whatever else runs, a suspended thread uses none.
#[test]
fn a_blocked_waiter_does_not_use_the_cpu_and_a_spinning_one_does() {
    let gpu = open(&name("waits"));
    let stream = gpu.stream("s").expect("a stream");
    let mut used = [Wait::Blocking, Wait::Spinning].map(|wait| {
        stream.launch_timed(Nanos::from_millis(200)).expect("issued");
        let before = clock::thread_cpu_time();
        stream.synchronize(wait).expect("done");
        clock::thread_cpu_time().saturating_sub(before).0
    });
    assert!(used[0] < 20_000_000, "{used:?} ns");
    used.reverse();
    assert!(used[0] > used[1], "{used:?} ns");
}

#[test]
fn an_event_calls_back_after_its_own_operations_and_not_after_later_ones() {
    let gpu = open(&name("on-complete"));
    let stream = gpu.stream("s").expect("a stream");
    let (told, is_told) = std::sync::mpsc::channel();
    let (go, may_go) = std::sync::mpsc::channel::<()>();
    let first = stream.launch(|_| Ok(())).expect("issued");
    let last = stream
        .launch(move |_| {
            let _ = may_go.recv();
            Ok(())
        })
        .expect("issued");
    let tell = |what| {
        let told = told.clone();
        move || told.send(what).expect("the test listens")
    };
    last.on_complete(tell("last")).expect("added");
    first.on_complete(tell("first")).expect("added");
    assert_eq!(is_told.recv(), Ok("first"), "while the last one runs");
    go.send(()).expect("the kernel waits");
    stream.synchronize(Wait::Blocking).expect("complete");
    assert_eq!(is_told.recv(), Ok("last"));
}

#[test]
fn the_time_at_which_an_operation_completed_is_there_as_soon_as_it_is_complete() {
    let gpu = open(&name("completion"));
    let stream = gpu.stream("s").expect("a stream");
    for _ in 0..200 {
        let (go, gone) = sync_channel::<()>(0);
        let first = stream.launch(move |_| Ok(gone.recv()?)).expect("issued");
        let second = stream.launch(|_| Ok(())).expect("issued");
        // Asked for in the other order.
        let (later, earlier) = (second.completion(), first.completion());
        let before = clock::now();
        go.send(()).expect("it runs");
        second.wait(Wait::Spinning).expect("done");
        let after = clock::now();
        let times = [before, *earlier.get().expect("a time"), *later.get().expect("a time"), after];
        assert!(times.is_sorted(), "{times:?}");
        assert!(*first.completion().get().expect("it is complete") >= after, "the present");
    }
}

#[test]
fn callbacks_follow_what_was_issued_before_in_the_order_in_which_they_were_added() {
    let gpu = open(&name("callbacks"));
    let stream = gpu.stream("s").expect("a stream");
    let order = Arc::new(Mutex::new(Vec::new()));
    let note = |text: &'static str| {
        let order = order.clone();
        move || order.lock().expect("no panic").push(text)
    };
    stream.add_callback(note("nothing before")).expect("added");
    for (kernel, callback) in [("kernel 0", "callback 0"), ("kernel 1", "callback 1")] {
        let kernel = note(kernel);
        stream
            .launch(move |_| {
                kernel();
                Ok(())
            })
            .expect("issued");
        stream.add_callback(note(callback)).expect("added");
    }
    stream.add_callback(|| panic!("it may")).expect("added");
    stream.add_callback(note("last")).expect("added");
    stream.synchronize(Wait::Blocking).expect("no operation failed");
    let order = order.lock().expect("no panic").clone();
    let position = |text| order.iter().position(|one| *one == text).expect("it happened");
    let callbacks = ["nothing before", "callback 0", "callback 1", "last"].map(position);
    assert!(callbacks.is_sorted(), "{order:?}");
    assert!(position("kernel 0") < position("callback 0") && position("kernel 1") < position("callback 1"));
}

#[test]
fn a_kernel_that_fails_or_panics_says_so_once_and_the_engine_goes_on() {
    let gpu = open(&name("failures"));
    let stream = gpu.stream("s").expect("a stream");
    stream.launch(|_| Err("no luck".into())).expect("issued");
    let error = stream.synchronize(Wait::Blocking).expect_err("it failed");
    assert_eq!(error.to_string(), "stream s, operation 0: no luck");
    stream.launch(|_| panic!("no {}", "way")).expect("issued");
    let error = stream.synchronize(Wait::Blocking).expect_err("it panicked");
    assert_eq!(error.to_string(), "stream s, operation 1: the GPU kernel panicked: no way");
    stream.launch(|_| Ok(())).expect("issued");
    stream.synchronize(Wait::Blocking).expect("the engine works");
}

#[test]
fn bytes_that_two_operations_use_at_once_are_an_error_and_not_a_surprise() {
    let gpu = open(&name("race"));
    let buffer = gpu.alloc(16).expect("memory");
    let [kernels, copies] = ["k", "c"].map(|name| gpu.stream(name).expect("a stream"));
    let ((began, begun), (go, gone)) = (channel(), channel::<()>());
    let used = buffer.clone();
    kernels
        .launch(move |device| {
            let mut bytes = device.write(&used, 0..8)?;
            began.send(())?;
            gone.recv_timeout(PATIENCE)?;
            bytes[0] = 7;
            Ok(())
        })
        .expect("issued");
    begun.recv_timeout(PATIENCE).expect("it runs");
    copies.copy_in(&buffer, 8, [3; 8]).expect("issued");
    copies.synchronize(Wait::Blocking).expect("other bytes are free");
    copies.copy_in(&buffer, 4, [3; 8]).expect("issued");
    let error = copies.synchronize(Wait::Blocking).expect_err("a race").to_string();
    assert!(error.contains("bytes 4 to 8"), "{error}");
    go.send(()).expect("it waits");
    kernels.synchronize(Wait::Blocking).expect("it was first");
}

#[test]
fn impossible_requests_are_refused_with_the_numbers() {
    let name = name("refused");
    let gpu = open(&name);
    let (stream, buffer) = (gpu.stream("s").expect("a stream"), gpu.alloc(10).expect("memory"));
    assert!(matches!(stream.copy_in(&buffer, 8, [0; 3]), Err(GpuError::Range { start: 8, end: 11, length: 10 })));
    assert!(matches!(stream.copy_in(&buffer, usize::MAX, [0; 3]), Err(GpuError::Range { .. })));
    assert!(matches!(gpu.alloc(2 << 20), Err(GpuError::Memory { asked: 0x20_0000, largest: 0x0f_f000 })));
    assert!(matches!(gpu.stream(&"x".repeat(65)), Err(GpuError::Name(_))));
    let other = try_open(&format!("{name}-other"), config()).expect("a soft GPU");
    assert!(matches!(other.stream("o").expect("a stream").copy_out(&buffer, 0..1), Err(GpuError::Foreign)));
    let asked = Config { copy_engines: 1, ..config() };
    assert!(matches!(try_open(&name, asked), Err(OpenError::Different { .. })));
    assert!(matches!(try_open("", config()), Err(OpenError::Name(_))));
    assert!(matches!(try_open(&name, Config { copy_engines: 3, ..config() }), Err(OpenError::Config(_))));
    let nowhere = Options { server: Some("/nonexistent".into()), ..Options::default() };
    let missing = SoftGpu::open_with("missing", config(), &nowhere);
    assert!(matches!(missing, Err(OpenError::Start { .. })));

    let inside = Arc::new(Mutex::new(None));
    let (other, note) = (stream.clone(), inside.clone());
    stream
        .launch(move |_| {
            *note.lock().expect("no panic") = other.launch_timed(Nanos(1)).err();
            Ok(())
        })
        .expect("issued");
    stream.synchronize(Wait::Blocking).expect("done");
    assert!(matches!(*inside.lock().expect("no panic"), Some(GpuError::Inside)));
}

#[test]
fn more_operations_than_may_be_outstanding_wait_for_room() {
    let gpu = open(&name("many"));
    let stream = gpu.stream("s").expect("a stream");
    (0..3_000).for_each(|_| drop(stream.launch_timed(Nanos(1)).expect("issued")));
    stream.synchronize(Wait::Blocking).expect("done");
}

#[test]
fn a_dropped_buffer_is_memory_again_after_its_last_operation() {
    let gpu = open(&name("free"));
    let stream = gpu.stream("s").expect("a stream");
    for _ in 0..20 {
        let half = gpu.alloc(600 << 10).expect("the previous one was freed");
        stream.copy_in(&half, 0, vec![1; 600 << 10]).expect("issued");
        drop(half);
        stream.synchronize(Wait::Blocking).expect("done");
    }
}

#[test]
fn the_trace_of_a_soft_gpu_is_legal_and_says_soft() {
    let gpu = open(&name("trace"));
    let buffers: Vec<_> = (0..3).map(|_| gpu.alloc(64).expect("memory")).collect();
    let streams: Vec<_> = (0..3).map(|number| gpu.stream(&format!("s{number}")).expect("a stream")).collect();
    for _ in 0..20 {
        for (stream, buffer) in streams.iter().zip(&buffers) {
            stream.copy_in(buffer, 0, [1; 64]).expect("issued");
            stream.launch_timed(Nanos(1_000)).expect("issued");
            stream.copy_out(buffer, 0..64).expect("issued");
        }
    }
    streams.iter().for_each(|stream| stream.synchronize(Wait::Blocking).expect("done"));
    let trace = gpu.trace().expect("the server is there");
    assert_eq!((trace.lost, trace.header.tasks.len()), (0, 3));
    assert!(trace.header.gpus[0].name.starts_with("soft GPU "));
    assert_eq!(trace.records.len(), 20 * 3 * 3 * 3 + 1, "begin, end and interrupt of each, and the end");
    let report = check::legality(&trace.header, &trace.records, |_| None);
    assert!(report.is_clean(), "{report}");
    let policy = check::policy(&trace.header, &trace.records);
    assert!(policy.is_clean(), "{policy}");
}

/// Two processes' streams may have one name; jobs are the owner's, and any number of operations is for one.
#[test]
fn a_trace_says_whose_job_an_operation_is_for() {
    let gpu = open(&name("jobs"));
    let streams = ["detector", "tracker", "tracker"].map(|name| gpu.stream(name).expect("a stream"));
    for job in [7, 8] {
        streams[0].set_job(Some(job));
        (0..2).for_each(|_| drop(streams[0].launch_timed(Nanos(1)).expect("issued")));
    }
    streams[0].set_job(None);
    (0..5).for_each(|_| drop(streams[0].launch_timed(Nanos(1)).expect("issued")));
    streams[1..].iter().for_each(|stream| drop(stream.launch_timed(Nanos(1)).expect("issued")));
    streams.iter().for_each(|stream| stream.synchronize(Wait::Blocking).expect("done"));
    let trace = gpu.trace().expect("the server is there");
    let names: Vec<_> = trace.header.tasks.iter().map(|task| task.name.clone()).collect();
    let numbers = streams.each_ref().map(|stream| stream.number());
    assert_eq!(names, ["detector".to_owned(), format!("tracker/{}", numbers[1]), format!("tracker/{}", numbers[2])]);
    let jobs = trace.records.iter().filter_map(|record| match record.event {
        laxity_trace::Event::EngineBegin { job, .. } if job.task.0 == 0 => Some(job.index),
        _ => None,
    });
    assert_eq!(jobs.collect::<Vec<_>>(), [7, 7, 8, 8, 4, 5, 6, 7, 8]);
}

#[test]
fn a_timed_copy_occupies_the_engine_of_its_direction_for_as_long_as_the_rate_says() {
    let gpu = try_open(&name("timed"), Config { copy_rate: Some(1_000_000), ..config() }).expect("a soft GPU");
    let stream = gpu.stream("s").expect("a stream");
    for direction in [CopyDirection::In, CopyDirection::Out] {
        stream.copy_timed(direction, 1_000).expect("issued");
    }
    stream.synchronize(Wait::Blocking).expect("done");
    let entries = history(&gpu);
    for (copy, engine) in [Engine::Copy(0), Engine::Copy(1)].into_iter().enumerate() {
        let at = |what| entries.iter().find(|one| (one.what, one.index) == (what, copy as u32)).expect("it did");
        assert_eq!((at(What::Began).engine, at(What::Ended).engine), (engine, engine));
        assert!(at(What::Ended).at.saturating_since(at(What::Began).at) >= Nanos::from_millis(1));
    }
}

#[test]
fn operations_go_on_as_long_as_an_event_is_left_to_wait_for() {
    let gpu = open(&name("handles"));
    let (stream, buffer) = (gpu.stream("s").expect("a stream"), gpu.alloc(1).expect("memory"));
    stream.launch_timed(Nanos::from_millis(20)).expect("issued");
    stream.copy_in(&buffer, 0, [9]).expect("issued");
    let out = stream.copy_out(&buffer, 0..1).expect("issued");
    drop((gpu, stream, buffer));
    assert_eq!(out.wait(Wait::Blocking).expect("done"), [9]);
}

/// A kernel that runs uses device memory: until it is over, the process is there for the server, though threads of its
/// other engines hear no more.
#[test]
fn a_closing_process_is_connected_until_its_kernels_are_over() {
    let (name, config) = (name("closes"), Config { copy_rate: Some(1_000_000), ..config() });
    let [gpu, witness] = [(); 2].map(|()| try_open(&name, config).expect("a soft GPU"));
    let streams = ["kernel", "copies"].map(|name| gpu.stream(name).expect("a stream"));
    let (buffer, (began, begun)) = (gpu.alloc(1).expect("memory"), channel());
    let (go, gone) = channel::<()>();
    streams[0]
        .launch(move |_| {
            began.send(())?;
            gone.recv_timeout(PATIENCE)?;
            Ok(())
        })
        .expect("issued");
    begun.recv_timeout(PATIENCE).expect("it runs");
    // After a tenth of a second the second one begins, when its engine's thread has ended.
    streams[1].copy_timed(CopyDirection::In, 100_000).expect("issued");
    streams[1].copy_in(&buffer, 0, [1]).expect("issued");
    let has_begun = || history(&witness).iter().filter(|entry| entry.what == What::Began).count() == 3;
    let processes = || witness.usage().expect("the server is there").processes;
    let wait_until = |is_so: &dyn Fn() -> bool| {
        let start = std::time::Instant::now();
        while !is_so() {
            assert!(start.elapsed() < PATIENCE, "it never was so");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    };
    std::thread::scope(|scope| {
        let closing = scope.spawn(|| drop((gpu, streams, buffer)));
        wait_until(&has_begun);
        assert_eq!((processes(), closing.is_finished()), (2, false));
        go.send(()).expect("the kernel waits");
    });
    wait_until(&|| processes() == 1);
}

/// The thread that has the last handle is one of those that would be waited for.
#[test]
fn a_kernel_may_have_the_last_handle() {
    let gpu = open(&name("last"));
    let server = gpu.server().expect("Linux knows");
    let (stream, (began, begun)) = (gpu.stream("s").expect("a stream"), channel());
    let (go, gone) = channel::<()>();
    let theirs = gpu.clone();
    stream
        .launch(move |_| {
            began.send(())?;
            gone.recv_timeout(PATIENCE)?;
            drop(theirs);
            Ok(())
        })
        .expect("issued");
    begun.recv_timeout(PATIENCE).expect("it runs");
    drop((gpu, stream));
    go.send(()).expect("the kernel waits");
    let start = std::time::Instant::now();
    while Path::new(&format!("/proc/{server}")).exists() {
        assert!(start.elapsed() < PATIENCE, "the connection was never ended");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}
