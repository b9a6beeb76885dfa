//! A lock that its holder may take again: a driver may call a program back while it takes an operation, and the program
//! may then issue the next one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// Operations reach the driver in the order in which the stream's state machine got them, because one thread at a time
/// issues.
#[derive(Debug, Default)]
pub(crate) struct IssueLock {
    lock: Mutex<()>,
    /// A number of the thread that holds it; 0: none.
    holder: AtomicU64,
}

/// Unlocks when dropped, unless the thread held the lock before.
#[derive(Debug)]
pub(crate) struct Issuing<'a> {
    lock: &'a IssueLock,
    guard: Option<MutexGuard<'a, ()>>,
}

static NEXT: AtomicU64 = AtomicU64::new(1);

thread_local! {
    static NUMBER: u64 = NEXT.fetch_add(1, Ordering::Relaxed);
}

/// A thread that is ending has no number any more. It counts as one that holds nothing.
fn own_number() -> u64 {
    NUMBER.try_with(|number| *number).unwrap_or(u64::MAX)
}

impl IssueLock {
    pub fn lock(&self) -> Issuing<'_> {
        let number = own_number();
        // Only this thread can have stored it.
        if self.holder.load(Ordering::Relaxed) == number {
            return Issuing { lock: self, guard: None };
        }
        self.locked(number, self.lock.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// As [`IssueLock::lock`], unless another thread holds it. Not for a thread that holds it.
    pub fn try_lock(&self) -> Option<Issuing<'_>> {
        match self.lock.try_lock() {
            Ok(guard) => Some(self.locked(own_number(), guard)),
            Err(TryLockError::Poisoned(poisoned)) => Some(self.locked(own_number(), poisoned.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn locked<'a>(&'a self, number: u64, guard: MutexGuard<'a, ()>) -> Issuing<'a> {
        self.holder.store(number, Ordering::Relaxed);
        Issuing { lock: self, guard: Some(guard) }
    }
}

impl Drop for Issuing<'_> {
    fn drop(&mut self) {
        if self.guard.is_some() {
            self.lock.holder.store(0, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn its_holder_takes_it_again_and_others_wait() {
        let lock = IssueLock::default();
        let outer = lock.lock();
        drop(lock.lock());
        thread::scope(|scope| {
            let other = scope.spawn(|| drop(lock.lock()));
            assert!(
                thread::scope(|scope| scope.spawn(|| lock.try_lock().is_none()).join()).expect("no panic"),
                "the inner drop unlocked nothing"
            );
            drop(outer);
            other.join().expect("no panic");
        });
        drop(lock.try_lock().expect("it is free"));
        assert_eq!(lock.holder.load(Ordering::Relaxed), 0);
    }
}
