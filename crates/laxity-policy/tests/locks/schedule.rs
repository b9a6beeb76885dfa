//! Drives an arbiter and draws what happens.

use laxity_model::{Instant, LockId, Nanos, TaskId};
use laxity_policy::cpu::Priority;
use laxity_policy::lock::{Action, Arbiter, Config, Event};

pub const A: LockId = LockId(0);
pub const B: LockId = LockId(1);
pub const C: LockId = LockId(2);

/// An arbiter, and the columns drawn so far.
pub struct Schedule {
    pub arbiter: Arbiter,
    /// What followed from the latest event.
    pub actions: Vec<Action>,
    pub now: Instant,
    locks: Vec<Config>,
    base: Vec<Priority>,
    columns: Vec<Vec<String>>,
}

impl Schedule {
    /// All tasks have a pending job; task `t` has the base priority `majors[t]`, which must be unique.
    pub fn new(locks: &[Config], majors: &[u64]) -> Self {
        let base: Vec<_> = (0..).map(TaskId).zip(majors).map(|(task, &major)| Priority::of(major, task)).collect();
        let mut arbiter = Arbiter::new(base.len(), locks);
        for &priority in &base {
            let mut actions = Vec::new();
            arbiter.handle(Instant::ZERO, Event::Pending { priority }, &mut actions);
            assert_eq!(actions, [], "a pending job has its base priority, and the driver needs no report");
        }
        Schedule { arbiter, actions: Vec::new(), now: Instant::ZERO, locks: locks.to_vec(), base, columns: Vec::new() }
    }

    pub fn request(&mut self, task: u32, lock: LockId) -> &mut Self {
        self.request_for(task, lock, 1)
    }

    /// A request whose critical section has this length.
    pub fn request_for(&mut self, task: u32, lock: LockId, length: u64) -> &mut Self {
        let event = Event::Request { task: TaskId(task), lock, length: Nanos(length), only: None };
        self.handle(event, format!("{task}+{}", letter(lock)))
    }

    /// A request for one GPU only.
    pub fn request_only(&mut self, task: u32, lock: LockId, gpu: u16) -> &mut Self {
        let event = Event::Request { task: TaskId(task), lock, length: Nanos(1), only: Some(gpu) };
        self.handle(event, format!("{task}+{}{gpu}", letter(lock)))
    }

    pub fn unlock(&mut self, task: u32, lock: LockId) -> &mut Self {
        self.handle(Event::Unlock { task: TaskId(task), lock }, format!("{task}-{}", letter(lock)))
    }

    pub fn withdraw(&mut self, task: u32, lock: LockId) -> &mut Self {
        self.handle(Event::Withdraw { task: TaskId(task), lock }, format!("{task}?{}", letter(lock)))
    }

    fn handle(&mut self, event: Event, heading: String) -> &mut Self {
        let before: Vec<_> = self.priorities();
        self.actions.clear();
        self.arbiter.handle(self.now, event, &mut self.actions);
        self.arbiter.assert_invariants();
        assert_eq!(self.reported(), self.changes(&before), "exactly the changed priorities are reported");
        let mut column = vec![heading];
        column.extend((0..self.base.len()).map(|task| self.cell(TaskId(task as u32))));
        self.columns.push(column);
        self
    }

    /// The reported priorities, which come after all grants.
    pub fn reported(&self) -> Vec<Priority> {
        let grants = self.actions.iter().take_while(|action| matches!(action, Action::Grant { .. })).count();
        let priority = |action: &Action| match *action {
            Action::Prioritize { priority } => priority,
            Action::Grant { .. } => panic!("grants come before priorities"),
        };
        self.actions[grants..].iter().map(priority).collect()
    }

    fn priorities(&self) -> Vec<Option<Priority>> {
        (0..self.base.len()).map(|task| self.arbiter.priority(TaskId(task as u32))).collect()
    }

    /// The priorities that are not what they were, by task.
    fn changes(&self, before: &[Option<Priority>]) -> Vec<Priority> {
        let now = self.priorities().into_iter().zip(before);
        now.filter(|(now, before)| now != *before).filter_map(|(now, _)| now).collect()
    }

    /// What a task holds, what it waits for, and whose priority it has.
    fn cell(&self, task: TaskId) -> String {
        let mut cell = String::new();
        for (lock, replica) in self.arbiter.holds(task) {
            assert_eq!(self.arbiter.holder(lock, replica), Some(task));
            cell.push(letter(lock));
            if has_replicas(&self.locks[lock.index()]) {
                cell.push_str(&replica.0.to_string());
            }
        }
        cell.extend(self.arbiter.waits_for(task).map(|lock| letter(lock).to_ascii_lowercase()));
        if cell.is_empty() {
            cell.push('.');
        }
        let effective = self.arbiter.priority(task).expect("all tasks have a pending job");
        if effective != self.base[task.index()] {
            let owner = self.base.iter().find(|base| base.level() == effective.level());
            cell.push_str(&owner.map_or("=!".to_owned(), |owner| format!("={}", owner.task.0)));
        }
        cell
    }

    /// Asserts that the schedule looks like this, whatever the spaces.
    #[track_caller]
    pub fn assert_drawn(&self, drawing: &str) {
        let mut rows = vec![String::new(); self.base.len() + 1];
        for (row, line) in rows.iter_mut().enumerate() {
            let cells: Vec<_> = self.columns.iter().map(|column| format!("{:6}", column[row])).collect();
            let name = if row == 0 { String::new() } else { format!("T{}", row - 1) };
            *line = format!("{name:4}{}", cells.concat());
        }
        let words = |text: &str| -> Vec<Vec<String>> {
            let lines = text.lines().filter(|line| !line.trim().is_empty());
            lines.map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
        };
        let drawn = rows.join("\n");
        assert_eq!(words(&drawn), words(drawing), "the schedule is\n{drawn}\nand was to be\n{drawing}");
    }
}

fn letter(lock: LockId) -> char {
    char::from(b'A' + lock.0 as u8)
}

fn has_replicas(lock: &Config) -> bool {
    match *lock {
        Config::Queue { replicas, .. } | Config::KFmlp { replicas, .. } => replicas > 1,
        Config::Tokens { .. } => true,
    }
}
