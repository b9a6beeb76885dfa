//! Holders whose process is stopped: the thread that would unlock after the hold limit is their own, so they keep what they
//! hold, and those that wait say so.

use std::cell::Cell;

use laxity_gpu::{Arbitration, ClientState, Snapshot};
use laxity_model::{Instant, Nanos};
use laxity_sys::{clock, process};

/// Looks, while a stream waits, whether a holder is stopped. Finds one once.
pub(crate) struct Watch {
    begin: Instant,
    next: Cell<Instant>,
}

/// A holder that is stopped, and how long it was waited for.
pub(crate) struct Stopped {
    pub name: String,
    pub pid: u32,
    pub waited: Nanos,
}

/// How often it looks once a wait is long.
const EVERY: Nanos = Nanos::from_millis(500);

impl Watch {
    /// A wait begins. By `hold_limit` holders that are not stopped unlock.
    pub fn begin(hold_limit: Nanos) -> Watch {
        let begin = clock::now();
        Watch { begin, next: Cell::new(begin.saturating_add(hold_limit).saturating_add(EVERY)) }
    }

    /// The holder of something of `gpu` that is stopped, if it is time to look, there is one, and it was not found before.
    pub fn look(&self, arbitration: Option<&Arbitration>, gpu: u16) -> Option<Stopped> {
        let now = clock::now();
        if now < self.next.get() {
            return None;
        }
        self.next.set(now.saturating_add(EVERY));
        let look = arbitration?.snapshot().ok()?;
        let holder = holders(&look, gpu).find(|holder| process::is_stopped(holder.pid))?;
        self.next.set(Instant::NEVER);
        Some(Stopped { name: holder.name.clone(), pid: holder.pid, waited: now.saturating_since(self.begin) })
    }
}

/// The clients that hold a token or an engine of `gpu`.
fn holders(look: &Snapshot, gpu: u16) -> impl Iterator<Item = &ClientState> {
    let tokens = look.tokens.holders.iter().skip(gpu.into()).step_by(look.config.gpus.into());
    let engines = look.engines.get(usize::from(gpu)).into_iter().flatten().flat_map(|lock| &lock.holders);
    tokens.chain(engines).flatten().filter_map(|&task| look.client(task))
}
