//! When tasks are to be looked at: `bpf/heap.h`, compiled for user space.

use super::{TASKS_MAX, ffi, some};

/// Tasks by a time in ns, the smaller number first where that is the same.
pub struct Times {
    memory: Box<[u64]>,
}

impl Default for Times {
    /// Without a task.
    fn default() -> Times {
        // SAFETY: it takes nothing and returns a constant.
        let bytes = unsafe { (ffi::whole::FUNCTIONS.times_size)() };
        Times { memory: vec![0; bytes.div_ceil(8) as usize].into() }
    }
}

impl Times {
    /// `task` is to be looked at then from now on, `None`: not at all; unless it has an earlier time and `keeps` that.
    ///
    /// # Panics
    /// If there is no such task: numbers are below [`TASKS_MAX`].
    pub fn set(&mut self, task: u32, time: Option<u64>, keeps: bool) {
        assert!(task < TASKS_MAX, "task {task} of {TASKS_MAX}");
        let memory = self.memory.as_mut_ptr();
        // SAFETY: zeros are a heap without tasks, as large as C says, and ours alone; so for the functions below.
        unsafe { (ffi::whole::FUNCTIONS.times_set)(memory, task, time.unwrap_or(u64::MAX), keeps.into()) }
    }

    /// The first time of all.
    pub fn first(&mut self) -> Option<u64> {
        // SAFETY: as of `set`.
        let first = unsafe { (ffi::whole::FUNCTIONS.times_first)(self.memory.as_mut_ptr()) };
        (first != u64::MAX).then_some(first)
    }

    /// Takes the first task out whose time has come.
    pub fn take(&mut self, now: u64) -> Option<u32> {
        // SAFETY: as of `set`.
        some(unsafe { (ffi::whole::FUNCTIONS.times_take)(self.memory.as_mut_ptr(), now) })
    }
}
