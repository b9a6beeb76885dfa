//! Locks that are nested in one another, and the members that ask for them: a job waits for those of its own groups alone, so
//! that what it may wait for is found without a look at all other members.

use std::collections::BTreeMap;

use super::context::Context;
use super::uses::{Lock, Request};

/// Locks that are nested in one another, through any number of requests.
pub(super) struct LockGroup {
    /// Ascending.
    pub locks: Vec<Lock>,
    /// The members that ask for any of them, ascending.
    pub users: Vec<usize>,
}

/// The groups of a cluster; each request is for a lock of one.
pub(super) struct LockGroups {
    all: Vec<LockGroup>,
    of_lock: BTreeMap<Lock, usize>,
    /// Of each member: those that it asks for, ascending.
    asked: Vec<Vec<usize>>,
}

impl LockGroup {
    /// Whether `request` is for one of its locks.
    pub fn contains(&self, request: &Request) -> bool {
        self.locks.binary_search(&request.lock).is_ok()
    }
}

impl LockGroups {
    /// Those of a cluster's members.
    pub fn of(context: &Context<'_>) -> Self {
        let of_lock = group(context.members().flat_map(|task| &task.uses.requests));
        let count = of_lock.values().max().map_or(0, |last| last + 1);
        let mut all: Vec<LockGroup> = (0..count).map(|_| LockGroup { locks: Vec::new(), users: Vec::new() }).collect();
        for (&lock, &group) in &of_lock {
            all[group].locks.push(lock);
        }
        let asked = context.members().map(|task| {
            let mut groups: Vec<usize> = task.uses.requests.iter().map(|request| of_lock[&request.lock]).collect();
            groups.sort_unstable();
            groups.dedup();
            groups
        });
        let asked: Vec<Vec<usize>> = asked.collect();
        for (member, groups) in asked.iter().enumerate() {
            groups.iter().for_each(|&group| all[group].users.push(member));
        }
        LockGroups { all, of_lock, asked }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &LockGroup> {
        self.all.iter()
    }

    /// That of the lock which `request` is for.
    pub fn of_request(&self, request: &Request) -> &LockGroup {
        &self.all[self.of_lock[&request.lock]]
    }

    /// The members other than `member` that ask for `lock` or one in its group.
    pub fn other_users(&self, member: usize, lock: Lock) -> impl Iterator<Item = usize> {
        let users = self.of_lock.get(&lock).map_or(&[][..], |&group| &self.all[group].users);
        users.iter().copied().filter(move |&other| other != member)
    }

    /// Those that `member` asks for.
    pub fn asked_by(&self, member: usize) -> impl Iterator<Item = &LockGroup> {
        self.asked[member].iter().map(|&group| &self.all[group])
    }
}

/// The group of each lock, counted from 0.
fn group<'r>(requests: impl Iterator<Item = &'r Request>) -> BTreeMap<Lock, usize> {
    let mut numbers = BTreeMap::new();
    // Each lock's leads to another of its group, the last to itself.
    let mut leads: Vec<usize> = Vec::new();
    let last = |leads: &[usize], mut lock: usize| {
        while leads[lock] != lock {
            lock = leads[lock];
        }
        lock
    };
    for request in requests {
        let mut first = None;
        for &lock in [&request.lock].into_iter().chain(&request.within) {
            let number = *numbers.entry(lock).or_insert(leads.len());
            if number == leads.len() {
                leads.push(number);
            }
            let number = last(&leads, number);
            let first = *first.get_or_insert(number);
            leads[number] = last(&leads, first);
        }
    }
    let mut found = BTreeMap::new();
    for number in numbers.values_mut() {
        let next = found.len();
        *number = *found.entry(last(&leads, *number)).or_insert(next);
    }
    numbers
}
