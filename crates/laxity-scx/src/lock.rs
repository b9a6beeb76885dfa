//! Locks between tasks of a process: whose holder inherits the priorities of those that wait.

use std::sync::atomic::{AtomicU32, Ordering};

use laxity_model::Instant;
use laxity_sys::futex;

use crate::task::Task;

/// A lock between tasks of one [`Membership`](crate::Membership). While tasks wait for it, the job that holds it has at least the priority of the most
/// urgent of them, and so do in turn the holders of locks that it waits for (priority inheritance: Sha, Rajkumar & Lehoczky,
/// IEEE Transactions on Computers 39(9), 1990). The waiter that gets a CPU first has it next.
///
/// Costs an atomic instruction each way where no other task wants it. After the scheduler's end it is a lock like any other.
#[derive(Debug, Default)]
pub struct Lock {
    /// 0: free; else which task of the process holds it, and whether another one sleeps.
    word: AtomicU32,
}

/// Another task sleeps until the lock is free.
const AWAITED: u32 = 1 << 31;

/// Holds a [`Lock`] until it is dropped, which must be in the job that took it.
#[derive(Debug)]
#[must_use = "the lock is free when this is dropped"]
pub struct Guard<'a> {
    lock: &'a Lock,
    /// A job does not end while it holds a lock.
    _task: &'a Task,
}

impl Lock {
    /// A free one.
    pub const fn new() -> Lock {
        Lock { word: AtomicU32::new(0) }
    }

    /// Whether `task` has it.
    pub fn is_held_by(&self, task: &Task) -> bool {
        self.word.load(Ordering::Relaxed) & !AWAITED == task.word()
    }

    /// Has `task` take it, until [`Lock::give_up`] by the same task, if it is free. Returns whether it was.
    pub fn try_take(&self, task: &Task) -> bool {
        self.word.compare_exchange(0, task.word(), Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// As [`Task::lock`], until [`Lock::give_up`] by the same task, before its job ends: for callers that cannot have guards.
    ///
    /// Panics if `task` has it already.
    pub fn take(&self, task: &Task) {
        let is_taken = self.take_while(task, || true);
        assert!(is_taken, "it waits until it has it");
    }

    /// As [`Lock::take`], as long as `go_on` says so, which it is asked after each time that this thread woke, by a signal too. Returns
    /// whether it took the lock.
    ///
    /// Panics if `task` has it already.
    pub fn take_while(&self, task: &Task, mut go_on: impl FnMut() -> bool) -> bool {
        let own = task.word();
        loop {
            let found = match self.word.compare_exchange(0, own, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(found) => found,
            };
            let holder = found & !AWAITED;
            assert_ne!(holder, own, "a task that waits for itself would wait for ever");
            let awaited = holder | AWAITED;
            if found != awaited
                && self.word.compare_exchange(found, awaited, Ordering::Relaxed, Ordering::Relaxed).is_err()
            {
                continue;
            }
            task.while_waiting_for(holder, || _ = futex::wait(&self.word, awaited, Instant::NEVER));
            if !go_on() {
                return false;
            }
        }
    }

    /// The task that has it gives it up.
    pub fn give_up(&self) {
        if self.word.swap(0, Ordering::Release) & AWAITED != 0 {
            // All of them: which is the most urgent the scheduler knows, and the others sleep again.
            futex::wake_all(&self.word);
        }
    }
}

impl<'a> Guard<'a> {
    pub(crate) fn of(lock: &'a Lock, task: &'a Task) -> Guard<'a> {
        Guard { lock, _task: task }
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.lock.give_up();
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::sync::Arc;
    use std::thread;

    use laxity_sys::shared_page::SharedPage;
    use laxity_testing::Directory;

    use super::*;
    use crate::layout::{Entry, PAGE};

    /// A page of a scheduler that has ended.
    fn page(folder: &Directory) -> Arc<SharedPage> {
        let path = folder.path().join("page");
        std::fs::write(&path, vec![0; PAGE]).expect("a file");
        let file = File::options().read(true).write(true).open(path).expect("it is there");
        Arc::new(SharedPage::map(file, PAGE).expect("mapped"))
    }

    #[test]
    fn one_task_at_a_time_holds_a_lock_and_none_waits_in_the_end() {
        const TASKS: usize = 4;
        const ROUNDS: u64 = 20_000;
        let folder = Directory::new("kernel-lock");
        let page = page(&folder);
        let (lock, inside) = (Lock::new(), AtomicU32::new(0));
        thread::scope(|scope| {
            for number in 0..TASKS {
                let task = Task::of_page(&page, Entry::new(number).expect("a page has 31"));
                let (lock, inside) = (&lock, &inside);
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        let _guard = task.lock(lock);
                        assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0);
                        if round % 16 == 0 {
                            thread::yield_now();
                        }
                        inside.fetch_sub(1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(lock.word.into_inner(), 0);
        for number in 0..TASKS {
            let entry = Entry::new(number).expect("a page has 31");
            assert_eq!(page.u32(entry.waits_for()).load(Ordering::Relaxed), 0);
        }
    }

    #[test]
    fn a_waiter_says_in_its_page_which_task_it_waits_for() {
        let folder = Directory::new("kernel-lock-waiter");
        let page = page(&folder);
        let [first, second] = [3, 7].map(|number| Entry::new(number).expect("a page has 31"));
        let lock = Lock::new();
        let holder = Task::of_page(&page, first);
        let guard = holder.lock(&lock);
        let says = || page.u32(second.waits_for()).load(Ordering::Relaxed);
        thread::scope(|scope| {
            let waiter = Task::of_page(&page, second);
            let lock = &lock;
            let waits = scope.spawn(move || drop(waiter.lock(lock)));
            laxity_testing::until("it waits", || says() != 0);
            // Entries are counted from 1 there.
            assert_eq!(says(), 4);
            drop(guard);
            waits.join().expect("it has the lock");
        });
        assert_eq!(says(), 0);
    }

    #[test]
    #[should_panic(expected = "would wait for ever")]
    fn a_task_that_has_the_lock_cannot_take_it_again() {
        let folder = Directory::new("kernel-lock-twice");
        let task = Task::of_page(&page(&folder), Entry::new(0).expect("a page has 31"));
        let lock = Lock::new();
        let _guard = task.lock(&lock);
        let _again = task.lock(&lock);
    }

    #[test]
    fn a_waiter_that_is_to_wait_no_longer_leaves_the_lock_to_others() {
        let folder = Directory::new("kernel-lock-stops");
        let page = page(&folder);
        let [first, second] = [3, 7].map(|number| Task::of_page(&page, Entry::new(number).expect("a page has 31")));
        let (lock, mut asked) = (Lock::new(), 0);
        lock.word.store(first.word() | AWAITED, Ordering::Relaxed);
        thread::scope(|scope| {
            let lock = &lock;
            let waits = scope.spawn(move || {
                let is_taken = lock.take_while(&second, || {
                    asked += 1;
                    false
                });
                (is_taken, asked)
            });
            // Nothing else ends the wait: the waiter finds the lock taken again.
            while !waits.is_finished() {
                futex::wake_all(&lock.word);
                thread::yield_now();
            }
            assert_eq!(waits.join().expect("no panic"), (false, 1));
        });
        assert!(lock.is_held_by(&first));
        lock.give_up();
        assert!(lock.try_take(&first));
    }
}
