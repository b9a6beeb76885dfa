//! Tasks of the scheduler in the kernel of which one uses a device whose interrupts a thread of the kernel handles: what the lab
//! runs, and how a program has that thread work for its job.
//!
//!     kernel-device device=edu:0000:00:04.0,0000:00:05.0 [threads=irq/10-,irq/11-] [priority=1] [cluster=0] [after=0]
//!                   [waiter=0] [middle=100] [jobs=1] [period=1000]
//!     kernel-device device=tty:/dev/ttyS1 [bytes=8192] ...
//!
//! `edu` is a PCI device of QEMU for which the driver `uio_pci_generic` is loaded: a job has each copy something, which takes it
//! 100 ms, and waits for the interrupts. `tty` is a serial port: a job writes more than the driver's buffer holds, so that it waits
//! until the interrupt thread has sent the most. Of the threads that `laxity sched irq` has named those whose names begin like `threads`
//! work for the job meanwhile.
//! The other task, `middle` of priority 2, computes for `middle` ms in each period. `priority` is that of the one with the device,
//! which is released `after` ms before it. With `waiter` there is one more, of priority 1, which is released so many ms after the one
//! with the device and wants a lock that this one has meanwhile. Prints the longest response time of each.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use laxity_model::{Instant, Nanos};
use laxity_scx::{InterruptThread, Lock, Membership, TaskRequest};
use laxity_sys::clock::{now, thread_cpu_time};
use laxity_sys::shared_page::SharedPage;

struct Wanted {
    device: String,
    threads: Vec<String>,
    bytes: u64,
    priority: u64,
    cluster: Option<usize>,
    after: u64,
    waiter: u64,
    middle: u64,
    jobs: u64,
    period: u64,
}

impl Wanted {
    fn read() -> Result<Wanted, String> {
        let (mut device, mut threads, mut bytes, mut priority, mut after) = (String::new(), Vec::new(), 8_192, 1, 0);
        let (mut cluster, mut waiter, mut middle, mut jobs, mut period) = (None, 0, 100, 1, 1_000);
        for argument in std::env::args().skip(1) {
            let (key, value) = argument.split_once('=').ok_or_else(|| format!("{argument}: key=value is expected"))?;
            let number = || value.parse::<u64>().map_err(|error| format!("{argument}: {error}"));
            match key {
                "device" => value.clone_into(&mut device),
                "threads" => threads.extend(value.split(',').map(str::to_owned)),
                "bytes" => bytes = number()?,
                "priority" => priority = number()?,
                "cluster" => cluster = Some(number()? as usize),
                "after" => after = number()?,
                "waiter" => waiter = number()?,
                "middle" => middle = number()?,
                "jobs" => jobs = number()?,
                "period" => period = number()?,
                _ => {
                    return Err(format!(
                        "{key}: device, threads, bytes, priority, cluster, after, waiter, middle, jobs and period are known"
                    ));
                }
            }
        }
        Ok(Wanted { device, threads, bytes, priority, cluster, after, waiter, middle, jobs, period })
    }
}

/// Something that a job has work and waits for.
enum Device {
    /// Its registers, its configuration, and what is read to wait for an interrupt.
    Edu { registers: SharedPage, configuration: File, interrupts: File },
    /// Its file, and how much is written to it.
    Tty { port: File, bytes: Vec<u8> },
}

/// Registers of QEMU's `edu`, as its documentation has them (docs/specs/edu of QEMU).
mod register {
    pub const IDENTIFICATION: usize = 0x00;
    pub const INTERRUPTS: usize = 0x24;
    pub const ACKNOWLEDGE: usize = 0x64;
    pub const COPY_FROM: usize = 0x80;
    pub const COPY_TO: usize = 0x88;
    pub const COPY_LENGTH: usize = 0x90;
    pub const COPY: usize = 0x98;
    /// Begins, from memory to the device's buffer, and interrupts at the end.
    pub const BEGIN: u32 = 1 | 4;
    pub const BUFFER: u32 = 0x40000;
}

/// The command register of a PCI device, and the bit by which it sends no interrupts: the driver sets it at each.
const COMMAND: u64 = 4;
const WITHOUT_INTERRUPTS: u16 = 1 << 10;

impl Device {
    fn open(wanted: &Wanted) -> Result<Vec<Device>, String> {
        let (kind, rest) = wanted.device.split_once(':').ok_or("device=edu:ADDRESS,... or device=tty:FILE")?;
        let failed = |error: std::io::Error| format!("{rest}: {error}");
        match kind {
            "edu" => rest.split(',').map(|address| Device::edu(address).map_err(failed)).collect(),
            "tty" => {
                let port = File::options().write(true).open(rest).map_err(failed)?;
                Ok(vec![Device::Tty { port, bytes: vec![b'x'; wanted.bytes as usize] }])
            }
            _ => Err(format!("{kind}: edu and tty are known")),
        }
    }

    fn edu(address: &str) -> std::io::Result<Device> {
        let folder = format!("/sys/bus/pci/devices/{address}");
        let open = |path: String| File::options().read(true).write(true).open(path);
        let entry = fs::read_dir(format!("{folder}/uio"))?.next().ok_or(std::io::ErrorKind::NotFound)??;
        let interrupts = open(format!("/dev/{}", entry.file_name().to_string_lossy()))?;
        let registers = SharedPage::map(open(format!("{folder}/resource0"))?, 4096)?;
        let found = registers.u32(register::IDENTIFICATION).load(Ordering::Relaxed);
        assert_eq!(found & 0xffff, 0xed, "no such device");
        Ok(Device::Edu { registers, configuration: open(format!("{folder}/config"))?, interrupts })
    }

    fn begin(&mut self) -> std::io::Result<()> {
        match self {
            Device::Tty { port, bytes } => port.write_all(bytes),
            Device::Edu { registers, configuration, .. } => {
                let mut command = [0; 2];
                configuration.read_exact_at(&mut command, COMMAND)?;
                let command = u16::from_le_bytes(command) & !WITHOUT_INTERRUPTS;
                configuration.write_all_at(&command.to_le_bytes(), COMMAND)?;
                // Whatever is there: a page of memory that is not changed.
                registers.u32(register::COPY_FROM).store(0x1000, Ordering::Relaxed);
                registers.u32(register::COPY_TO).store(register::BUFFER, Ordering::Relaxed);
                registers.u32(register::COPY_LENGTH).store(64, Ordering::Relaxed);
                registers.u32(register::COPY).store(register::BEGIN, Ordering::Release);
                Ok(())
            }
        }
    }

    /// Waits for the interrupt that says that it is done.
    fn wait(&mut self) -> std::io::Result<()> {
        let Device::Edu { registers, interrupts, .. } = self else { return Ok(()) };
        interrupts.read_exact(&mut [0; 4])?;
        let raised = registers.u32(register::INTERRUPTS).load(Ordering::Acquire);
        registers.u32(register::ACKNOWLEDGE).store(raised, Ordering::Release);
        Ok(())
    }
}

/// What the owner has while it waits for its device, if another task waits for it.
static SHARED: Lock = Lock::new();

/// Uses the CPU for `cost`, whatever else happens.
fn execute(cost: Nanos) {
    let begin = thread_cpu_time();
    while thread_cpu_time().0 - begin.0 < cost.0 {}
}

/// A thread that is a task, and its longest response time.
fn task(
    membership: &Arc<Membership>,
    request: TaskRequest,
    jobs: u64,
    mut job: impl FnMut(&laxity_scx::Task) -> std::io::Result<()> + Send + 'static,
) -> thread::JoinHandle<Result<(String, Nanos), String>> {
    let membership = Arc::clone(membership);
    // In a record of Linux's scheduler it is found by its name.
    let thread = thread::Builder::new().name(request.name.clone());
    let thread = thread.spawn(move || {
        let mut task = membership.begin(&request).map_err(|error| error.to_string())?;
        let mut longest = Nanos::ZERO;
        let mut next = task.next_job();
        for _ in 0..jobs {
            job(&task).map_err(|error| format!("{}: {error}", request.name))?;
            longest = longest.max(now().saturating_since(next.release));
            // The task goes on after the last job: no other's time is its end.
            next = task.next_job();
        }
        Ok((request.name, longest))
    });
    thread.expect("there is memory for it")
}

fn run(wanted: &Wanted) -> Result<(), String> {
    let membership = Arc::new(Membership::join().map_err(|error| error.to_string())?);
    let mut devices = Device::open(wanted)?;
    let status = membership.status().map_err(|error| error.to_string())?;
    let is_ours = |name: &str| wanted.threads.iter().any(|start| name.starts_with(start));
    let ours = status.interrupts.iter().filter(|it| is_ours(&it.name));
    let threads: Result<Vec<InterruptThread>, _> = ours.map(|it| membership.interrupt_thread(it.thread)).collect();
    let threads = threads.map_err(|error| error.to_string())?;
    // All threads are tasks by then: a new control page takes Linux a grace period of RCU.
    let start = now().saturating_add(Nanos::from_millis(1_000));
    let (period, wcet) = (Nanos::from_millis(wanted.period), Nanos::from_millis(wanted.period / 2));
    let request = |name: &str, release: Instant, priority, cluster| TaskRequest {
        priority,
        cluster,
        release: Some(release),
        ..TaskRequest::periodic(name, period, wcet)
    };
    let released = |ms| start.saturating_add(Nanos::from_millis(ms));
    let locks = wanted.waiter > 0;
    let owner = request("owner", start, wanted.priority, wanted.cluster);
    let owner = task(&membership, owner, wanted.jobs, move |task| {
        execute(Nanos::from_millis(1));
        let _guard = locks.then(|| task.lock(&SHARED));
        let _expected: Vec<_> = threads.iter().map(|thread| task.expect(thread)).collect();
        devices.iter_mut().try_for_each(Device::begin)?;
        devices.iter_mut().try_for_each(Device::wait)?;
        execute(Nanos::from_millis(1));
        Ok(())
    });
    let cost = Nanos::from_millis(wanted.middle);
    let middle = task(&membership, request("middle", released(wanted.after), 2, Some(0)), wanted.jobs, move |_| {
        execute(cost);
        Ok(())
    });
    let waiter = locks.then(|| {
        task(&membership, request("waiter", released(wanted.waiter), 1, wanted.cluster), wanted.jobs, |task| {
            drop(task.lock(&SHARED));
            Ok(())
        })
    });
    for thread in [owner, middle].into_iter().chain(waiter) {
        let (name, response) = thread.join().map_err(|_| "a thread panicked".to_owned())??;
        println!("{name} response_us={}", response.0 / 1_000);
    }
    Ok(())
}

fn main() -> ExitCode {
    match Wanted::read().and_then(|wanted| run(&wanted)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}
