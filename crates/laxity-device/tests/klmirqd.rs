//! The threads of a soft GPU work at the priority of the threads that they serve, also while they wait for a CPU (paper 000,
//! section III; paper 003, section 5.3): one CPU, and a thread between the two that would not let them run.

mod support;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use laxity_device::{Device, DeviceOptions, Service};
use laxity_gpu::{Base, Inheritance};
use laxity_model::{GpuSync, Nanos};
use laxity_sys::clock;
use laxity_sys::scheduling::{self, Attributes};
use laxity_testing::skip;
use support::{Place, options, until};

/// Longer than any soft GPU takes for what the test asks of it; of CPU time, so that it does not pass while others run.
const SPIN: Nanos = Nanos::from_millis(50);

/// Whether a job at priority 30 goes on when its operation is complete though a thread at priority 20 has the CPU.
fn goes_on(device: &Device, cpu: usize) -> bool {
    let (is_done, is_over) = (&AtomicBool::new(false), &AtomicBool::new(false));
    let ((go, gone), (ready, is_ready)) = (channel(), channel());
    thread::scope(|scope| {
        scope.spawn(move || {
            scheduling::pin(cpu).expect("it may use it");
            scheduling::set_fifo(20).expect("it is permitted");
            ready.send(()).expect("the test listens");
            gone.recv().expect("told");
            let start = clock::thread_cpu_time();
            while !is_done.load(Ordering::SeqCst) && clock::thread_cpu_time().saturating_sub(start) < SPIN {
                std::hint::spin_loop();
            }
            is_over.store(true, Ordering::SeqCst);
        });
        scope
            .spawn(move || {
                scheduling::pin(cpu).expect("it may use it");
                scheduling::set_fifo(30).expect("it is permitted");
                is_ready.recv().expect("it says so");
                let mut thread = device.thread("owner", Base::Fixed(30)).expect("a thread");
                let mut job = thread.job(0, Base::Fixed(30)).expect("begun");
                job.acquire().expect("it is free");
                // It is less urgent, and so runs when this one waits.
                go.send(()).expect("it listens");
                job.launch_timed(Nanos::from_millis(1)).expect("launched");
                let was_over = is_over.load(Ordering::SeqCst);
                is_done.store(true, Ordering::SeqCst);
                !was_over
            })
            .join()
            .expect("no panic")
    })
}

/// A device whose threads in this process share `cpu`, and are scheduled by `service`.
fn device(test: &str, place: &Place, cpu: usize, service: Service) -> Device {
    let arbitration = Some(place.arbitrate(1, GpuSync::DEFAULT));
    let options = DeviceOptions { arbitration, handling: service, ..options(test) };
    let open = move || {
        scheduling::pin(cpu).expect("it may use it");
        Device::open(&options).unwrap_or_else(|error| panic!("{error}"))
    };
    // As the thread that opens it, so are its threads.
    thread::spawn(open).join().expect("no panic")
}

#[test]
fn interrupts_are_handled_at_the_owner_s_priority_and_not_when_others_leave_a_cpu() {
    let place = Place::new("starved");
    let cpu = scheduling::usable_cpus().expect("Linux says").pop().expect("there is one");
    if place.arbitrate(1, GpuSync::DEFAULT).inheritance() == Inheritance::OrderOnly {
        return skip("no SCHED_FIFO (CAP_SYS_NICE, or ulimit -r 99)");
    }
    for (test, service, expected) in [
        ("owners", Service::Owners, true),
        ("fixed", Service::Fixed(90), true),
        ("below", Service::Fixed(10), false),
        ("as-is", Service::AsIs, false),
    ] {
        let device = device(test, &place, cpu, service);
        // Other programs may take the CPU from the one in between, or have all real-time threads throttled: not always.
        assert!((0..5).any(|_| goes_on(&device, cpu) == expected), "{test}: goes on: {}", !expected);
    }
}

#[test]
fn threads_that_work_for_a_holder_have_its_priority_until_it_lets_go() {
    let place = Place::new("raised");
    let arbitration = place.arbitrate(1, GpuSync::DEFAULT);
    if arbitration.inheritance() == Inheritance::OrderOnly {
        return skip("no SCHED_FIFO (CAP_SYS_NICE, or ulimit -r 99)");
    }
    let options = DeviceOptions { arbitration: Some(arbitration), ..options("raised") };
    let device = Device::open(&options).expect("a device");
    let gpu = &device.gpus()[0];
    let threads: Vec<u32> = gpu.handling_threads().into_iter().chain(gpu.engine_threads()).collect();
    let priorities = || -> Vec<Option<u8>> {
        let of = |&thread: &u32| Attributes::of(thread).expect("it lives").fixed_priority();
        threads.iter().map(of).collect()
    };
    let device = &device;
    thread::scope(|scope| {
        let ((go, gone), (begin, begun)) = (channel::<()>(), channel());
        scope.spawn(move || {
            scheduling::set_fifo(33).expect("it is permitted");
            let mut thread = device.thread("owner", Base::Fixed(33)).expect("a thread");
            let mut job = thread.job(0, Base::Fixed(33)).expect("begun");
            let kernel = move |_: &laxity_device::DeviceView<'_>| {
                begin.send(())?;
                Ok(gone.recv()?)
            };
            job.launch(kernel).expect("launched");
        });
        begun.recv_timeout(support::PATIENCE).expect("it runs");
        assert_eq!(priorities(), [Some(33); 5]);
        go.send(()).expect("it waits");
        until("they are as they were", || priorities() == [None; 5]);
    });
}
