//! The loader's loop: requests of processes, notes of the kernel, and its end.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use laxity_model::{Instant, Nanos, Scheduler};
use laxity_sys::clock::now;
use laxity_sys::packets::{self, Listener, Packets, Received};
use laxity_trace::Sink;
use laxity_trace::codec::TraceWriter;

use super::borrowed::Borrowed;
use super::object::{Ended, Kernel, LoadError, Plan, Written};
use super::tasks::Tasks;
use crate::intervals::{self, Interval};
use crate::layout::ShareCounters;
use crate::protocol::{ADDRESS, Answer, OthersStatus, PACKET_MAX, Request, Status};
use crate::settings::{Settings, SettingsError};
use crate::trace::{QUANTUM, header, recording};

/// Why the scheduler cannot start, or ended otherwise than asked.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// Settings.
    #[error("{0}")]
    Settings(#[from] SettingsError),
    /// The kernel.
    #[error("{0}")]
    Load(#[from] LoadError),
    /// Another one runs.
    #[error("Laxity's scheduler is in the kernel already; `laxity sched stop` ends it")]
    Running,
    /// The address.
    #[error("processes cannot reach the scheduler: {0}")]
    Listen(io::Error),
    /// The trace.
    #[error("{}: {error}", .path.display())]
    Trace {
        /// The file.
        path: PathBuf,
        /// Why it cannot be written.
        error: io::Error,
    },
    /// Threads of the kernel.
    #[error("{0}")]
    Threads(String),
    /// The kernel ended it.
    #[error("the kernel ended the scheduler ({reason}{}{message}); Linux schedules all threads, and tasks were told", if .message.is_empty() { "" } else { ": " })]
    Ended {
        /// What sched_ext calls it.
        reason: String,
        /// What it adds.
        message: String,
        /// After an error: the CPUs and the threads that could run, as sched_ext lists them.
        dump: String,
    },
}

/// What happened while the scheduler was there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Tasks that began.
    pub tasks: usize,
    /// Their jobs.
    pub completed: u64,
    /// Of these, the late ones.
    pub late: u64,
    /// Of a trace: records that were lost, and those left out because they came after a lost one.
    pub lost: Option<(u64, usize)>,
    /// How long the scheduler took, if that is asked for and not in a trace.
    pub measured: Option<Vec<Interval>>,
    /// Such times that were lost.
    pub unmeasured: u64,
}

/// The scheduler and those that ask it.
pub struct Server {
    settings: Settings,
    scheduler: Scheduler,
    dedicated: Option<usize>,
    kernel: Kernel,
    tasks: Tasks,
    borrowed: Borrowed,
    listener: Listener,
    members: BTreeMap<u64, Packets>,
    next_member: u64,
    start: Instant,
    is_stopping: bool,
}

/// How often the kernel is asked how it is, and its notes are read.
const LOOK: Nanos = Nanos::from_millis(50);

impl Server {
    /// Loads the scheduler, whose object is the file `object`.
    ///
    /// # Errors
    /// [`ServerError`]; Linux schedules as before.
    pub fn start(settings: Settings, object: &Path) -> Result<Server, ServerError> {
        let (scheduler, placement) = settings.check()?;
        if let Some(path) = &settings.trace {
            // What cannot be written at the end should not begin.
            File::create(path).map_err(|error| ServerError::Trace { path: path.clone(), error })?;
        }
        let is_traced = settings.trace.is_some();
        // Quanta begin at multiples of their length, in the trace, too.
        let start = Instant(now().0 / QUANTUM.0 * QUANTUM.0);
        let plan = Plan {
            scheduler,
            placement: &placement,
            is_traced,
            others: settings.others,
            is_measured: settings.overheads,
            is_held_measured: settings.holds,
        };
        let kernel = Kernel::load(object, &plan)?;
        // From now on processes find it.
        let listener = Listener::bind(ADDRESS).map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => ServerError::Running,
            _ => ServerError::Listen(error),
        })?;
        let tasks = Tasks::new(placement.clusters, scheduler.rule, is_traced);
        Ok(Server {
            settings,
            scheduler,
            dedicated: placement.dedicated,
            kernel,
            tasks,
            borrowed: Borrowed::default(),
            listener,
            members: BTreeMap::new(),
            next_member: 0,
            start,
            is_stopping: false,
        })
    }

    /// How it decides.
    pub fn scheduler(&self) -> Scheduler {
        self.scheduler
    }

    /// Answers until a process asks for the end, or `is_requested`, or the kernel ends the scheduler. Linux schedules all
    /// threads when this returns.
    ///
    /// # Errors
    /// [`ServerError::Ended`] with the kernel's reason; [`ServerError::Trace`].
    pub fn run(mut self, is_requested: &AtomicBool) -> Result<Outcome, ServerError> {
        let ended = loop {
            if is_requested.load(Ordering::Relaxed) || self.is_stopping {
                break None;
            }
            if let Some(ended) = self.kernel.ended() {
                break Some(ended);
            }
            self.kernel.read_notes();
            self.wait();
            self.accept();
            self.serve();
            self.tasks.refresh(&self.kernel);
        };
        self.tasks.refresh(&self.kernel);
        let outcome = self.finish()?;
        match ended {
            None => Ok(outcome),
            Some(Ended { reason, message, dump }) => Err(ServerError::Ended { reason, message, dump }),
        }
    }

    fn wait(&self) {
        let readable: Vec<_> =
            [self.listener.as_fd()].into_iter().chain(self.members.values().map(AsFd::as_fd)).collect();
        packets::wait(&readable, &[], now().saturating_add(LOOK));
    }

    fn accept(&mut self) {
        // What cannot be accepted now is accepted in the next round.
        while let Ok(Some(connection)) = self.listener.accept() {
            self.members.insert(self.next_member, connection);
            self.next_member += 1;
        }
    }

    fn serve(&mut self) {
        let mut packet = vec![0; PACKET_MAX];
        let members: Vec<u64> = self.members.keys().copied().collect();
        for member in members {
            match self.members[&member].try_receive(&mut packet) {
                Received::Nothing => {}
                Received::Packet(length) => self.answer(member, &packet[..length]),
                Received::End => {
                    self.members.remove(&member);
                    self.tasks.forget(member);
                }
            }
        }
    }

    fn answer(&mut self, member: u64, packet: &[u8]) {
        let connection = &self.members[&member];
        let brakes;
        let mut page = None;
        let answer = match serde_json::from_slice(packet) {
            Err(error) => Answer::Refused(format!("no request of this version: {error}")),
            Ok(Request::Stop) => {
                self.is_stopping = true;
                Answer::Stopping
            }
            Ok(Request::Status) => {
                self.tasks.refresh(&self.kernel);
                Answer::Status(Status {
                    policy: self.scheduler.to_string(),
                    pid: std::process::id(),
                    running: now().saturating_since(self.start),
                    clusters: self.tasks.clusters().to_vec(),
                    dedicated: self.dedicated,
                    lost: self.settings.trace.is_some().then(|| self.kernel.lost()),
                    tasks: self.tasks.status(&self.kernel),
                    interrupts: self.tasks.interrupts(&self.kernel),
                    others: others(&self.kernel),
                })
            }
            Ok(Request::Brakes) => match self.kernel.brakes() {
                Ok(found) => {
                    brakes = found;
                    page = Some(&brakes);
                    Answer::Brakes
                }
                Err(error) => Answer::Refused(error.to_string()),
            },
            Ok(Request::Handle(request)) => {
                let asks = connection.peer().map_err(|error| error.to_string());
                let handles =
                    asks.and_then(|process| self.tasks.handle(&self.kernel, &mut self.borrowed, process, &request));
                handles.map_or_else(Answer::Refused, Answer::Handles)
            }
            Ok(Request::Prepare) => match self.tasks.prepare(&self.kernel, member) {
                Ok(new) => {
                    page = new;
                    Answer::Prepared
                }
                Err(reason) => Answer::Refused(reason),
            },
            Ok(Request::Begin(begin)) => {
                let begun = connection.peer().map_err(|error| error.to_string());
                match begun.and_then(|process| self.tasks.begin(&self.kernel, member, process, begin)) {
                    Ok(begun) => {
                        page = begun.page;
                        Answer::Begun { entry: begun.entry, cluster: begun.cluster, release: begun.release }
                    }
                    Err(reason) => Answer::Refused(reason),
                }
            }
        };
        let answer = serde_json::to_vec(&answer).expect("answers have no maps");
        // A process that is gone, or does not take its answers, is no matter of others.
        let _ = match page {
            Some(page) => connection.send_with(&answer, &[page.as_fd()]),
            None => connection.try_send(&answer).map(drop),
        };
    }

    /// Ends the scheduler and writes the trace.
    fn finish(mut self) -> Result<Outcome, ServerError> {
        let lost = self.kernel.lost();
        let unmeasured = self.kernel.unmeasured();
        let Written { notes, intervals } = self.kernel.end();
        let given_back = self.borrowed.give_back();
        let (tasks, completed, late) = self.tasks.totals();
        let mut outcome = Outcome { tasks, completed, late, lost: None, measured: None, unmeasured };
        if let Some(path) = &self.settings.trace {
            let recorded = self.tasks.recorded();
            let mut recording = recording(self.scheduler, notes, self.tasks.clusters(), &recorded, self.start);
            outcome.lost = Some((lost, recording.left_out));
            let header = header(self.scheduler, self.tasks.clusters(), &recorded);
            let (cpus, is_whole) = (header.cpus, recording.left_out == 0);
            intervals::add(&mut recording.records, &intervals, self.start, cpus, is_whole);
            let written = File::create(path).and_then(|file| TraceWriter::new(file, &header)).and_then(|mut writer| {
                recording.records.iter().for_each(|record| writer.record(record.at, record.event));
                writer.finish()
            });
            written.map_err(|error| ServerError::Trace { path: path.clone(), error })?;
        }
        if self.settings.overheads && self.settings.trace.is_none() {
            outcome.measured = Some(intervals);
        }
        given_back.map_err(|error| ServerError::Threads(error.to_string()))?;
        Ok(outcome)
    }
}

/// Of each CPU on which other threads had anything.
fn others(kernel: &Kernel) -> Vec<OthersStatus> {
    let of = |(cpu, it): (usize, ShareCounters)| OthersStatus {
        cpu,
        executed: Nanos(it.had),
        throttles: it.throttles,
        throttled: Nanos(it.throttled),
        punished: Nanos(it.charged),
    };
    kernel.shares().into_iter().enumerate().filter(|(_, it)| *it != ShareCounters::default()).map(of).collect()
}
