//! Handles that programs have: each stands for an object that is there until it is destroyed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use crate::types::{CUresult, Handle, Outcome};

/// The objects of one kind.
pub struct Handles<T> {
    objects: RwLock<BTreeMap<usize, Arc<T>>>,
    /// What a handle is answered with that is none.
    error: CUresult,
}

impl<T> Handles<T> {
    pub const fn new(error: CUresult) -> Self {
        Handles { objects: RwLock::new(BTreeMap::new()), error }
    }

    /// A handle of `object`: its address, which no other object has while it is there.
    pub fn add(&self, object: Arc<T>) -> Handle {
        let address = Arc::as_ptr(&object) as usize;
        self.add_as(address, object);
        address as Handle
    }

    /// As [`Handles::add`], with a handle that no other object has.
    pub fn add_as(&self, handle: usize, object: Arc<T>) {
        self.objects.write().unwrap_or_else(PoisonError::into_inner).insert(handle, object);
    }

    pub fn get(&self, handle: Handle) -> Outcome<Arc<T>> {
        let objects = self.objects.read().unwrap_or_else(PoisonError::into_inner);
        objects.get(&(handle as usize)).cloned().ok_or(self.error)
    }

    pub fn remove(&self, handle: Handle) -> Outcome<Arc<T>> {
        self.objects.write().unwrap_or_else(PoisonError::into_inner).remove(&(handle as usize)).ok_or(self.error)
    }

    /// All that there are.
    pub fn all(&self) -> Vec<Arc<T>> {
        self.objects.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Forgets those that `goes` says.
    pub fn remove_where(&self, goes: impl Fn(&T) -> bool) -> Vec<Arc<T>> {
        let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
        let keys: Vec<usize> = objects.iter().filter(|(_, object)| goes(object)).map(|(key, _)| *key).collect();
        keys.iter().filter_map(|key| objects.remove(key)).collect()
    }
}

/// No code that panics runs under these locks.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
