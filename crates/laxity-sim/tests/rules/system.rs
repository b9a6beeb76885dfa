//! Systems in a line a task, and their schedules as drawings.

use laxity_model::{
    CopyDirection, CpuId, Edge, ExecutionTime, Factor, Gpu, GpuArbitration, GpuManagement, GpuOperation, GpuSync,
    GpuWork, Graph, Instant, InterruptHandling, Nanos, Node, Platform, PriorityRule, Resource, ResourceProtocol,
    Scheduler, Step, Task, Waiting, Workload,
};
use laxity_plan::Plan;
use laxity_sim::Simulator;
use laxity_trace::gantt::{Rows, drawing};
use laxity_trace::{Event, Record, TaskKind};

/// A system of one cluster under global fixed priorities: tasks are numbered by priority, 0 the highest, and each has
/// one job. All times are in milliseconds; nothing costs anything but what a body says.
#[derive(Clone)]
pub struct System {
    workload: Workload,
    scheduler: Scheduler,
}

impl System {
    /// GPUs have one copy engine, and interrupts no halves.
    pub fn new(cpus: usize, gpus: usize, arbitration: GpuArbitration) -> Self {
        let gpu = |index| Gpu {
            name: format!("gpu{index}"),
            cluster: 0,
            copy_engines: 1,
            bandwidth: BYTES_PER_MS * 1_000,
            latency: Nanos::ZERO,
            interrupt_cpus: vec![CpuId(0)],
        };
        let platform = Platform { gpus: (0..gpus).map(gpu).collect(), ..Platform::identical(cpus) };
        let gpu_management = GpuManagement { arbitration, ..GpuManagement::default() };
        let workload = Workload { gpu_management, ..Workload::new("rules", platform, Vec::new()) };
        System { workload, scheduler: Scheduler { rule: PriorityRule::Given, ..Scheduler::GLOBAL_EDF } }
    }

    /// The next task: when its job arrives, and what it does, see [`body`].
    #[must_use]
    pub fn task(mut self, arrival: u64, steps: &str) -> Self {
        let number = self.workload.tasks.len();
        self.workload.tasks.push(Task {
            phase: Nanos::from_millis(arrival),
            priority: Some(number as u32),
            body: body(steps),
            ..Task::periodic(format!("T{number}"), Nanos::ZERO, Nanos::from_secs(1))
        });
        self
    }

    /// The next resource of critical sections.
    #[must_use]
    pub fn resource(mut self, protocol: ResourceProtocol) -> Self {
        let name = format!("r{}", self.workload.resources.len());
        self.workload.resources.push(Resource { name, protocol, replicas: 1 });
        self
    }

    /// A chain of nodes in one graph, with these bodies.
    #[must_use]
    pub fn graph(mut self, bodies: &[&str]) -> Self {
        let node = |(index, steps): (usize, &&str)| Node {
            priority: Some(index as u32),
            body: body(steps),
            ..Node::new(format!("n{index}"), (index == 0).then_some(Nanos::from_secs(1)))
        };
        let edge = |producer| Edge::new(producer, producer + 1);
        let nodes = bodies.iter().enumerate().map(node).collect();
        self.workload.graphs.push(Graph::new("graph", nodes, (1..bodies.len()).map(|node| edge(node - 1)).collect()));
        self
    }

    /// The names of callback threads.
    pub fn callback_threads(&self) -> Vec<String> {
        let (plan, _) = self.run(0);
        let callbacks = plan.header.tasks.iter().filter(|task| task.kind == TaskKind::Callback);
        callbacks.map(|task| task.name.clone()).collect()
    }

    /// Two copy engines for each GPU.
    #[must_use]
    pub fn two_copy_engines(mut self) -> Self {
        self.workload.platform.gpus.iter_mut().for_each(|gpu| gpu.copy_engines = 2);
        self
    }

    /// Operations end in an interrupt of CPU `cpu` with a bottom half.
    #[must_use]
    pub fn interrupts(mut self, handling: InterruptHandling, bottom_half: u64, cpu: u16) -> Self {
        self.workload.gpu_management.handling = handling;
        self.workload.gpu_management.bottom_half = Some(time(bottom_half));
        self.workload.platform.gpus.iter_mut().for_each(|gpu| gpu.interrupt_cpus = vec![CpuId(cpu)]);
        self
    }

    /// After the bottom half a thread of the job's process is called.
    #[must_use]
    pub fn callback(mut self, length: u64) -> Self {
        self.workload.gpu_management.callback = Some(time(length));
        self
    }

    /// Earliest deadline first, with these deadlines.
    #[must_use]
    pub fn edf<const N: usize>(mut self, deadlines: [u64; N]) -> Self {
        self.scheduler = Scheduler::GLOBAL_EDF;
        for (task, deadline) in self.workload.tasks.iter_mut().zip(deadlines) {
            task.deadline = Nanos::from_millis(deadline);
        }
        self
    }

    /// Linux's fair class.
    #[must_use]
    pub fn fair(mut self) -> Self {
        self.scheduler.rule = PriorityRule::Fair;
        self
    }

    fn run(&self, end: u64) -> (Plan, Vec<Record>) {
        let plan = Plan::new(&self.workload, &self.scheduler, 0).expect("the simulator can run it");
        let mut simulator = Simulator::new(&plan, Vec::new());
        simulator.run_until(Instant::from_millis(end));
        (plan, simulator.finish())
    }

    /// The rows of the schedule up to `end` that begin with one of `rows`: `p` for CPUs, `e`, `c` and `d` for engines,
    /// `t` for tasks, interrupt threads last. See [`drawing`]. A line break comes first, so that drawings line up.
    pub fn draw(&self, rows: &str, end: u64) -> String {
        let (plan, records) = self.run(end);
        let drawn = drawing(&plan.header, &records, Nanos::from_millis(1), Rows::Both).expect("it can be drawn");
        let wanted = drawn.lines().filter(|line| line.starts_with(|letter| rows.contains(letter)));
        wanted.fold(String::new(), |text, line| text + "\n" + line)
    }

    /// Changes of effective priorities up to `end`: (when, which task, whose priority it has from then on).
    pub fn priorities(&self, end: u64) -> Vec<(u64, u32, u32)> {
        let (_, records) = self.run(end);
        let one = |record: &Record| match record.event {
            Event::Priority { job, of, .. } => Some((record.at.0 / MS, job.task.0, of.0)),
            _ => None,
        };
        records.iter().filter_map(one).collect()
    }
}

const MS: u64 = 1_000_000;
const BYTES_PER_MS: u64 = 1_000;

/// What copies of so many milliseconds are in bytes.
pub const fn bytes(ms: u64) -> u64 {
    ms * BYTES_PER_MS
}

/// GPUSync with `tokens` a GPU and queues of at most `fifo_length`.
pub fn gpusync(tokens: u32, fifo_length: u32) -> GpuSync {
    GpuSync { tokens, fifo_length: Some(fifo_length), ..GpuSync::DEFAULT }
}

pub const fn managed(sync: GpuSync) -> GpuArbitration {
    GpuArbitration::GpuSync(sync)
}

fn time(ms: u64) -> ExecutionTime {
    ExecutionTime::constant(Nanos::from_millis(ms))
}

/// The steps that `text` says, separated by blanks:
///
/// ```text
///   3          execute for 3 ms                  K3     a GPU kernel of 3 ms that raises no interrupt
///   I3, O3     a copy to, from the GPU           H3     a GPU kernel that ends in an interrupt
///   K3@1       a kernel for GPU 1 and no other   A3     the same, but the job does not wait for it
///   ( )        a GPU section                     a{ }   a critical section of the first resource
/// ```
fn body(text: &str) -> Vec<Step> {
    let mut words = text.split_whitespace();
    let steps = steps(&mut words);
    assert_eq!(words.next(), None, "a bracket is closed that was not open in {text:?}");
    steps
}

/// Up to the bracket that closes.
fn steps<'a>(words: &mut impl Iterator<Item = &'a str>) -> Vec<Step> {
    let mut found = Vec::new();
    while let Some(word) = words.next() {
        found.push(match word {
            ")" | "}" => return found,
            "(" => Step::GpuSection { body: steps(words) },
            "a{" => Step::Critical { resource: 0, body: steps(words) },
            word => single(word),
        });
    }
    found
}

fn single(word: &str) -> Step {
    let number = |text: &str| text.parse::<u64>().unwrap_or_else(|_| panic!("{word:?} is no step"));
    let (operation, gpu) = word.split_once('@').map_or((word, None), |(left, gpu)| (left, Some(number(gpu) as usize)));
    let Some(kind) = operation.chars().next().filter(char::is_ascii_uppercase) else {
        return Step::Cpu(time(number(word)));
    };
    let ms = number(&operation[1..]);
    let copy = |direction| GpuWork::Copy { direction, bytes: bytes(ms), time: None };
    let work = match kind {
        'I' => copy(CopyDirection::In),
        'O' => copy(CopyDirection::Out),
        _ => GpuWork::Kernel(time(ms)),
    };
    let waiting = if kind == 'A' { Waiting::Asynchronous } else { Waiting::Synchronous };
    let interrupts = u32::from(matches!(kind, 'H' | 'A'));
    Step::Gpu(GpuOperation { gpu, work, waiting, interrupts, memory: Factor::ZERO })
}
