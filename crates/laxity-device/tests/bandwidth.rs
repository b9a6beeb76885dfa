//! The bandwidth lock around operations (paper 004, section IV-B): held while a copy or a kernel is carried out, and not
//! while a thread computes or waits for its turn.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use laxity_device::{Device, DeviceError, DeviceOptions};
use laxity_gpu::Base;
use laxity_model::{CopyDirection, GpuSync, Nanos};
use support::{Place, options};

const BUDGET: u64 = 64_000_000;

fn protected(test: &str) -> (Place, Device) {
    let place = Place::new(test);
    let sync = GpuSync { chunk: Some(1 << 16), ..GpuSync::DEFAULT };
    let arbitration = place.arbitrate(1, sync);
    let opened = DeviceOptions { arbitration: Some(arbitration), bandwidth: Some(BUDGET), ..options(test) };
    (place, Device::open(&opened).unwrap_or_else(|error| panic!("{error}")))
}

#[test]
fn a_kernel_is_protected_while_it_runs_and_no_longer() {
    let (_place, device) = protected("kernel");
    let arbitration = device.arbitration().expect("it has one").clone();
    let mut thread = device.thread("worker", Base::Background).expect("a thread");
    let seen = Arc::new(AtomicU64::new(0));
    let (of_kernel, lock) = (seen.clone(), arbitration.clone());
    let look = move |_: &laxity_device::DeviceView<'_>| {
        of_kernel.store(lock.bandwidth_budget().unwrap_or(1), Ordering::SeqCst);
        Ok(())
    };
    thread.launch(look.clone()).expect("launched");
    assert_eq!(seen.load(Ordering::SeqCst), BUDGET);
    assert_eq!(arbitration.bandwidth_budget(), None, "the job computes");
    thread.protect(Some(BUDGET / 4)).expect("there is an arbitration");
    thread.launch(look.clone()).expect("launched");
    assert_eq!(seen.load(Ordering::SeqCst), BUDGET / 4, "that of the thread");
    thread.protect(None).expect("any thread may do without");
    thread.launch(look).expect("launched");
    assert_eq!(seen.load(Ordering::SeqCst), 1, "free");
    // What a failed operation held is free, too.
    thread.protect(Some(BUDGET)).expect("there is an arbitration");
    thread.launch(|_| panic!("a kernel that fails")).expect_err("it failed");
    assert_eq!(arbitration.bandwidth_budget(), None);
}

#[test]
fn each_chunk_of_a_copy_is_protected() {
    let (_place, device) = protected("copy");
    let arbitration = device.arbitration().expect("it has one").clone();
    let (is_over, held) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                held.fetch_add(u64::from(arbitration.bandwidth_budget() == Some(BUDGET)), Ordering::SeqCst);
            }
        });
        let mut thread = device.thread("worker", Base::Background).expect("a thread");
        // Until the other thread saw it: a copy may be over before that has a CPU.
        for _ in 0..10_000 {
            thread.copy_timed(CopyDirection::In, 1 << 20).expect("copied");
            if held.load(Ordering::SeqCst) > 0 {
                break;
            }
        }
        is_over.store(true, Ordering::SeqCst);
    });
    assert!(held.load(Ordering::SeqCst) > 0, "the lock was seen held during a copy");
    assert_eq!(arbitration.bandwidth_budget(), None);
}

#[test]
fn a_device_without_an_arbitration_has_no_lock_to_take() {
    let refused = Device::open(&DeviceOptions { bandwidth: Some(BUDGET), ..options("no-lock") });
    assert!(matches!(refused, Err(DeviceError::NoLock)));
    let plain = Device::open(&options("no-lock")).unwrap_or_else(|error| panic!("{error}"));
    let mut thread = plain.thread("worker", Base::Background).expect("a thread");
    assert!(matches!(thread.protect(Some(BUDGET)), Err(DeviceError::NoLock)));
    thread.launch_timed(Nanos(1)).expect("it goes on without");
}
