//! Ctrl-C: what was begun ends where it is, and everything about it is kept.

use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Whether the user or a service manager wants the process to end.
#[derive(Clone, Default)]
pub struct Interrupt {
    requested: Arc<AtomicBool>,
    last_act: LastAct,
}

/// Requests that come so soon after the first are that one said twice: `timeout` and others tell the process, and then its group.
/// A person takes longer.
const SAID_TWICE: Duration = Duration::from_millis(50);

/// What is still done before the process is ended in the middle of something.
type LastAct = Arc<Mutex<Option<Box<dyn FnOnce() + Send>>>>;

impl Interrupt {
    /// Takes over Ctrl-C, SIGTERM and SIGHUP. The second one ends the process at once, and leaves no shared memory of its runs.
    pub fn watch() -> Self {
        Interrupt::handle(|last_act| {
            let act = last_act.lock().unwrap_or_else(PoisonError::into_inner).take();
            act.into_iter().for_each(|act| act());
            #[cfg(target_os = "linux")]
            laxity_runtime::forget_runs();
            process::exit(130)
        })
    }

    /// Before a second request ends the process, `act` is done, instead of what was said before.
    #[cfg(target_os = "linux")]
    pub fn end_with(&self, act: impl FnOnce() + Send + 'static) {
        *self.last_act.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(act));
    }

    /// As [`Interrupt::end_with`], for a run of `plan` that has begun: its graphs are in shared memory under their names.
    #[cfg(target_os = "linux")]
    pub fn end_with_graphs_of(&self, plan: &laxity_runtime::LivePlan) {
        let plan = plan.clone();
        self.end_with(move || plan.unlink_graphs(&laxity_graph::Registry::default()));
    }

    /// As [`Interrupt::watch`], but any number of requests are one: for a process whose parent's death is a request,
    /// as Linux says it again for each thread of the parent that dies.
    #[cfg(target_os = "linux")]
    pub fn watch_patiently() -> Self {
        Interrupt::handle(|_| {})
    }

    fn handle(again: impl Fn(&LastAct) + Send + 'static) -> Self {
        let interrupt = Interrupt::default();
        let Interrupt { requested, last_act } = interrupt.clone();
        let mut first = None;
        let handler = move || {
            requested.store(true, Ordering::Relaxed);
            if first.get_or_insert_with(Instant::now).elapsed() > SAID_TWICE {
                again(&last_act);
            }
        };
        // Without a handler Ctrl-C ends the process as it would any other: nothing worth failing for.
        let _ = ctrlc::set_handler(handler);
        interrupt
    }

    /// Whether it was requested.
    pub fn is_requested(&self) -> bool {
        self.requested.load(Ordering::Relaxed)
    }
}
