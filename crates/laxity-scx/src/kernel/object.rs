//! `bpf/scheduler.bpf.c` in the kernel.

use std::cell::RefCell;
use std::fmt;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};

use laxity_model::{Invocation, PriorityRule, Quanta, ReadyQueueKind, Scheduler};
use libbpf_rs::libbpf_sys::{BPF_F_MMAPABLE, bpf_map_create_opts};
use libbpf_rs::{
    Link, MapCore, MapFlags, MapHandle, MapMut, MapType, Object, ObjectBuilder, PrintLevel, ProgramInput, RingBuffer,
    RingBufferBuilder, set_print,
};

use super::functions::{KERNEL_TYPES, keeps_threads};
use crate::intervals::Interval;
use crate::layout::{Fields, JobCounters, PAGE, ShareCounters};
use crate::notes::Note;
use crate::settings::{CPUS_MAX, Placement, Share};
use crate::trace::{QUANTUM, phase};

/// Why the scheduler is not in the kernel.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The object.
    #[error("{}: {error:#}; `make scheduler` builds it{said}", .path.display())]
    Open {
        /// Its file.
        path: PathBuf,
        /// Why it cannot be read.
        error: libbpf_rs::Error,
        /// What libbpf says about it.
        said: Said,
    },
    /// It is not what this program was built with.
    #[error("{}: {what} has {found} bytes, and this program knows {expected}; build both again with `make scheduler`", .path.display())]
    Size {
        /// Its file.
        path: PathBuf,
        /// A structure.
        what: &'static str,
        /// There.
        found: usize,
        /// Here.
        expected: usize,
    },
    /// The kernel's description of its types.
    #[error("the kernel does not say what it has: {0}; `laxity sched doctor` says what a kernel needs")]
    Types(String),
    /// The kernel.
    #[error("the kernel does not take the scheduler ({doing}): {error:#}{said}")]
    Kernel {
        /// What was tried.
        doing: &'static str,
        /// The answer.
        error: libbpf_rs::Error,
        /// What libbpf and the verifier say about it.
        said: Said,
    },
}

/// What libbpf said, which has the verifier's reason.
#[derive(Debug)]
pub struct Said(String);

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The reason is at the end of what may be megabytes.
        let lines: Vec<&str> = self.0.lines().filter(|line| !line.trim().is_empty()).collect();
        lines[lines.len().saturating_sub(12)..].iter().try_for_each(|line| write!(f, "\n    {line}"))
    }
}

/// libbpf has one place for all its words.
static SAID: Mutex<String> = Mutex::new(String::new());

fn hear(_: PrintLevel, text: String) {
    SAID.lock().unwrap_or_else(PoisonError::into_inner).push_str(&text);
}

fn said() -> Said {
    Said(std::mem::take(&mut *SAID.lock().unwrap_or_else(PoisonError::into_inner)))
}

fn refused(doing: &'static str) -> impl FnOnce(libbpf_rs::Error) -> LoadError {
    move |error| LoadError::Kernel { doing, error, said: said() }
}

/// How the scheduler is loaded.
pub struct Plan<'a> {
    /// How it decides.
    pub scheduler: Scheduler,
    /// On which CPUs.
    pub placement: &'a Placement,
    /// Whether it writes notes.
    pub is_traced: bool,
    /// What other threads have of each CPU at least.
    pub others: Option<Share>,
    /// Whether it writes down how long it takes.
    pub is_measured: bool,
    /// Whether it writes down how long locks are held, too.
    pub is_held_measured: bool,
}

/// A thread that becomes a task: `struct laxity_begin`.
pub struct Start {
    /// The thread.
    pub thread: u32,
    /// The task's number.
    pub number: u32,
    /// Which page, and where in it.
    pub page: u32,
    /// Its place there.
    pub entry: u32,
    /// Its cluster.
    pub cluster: u32,
    /// In ns.
    pub period: u64,
    /// In ns, from a release on.
    pub deadline: u64,
    /// Of the first job, in ns on the monotonic clock.
    pub release: u64,
    /// Whether the thread says when its jobs are released.
    pub is_told: bool,
    /// What its entry says of completions from the beginning on.
    pub is_complete: u16,
    /// When the first job is due, if it is; 0: as all are.
    pub due: u64,
    /// Under fixed priorities; the smaller first.
    pub level: u64,
    /// Of each job, in ns of CPU time; 0: none.
    pub budget: u64,
}

/// Why the scheduler ended by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// What sched_ext calls it.
    pub reason: String,
    /// What it adds.
    pub message: String,
    /// After an error: the CPUs and the threads that could run, as sched_ext lists them.
    pub dump: String,
}

/// What the kernel's side wrote down.
#[derive(Debug, Default)]
pub struct Written {
    /// What happened.
    pub notes: Vec<Note>,
    /// How long the scheduler took.
    pub intervals: Vec<Interval>,
}

/// The scheduler in the kernel. Dropping it ends the scheduler, and so does the process's end.
pub struct Kernel {
    link: Option<Link>,
    written: Option<(RingBuffer<'static>, Rc<RefCell<Written>>)>,
    object: Object,
}

/// Room for notes between two looks: at 50,000 a second for more than ten seconds, in a power of two of bytes.
const NOTES_ROOM: u32 = 1 << 26;

/// Takes the verifier's time only where it is called.
const SETUP_QUANTA: &str = "laxity_setup_quanta";

impl Kernel {
    /// Loads the object in `path` and has it schedule.
    ///
    /// # Errors
    /// [`LoadError`]; Linux schedules as before.
    pub fn load(path: &Path, plan: &Plan<'_>) -> Result<Kernel, LoadError> {
        let keeps_threads = keeps_threads(Path::new(KERNEL_TYPES)).map_err(LoadError::Types)?;
        set_print(Some((PrintLevel::Info, hear)));
        let opened = ObjectBuilder::default().open_file(path);
        let mut open = opened.map_err(|error| LoadError::Open { path: path.to_owned(), error, said: said() })?;
        let size = |what, found, expected| match found == expected {
            true => Ok(()),
            false => Err(LoadError::Size { path: path.to_owned(), what, found, expected }),
        };
        for mut map in open.maps_mut() {
            let name = map.name().to_string_lossy().into_owned();
            if name.ends_with("rodata.setting") {
                let setting = setting(plan);
                let value = map.initial_value_mut().unwrap_or_default();
                size("the setting", value.len(), setting.len())?;
                value.copy_from_slice(&setting);
            } else if name.ends_with("rodata.queue") {
                let queue = words(&[queue(&plan.scheduler)]);
                let value = map.initial_value_mut().unwrap_or_default();
                size("the kind of ready queue", value.len(), queue.len())?;
                value.copy_from_slice(&queue);
            } else if name.ends_with("rodata.hold") {
                let is_timed = words(&[u32::from(plan.is_measured && plan.is_held_measured)]);
                let value = map.initial_value_mut().unwrap_or_default();
                size("whether holds are timed", value.len(), is_timed.len())?;
                value.copy_from_slice(&is_timed);
            } else if name == "jobs" {
                size("a task", map.value_size() as usize, JobCounters::SIZE)?;
            } else if name == "notes" && (plan.is_traced || plan.is_measured) {
                map.set_max_entries(NOTES_ROOM).map_err(refused("room for notes"))?;
            }
        }
        let is_driven = plan.scheduler.invocation == Invocation::QuantumDriven;
        for mut program in open.progs_mut().filter(|program| program.name() == SETUP_QUANTA) {
            program.set_autoload(is_driven);
        }
        let (name, other) = if keeps_threads { ("laxity", "laxity_older") } else { ("laxity_older", "laxity") };
        for mut map in open.maps_mut().filter(|map| map.name() == other) {
            map.set_autocreate(false).map_err(refused("leaving out what is of other kernels"))?;
        }
        let object = open.load().map_err(refused("loading it"))?;
        let mut kernel = Kernel { link: None, written: None, object };
        kernel.set_up(plan)?;
        let mut scheduler = kernel.map_mut(name)?;
        let link = scheduler.attach_struct_ops().map_err(refused("attaching it"))?;
        kernel.link = Some(link);
        Ok(kernel)
    }

    fn set_up(&mut self, plan: &Plan<'_>) -> Result<(), LoadError> {
        let by_task = u32::from(plan.scheduler.rule != PriorityRule::Edf);
        // `enum laxity_invocation`.
        let invocation = match (plan.scheduler.invocation, plan.scheduler.quanta) {
            (Invocation::EventDriven, _) => 0,
            (Invocation::QuantumDriven, Quanta::Aligned) => 1,
            (Invocation::QuantumDriven, Quanta::Staggered) => 2,
        };
        for (number, cpus) in (0_u32..).zip(&plan.placement.clusters) {
            let cpus = u32::try_from(cpus.len()).expect("at most 64 CPUs");
            let answer = self.call("laxity_setup_cluster", &words(&[number, cpus, by_task, invocation]))?;
            assert_eq!(answer, 0, "the settings were checked");
        }
        if plan.scheduler.invocation == Invocation::QuantumDriven {
            self.call(SETUP_QUANTA, &words(&[0]))?;
        }
        if plan.is_traced || plan.is_measured {
            let written = Rc::<RefCell<Written>>::default();
            let sink = Rc::clone(&written);
            let map = self.map("notes")?;
            let mut builder = RingBufferBuilder::new();
            let take = move |bytes: &[u8]| {
                let mut sink = sink.borrow_mut();
                match bytes.len() {
                    Interval::SIZE => sink.intervals.extend(Interval::read(bytes)),
                    // A note that cannot be read leaves a gap in the order of its cluster, which the trace reports.
                    _ => sink.notes.extend(Note::read(bytes)),
                }
                0
            };
            builder.add(&map, take).map_err(refused("reading notes"))?;
            let ring = builder.build().map_err(refused("reading notes"))?;
            self.written = Some((ring, written));
        }
        Ok(())
    }

    fn map(&self, name: &str) -> Result<libbpf_rs::Map<'_>, LoadError> {
        let missing = || refused("finding its maps")(libbpf_rs::Error::from_raw_os_error(2));
        self.object.maps().find(|map| map.name() == name).ok_or_else(missing)
    }

    fn map_mut(&mut self, name: &str) -> Result<MapMut<'_>, LoadError> {
        let missing = || refused("finding its maps")(libbpf_rs::Error::from_raw_os_error(2));
        self.object.maps_mut().find(|map| map.name() == name).ok_or_else(missing)
    }

    /// Calls a program for its own sake.
    fn call(&self, name: &str, argument: &[u8]) -> Result<i32, LoadError> {
        let mut argument = argument.to_vec();
        let program = self.object.progs_mut().find(|program| program.name() == name);
        let program = program.ok_or_else(|| refused("finding its programs")(libbpf_rs::Error::from_raw_os_error(2)))?;
        let input = ProgramInput { context_in: Some(&mut argument), ..ProgramInput::default() };
        let output = program.test_run(input).map_err(refused("calling it"))?;
        Ok(output.return_value as i32)
    }

    /// Makes a thread a task; whether it could be.
    ///
    /// # Errors
    /// If the kernel does not call its program.
    pub fn begin(&self, start: &Start) -> Result<bool, LoadError> {
        let mut argument = words(&[start.thread, start.number, start.page, start.entry, start.cluster]);
        argument.extend(u16::from(start.is_told).to_ne_bytes());
        argument.extend(start.is_complete.to_ne_bytes());
        for number in [start.period, start.deadline, start.release, start.due, start.level, start.budget] {
            argument.extend(number.to_ne_bytes());
        }
        Ok(self.call("laxity_begin", &argument)? == 0)
    }

    /// Makes a thread of the kernel handle interrupts for tasks, by the first, cluster, budget, period and level of `start`;
    /// whether it could be.
    ///
    /// # Errors
    /// If the kernel does not call its program.
    pub fn handle(&self, start: &Start) -> Result<bool, LoadError> {
        let mut argument = words(&[start.thread, start.number, start.cluster, 0]);
        for number in [start.budget, start.period, start.level] {
            argument.extend(number.to_ne_bytes());
        }
        Ok(self.call("laxity_handle", &argument)? == 0)
    }

    /// A control page in place `number`, for one process.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn add_page(&self, number: u32) -> Result<MapHandle, LoadError> {
        let options = bpf_map_create_opts {
            sz: size_of::<bpf_map_create_opts>() as _,
            map_flags: BPF_F_MMAPABLE,
            ..Default::default()
        };
        let page = MapHandle::create(MapType::Array, Some("laxity_page"), 4, PAGE as u32, 1, &options);
        let page = page.map_err(refused("making a control page"))?;
        let mut content = vec![0; PAGE];
        content[..4].copy_from_slice(&1_u32.to_ne_bytes());
        page.update(&0_u32.to_ne_bytes(), &content, MapFlags::ANY).map_err(refused("writing a control page"))?;
        self.put_page(number, &page)?;
        // What ended meanwhile did not see it.
        if self.ended().is_some() {
            page.update(&0_u32.to_ne_bytes(), &vec![0; PAGE], MapFlags::ANY)
                .map_err(refused("writing a control page"))?;
        }
        Ok(page)
    }

    /// Puts `page` into place `number`, also again. When this returns all programs have ended that ran before, on all CPUs:
    /// Linux waits for them at each change of a map of maps.
    ///
    /// # Errors
    /// If the kernel does not take it.
    pub fn put_page(&self, number: u32, page: &MapHandle) -> Result<(), LoadError> {
        let descriptor = page.as_fd().as_raw_fd().to_ne_bytes();
        let pages = self.map("pages")?;
        pages.update(&number.to_ne_bytes(), &descriptor, MapFlags::ANY).map_err(refused("adding a control page"))
    }

    /// Place `number` has no page any more.
    pub fn remove_page(&self, number: u32) {
        // If not, one place less can be used.
        let _ = self.map("pages").map(|pages| pages.delete(&number.to_ne_bytes()));
    }

    /// What task `number` did.
    pub fn counters(&self, number: u32) -> Option<JobCounters> {
        let bytes = self.map("jobs").ok()?.lookup(&number.to_ne_bytes(), MapFlags::ANY).ok()??;
        JobCounters::read(&bytes)
    }

    /// The CPU of `cluster` that the job of task `number` is linked to.
    pub fn linked(&self, cluster: u32, number: u32) -> Option<usize> {
        let cpu = self.call("laxity_link_of", &words(&[cluster, number])).ok()?;
        usize::try_from(cpu).ok().filter(|&cpu| cpu < CPUS_MAX)
    }

    /// The variables of a section of their own.
    fn variables(&self, section: &str) -> Option<Vec<u8>> {
        let map = self.object.maps().find(|map| map.name().to_string_lossy().ends_with(section))?;
        map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).ok()?
    }

    fn state(&self) -> Option<Vec<u8>> {
        self.variables("bss.state")
    }

    /// The page by which regulators throttle CPUs.
    ///
    /// # Errors
    /// If it is not there.
    pub fn brakes(&self) -> Result<MapHandle, LoadError> {
        MapHandle::try_from(&self.map("brakes")?).map_err(refused("finding its maps"))
    }

    /// What other threads had on each CPU.
    pub fn shares(&self) -> Vec<ShareCounters> {
        let bytes = self.variables("bss.shares").unwrap_or_default();
        bytes.chunks_exact(ShareCounters::SIZE).filter_map(ShareCounters::read).collect()
    }

    /// Notes that did not fit into their buffer.
    pub fn lost(&self) -> u64 {
        self.state().and_then(|state| Fields::of(&state).next_u64()).unwrap_or(0)
    }

    /// Intervals that did not fit into their buffer.
    pub fn unmeasured(&self) -> u64 {
        self.state().and_then(|state| Fields::of(state.get(336..)?).next_u64()).unwrap_or(0)
    }

    /// Why it ended; `None`: it schedules.
    pub fn ended(&self) -> Option<Ended> {
        let state = self.state()?;
        let kind = Fields::of(state.get(12..)?).next_u32()?;
        let text = |bytes: &[u8]| {
            let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
            String::from_utf8_lossy(text).into_owned()
        };
        if kind == 0 {
            return None;
        }
        let dump = text(&self.variables("bss.dump").unwrap_or_default());
        Some(Ended { reason: text(&state[16..80]), message: text(&state[80..336]), dump })
    }

    /// Reads what was noted so far.
    pub fn read_notes(&self) {
        if let Some((ring, _)) = &self.written {
            // What cannot be read now is read later, or missing in the order of notes.
            let _ = ring.consume();
        }
    }

    /// Ends the scheduler. Returns all that it wrote down.
    pub fn end(&mut self) -> Written {
        self.link = None;
        self.read_notes();
        self.written.take().map(|(_, written)| written.take()).unwrap_or_default()
    }
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// `enum laxity_queue_kind`.
fn queue(scheduler: &Scheduler) -> u32 {
    match scheduler.ready_queue {
        ReadyQueueKind::Coarse => 0,
        ReadyQueueKind::Fine => 1,
        ReadyQueueKind::Hierarchical => 2,
    }
}

/// `struct laxity_setting`.
fn setting(plan: &Plan<'_>) -> Vec<u8> {
    const NONE: u16 = 0xffff;
    let (mut cluster_of, mut local_of) = ([NONE; CPUS_MAX], [NONE; CPUS_MAX]);
    let (mut first_of, mut cpu_at) = ([0_u16; CPUS_MAX], [0_u16; CPUS_MAX]);
    let short = |number: usize| u16::try_from(number).expect("at most 64");
    let mut next = 0;
    let Plan { scheduler, placement: Placement { clusters, dedicated }, .. } = plan;
    for (cluster, cpus) in clusters.iter().enumerate() {
        first_of[cluster] = short(next);
        for (local, &cpu) in cpus.iter().enumerate() {
            cluster_of[cpu] = short(cluster);
            local_of[cpu] = short(local);
            cpu_at[next] = short(cpu);
            next += 1;
        }
    }
    let mut bytes = words(&[u32::from(plan.is_traced), u32::from(scheduler.rule != PriorityRule::Edf)]);
    bytes
        .extend([cluster_of, local_of, first_of, cpu_at].as_flattened().iter().flat_map(|number| number.to_ne_bytes()));
    let others = plan.others.map_or([0; 2], |share| [share.budget.0, share.period.0]);
    let is_driven = scheduler.invocation == Invocation::QuantumDriven;
    let quantum = if is_driven { QUANTUM.0 } else { 0 };
    let phases: [u64; CPUS_MAX] = std::array::from_fn(|cpu| phase(scheduler, clusters, cpu).0);
    bytes.extend(others.iter().chain([&quantum]).chain(&phases).flat_map(|number| number.to_ne_bytes()));
    let is_staggered = is_driven && scheduler.quanta == Quanta::Staggered;
    let dedicated = dedicated.map_or(u32::from(NONE), |cpu| u32::from(short(cpu)));
    bytes.extend(words(&[u32::from(is_staggered), dedicated, u32::from(plan.is_measured), 0]));
    bytes
}
