//! Threads of the system, which come after the tasks: those that handle interrupts, then the callback threads of the GPU
//! run-time library.

use laxity_model::{ExecutionTime, InterruptHandling, Nanos, Task, TaskId, Workload};
use laxity_trace::{TaskInfo, TaskKind};

use crate::body::uses_gpu;
use crate::clusters::Assignment;
use crate::devices::{self, DevicePlan};
use crate::graphs::GraphPlan;
use crate::servers::ServerPlan;
use crate::tasks::Unplaced;

/// The threads of the system.
#[derive(Clone, Debug, Default)]
pub struct Threads {
    /// The number of the first one among all tasks.
    pub first_task: usize,
    /// The thread that serves each device, counted from the first; empty where bottom halves have no threads.
    pub of_device: Vec<usize>,
    /// The first thread that serves no device but calls back, counted from the first.
    pub first_callback: usize,
    /// The callback threads.
    pub callbacks: Callbacks,
}

/// The callback threads: one for each process that uses GPUs. A graph is a process, and so is a task of its own (paper
/// 003, section 5.4.4: eleven threads of nodes and one callback thread for each graph).
#[derive(Clone, Debug, Default)]
pub struct Callbacks {
    /// How long one call takes; `None`: the library has no such threads.
    pub time: Option<ExecutionTime>,
    /// For each task the callback thread of its process, counted from the first; `None`: it uses no GPU.
    pub of_task: Vec<Option<usize>>,
    processes: Vec<Process>,
}

/// A process that uses GPUs.
#[derive(Clone, Debug)]
struct Process {
    name: String,
    /// Its first task that uses a GPU; the callback thread is of the same cluster.
    first_user: TaskId,
}

impl Threads {
    /// The threads of `workload`, whose `tasks` have the nodes of `graphs` among them.
    pub(crate) fn new(workload: &Workload, tasks: &[Task], graphs: &[GraphPlan]) -> Threads {
        let platform = &workload.platform;
        let handling = workload.gpu_management.handling;
        let of_device = threads_of_devices(handling, platform.gpus.len(), platform.devices.len());
        Threads {
            first_task: tasks.len(),
            first_callback: of_device.iter().max().map_or(0, |last| last + 1),
            of_device,
            callbacks: Callbacks::new(workload, tasks, graphs),
        }
    }

    /// The threads that serve `devices` as tasks, then the callback threads; `servers` has those of the former. A thread
    /// is of the cluster of the first CPU that its first device may interrupt.
    pub(crate) fn as_tasks(
        &self,
        workload: &Workload,
        devices: &[DevicePlan],
        clusters: &Assignment,
        servers: Vec<Option<ServerPlan>>,
    ) -> Vec<Unplaced> {
        let mut threads: Vec<Unplaced> = (0..self.first_callback)
            .map(|thread| Unplaced::thread(self.interrupt_thread(thread, workload, devices, clusters)))
            .collect();
        threads.extend(self.callbacks.infos(clusters).map(Unplaced::thread));
        for (number, thread) in threads.iter_mut().enumerate() {
            thread.server = servers.get(number).copied().flatten();
            let rank = thread.server.as_ref().and_then(ServerPlan::rank);
            thread.info.rank = rank.unwrap_or((self.first_task + number) as u32);
        }
        threads
    }

    fn interrupt_thread(
        &self,
        thread: usize,
        workload: &Workload,
        devices: &[DevicePlan],
        clusters: &Assignment,
    ) -> TaskInfo {
        let is_served = |device: &usize| self.of_device[*device] == thread;
        let served: Vec<usize> = (0..self.of_device.len()).filter(is_served).collect();
        let names: Vec<&str> = served.iter().filter_map(|&device| devices::names(workload).nth(device)).collect();
        TaskInfo {
            name: format!("{}/{}", workload.gpu_management.handling.thread_name(), names.join("+")),
            period: Nanos::ZERO,
            deadline: Nanos::ZERO,
            wcet: served.iter().map(|&device| devices[device].bottom_half.wcet).max().unwrap_or_default(),
            cluster: clusters.cluster_of_cpus(&devices[served.first().copied().unwrap_or(0)].cpus),
            rank: 0,
            kind: TaskKind::Thread,
        }
    }
}

/// The thread that serves each device, first of `gpus` GPUs, then of `others` devices, each of which has its own; none
/// without threads.
fn threads_of_devices(handling: InterruptHandling, gpus: usize, others: usize) -> Vec<usize> {
    let count = match handling {
        InterruptHandling::Linux | InterruptHandling::ProcessAware => return Vec::new(),
        InterruptHandling::PreemptRt(_) | InterruptHandling::Klmirqd { threads: None } => gpus,
        InterruptHandling::Klmirqd { threads: Some(count) } => (count as usize).clamp(1, gpus.max(1)).min(gpus),
    };
    (0..gpus).map(|gpu| gpu % count.max(1)).chain(count..count + others).collect()
}

impl Callbacks {
    fn new(workload: &Workload, tasks: &[Task], graphs: &[GraphPlan]) -> Callbacks {
        let Some(time) = workload.gpu_management.callback.clone() else { return Callbacks::default() };
        let mut callbacks = Callbacks { time: Some(time), ..Callbacks::default() };
        let mut of_graph = vec![None; graphs.len()];
        for (index, task) in tasks.iter().enumerate() {
            let graph = graphs.iter().rposition(|graph| graph.first_task <= index);
            let thread = task.body.iter().any(uses_gpu).then(|| match graph {
                None => callbacks.add(&task.name, index),
                Some(graph) => {
                    *of_graph[graph].get_or_insert_with(|| callbacks.add(&workload.graphs[graph].name, index))
                }
            });
            callbacks.of_task.push(thread);
        }
        callbacks
    }

    fn add(&mut self, process: &str, first_user: usize) -> usize {
        self.processes.push(Process { name: process.to_owned(), first_user: TaskId(first_user as u32) });
        self.processes.len() - 1
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.processes.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.processes.is_empty()
    }

    /// What the trace says of them, but for the rank.
    fn infos(&self, clusters: &Assignment) -> impl Iterator<Item = TaskInfo> {
        let wcet = self.time.as_ref().map_or(Nanos::ZERO, |time| time.wcet);
        self.processes.iter().map(move |process| TaskInfo {
            name: format!("callback/{}", process.name),
            period: Nanos::ZERO,
            deadline: Nanos::ZERO,
            wcet,
            cluster: clusters.of_task[process.first_user.index()],
            rank: 0,
            kind: TaskKind::Callback,
        })
    }
}
