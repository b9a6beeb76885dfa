//! The names under which runs of this process share systems and arbitrations.

use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

/// A name that no other run has.
pub(crate) fn next() -> String {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    format!("{}{}", prefix(), RUNS.fetch_add(1, Ordering::Relaxed))
}

/// What the names of this process's runs begin with.
fn prefix() -> String {
    format!("run-{}-", process::id())
}

/// Takes the names of systems and arbitrations of this process's runs away, used or not: for a process that ends in the middle
/// of them.
pub fn forget_runs() {
    let prefix = prefix();
    let (systems, arbitrations) = (laxity_sched::Registry::default(), laxity_gpu::Registry::default());
    let is_own = |name: &String| name.starts_with(&prefix);
    // What cannot be removed now, `laxity sched gc` and `laxity gpu gc` remove later.
    systems.names().into_iter().flatten().filter(is_own).for_each(|name| _ = systems.unlink(&name));
    arbitrations.names().into_iter().flatten().filter(is_own).for_each(|name| _ = arbitrations.unlink(&name));
}
