//! Ctrl-C: what was begun ends where it is, and everything about it is kept.

use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the user, or whoever manages the machine, wants the process to end.
#[derive(Clone, Default)]
pub struct Interrupt {
    requested: Arc<AtomicBool>,
}

impl Interrupt {
    /// Takes over Ctrl-C, SIGTERM and SIGHUP. The second one ends the process at once.
    pub fn watch() -> Self {
        Interrupt::handle(|| process::exit(130))
    }

    /// As [`Interrupt::watch`], but any number of requests are one: for a process whose parent's death is a request,
    /// as Linux says it again for each thread of the parent that dies.
    #[cfg(target_os = "linux")]
    pub fn watch_patiently() -> Self {
        Interrupt::handle(|| {})
    }

    fn handle(again: impl Fn() + Send + 'static) -> Self {
        let interrupt = Interrupt::default();
        let requested = Arc::clone(&interrupt.requested);
        let handler = move || {
            if requested.swap(true, Ordering::Relaxed) {
                again();
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
