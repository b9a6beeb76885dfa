//! Periodic threads under one of Linux's classes, or under Laxity's scheduler.

use std::error::Error;

use laxity_model::{Instant, Nanos};
use laxity_sched::{Carry, Config, Parameters, Registry, Rule, System, Task};
use laxity_sys::clock::{sleep_until, thread_cpu_time};
use laxity_sys::scheduling;

/// What schedules the threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// `SCHED_FIFO`, the shorter period first, all on one CPU.
    Fifo,
    /// `SCHED_DEADLINE`, whose threads may not be kept on a CPU.
    Deadline,
    /// Laxity, by EDF on one CPU.
    Laxity(Carry),
}

/// The priority under `SCHED_FIFO` of the most urgent thread.
const HIGHEST: u8 = 60;

/// What the threads are, and how often they are released.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// The smaller the more urgent; less than 10 under `SCHED_FIFO`, as those above have one priority.
    pub rank: u8,
    /// Of its releases.
    pub period: Nanos,
    /// What it may execute in a period.
    pub budget: Nanos,
    /// The first release.
    pub start: Instant,
}

/// Where threads become periodic.
#[derive(Debug)]
pub struct Stage {
    class: Class,
    cpu: usize,
    system: Option<System>,
}

/// The calling thread, periodic.
pub enum Periodic {
    /// By a timer.
    Timer { next: Instant, period: Nanos },
    /// By Laxity.
    Task(Task),
}

impl Stage {
    pub fn new(class: Class) -> Result<Stage, Box<dyn Error>> {
        let cpu = *scheduling::usable_cpus()?.last().ok_or("this process may use no CPU")?;
        let system = match class {
            Class::Laxity(carry) => {
                let config = Config { tasks: 128, carry, ..Config::new(Rule::Edf, vec![vec![cpu as u16]]) };
                Some(Registry::default().create(&format!("bench-{}", std::process::id()), &config)?)
            }
            _ => None,
        };
        Ok(Stage { class, cpu, system })
    }

    /// The calling thread becomes periodic.
    pub fn enter(&self, Timing { rank, period, budget, start }: Timing) -> Result<Periodic, String> {
        let text = |error: &dyn Error| error.to_string();
        match (self.class, &self.system) {
            (Class::Laxity(_), Some(system)) => {
                let parameters = Parameters::periodic(format!("{} us", period.0 / 1000), period);
                let task = system.begin(parameters).map_err(|error| text(&error))?;
                task.start_at(start).map_err(|error| text(&error))?;
                return Ok(Periodic::Task(task));
            }
            (Class::Deadline, _) => {
                scheduling::set_deadline(budget, period, period).map_err(|error| text(&error))?;
            }
            _ => {
                scheduling::pin(self.cpu).map_err(|error| text(&error))?;
                scheduling::set_fifo(HIGHEST - rank).map_err(|error| text(&error))?;
            }
        }
        Ok(Periodic::Timer { next: start, period })
    }
}

impl Periodic {
    /// Waits for the next job, and answers when that was released.
    pub fn wait(&mut self) -> Instant {
        match self {
            Periodic::Timer { next, period } => {
                let release = *next;
                sleep_until(release);
                *next = release + *period;
                release
            }
            Periodic::Task(task) => task.wait_for_next_job().expect("its thread drives it").release,
        }
    }
}

/// Executes for that long, whatever preempts it meanwhile. Each step is shown `look`.
pub fn execute(span: Nanos, mut look: impl FnMut()) {
    let end = thread_cpu_time() + span;
    while thread_cpu_time() < end {
        for _ in 0..50 {
            look();
        }
    }
}
