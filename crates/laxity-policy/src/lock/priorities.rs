//! Base and effective priorities of all tasks.

use laxity_model::TaskId;

use crate::cpu::Priority;

use super::discipline::Levels;

/// The priorities of the tasks with a pending job (all `None` for the others).
///
/// ```text
///   base ──raises of the locks it holds──► own ──inheritance, from scratch at every event──► effective
/// ```
///
/// Most tasks have `own == effective == reported`, and an event touches only the others: those *marked*.
#[derive(Debug)]
pub(super) struct Priorities {
    base: Vec<Option<Priority>>,
    /// The highest of the base priority and the levels of the locks held.
    own: Vec<Option<Priority>>,
    effective: Vec<Option<Priority>>,
    /// Effective priorities by which waiting jobs were ordered last.
    ordered: Vec<Option<Priority>>,
    /// Effective priorities as the driver knows them.
    reported: Vec<Option<Priority>>,
    /// Tasks that inherit, or whose own priority changed. No duplicates.
    marked: Vec<TaskId>,
    is_marked: Vec<bool>,
    /// The tasks with a base priority, a bit each: most of many have none, and saving
    /// or loading a state looks at the others only.
    pending: Vec<u64>,
}

impl Priorities {
    pub(super) fn new(tasks: usize) -> Self {
        let none = || vec![None; tasks];
        Priorities {
            base: none(),
            own: none(),
            effective: none(),
            ordered: none(),
            reported: none(),
            marked: Vec::new(),
            is_marked: vec![false; tasks],
            pending: vec![0; tasks.div_ceil(64)],
        }
    }

    /// A job of `priority.task` is pending.
    pub(super) fn begin(&mut self, priority: Priority) {
        assert!(self.base[priority.task.index()].is_none(), "one job of a task is pending at a time");
        self.set_all(priority.task, Some(priority));
    }

    /// The base priority of the pending job of `priority.task` is another; what follows for its own is for
    /// [`Self::raise`] to say.
    pub(super) fn rebase(&mut self, priority: Priority) {
        let base = &mut self.base[priority.task.index()];
        assert!(base.is_some(), "only a pending job has a priority");
        *base = Some(priority);
    }

    /// The job of `task`, which holds nothing and waits for nothing, is complete.
    pub(super) fn end(&mut self, task: TaskId) {
        assert!(self.base[task.index()].is_some(), "only a pending job can complete");
        assert!(!self.is_marked[task.index()], "a job without locks inherits nothing");
        self.set_all(task, None);
    }

    fn set_all(&mut self, task: TaskId, priority: Option<Priority>) {
        for priorities in [&mut self.base, &mut self.own, &mut self.effective, &mut self.ordered, &mut self.reported] {
            priorities[task.index()] = priority;
        }
        let (word, bit) = (task.index() / 64, 1 << (task.index() % 64));
        if priority.is_some() { self.pending[word] |= bit } else { self.pending[word] &= !bit }
    }

    /// The tasks with a pending job, ascending.
    pub(super) fn pending(&self) -> impl Iterator<Item = TaskId> {
        let some = |bits: u64| Some(bits).filter(|&bits| bits != 0);
        self.pending.iter().enumerate().flat_map(move |(word, &bits)| {
            let lowest_first = std::iter::successors(some(bits), move |&bits| some(bits & (bits - 1)));
            lowest_first.map(move |bits| TaskId(64 * word as u32 + bits.trailing_zeros()))
        })
    }

    /// The locks that `task` holds raise it to these levels, if they are higher than its base.
    pub(super) fn raise(&mut self, task: TaskId, levels: impl Iterator<Item = (u64, u32)>) {
        let base = self.base[task.index()].expect("only a pending job holds locks");
        let raised = levels.map(|(major, tie)| Priority { major, tie, task });
        self.own[task.index()] = Some(raised.fold(base, Priority::min));
        self.mark(task);
    }

    /// Drops all inheritance: to be given anew.
    pub(super) fn restart(&mut self) {
        for task in &self.marked {
            self.effective[task.index()] = self.own[task.index()];
        }
    }

    /// `to` inherits from `from`. Says whether that raised it.
    pub(super) fn give(&mut self, from: TaskId, to: TaskId) -> bool {
        let given = self.effective[from.index()].expect("only a pending job waits").given_to(to);
        let has = self.effective[to.index()].expect("only a pending job inherits");
        if given < has {
            self.effective[to.index()] = Some(given);
            self.mark(to);
        }
        given < has
    }

    /// Calls `moved` for every task whose effective priority changed since the last call.
    pub(super) fn each_moved(&mut self, mut moved: impl FnMut(TaskId)) {
        for &task in &self.marked {
            if self.ordered[task.index()] != self.effective[task.index()] {
                self.ordered[task.index()] = self.effective[task.index()];
                moved(task);
            }
        }
    }

    /// Calls `changed` with every effective priority that changed since the last call, ascending by task.
    pub(super) fn report(&mut self, mut changed: impl FnMut(Priority)) {
        self.marked.sort_unstable();
        for &task in &self.marked {
            let effective = self.effective[task.index()];
            self.ordered[task.index()] = effective;
            if self.reported[task.index()] != effective {
                self.reported[task.index()] = effective;
                effective.into_iter().for_each(&mut changed);
            }
        }
        let Priorities { own, effective, marked, is_marked, .. } = self;
        marked.retain(|task| {
            is_marked[task.index()] = own[task.index()] != effective[task.index()];
            is_marked[task.index()]
        });
    }

    /// No job is pending.
    pub(super) fn clear(&mut self) {
        loop {
            let next = self.pending().next();
            let Some(task) = next else { break };
            self.set_all(task, None);
        }
        self.marked.drain(..).for_each(|task| self.is_marked[task.index()] = false);
    }

    /// As waiting disciplines see them.
    pub(super) fn levels(&self) -> Levels<'_> {
        Levels { base: &self.base, effective: &self.effective }
    }

    /// The base priority of `task`.
    pub(super) fn base(&self, task: TaskId) -> Option<Priority> {
        self.base.get(task.index()).copied().flatten()
    }

    /// The effective priority of `task`.
    pub(super) fn effective(&self, task: TaskId) -> Option<Priority> {
        self.effective.get(task.index()).copied().flatten()
    }

    fn mark(&mut self, task: TaskId) {
        if !self.is_marked[task.index()] {
            self.is_marked[task.index()] = true;
            self.marked.push(task);
        }
    }

    /// Between events: panics unless exactly the tasks that inherit or were raised are marked, and the driver knows of all changes.
    pub(super) fn assert_invariants(&self) {
        assert_eq!(self.effective, self.ordered, "an effective priority changed and no queue was sorted again");
        assert_eq!(self.effective, self.reported, "an effective priority changed in secret");
        let pending = (0..self.base.len() as u32).map(TaskId).filter(|&task| self.base(task).is_some());
        assert!(self.pending().eq(pending), "a job is pending in secret, or not any more");
        for task in 0..self.base.len() {
            let (base, own, effective) = (self.base[task], self.own[task], self.effective[task]);
            assert!(effective <= own && own <= base, "T{task}: a lock lowered its priority");
            assert_eq!(self.is_marked[task], own != effective, "T{task}: marked without reason, or not marked");
            assert!(effective.is_none_or(|priority| priority.task.index() == task), "T{task} has another's priority");
        }
    }
}
