//! What processes and the scheduler's loader say to each other: one packet each way, as JSON.

use laxity_model::{Instant, Nanos};
use serde::{Deserialize, Serialize};

use crate::settings::Share;

/// Where the loader listens: an abstract name of unix(7), as sched_ext has one scheduler at a time.
pub const ADDRESS: &str = "laxity/kernel-scheduler";
/// The longest packet.
pub const PACKET_MAX: usize = 128 * 1024;
/// The longest name of a task, in bytes.
pub const NAME_MAX: usize = 64;

/// What a process asks the loader.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// It gets its control page, before its first task.
    Prepare,
    /// A thread of it is a task from now on.
    Begin(Begin),
    /// A thread of the kernel handles interrupts for tasks from now on.
    Handle(InterruptRequest),
    /// A regulator gets the page by which it throttles CPUs: see [`Brakes`](crate::Brakes).
    Brakes,
    /// What the scheduler does.
    Status,
    /// The scheduler ends.
    Stop,
}

/// A thread that becomes a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begin {
    /// Its number in the loader's PID namespace.
    pub thread: u32,
    /// It is the first thread of a child of the process, and knows nothing of jobs: each of its wake-ups releases one, which its
    /// next sleep completes.
    #[serde(default)]
    pub is_program: bool,
    /// The task that it wants to be.
    #[serde(flatten)]
    pub task: TaskRequest,
}

/// A task that a thread wants to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskRequest {
    /// Its name.
    pub name: String,
    /// From one release to the next, in ns.
    pub period: Nanos,
    /// From a release on, in ns.
    pub deadline: Nanos,
    /// CPU time of each job at most, in ns, by which a cluster is chosen.
    pub wcet: Nanos,
    /// CPU time in ns that a job may use until its deadline, and then again in each period; `None`: as much as it likes.
    #[serde(default)]
    pub budget: Option<Nanos>,
    /// Under `FP` the priority given; the smaller first.
    pub priority: u64,
    /// The cluster; `None`: the one with the least load.
    pub cluster: Option<usize>,
    /// Of the first job, on the monotonic clock in ns; `None`: as soon as the thread waits for it.
    pub release: Option<Instant>,
    /// Of all later ones.
    #[serde(default)]
    pub releases: Releases,
}

/// When jobs of a task are released, after the first one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Releases {
    /// Once a period.
    #[default]
    Periodic,
    /// When the thread says: [`Task::next_job_at`](crate::Task::next_job_at).
    Told {
        /// When the first one is due, on the monotonic clock in ns; `None`: as the deadline says.
        due: Option<Instant>,
    },
    /// At events: [`Task::next_event`](crate::Task::next_event).
    Events,
    /// At events of which some thread of the process says when the job is released and due, the task's own or the one that wakes
    /// it: tokens of a graph. See [`Task::await_event`](crate::Task::await_event).
    Tokens {
        /// When the first one is due, which is released by time: on the monotonic clock in ns; `None`: as the deadline says.
        due: Option<Instant>,
    },
}

impl TaskRequest {
    /// One that is due at the end of each period, from now on, in the cluster with the least load.
    pub fn periodic(name: impl Into<String>, period: Nanos, wcet: Nanos) -> TaskRequest {
        TaskRequest {
            name: name.into(),
            period,
            deadline: period,
            wcet,
            budget: None,
            priority: 0,
            cluster: None,
            release: None,
            releases: Releases::Periodic,
        }
    }
}

/// A thread of the kernel, or of the process that asks, that is to handle interrupts at the priority of the job that it works for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterruptRequest {
    /// Its number.
    pub thread: u32,
    /// The cluster of the tasks that it works for; `None`: that of the CPU on which it was last.
    pub cluster: Option<usize>,
    /// CPU time while it works for no task, in each period; under EDF it then ranks by the end of that.
    pub server: Share,
    /// Its priority then under `FP`; the smaller first.
    pub priority: u64,
}

impl InterruptRequest {
    /// Of that thread, with 1 ms in each 10 ms while it works for no task, and then, under `FP`, below all tasks.
    pub fn of(thread: u32) -> InterruptRequest {
        let server = Share { budget: Nanos::from_millis(1), period: Nanos::from_millis(10) };
        InterruptRequest { thread, cluster: None, server, priority: u64::MAX - 1 }
    }
}

/// What the loader answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The control page comes with this.
    Prepared,
    /// The thread is a task. With the first one of a connection comes its control page, if it has not come before.
    Begun {
        /// Its place in the page.
        entry: usize,
        /// Its cluster.
        cluster: usize,
        /// The release of its first job.
        release: Instant,
    },
    /// The thread handles interrupts for tasks.
    Handles(InterruptStatus),
    /// The page comes with this.
    Brakes,
    /// What the scheduler does.
    Status(Status),
    /// It ends.
    Stopping,
    /// Why not.
    Refused(String),
}

/// What the scheduler does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// The policy and its realization, such as `P-RM/CEm`.
    pub policy: String,
    /// The loader.
    pub pid: u32,
    /// Since it began, in ns.
    pub running: Nanos,
    /// The CPUs of each cluster.
    pub clusters: Vec<Vec<usize>>,
    /// The CPU that releases all jobs and runs none; `None`: there is none.
    #[serde(default)]
    pub dedicated: Option<usize>,
    /// Records of events that were lost; `None`: none are written.
    pub lost: Option<u64>,
    /// The tasks, in the order in which they began.
    pub tasks: Vec<TaskStatus>,
    /// The threads of the kernel that handle interrupts for tasks.
    #[serde(default)]
    pub interrupts: Vec<InterruptStatus>,
    /// What all other threads had, on each CPU where they had anything.
    #[serde(default)]
    pub others: Vec<OthersStatus>,
}

/// What threads that are no tasks had on a CPU so far. Times are in ns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OthersStatus {
    /// The CPU.
    pub cpu: usize,
    /// They executed.
    pub executed: Nanos,
    /// Regulators throttled the CPU so often.
    pub throttles: u64,
    /// For so long in all.
    pub throttled: Nanos,
    /// What threads were charged for that, in virtual time (paper 004, equation 3).
    pub punished: Nanos,
}

/// What an interrupt thread did so far: from each wake-up to the next sleep is one time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterruptStatus {
    /// Its name, such as `irq/16-uio_pci_generic`.
    pub name: String,
    /// Its number in Linux.
    pub thread: u32,
    /// Its number in the scheduler, by which tasks say that it works for them.
    pub number: u32,
    /// Its cluster.
    pub cluster: usize,
    /// How Linux scheduled it before, and does again at the end: a priority of `SCHED_FIFO`; `None`: an ordinary thread.
    pub own_priority: Option<u8>,
    /// What it has while it works for no task.
    pub server: Share,
    /// The CPU that it is linked to.
    pub linked: Option<usize>,
    /// The task that it works for, or did last; `None`: it was for none.
    pub owner: Option<String>,
    /// How often it had work.
    pub handled: u32,
    /// Of these, how often it worked for a task.
    pub owned: u32,
    /// Budgets that were used up.
    pub throttled: u32,
    /// The longest time from a wake-up to the end of its work.
    pub response_max: Nanos,
}

/// What a task did so far. Times are in ns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskStatus {
    /// Its name.
    pub name: String,
    /// Its process and its thread.
    pub process: u32,
    /// Its thread.
    pub thread: u32,
    /// Its cluster.
    pub cluster: usize,
    /// From one release to the next.
    pub period: Nanos,
    /// From a release on.
    pub deadline: Nanos,
    /// The CPU that its job is linked to.
    pub linked: Option<usize>,
    /// Jobs released.
    pub released: u32,
    /// Jobs completed.
    pub completed: u32,
    /// Of these, how many were late.
    pub late: u32,
    /// Budgets that were used up.
    pub throttled: u32,
    /// The longest response time.
    pub response_max: Nanos,
    /// The most tardiness.
    pub tardiness_max: Nanos,
}
