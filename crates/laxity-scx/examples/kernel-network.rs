//! Tasks of the scheduler in the kernel of which some use network devices: what the lab measures priority inversions with.
//!
//!     kernel-network for=2000 task=NAME:PERIOD_US:PHASE_US:COST_US ...
//!                    task=NAME:PERIOD_US:PHASE_US:COST_US:GROUP:INTERFACE:16,4,64 [threads=NAME:irq/28-,irq/30-] ...
//!
//! A task computes for its cost in each job. One with a multicast group does as the GPU-using tasks of paper 000, section V, do: when
//! it has computed for a quarter of it, it sends so many datagrams to the group (of the list, the next entry in each job), computes for
//! a quarter more while the device works, waits until they all have come in at the interface with that address, and computes
//! for the rest. Of the threads that `laxity sched irq` has named those whose names begin so work for it meanwhile. Prints when the
//! first period begins, on the monotonic clock, and of each task its jobs, the longest response time, and the datagrams that did not
//! come within 100 ms.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use laxity_model::{Instant, Nanos};
use laxity_scx::{InterruptThread, Membership, Task, TaskRequest};
use laxity_sys::clock::{now, thread_cpu_time};

const PORT: u16 = 5_000;

#[derive(Clone)]
struct Wanted {
    name: String,
    period: Nanos,
    phase: Nanos,
    cost: Nanos,
    network: Option<Network>,
    /// How the names of interrupt threads that work for it begin.
    threads: Vec<String>,
}

#[derive(Clone)]
struct Network {
    group: Ipv4Addr,
    interface: Ipv4Addr,
    /// Datagrams of each job.
    counts: Vec<u32>,
}

fn micros(text: &str) -> Result<Nanos, String> {
    text.parse().map(Nanos::from_micros).map_err(|error| format!("{text}: {error}"))
}

impl Wanted {
    fn read(text: &str) -> Result<Wanted, String> {
        let parts: Vec<&str> = text.split(':').collect();
        let network = match parts[..] {
            [_, _, _, _] => None,
            [_, _, _, _, group, interface, counts] => {
                let address = |text: &str| text.parse().map_err(|error| format!("{text}: {error}"));
                let counts: Result<Vec<u32>, _> = counts.split(',').map(str::parse).collect();
                let counts = counts.map_err(|error| format!("{text}: {error}"))?;
                Some(Network { group: address(group)?, interface: address(interface)?, counts })
            }
            _ => return Err(format!("{text}: NAME:PERIOD_US:PHASE_US:COST_US[:GROUP:INTERFACE:COUNTS] is expected")),
        };
        let (period, phase, cost) = (micros(parts[1])?, micros(parts[2])?, micros(parts[3])?);
        Ok(Wanted { name: parts[0].to_owned(), period, phase, cost, network, threads: Vec::new() })
    }

    /// The tasks, and for how long they are released.
    fn all() -> Result<(Vec<Wanted>, Nanos), String> {
        let (mut tasks, mut span) = (Vec::<Wanted>::new(), Nanos::from_millis(3_000));
        for argument in std::env::args().skip(1) {
            match argument.split_once('=') {
                Some(("task", task)) => tasks.push(Wanted::read(task)?),
                Some(("for", ms)) => span = micros(&format!("{ms}000"))?,
                Some(("threads", of)) => {
                    let (name, threads) = of.split_once(':').ok_or_else(|| format!("{argument}: NAME:THREAD,..."))?;
                    let task = tasks.iter_mut().find(|task| task.name == name);
                    let task = task.ok_or_else(|| format!("{argument}: no task {name} before this"))?;
                    task.threads = threads.split(',').map(str::to_owned).collect();
                }
                _ => return Err(format!("{argument}: task=, threads= and for= are known")),
            }
        }
        Ok((tasks, span))
    }
}

/// Uses the CPU for `cost`, whatever else happens.
fn execute(cost: Nanos) {
    let begin = thread_cpu_time();
    while thread_cpu_time().0 - begin.0 < cost.0 {}
}

/// The device of a task: what is sent to the group comes in again.
struct Device {
    socket: UdpSocket,
    group: SocketAddrV4,
    counts: Vec<u32>,
    lost: u32,
}

impl Device {
    fn open(network: Network) -> std::io::Result<Device> {
        let group = SocketAddrV4::new(network.group, PORT);
        let socket = UdpSocket::bind(group)?;
        socket.join_multicast_v4(&network.group, &network.interface)?;
        socket.set_multicast_loop_v4(false)?;
        socket.set_read_timeout(Some(Duration::from_millis(100)))?;
        Ok(Device { socket, group, counts: network.counts, lost: 0 })
    }

    fn begin(&self, count: u32) -> std::io::Result<()> {
        (0..count).try_for_each(|_| self.socket.send_to(&[0x5a; 256], self.group).map(drop))
    }

    fn wait(&mut self, count: u32) -> std::io::Result<()> {
        for received in 0..count {
            match self.socket.recv(&mut [0; 512]) {
                Ok(_) => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    self.lost += count - received;
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn job(task: &Task, number: usize, wanted: &Wanted, threads: &[InterruptThread], device: Option<&mut Device>) {
    let part = |quarters: u64| execute(Nanos(wanted.cost.0 / 4 * quarters));
    let Some(device) = device else { return part(4) };
    let count = device.counts[number % device.counts.len()];
    part(1);
    let _expected: Vec<_> = threads.iter().map(|thread| task.expect(thread)).collect();
    device.begin(count).expect("the device takes datagrams");
    part(1);
    device.wait(count).expect("they come in");
    part(2);
}

fn carry_out(members: &Membership, wanted: &Wanted, start: Instant, span: Nanos) -> Result<String, String> {
    let of = |error: &dyn std::fmt::Display| format!("{}: {error}", wanted.name);
    let mut device = wanted.network.clone().map(Device::open).transpose().map_err(|error| of(&error))?;
    let status = members.status().map_err(|error| of(&error))?;
    let is_ours = |name: &str| wanted.threads.iter().any(|start| name.starts_with(start));
    let ours = status.interrupts.iter().filter(|it| is_ours(&it.name));
    let threads: Result<Vec<InterruptThread>, _> = ours.map(|it| members.interrupt_thread(it.thread)).collect();
    let threads = threads.map_err(|error| of(&error))?;
    if threads.len() < wanted.threads.len() {
        return Err(format!("{}: `laxity sched irq` has not named all of {}", wanted.name, wanted.threads.join(", ")));
    }
    let request = TaskRequest {
        priority: wanted.period.0,
        release: Some(start.saturating_add(wanted.phase)),
        ..TaskRequest::periodic(&wanted.name, wanted.period, wanted.cost)
    };
    let mut task = members.begin(&request).map_err(|error| of(&error))?;
    let jobs = (span.0.saturating_sub(wanted.phase.0) / wanted.period.0) as usize;
    let mut longest = Nanos::ZERO;
    for number in 0..jobs {
        let this = task.next_job();
        if !this.is_scheduled {
            return Err(of(&"the scheduler ended"));
        }
        job(&task, number, wanted, &threads, device.as_mut());
        longest = longest.max(now().saturating_since(this.release));
    }
    // Complete, with the last one; then others have the CPU until this is no task any more.
    task.next_job();
    let lost = device.map_or(0, |device| device.lost);
    Ok(format!("{} jobs={jobs} response_max_us={} lost={lost}", wanted.name, longest.0 / 1_000))
}

fn run() -> Result<(), String> {
    let (tasks, span) = Wanted::all()?;
    let members = Arc::new(Membership::join().map_err(|error| error.to_string())?);
    // All threads are tasks by then (a new control page takes Linux a grace period of RCU), and Linux has told the network of
    // the groups.
    let start = now().saturating_add(Nanos::from_millis(3_000));
    println!("start_ns={}", start.0);
    let threads: Vec<_> = tasks
        .into_iter()
        .map(|wanted| {
            let members = Arc::clone(&members);
            // In a record of Linux's scheduler it is found by its name.
            let thread = thread::Builder::new().name(wanted.name.clone());
            thread.spawn(move || carry_out(&members, &wanted, start, span)).expect("there is memory for it")
        })
        .collect();
    for thread in threads {
        println!("{}", thread.join().map_err(|_| "a thread panicked".to_owned())??);
    }
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}
