//! What a decision costs without Linux, and the system calls by which it might be carried out.

use std::error::Error;
use std::thread;

use laxity_model::Nanos;
use laxity_sched::{Carry, Config, Job, Parameters, Registry, Rule, Task};
use laxity_sys::clock::now;
use laxity_sys::cpu_mask::CpuMask;
use laxity_sys::scheduling::{self, Attributes, current_thread};
use laxity_sys::segment::{Format, HEADER, Segment};

use crate::turns::{Called, Futex, SAME, median, turns};

/// Jobs, or calls, of which the median is taken.
const TIMES: usize = 2000;

/// Medians in microseconds: lock, policy, links, publication. Linux is told nothing.
#[derive(Clone, Copy, Debug)]
pub struct Decisions {
    /// A job is released, and takes the CPU from another.
    pub release: f64,
    /// It completes, and the other has its CPU again.
    pub completion: f64,
}

impl Decisions {
    /// Of five tasks, three of which wait behind the two.
    pub fn measure() -> Result<Decisions, Box<dyn Error>> {
        let config = Config { tasks: 128, carry: Carry::Nothing, ..Config::new(Rule::Edf, vec![vec![0]]) };
        let system = Registry::default().create(&format!("bench-{}", std::process::id()), &config)?;
        let begin = |name: &str| system.begin(Parameters::periodic(name, Nanos::from_millis(1)));
        let release = |task: &Task, index: usize, span: Nanos| {
            let release = now();
            task.release(Job { index: index as u64, release, deadline: release + span }).map(|_| ())
        };
        let others = (0..4).map(|number| begin(&format!("{number}"))).collect::<Result<Vec<Task>, _>>()?;
        for (number, other) in others.iter().enumerate() {
            release(other, 0, Nanos::from_secs(100 + number as u64))?;
        }
        let urgent = begin("urgent")?;
        let (mut releases, mut completions) = (Vec::new(), Vec::new());
        for index in 0..TIMES {
            let start = now();
            release(&urgent, index, Nanos::from_millis(1))?;
            let released = now();
            urgent.complete()?;
            completions.push(micros(now().saturating_since(released)));
            releases.push(micros(released.saturating_since(start)));
        }
        Ok(Decisions { release: median(releases), completion: median(completions) })
    }
}

/// Medians in microseconds, on one CPU.
#[derive(Clone, Copy, Debug)]
pub struct Calls {
    /// `sched_setattr`, from one priority to another.
    pub priority: f64,
    /// `sched_setaffinity`.
    pub cpus: f64,
    /// A wake-up by futex, and the switch to the thread that wakes: what parking would need.
    pub futex: f64,
}

const FORMAT: Format = Format { magic: *b"laxbench", version: 1 };

impl Calls {
    pub fn measure() -> Result<Calls, Box<dyn Error>> {
        let memory = Segment::draft(&Registry::default().directory().join("words"), FORMAT, 4096)?;
        let words = [memory.u32(HEADER), memory.u32(HEADER + 1024)];
        let futex = turns(SAME, TIMES, |side| Called(Futex::new(words, side))) / 2.0;
        let measured = || -> std::io::Result<[f64; 2]> {
            let all = CpuMask::of_thread(current_thread())?;
            let one = CpuMask::of([scheduling::current_cpu()]);
            let classes = [50, 51].map(Attributes::fifo_not_inherited);
            one.give_to(current_thread())?;
            let priority = each(|index| classes[index % 2].give_to(0))?;
            // To and fro: one CPU, and all of them.
            let cpus = each(|index| [one, all][index % 2].give_to(current_thread()))?;
            Ok([priority, cpus])
        };
        let [priority, cpus] = thread::spawn(measured).join().expect("no panic")?;
        Ok(Calls { priority, cpus, futex })
    }
}

fn each(call: impl Fn(usize) -> std::io::Result<()>) -> std::io::Result<f64> {
    let mut spans = Vec::new();
    for index in 0..TIMES {
        let start = now();
        call(index)?;
        spans.push(micros(now().saturating_since(start)));
    }
    Ok(median(spans))
}

fn micros(span: Nanos) -> f64 {
    span.0 as f64 / 1000.0
}
