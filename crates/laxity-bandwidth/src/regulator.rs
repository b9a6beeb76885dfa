//! The regulators of some CPUs, one thread each (paper 004, section V-B and Algorithm 2).

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;

use laxity_gpu::{Arbitration, Regulation};
use laxity_model::Nanos;
use laxity_sys::scheduling;

use crate::counting::{self, Counting};
use crate::cpu::Cpu;
use crate::error::BandwidthError;
use crate::fair::{FairThread, Lost};
use crate::group::Group;
use crate::members::{Members, Regulated};
use crate::observer::Observer;
use crate::options::{Options, Throttle};
use crate::self_test;
use crate::source::Source;
use crate::throttling::{InKernel, Throttling};

/// Regulates CPUs while a thread holds the bandwidth lock of an arbitration, until this is dropped or its process ends: a
/// CPU is throttled no longer than that.
#[derive(Debug)]
pub struct Regulator {
    arbitration: Arbitration,
    options: Options,
    is_over: Arc<AtomicBool>,
    threads: Vec<(usize, JoinHandle<()>)>,
    reports: Vec<Arc<Mutex<Report>>>,
    fair: Option<FairThread>,
    group: Option<Arc<Group>>,
}

/// What the regulator of one CPU did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// The CPU.
    pub cpu: usize,
    /// Sums, as others read them, too.
    pub regulation: Regulation,
    /// Periods in which the budget was exceeded and the CPU could not be throttled: the occupier would have taken more
    /// than Linux leaves to real-time threads.
    pub let_run: u64,
    /// From when the budget was exceeded until the regulator ran, when the CPU's other threads stood still: in each
    /// throttled period, up to [`SAMPLES_MAX`].
    pub stops: Vec<Nanos>,
    /// The most that a period had beyond its budget, in bytes.
    pub excess: u64,
    /// Why it ended early.
    pub failed: Option<String>,
}

/// How many samples a report keeps.
pub const SAMPLES_MAX: usize = 100_000;

impl Regulator {
    /// Starts regulating for `arbitration`. Counting and throttling are tried on each CPU by a hog of known traffic first,
    /// which takes some tens of milliseconds.
    ///
    /// # Errors
    /// [`BandwidthError`].
    pub fn start(arbitration: &Arbitration, options: Options) -> Result<Regulator, BandwidthError> {
        options.check()?;
        let members = make_group(&options)?.map(Members::Group);
        Regulator::start_for(arbitration, Arc::new(arbitration.clone()), options, members, Arc::new(()))
    }

    /// As [`Regulator::start`], where what is regulated are `threads` of this process, which are not in a group that could be
    /// frozen: their CPUs are throttled by the occupier, and the Throttle Fair Scheduler shares those out among them by their
    /// weights. `observer` hears of all.
    ///
    /// # Errors
    /// [`BandwidthError`].
    pub fn start_for_threads(
        arbitration: &Arbitration,
        options: Options,
        threads: Vec<Regulated>,
        observer: Arc<dyn Observer>,
    ) -> Result<Regulator, BandwidthError> {
        options.check()?;
        let options = Options { throttle: Throttle::Occupier, ..options };
        let members = Some(Members::Threads(threads));
        Regulator::start_for(arbitration, Arc::new(arbitration.clone()), options, members, observer)
    }

    fn start_for(
        arbitration: &Arbitration,
        source: Arc<dyn Source>,
        options: Options,
        members: Option<Members>,
        observer: Arc<dyn Observer>,
    ) -> Result<Regulator, BandwidthError> {
        let group = members.as_ref().and_then(Members::group);
        let lost = Arc::new(Lost::default());
        let in_kernel = (options.throttle == Throttle::Kernel)
            .then(|| InKernel::join(options.punishment.unwrap_or(0.0)))
            .transpose()?;
        let mut regulator = Regulator {
            arbitration: arbitration.clone(),
            is_over: Arc::default(),
            threads: Vec::new(),
            reports: Vec::new(),
            fair: None,
            group: group.clone(),
            options: options.clone(),
        };
        for &cpu in &options.cpus {
            let counting = Counting::open(options.counter, cpu)?;
            self_test::run(arbitration, &options, cpu, in_kernel.as_ref())?;
            let report = Arc::new(Mutex::new(Report { cpu, ..Report::default() }));
            let of_cpu = Cpu {
                arbitration: arbitration.clone(),
                source: source.clone(),
                number: cpu,
                period: options.period,
                heed: options.heed,
                counting,
                throttling: Throttling::new(options.throttle, group.clone(), in_kernel.clone()),
                is_over: regulator.is_over.clone(),
                report: report.clone(),
                lost: lost.clone(),
                observer: observer.clone(),
            };
            regulator.threads.push((cpu, of_cpu.start(options.priority)?));
            regulator.reports.push(report);
        }
        let by_niceness = options.punishment.filter(|_| options.throttle != Throttle::Kernel);
        if let (Some(punishment), Some(members)) = (by_niceness, members) {
            regulator.fair = Some(FairThread::start(members, lost, punishment, options.priority)?);
        }
        Ok(regulator)
    }

    /// How it regulates.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// What was done until now, CPU by CPU.
    pub fn reports(&self) -> Vec<Report> {
        self.reports.iter().map(|report| lock(report).clone()).collect()
    }

    /// Has a program that `command` starts run on the regulated CPUs, in the group that is frozen and scheduled fairly if
    /// there is one.
    ///
    /// # Errors
    /// [`BandwidthError::Group`].
    pub fn place(&self, command: &mut std::process::Command) -> Result<(), BandwidthError> {
        let members = self.group.as_ref().map(|group| group.members()).transpose()?;
        laxity_sys::start::in_place(command, &self.options.cpus, members);
        Ok(())
    }

    /// Whether it has a group of its own for the programs it starts: without, the occupier throttles whatever runs there,
    /// and the scheduler in the kernel all that is no task of it.
    pub fn has_group(&self) -> bool {
        self.group.is_some()
    }
}

/// A group where one is needed, or where it can be had and the choice is ours.
fn make_group(options: &Options) -> Result<Option<Arc<Group>>, BandwidthError> {
    let is_needed =
        options.throttle == Throttle::Freezer || (options.punishment.is_some() && options.throttle != Throttle::Kernel);
    let cpus = options.cpus.len();
    if options.throttle == Throttle::Freezer && cpus > 1 {
        return Err(BandwidthError::FreezerOfMany { cpus });
    }
    let is_useful = is_needed || (options.throttle == Throttle::Auto && cpus == 1);
    if !is_useful {
        return Ok(None);
    }
    match Group::create(&format!("cpu{}", options.cpus[0])) {
        Ok(group) => Ok(Some(Arc::new(group))),
        Err(error) if is_needed => Err(error),
        Err(_) => Ok(None),
    }
}

/// Starts `body` on `cpu` under `SCHED_FIFO`. Answers when it has both, or why not.
pub(crate) fn start_on(
    cpu: usize,
    priority: u8,
    body: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, BandwidthError> {
    let (started, has_started) = mpsc::sync_channel(1);
    let thread = std::thread::Builder::new().name(format!("laxity-bw-{cpu}"));
    let thread = scheduling::spawn(thread, move || {
        let ready =
            scheduling::pin(cpu).map_err(|error| BandwidthError::Cpu { cpu, reason: error.to_string() }).and_then(
                |()| scheduling::set_fifo(priority).map_err(|error| BandwidthError::RealTime { priority, error }),
            );
        let is_ready = ready.is_ok();
        let _ = started.send(ready);
        if is_ready {
            body();
        }
    })
    .map_err(|error| BandwidthError::Start { what: format!("the regulator of CPU {cpu}"), error })?;
    let ended = || Err(BandwidthError::Ended { cpu, error: io::Error::other("it ended before it began") });
    has_started.recv().unwrap_or_else(|_| ended()).map(|()| thread)
}

/// What a thread that panicked left is as good as any.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Regulator {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        self.arbitration.wake_regulators();
        self.fair = None;
        for (cpu, thread) in self.threads.drain(..) {
            let _ = thread.join();
            // A thread that panicked left its claim.
            if let Ok(traffic) = counting::traffic(&self.arbitration, cpu) {
                traffic.lift();
            }
        }
    }
}
