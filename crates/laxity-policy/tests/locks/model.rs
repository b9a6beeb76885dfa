//! A model of locks that keeps nothing but the list of requests and works out the rest whenever it is asked.

use laxity_model::{EngineOrder, Instant, TaskId};
use laxity_policy::cpu::Priority;
use laxity_policy::lock::{Config, Progress};

/// A level: see [`Priority::level`].
type Level = (u64, u32);

/// A request that is not unlocked or withdrawn.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    pub task: TaskId,
    pub lock: usize,
    pub length: u64,
    pub only: Option<u16>,
    /// Its replica, once granted.
    pub replica: Option<u16>,
    /// The queue of the k-FMLP that it is in.
    queue: u16,
    /// The level to which it raises its holder.
    raise: Option<Level>,
    /// Its number among the boosted.
    order: u32,
}

/// Locks, jobs with their base priorities, and requests in the order of issue.
#[derive(Debug)]
pub struct Model {
    pub locks: Vec<Config>,
    pub base: Vec<Option<Priority>>,
    pub requests: Vec<Request>,
    /// The order of the next boosted request.
    next_order: u32,
}

impl Model {
    pub fn new(tasks: usize, locks: &[Config]) -> Self {
        Model { locks: locks.to_vec(), base: vec![None; tasks], requests: Vec::new(), next_order: 0 }
    }

    pub fn replicas(&self, lock: usize) -> u16 {
        match self.locks[lock] {
            Config::Queue { replicas, .. } | Config::KFmlp { replicas, .. } => replicas,
            Config::Tokens { .. } => unreachable!("tokens have a model of their own"),
        }
    }

    pub fn wait_of(&self, task: TaskId) -> Option<usize> {
        self.requests.iter().find(|request| request.task == task && request.replica.is_none()).map(|wait| wait.lock)
    }

    /// What `task` holds, as (lock, replica), in the order of the locks.
    pub fn holds(&self, task: TaskId) -> Vec<(usize, u16)> {
        let own = self.requests.iter().filter(|request| request.task == task);
        let mut held: Vec<_> = own.filter_map(|own| own.replica.map(|replica| (own.lock, replica))).collect();
        held.sort_unstable();
        held
    }

    pub fn holder(&self, lock: usize, replica: u16) -> Option<TaskId> {
        let mut requests = self.requests.iter();
        requests.find(|request| request.lock == lock && request.replica == Some(replica)).map(|request| request.task)
    }

    /// `task` asks for `lock`; the replica it gets at once.
    pub fn request(&mut self, now: Instant, task: TaskId, lock: usize, length: u64, only: Option<u16>) -> Option<u16> {
        if !self.requests.iter().any(|request| self.boosts(request.lock)) {
            self.next_order = 0;
        }
        let order = self.next_order;
        self.next_order += u32::from(self.boosts(lock));
        let accepts = |replica: &u16| only.is_none_or(|only| only == *replica);
        let free = (0..self.replicas(lock)).filter(accepts).find(|&replica| self.holder(lock, replica).is_none());
        let queue = free.unwrap_or_else(|| self.shortest_queue(lock, only));
        self.requests.push(Request { task, lock, length, only, replica: None, queue, raise: None, order });
        if free.is_some() {
            self.grant(now, self.requests.len() - 1, queue);
        }
        free
    }

    /// `task` unlocks; the task that gets its replica.
    pub fn unlock(&mut self, now: Instant, task: TaskId, lock: usize) -> Option<(TaskId, u16)> {
        let position = self.requests.iter().position(|request| request.task == task && request.lock == lock)?;
        let replica = self.requests[position].replica?;
        let effective = self.effective();
        self.requests.remove(position);
        let next = self.next(lock, replica, &effective)?;
        self.grant(now, next, replica);
        Some((self.requests[next].task, replica))
    }

    pub fn withdraw(&mut self, task: TaskId, lock: usize) {
        self.requests.retain(|request| !(request.task == task && request.lock == lock));
    }

    /// The effective priorities: for each job the highest own priority among those whose waits can reach it.
    pub fn effective(&self) -> Vec<Option<Priority>> {
        let gives: Vec<Vec<usize>> = (0..self.base.len()).map(|task| self.inherits_from(task)).collect();
        let effective = |task: usize| {
            let base = self.base[task]?;
            let sources = reachable(task, &gives).into_iter().filter_map(|source| self.own(source));
            let highest = sources.min().filter(|&highest| highest < base.level());
            Some(highest.map_or(base, |(major, tie)| Priority { major, tie, task: base.task }))
        };
        (0..self.base.len()).map(effective).collect()
    }

    /// Jobs that wait and from which no chain of waits leads to a job that runs.
    pub fn stuck(&self) -> Vec<TaskId> {
        let blockers: Vec<Vec<usize>> = (0..self.base.len()).map(|task| self.blockers(task)).collect();
        let runs = |task: &usize| blockers[*task].is_empty();
        let stuck = |task: &usize| !reachable(*task, &blockers).iter().any(runs);
        (0..self.base.len()).filter(stuck).map(|task| TaskId(task as u32)).collect()
    }

    /// The holders of what `task` waits for that can end its wait.
    pub fn blockers(&self, task: usize) -> Vec<usize> {
        let mut waits =
            self.requests.iter().filter(|request| request.task.index() == task && request.replica.is_none());
        let Some(wait) = waits.next() else { return Vec::new() };
        let holders = self.requests.iter().filter(|request| request.lock == wait.lock);
        let suits =
            holders.filter(|holder| holder.replica.is_some() && wait.only.is_none_or(|_| wait.only == holder.replica));
        suits.map(|holder| holder.task.index()).collect()
    }

    fn boosts(&self, lock: usize) -> bool {
        matches!(self.locks[lock], Config::Queue { progress: Progress::Boosting, .. })
    }

    /// Rule R1; any other lock has one queue.
    fn shortest_queue(&self, lock: usize, only: Option<u16>) -> u16 {
        let Config::KFmlp { replicas, length_aware } = self.locks[lock] else { return 0 };
        let wait = |queue: &u16| -> u64 {
            let queued = self.requests.iter().filter(|request| request.lock == lock && request.queue == *queue);
            queued.map(|request| if length_aware { request.length } else { 1 }).sum()
        };
        only.unwrap_or_else(|| (0..replicas).min_by_key(wait).unwrap_or(0))
    }

    /// The position of the request that `replica` goes to.
    fn next(&self, lock: usize, replica: u16, effective: &[Option<Priority>]) -> Option<usize> {
        let requests = self.requests.iter().enumerate();
        let waiting = requests.filter(|(_, request)| request.lock == lock && request.replica.is_none());
        let mut suited = waiting.filter(|(_, request)| request.only.is_none_or(|only| only == replica));
        let priority = |(_, request): &(usize, &Request)| effective[request.task.index()];
        let next = match self.locks[lock] {
            Config::Queue { order: EngineOrder::Fifo, .. } => suited.next(),
            Config::Queue { order: EngineOrder::Priority, .. } => suited.min_by_key(priority),
            Config::KFmlp { .. } => {
                let own = suited.clone().find(|(_, request)| request.queue == replica);
                own.or_else(|| suited.min_by_key(priority))
            }
            Config::Tokens { .. } => unreachable!("tokens have a model of their own"),
        };
        next.map(|(position, _)| position)
    }

    fn grant(&mut self, now: Instant, position: usize, replica: u16) {
        let request = &mut self.requests[position];
        request.replica = Some(replica);
        request.queue = replica;
        let Config::Queue { progress, .. } = self.locks[request.lock] else { return };
        request.raise = match progress {
            Progress::None | Progress::Inheritance => None,
            Progress::Ceiling { level } => Some(level),
            Progress::Floor { deadline, tie } => Some(((now + deadline).as_nanos(), tie)),
            Progress::Boosting => Some((0, request.order)),
        };
    }

    /// The level of `task` without inheritance.
    fn own(&self, task: usize) -> Option<Level> {
        let held = self.requests.iter().filter(|request| request.task.index() == task && request.replica.is_some());
        held.filter_map(|held| held.raise).chain(self.base[task].map(Priority::level)).min()
    }

    /// The tasks that wait for what `task` holds, as far as the lock's rules let it inherit from them.
    fn inherits_from(&self, task: usize) -> Vec<usize> {
        let gives = |wait: &Request, held: &Request| {
            wait.lock == held.lock
                && wait.replica.is_none()
                && match self.locks[wait.lock] {
                    Config::Queue { progress: Progress::Inheritance, .. } => {
                        wait.only.is_none_or(|_| wait.only == held.replica)
                    }
                    Config::KFmlp { .. } => Some(wait.queue) == held.replica,
                    _ => false,
                }
        };
        let held = self.requests.iter().filter(|request| request.task.index() == task && request.replica.is_some());
        let waits = held.flat_map(|held| self.requests.iter().filter(move |wait| gives(wait, held)));
        waits.map(|wait| wait.task.index()).collect()
    }
}

/// `start`, and all that can be reached from it.
fn reachable(start: usize, edges: &[Vec<usize>]) -> Vec<usize> {
    let mut reached = vec![start];
    let mut next = 0;
    while next < reached.len() {
        for &target in &edges[reached[next]] {
            if !reached.contains(&target) {
                reached.push(target);
            }
        }
        next += 1;
    }
    reached
}
