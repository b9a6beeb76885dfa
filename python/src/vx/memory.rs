//! Memory that is lent to a callable of Python, while it runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::live::message::Lender;

/// Memory that is lent to a callable while it runs. A view that is left afterwards keeps `keeps` alive, which keeps the
/// memory mapped.
pub struct Memory<K> {
    is_open: AtomicBool,
    views: AtomicUsize,
    _keeps: K,
}

impl<K> Memory<K> {
    /// Memory that is there while `keeps` is.
    pub fn of(keeps: K) -> Arc<Self> {
        Arc::new(Memory { is_open: AtomicBool::new(true), views: AtomicUsize::new(0), _keeps: keeps })
    }

    /// Lends no more. Answers how many views there still are. Called with the GIL.
    pub fn close(&self) -> usize {
        self.is_open.store(false, Ordering::Relaxed);
        self.views.load(Ordering::Relaxed)
    }
}

impl<K: Send + Sync> Lender for Memory<K> {
    fn lend(&self, _epoch: u64) -> bool {
        let is_open = self.is_open.load(Ordering::Relaxed);
        if is_open {
            self.views.fetch_add(1, Ordering::Relaxed);
        }
        is_open
    }

    fn give_back(&self) {
        self.views.fetch_sub(1, Ordering::Relaxed);
    }
}
