//! Processes that use a GPU under an arbitration and are killed, at any instruction: those that remain get its tokens,
//! its engines and its memory.

mod support;

use std::time::Duration;

use laxity_device::{Device, DeviceOptions, DeviceThread};
use laxity_gpu::{Base, Config, Registry};
use laxity_model::{GpuArbitration, GpuSync};
use laxity_softgpu::SERVER_VARIABLE;
use laxity_testing::{Process, role};
use support::{Place, options, until};

const KILLS: u32 = 6;
const BASE: Base = Base::Background;

/// Not a test by itself: the processes that are killed, whose role is a device.
#[test]
fn child() {
    let Some((name, place)) = role() else { return };
    let arbitration = Registry::at(place).create_or_attach("g", &config()).expect("it is there");
    let device =
        Device::open(&DeviceOptions { name, arbitration: Some(arbitration), ..options("") }).expect("a device");
    let mut thread = device.thread("child", BASE).expect("there is room");
    for number in 0.. {
        job(&device, &mut thread, number);
    }
}

/// One token for all, and chunks.
fn config() -> Config {
    let sync = GpuSync { chunk: Some(100), ..GpuSync::DEFAULT };
    Config { arbitration: GpuArbitration::GpuSync(sync), ..Config::new(2, 1) }
}

/// In, through a kernel and out, which no other thread may touch meanwhile.
fn job(device: &Device, thread: &mut DeviceThread, number: u32) {
    let mut bytes = [number as u8; 1000];
    let buffer = device.alloc(1000).expect("the memory of the dead is free");
    let mut job = thread.job(number, BASE).expect("begun");
    job.copy_in(&buffer, 0, &bytes).expect("copied");
    let of_kernel = buffer.clone();
    let kernel = move |view: &laxity_device::DeviceView<'_>| {
        view.write(&of_kernel, 0..1000)?.iter_mut().for_each(|byte| *byte ^= 0xff);
        std::thread::yield_now();
        Ok(())
    };
    job.launch(kernel).expect("launched");
    job.copy_out(&buffer, 0, &mut bytes).expect("copied");
    assert!(bytes.iter().all(|byte| *byte == !(number as u8)));
}

#[test]
fn a_killed_process_leaves_the_gpu_to_the_others() {
    let place = Place::new("deaths");
    let arbitration = place.registry.create_or_attach("g", &config()).expect("the configuration can be");
    let options = DeviceOptions { arbitration: Some(arbitration), ..options("deaths") };
    let device = Device::open(&options).expect("a device");
    let mut thread = device.thread("we", BASE).expect("there is room");
    let clients = || device.arbitration().expect("there is one").snapshot().expect("whole").clients.len();
    let server = options.server.as_ref().expect("it was built");
    let mut number = 0;
    for kill in 0..KILLS {
        let mut process = Process::start_with(&place.registry, &options.name, &[(SERVER_VARIABLE, server.as_os_str())]);
        until("it takes part", || clients() == 2);
        // Somewhere else in its jobs each time.
        std::thread::sleep(Duration::from_micros(u64::from(kill) * 97 % 2000));
        process.kill();
        for _ in 0..3 {
            job(&device, &mut thread, number);
            number += 1;
        }
        until("it is forgotten", || clients() == 1);
    }
}
