//! The callback threads of the GPU run-time library: one for each process that uses GPUs. A graph is a process, and so is
//! a task of its own (paper 003, section 5.4.4: eleven threads of nodes and one callback thread for each graph).

use laxity_model::{ExecutionTime, Nanos, Task, TaskId, Workload};
use laxity_trace::{TaskInfo, TaskKind};

use super::GraphPlan;
use super::flatten::uses_gpu;

/// The callback threads, which come after the interrupt threads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Callbacks {
    /// How long one call takes.
    pub time: Option<ExecutionTime>,
    /// For each task the thread of its process, counted from the first; `None`: it uses no GPU.
    pub of_task: Vec<Option<usize>>,
    /// The name of each process, and its first task that uses a GPU.
    processes: Vec<(String, TaskId)>,
}

impl Callbacks {
    /// Those of `workload`, whose `tasks` have the nodes of `graphs` among them; none if it asks for none.
    pub fn new(workload: &Workload, tasks: &[Task], graphs: &[GraphPlan]) -> Callbacks {
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

    fn add(&mut self, process: &str, first_task: usize) -> usize {
        self.processes.push((process.to_owned(), TaskId(first_task as u32)));
        self.processes.len() - 1
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.processes.len()
    }

    /// The cluster of each: that of the first task that it serves, of those that tasks have.
    pub(super) fn clusters(&self, of_tasks: &[usize]) -> Vec<usize> {
        self.processes.iter().map(|&(_, task)| of_tasks[task.index()]).collect()
    }

    /// What the trace says of them; the first one is task `first`.
    pub(super) fn infos(&self, clusters: &[usize], first: usize) -> Vec<TaskInfo> {
        let one = |(thread, ((process, _), &cluster)): (usize, (&(String, TaskId), &usize))| TaskInfo {
            name: format!("callback/{process}"),
            period: Nanos::ZERO,
            deadline: Nanos::ZERO,
            wcet: self.time.as_ref().map_or(Nanos::ZERO, |time| time.wcet),
            cluster,
            rank: (first + thread) as u32,
            kind: TaskKind::Callback,
        };
        self.processes.iter().zip(clusters).enumerate().map(one).collect()
    }
}
