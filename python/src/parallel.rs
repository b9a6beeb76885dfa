//! Work on many CPUs that Ctrl-C can end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::ThreadPoolBuilder;

use crate::errors::value_error;

/// How often Python's signal handlers get their turn.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// The work was told to stop.
pub struct Stopped;

impl Stopped {
    /// An error once `stop` is set.
    pub fn check(stop: &AtomicBool) -> Result<(), Stopped> {
        if stop.load(Ordering::Relaxed) { Err(Stopped) } else { Ok(()) }
    }
}

/// Does `work` in a pool of `threads` threads (`None`: one a CPU) while this thread, without the GIL, waits and lets
/// Python's signal handlers run. If one raises, the flag that `work` gets is set and its result is dropped.
pub fn interruptible<T: Send>(
    py: Python<'_>,
    threads: Option<usize>,
    work: impl FnOnce(&AtomicBool) -> Result<T, Stopped> + Send,
) -> PyResult<T> {
    if threads == Some(0) {
        return Err(value_error("threads=0 would do nothing; pass at least 1, or None for one a CPU"));
    }
    let pool = ThreadPoolBuilder::new().num_threads(threads.unwrap_or(0)).build();
    let pool = pool.map_err(|error| PyRuntimeError::new_err(format!("no threads to work with: {error}")))?;
    py.detach(|| {
        let stop = AtomicBool::new(false);
        let (sender, receiver) = channel();
        thread::scope(|scope| {
            // The sender goes with the thread, so that its end is noticed however it comes.
            let (pool, stop) = (&pool, &stop);
            scope.spawn(move || {
                let done = pool.install(|| work(stop));
                // Fails only if the receiver is gone.
                let _ = sender.send(done);
            });
            let mut raised = None;
            let done = loop {
                match receiver.recv_timeout(BETWEEN_LOOKS) {
                    Ok(done) => break done,
                    // The worker panicked; the scope passes that on.
                    Err(RecvTimeoutError::Disconnected) => break Err(Stopped),
                    Err(RecvTimeoutError::Timeout) => {
                        if let Err(error) = Python::attach(|py| py.check_signals()) {
                            raised = Some(error);
                            stop.store(true, Ordering::Relaxed);
                        }
                    }
                }
            };
            match (raised, done) {
                (Some(error), _) => Err(error),
                (None, Ok(done)) => Ok(done),
                (None, Err(Stopped)) => Err(PyRuntimeError::new_err("a worker ended without a result")),
            }
        })
    })
}
