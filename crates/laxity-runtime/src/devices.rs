//! Devices that serve no job, for which timers stand in.
//!
//! ```text
//!            arrival                          top half                         bottom half
//!  (timer) ----------> thread above all jobs ----------> (done) --its number--> thread that `handling` asks for
//!                      on the CPU that the interrupt is routed to               a job of the trace
//! ```

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{Builder, JoinHandle};

use laxity_model::{CpuId, Instant, Nanos};
use laxity_sched::System;
use laxity_sys::scheduling;

use crate::jobs::Jobs;
use crate::linux::{LinuxScheduler, PRIORITY_MAX};
use crate::log::{self, JobStep, Reader, Writer};
use crate::plan::{LiveDevice, LivePlan};
use crate::stop::StopSignal;
use crate::work::Work;
use crate::worker::{Call, Started, Trigger, Worker};

/// Above all jobs and all threads that handle interrupts.
const PRIORITY: u8 = PRIORITY_MAX + 1;

/// The threads in place of devices, which raise their interrupts and execute the top halves.
#[derive(Debug, Default)]
pub(crate) struct Timers(Vec<Timer>);

#[derive(Debug)]
struct Timer {
    /// Dropped, it tells a timer that has not begun to end.
    begin: Option<Sender<Instant>>,
    thread: Option<JoinHandle<()>>,
    /// Its number in Linux.
    number: u32,
}

/// What starts with the timers.
pub(crate) struct Devices {
    pub timers: Timers,
    /// The threads of bottom halves, which end when their timers have.
    pub threads: Vec<Started>,
    /// What the timers note.
    pub readers: Vec<Reader>,
}

impl Devices {
    /// Starts both threads of each device of `plan`; `writers` are the logs of the second ones.
    ///
    /// # Errors
    /// What is refused, of which device.
    pub fn start(
        plan: &LivePlan,
        writers: Vec<Writer>,
        system: Option<&System>,
        stop: &Arc<StopSignal>,
    ) -> Result<Devices, String> {
        let mut devices = Devices { timers: Timers::default(), threads: Vec::new(), readers: Vec::new() };
        for (device, writer) in plan.devices.iter().zip(writers) {
            let in_words = |error: String| format!("device \"{}\": {error}", device.name);
            let (call, calls) = mpsc::channel();
            devices.threads.push(bottom_halves(device, calls, writer, system, stop).map_err(in_words)?);
            let (log, reader) = log::log();
            devices.readers.push(reader);
            let interrupts = Interrupts {
                cpus: device.plan.cpus.iter().map(|cpu| plan.placement.linux[cpu.index()]).collect(),
                device: device.clone(),
                log,
                call,
                stop: Arc::clone(stop),
                is_timed: false,
            };
            devices.timers.0.push(interrupts.start(plan.linux()).map_err(in_words)?);
        }
        Ok(devices)
    }
}

impl Timers {
    /// The numbers in Linux of their threads.
    pub fn numbers(&self) -> impl Iterator<Item = u32> {
        self.0.iter().map(|timer| timer.number)
    }

    /// Lets them begin: time 0 is `start`.
    pub fn begin(&self, start: Instant) {
        self.0.iter().for_each(|timer| _ = timer.begin.as_ref().map(|begin| begin.send(start)));
    }
}

impl Drop for Timers {
    /// No timer outlives the run; one that has begun is to be stopped before.
    fn drop(&mut self) {
        self.0.iter_mut().for_each(|timer| timer.begin = None);
        self.0.iter_mut().filter_map(|timer| timer.thread.take()).for_each(|thread| _ = thread.join());
    }
}

/// The thread of the bottom halves of `device`.
fn bottom_halves(
    device: &LiveDevice,
    calls: Receiver<Call>,
    log: Writer,
    system: Option<&System>,
    stop: &Arc<StopSignal>,
) -> Result<Started, String> {
    let (task, system, own_stop) = (device.task.clone(), system.cloned(), Arc::clone(stop));
    let worker = Worker {
        name: task.name.clone(),
        stack: None,
        cpus: task.cpus.clone(),
        attributes: task.attributes,
        trigger: Trigger::Calls(calls),
        stop: Arc::clone(stop),
    };
    let make = move || Jobs::new(task, None, log, Arc::default(), own_stop, system.as_ref(), None);
    worker.start(make).map_err(|error| error.to_string())
}

/// The interrupts of a device.
struct Interrupts {
    device: LiveDevice,
    /// The CPUs that they may be routed to, numbered as Linux does, in the order of the device's.
    cpus: Vec<usize>,
    log: Writer,
    call: Sender<Call>,
    stop: Arc<StopSignal>,
    /// Whether no job of the run can have the CPU while a top half has it.
    is_timed: bool,
}

impl Interrupts {
    /// Starts the thread that raises them, and waits until it is ready.
    fn start(mut self, linux: LinuxScheduler) -> Result<Timer, String> {
        let (begin, begins) = mpsc::channel();
        let (tell, told) = mpsc::sync_channel(1);
        let builder = Builder::new().name(self.device.name.replace('\0', " "));
        let thread = scheduling::spawn(builder, move || {
            let _ = scheduling::expire_on_time();
            let placed = scheduling::set_fifo(PRIORITY);
            // Threads of SCHED_DEADLINE go before it.
            self.is_timed = placed.is_ok() && linux != LinuxScheduler::Deadline;
            // Where tasks have no priorities either, it goes on without.
            let is_ready = placed.is_ok() || linux == LinuxScheduler::Other;
            let number = scheduling::current_thread();
            let _ = tell.send(if is_ready { Ok(number) } else { placed.map(|()| number) });
            if let (true, Ok(start)) = (is_ready, begins.recv()) {
                self.raise_all(start);
            }
        });
        let refused = |error: io::Error| {
            format!(
                "the thread that stands in for it is not permitted to be above all tasks: {error}; raise the limit of \
                 priorities (`ulimit -r {PRIORITY}`), or leave it out"
            )
        };
        let thread = thread.map_err(|error| format!("cannot start a thread: {error}"))?;
        match told.recv() {
            Ok(Ok(number)) => Ok(Timer { begin: Some(begin), thread: Some(thread), number }),
            Ok(Err(error)) => Err(refused(error)),
            Err(_) => Err("its thread ended before it began".to_owned()),
        }
    }

    /// Raises all interrupts of a run that begins at `start`, unless it is stopped.
    fn raise_all(mut self, start: Instant) {
        let Some(arrivals) = self.device.plan.arrivals.clone() else { return };
        let mut work = Work::new(0).expect("no memory is needed");
        let (mut at, mut index) = (Instant::ZERO, 0);
        while at < self.device.end {
            let raised = start.saturating_add(Nanos(at.0));
            self.route(index);
            if !self.stop.sleep_until_release(raised) || !self.raise(index, raised, &mut work) {
                return;
            }
            let gap = arrivals.gap.as_ref().map_or(Nanos::ZERO, |gap| self.device.draws.gap(gap, index));
            at = at.saturating_add(arrivals.period).saturating_add(gap);
            index = index.wrapping_add(1);
        }
    }

    /// Goes to the CPU that interrupt `index` is routed to.
    fn route(&self, index: u32) {
        let places: Vec<CpuId> = (0..self.cpus.len()).map(|place| CpuId(place as u16)).collect();
        let cpu = self.cpus[self.device.draws.route(&places, index).index()];
        if index == 0 || self.cpus.len() > 1 {
            // A CPU that was taken away meanwhile: then any other stands in for it.
            let _ = scheduling::pin(cpu);
        }
    }

    /// Interrupt `index` is raised. Answers whether there is still a thread for its bottom half.
    fn raise(&mut self, index: u32, raised: Instant, work: &mut Work) -> bool {
        let LiveDevice { plan, draws, number, .. } = &self.device;
        let span = draws.top_half(&plan.top_half, index);
        let of = |taken: Nanos| JobStep::TopHalf(*number, if self.is_timed { taken.0 } else { 0 });
        let (stop, mut is_done) = (&self.stop, true);
        self.log.note_span(index, of, || is_done = work.execute(span, stop, || {}));
        let deadline = raised.saturating_add(self.device.task.deadline);
        is_done && self.call.send(Call { index, deadline }).is_ok()
    }
}
