//! What the processes do that tests kill, stop, and have execute another program.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use laxity_model::{EngineOrder, LockId, Nanos, TaskId};
use laxity_policy::lock;
use laxity_sched::{Config, Job, LockRequest, Parameters, Registry, Rule, Service, System, Task, Urgency};
use laxity_sys::clock::{now, sleep_until};
use laxity_sys::cpu_mask::CpuMask;
use laxity_sys::scheduling::{Attributes, current_thread};
use laxity_testing::{Random, until};

use crate::support::{execute, release, task, usable};

/// Tasks of a process.
pub const THREADS: u64 = 3;
/// Jobs of a thread before it leaves the system and becomes a task again.
const JOBS: u64 = 20;

/// The lock that is GPUSync's: one token of one GPU.
const TOKEN: LockId = LockId(2);

/// What the system is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// EDF on one CPU.
    OneCpu,
    /// Global EDF.
    AllCpus,
    /// Rate monotonic, each CPU by itself.
    Partitioned,
}

impl Shape {
    const ALL: [Shape; 3] = [Shape::OneCpu, Shape::AllCpus, Shape::Partitioned];

    pub fn name(self) -> &'static str {
        match self {
            Shape::OneCpu => "one",
            Shape::AllCpus => "all",
            Shape::Partitioned => "parts",
        }
    }

    pub fn of_name(name: &str) -> Shape {
        Shape::ALL.into_iter().find(|shape| shape.name() == name).expect("one of them")
    }

    pub fn config(self) -> Config {
        let cpus = usable();
        let config = match self {
            Shape::OneCpu => Config::global_edf([*cpus.last().expect("it runs somewhere")]),
            Shape::AllCpus => Config::global_edf(cpus),
            Shape::Partitioned => Config::new(Rule::RateMonotonic, cpus.into_iter().map(|cpu| vec![cpu]).collect()),
        };
        let lock = |order| lock::Config::Queue { replicas: 1, order, progress: lock::Progress::Inheritance };
        let token =
            lock::Config::Tokens { gpus: 1, tokens: 1, fifo_length: 2, fifo_requests: 2, cpus: 2, migration: None };
        let [door, engine] = [EngineOrder::Priority, EngineOrder::Fifo].map(lock);
        Config { locks: vec![door, engine, token], ..config }
    }
}

/// What a test tells a worker, by a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// To leave the system and end.
    Leave,
    /// To execute another program, in the thread of that number; [`THREADS`]: in one that is no task.
    Execute { thread: u64 },
}

impl Order {
    pub fn give(self, place: &Path, worker: u64) {
        let path = Order::path(place, worker);
        let whole = path.with_extension("draft");
        fs::write(&whole, self.to_number().to_string()).and_then(|()| fs::rename(&whole, path)).expect("writable");
    }

    fn path(place: &Path, worker: u64) -> PathBuf {
        place.join(format!("order-{worker}"))
    }

    /// 0 stands for no order.
    fn to_number(self) -> u64 {
        match self {
            Order::Leave => 1,
            Order::Execute { thread } => 2 + thread,
        }
    }

    fn of_number(number: u64) -> Option<Order> {
        match number {
            0 => None,
            1 => Some(Order::Leave),
            number => Some(Order::Execute { thread: number - 2 }),
        }
    }
}

/// The name of a worker's task.
pub fn task_name(worker: u64, thread: u64) -> String {
    format!("{worker}.{thread}")
}

/// Becomes a task called `what`, does that, and nothing more.
pub fn hold(registry: &Registry, what: &str) {
    let system = registry.attach("s").expect("it was created");
    let task = task(&system, what, 50);
    match what {
        "parked" => {}
        "suspended" => {
            release(&task, 0);
            task.suspend().expect("it has a job");
        }
        "linked" => drop(release(&task, 0)),
        "in-section" => {
            release(&task, 0);
            task.enter_section().expect("it has a job");
        }
        "spinning" => {
            release(&task, 0);
            execute(Nanos::from_secs(20));
        }
        _ => panic!("no such thing: {what}"),
    }
    loop {
        thread::park();
    }
}

/// A process whose threads are tasks that do everything that tasks can do, until it gets an order.
pub fn work(place: &Path, shape: Shape, number: u64) {
    let system = Registry::at(place).create_or_attach("s", &shape.config()).expect("all know its configuration");
    let order = AtomicU64::new(0);
    let owners = Owners::open(place);
    thread::scope(|scope| {
        let (system, order, owners) = (&system, &order, &owners);
        let be_task = |thread| Worker { system, order, owners, number, thread }.run();
        (1..THREADS).for_each(|thread| drop(scope.spawn(move || be_task(thread))));
        scope.spawn(|| watch(place, number, order));
        // The thread that has the process's number is a task, too.
        be_task(0);
    });
}

/// Waits for an order.
fn watch(place: &Path, number: u64, order: &AtomicU64) {
    let path = Order::path(place, number);
    loop {
        sleep_until(now() + Nanos::from_micros(300));
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let given: u64 = text.parse().expect("a number");
        order.store(given, Ordering::SeqCst);
        if Order::of_number(given) == Some(Order::Execute { thread: THREADS }) {
            execute_another();
        }
        return;
    }
}

fn execute_another() -> ! {
    panic!("{}", Command::new("sleep").arg("60").exec());
}

/// The priority and the CPUs of this thread.
fn scheduled() -> (Option<u8>, CpuMask) {
    let thread = current_thread();
    let attributes = Attributes::of(thread).expect("this one");
    (attributes.fixed_priority(), CpuMask::of_thread(thread).expect("this one"))
}

#[derive(Clone, Copy)]
struct Worker<'a> {
    system: &'a System,
    order: &'a AtomicU64,
    owners: &'a Owners,
    number: u64,
    thread: u64,
}

impl Worker<'_> {
    fn order(&self) -> Option<Order> {
        Order::of_number(self.order.load(Ordering::SeqCst))
    }

    fn run(&self) {
        let before = scheduled();
        let mut random = Random::of(now().0.wrapping_mul(1 + self.number * THREADS + self.thread));
        let mut index = 0;
        while self.order() != Some(Order::Leave) {
            let clusters = self.system.config().clusters.len();
            let period = Nanos::from_millis(1 + random.below(20));
            let name = task_name(self.number, self.thread);
            let cluster = (self.number + self.thread) as usize % clusters;
            let parameters = Parameters { cluster, ..Parameters::periodic(name, period) };
            let task = self.system.begin(parameters).expect("there is room");
            for _ in 0..JOBS {
                index += 1;
                self.job(&task, index, &mut random);
                if self.order() == Some(Order::Leave) {
                    break;
                }
            }
            drop(task);
            assert_eq!(scheduled(), before, "a thread that is no task is scheduled as before");
        }
    }

    /// One job, which does what jobs may do.
    fn job(&self, task: &Task, index: u64, random: &mut Random) {
        random.pause(6000);
        if random.below(4) == 0 {
            return self.serve(task, index, random);
        }
        let release = now();
        let deadline = release + task.parameters().deadline;
        task.release(Job { index, release, deadline }).expect("no job is pending");
        self.point();
        execute(Nanos::from_micros(random.below(300)));
        match random.below(7) {
            0 => {
                task.suspend().expect("it has a job");
                self.point();
                random.pause(1000);
                task.resume().expect("it is suspended");
            }
            1 => {
                task.enter_section().expect("it has a job");
                self.point();
                execute(Nanos::from_micros(random.below(300)));
                task.leave_section().expect("it is in one");
            }
            2 => self.lock(task, LockId(random.below(2) as u16), random),
            3 => {
                // All in the same order, so that no two wait for each other.
                task.lock(LockRequest::of(LockId(0)), &mut ()).expect("it has a job");
                self.lock(task, LockId(1), random);
                task.unlock(LockId(0), &mut ()).expect("it holds it");
            }
            4 => {
                // A token, and then an engine.
                task.lock(LockRequest { length: Nanos(1), ..LockRequest::of(TOKEN) }, &mut ()).expect("it has a job");
                self.lock(task, LockId(1), random);
                self.point();
                task.unlock(TOKEN, &mut ()).expect("it holds it");
            }
            5 => drop(task.prioritize((deadline.0 / 2, task.id().0)).expect("it has a job")),
            _ => {}
        }
        self.point();
        task.complete().expect("it has a job");
        self.point();
    }

    /// One piece of work for another task, as a thread of klmirqd has it. The other may end meanwhile.
    fn serve(&self, task: &Task, index: u64, random: &mut Random) {
        let other = TaskId(random.below(self.system.config().tasks.into()) as u32);
        let owner = Some(other).filter(|&other| other != task.id() && random.below(4) > 0);
        let urgency = match random.below(3) {
            0 => Urgency::Fixed,
            1 => Urgency::Owner,
            _ => Urgency::Holders { lock: TOKEN, gpu: 0, gpus: 1 },
        };
        task.serve(index, Service { owner, urgency }, &mut ()).expect("no job is pending");
        self.point();
        execute(Nanos::from_micros(random.below(300)));
        self.point();
        task.complete().expect("it has work");
    }

    /// Holds `lock` for a while, as the only one.
    fn lock(&self, task: &Task, lock: LockId, random: &mut Random) {
        task.lock(LockRequest::of(lock), &mut ()).expect("it has a job");
        let this = 1 + self.number * THREADS + self.thread;
        match self.owners.of(lock) {
            0 => {}
            before => {
                // It was killed, or executes another program; names of workers are not used again.
                let name = task_name((before - 1) / THREADS, (before - 1) % THREADS);
                let lives = || self.system.snapshot().expect("whole").tasks.iter().any(|task| task.name == name);
                until("the holder before is gone", || !lives());
            }
        }
        self.owners.set(lock, this);
        self.point();
        execute(Nanos::from_micros(random.below(300)));
        assert_eq!(self.owners.of(lock), this, "no other task has {lock:?}");
        self.owners.set(lock, 0);
        task.unlock(lock, &mut ()).expect("it holds it");
    }

    /// Where a thread executes another program if that was ordered.
    fn point(&self) {
        if self.order() == Some(Order::Execute { thread: self.thread }) {
            execute_another();
        }
    }
}

/// Which task has each lock, as the tasks say themselves while they have it.
struct Owners(File);

impl Owners {
    fn open(place: &Path) -> Owners {
        let mut options = File::options();
        let file = options.read(true).write(true).create(true).truncate(false).open(place.join("owners"));
        Owners(file.expect("writable"))
    }

    /// 0: none.
    fn of(&self, lock: LockId) -> u64 {
        let mut bytes = [0; 8];
        match self.0.read_at(&mut bytes, 8 * lock.index() as u64).expect("readable") {
            0 => 0,
            _ => u64::from_le_bytes(bytes),
        }
    }

    fn set(&self, lock: LockId, owner: u64) {
        self.0.write_all_at(&owner.to_le_bytes(), 8 * lock.index() as u64).expect("writable");
    }
}
