//! Processes that use a GPU under an arbitration and are killed, at any instruction: those that remain get its tokens,
//! its engines and its memory.

mod support;

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use laxity_device::{Device, DeviceOptions, DeviceThread};
use laxity_gpu::{Base, Config, Registry};
use laxity_model::{GpuArbitration, GpuSync};
use laxity_softgpu::SERVER_VARIABLE;
use support::{Place, options, until};

const NAME: &str = "LAXITY_TEST_DEVICE";
const PLACE: &str = "LAXITY_TEST_PLACE";
const KILLS: u32 = 6;
const BASE: Base = Base::Background;

/// Not a test by itself: the processes that are killed.
#[test]
fn child() {
    let (Ok(name), Ok(place)) = (std::env::var(NAME), std::env::var(PLACE)) else { return };
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

/// In, through a kernel and out, which nobody else may touch meanwhile.
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

struct Process(Child);

impl Process {
    fn start(options: &DeviceOptions, place: &Place) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this test"));
        command.args(["--exact", "child", "--test-threads=1"]).stdout(Stdio::null());
        command.env(SERVER_VARIABLE, options.server.as_ref().expect("it was built"));
        command.env(NAME, &options.name).env(PLACE, place.registry.directory());
        Process(command.spawn().expect("another process"))
    }

    /// Panics if it had ended by itself, which it does if it saw something wrong.
    fn kill(&mut self) {
        self.0.kill().expect("it is ours");
        let status = self.0.wait().expect("it is ours");
        assert_eq!(status.code(), None, "it was killed and did not fail");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn whoever_is_killed_leaves_the_gpu_to_the_others() {
    let place = Place::new("deaths");
    let arbitration = place.registry.create_or_attach("g", &config()).expect("the configuration can be");
    let options = DeviceOptions { arbitration: Some(arbitration), ..options("deaths") };
    let device = Device::open(&options).expect("a device");
    let mut thread = device.thread("we", BASE).expect("there is room");
    let clients = || device.arbitration().expect("there is one").snapshot().expect("whole").clients.len();
    let mut number = 0;
    for kill in 0..KILLS {
        let mut process = Process::start(&options, &place);
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
