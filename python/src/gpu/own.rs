//! The clients of this thread, and what they hold.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, ThreadId};

use laxity_gpu::{Base, Client, DetachedEngine, DetachedToken, LockError, RegisterError};
use pyo3::prelude::*;

use super::errors::{gpu_error, misuse};

thread_local! {
    /// By number. Locks left when the thread ends are unlocked then.
    static CLIENTS: RefCell<BTreeMap<u64, Own>> = const { RefCell::new(BTreeMap::new()) };
}

/// Numbers are those of one client, token or engine ever.
static NUMBERS: AtomicU64 = AtomicU64::new(0);

/// A client and what it holds.
pub struct Own {
    pub client: Client,
    token: Option<(u64, DetachedToken)>,
    engines: Vec<(u64, DetachedEngine)>,
}

/// Where a client is: in which thread, of which process, by which number.
#[derive(Clone, Debug)]
pub struct Place {
    name: String,
    number: u64,
    thread: ThreadId,
    pid: u32,
}

impl Own {
    /// The number of the token from now on.
    pub fn hold_token(&mut self, token: DetachedToken) -> u64 {
        let number = next_number();
        self.token = Some((number, token));
        number
    }

    /// The number of the engine from now on.
    pub fn hold_engine(&mut self, engine: DetachedEngine) -> u64 {
        let number = next_number();
        self.engines.push((number, engine));
        number
    }

    pub fn has_token(&self, number: u64) -> bool {
        self.token.as_ref().is_some_and(|(held, _)| *held == number)
    }

    pub fn has_engine(&self, number: u64) -> bool {
        self.engines.iter().any(|(held, _)| *held == number)
    }

    /// Lets go of the token of that number and of all engines, if it is still held.
    pub fn release_token(&mut self, number: u64) {
        if self.has_token(number) {
            for (_, engine) in self.engines.drain(..) {
                drop(self.client.reattach_engine(engine));
            }
            if let Some((_, token)) = self.token.take() {
                drop(self.client.reattach(token));
            }
        }
    }

    /// Lets go of the engine of that number, if it is still held.
    pub fn release_engine(&mut self, number: u64) {
        if let Some(position) = self.engines.iter().position(|(held, _)| *held == number) {
            let (_, engine) = self.engines.remove(position);
            drop(self.client.reattach_engine(engine));
        }
    }

    /// Changes the priority; `None` while a token is held.
    pub fn rebase(&mut self, base: Base) -> Option<Result<(), RegisterError>> {
        self.token.is_none().then(|| self.client.rebase(base))
    }

    /// Waits, while the token is taken from where it is kept, for what `ask` asks it for.
    pub fn ask_token<T>(
        &mut self,
        ask: impl FnOnce(&laxity_gpu::Token<'_>) -> Result<T, LockError>,
    ) -> Option<Result<T, LockError>> {
        let (number, kept) = self.token.take()?;
        let token = self.client.reattach(kept);
        let outcome = ask(&token);
        self.token = Some((number, token.detach()));
        Some(outcome)
    }
}

impl Place {
    /// Keeps `client`, called `name`, in this thread.
    pub fn keep(client: Client, name: &str) -> Place {
        let place = Place {
            name: name.to_owned(),
            number: next_number(),
            thread: thread::current().id(),
            pid: std::process::id(),
        };
        let own = Own { client, token: None, engines: Vec::new() };
        CLIENTS.with_borrow_mut(|clients| clients.insert(place.number, own));
        place
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn is_here(&self) -> bool {
        thread::current().id() == self.thread && std::process::id() == self.pid
    }

    /// Uses the client.
    ///
    /// Raises UseError in other threads and processes, once it is released, and while it is waited with.
    pub fn with<T>(&self, py: Python<'_>, act: impl FnOnce(&mut Own) -> T) -> PyResult<T> {
        self.check(py)?;
        self.try_with(act).ok_or_else(|| misuse(py, self.gone()))
    }

    /// Waits with the client, without the GIL. `wait` is given what says whether to go on: it runs handlers of signals,
    /// and what those raise is raised here, after `undo` of what was granted all the same.
    pub fn wait<T: Send>(
        &self,
        py: Python<'_>,
        wait: impl FnOnce(&mut Own, &dyn Fn() -> bool) -> Option<Result<T, LockError>> + Send,
        undo: impl FnOnce(&mut Own, T),
        missing: &str,
    ) -> PyResult<T> {
        self.check(py)?;
        let (outcome, raised) = py.detach(|| {
            let raised = RefCell::new(None);
            let go_on = || match Python::attach(|py| py.check_signals()) {
                Ok(()) => true,
                Err(error) => {
                    raised.replace(Some(error));
                    false
                }
            };
            let outcome = self.try_with(|own| wait(own, &go_on));
            (outcome, raised.into_inner())
        });
        let granted = outcome.ok_or_else(|| misuse(py, self.gone()))?;
        match (granted, raised) {
            (Some(Ok(granted)), Some(error)) => {
                self.with(py, |own| undo(own, granted))?;
                Err(error)
            }
            (_, Some(error)) => Err(error),
            (Some(outcome), None) => outcome.map_err(|error| gpu_error(py, &error)),
            (None, None) => Err(misuse(py, format!("client {}: {missing}", self.name))),
        }
    }

    /// Unlocks or returns something. A client that was released holds nothing any more.
    ///
    /// Raises UseError in other threads and processes.
    pub fn let_go(&self, py: Python<'_>, act: impl FnOnce(&mut Own)) -> PyResult<()> {
        self.check(py)?;
        self.try_with(act);
        Ok(())
    }

    /// Lets go of the client, and of what it holds, if it is still there.
    pub fn release(&self, py: Python<'_>) -> PyResult<()> {
        self.check(py)?;
        self.forget();
        Ok(())
    }

    /// The same where an error cannot be raised: in another thread nothing happens.
    pub fn forget(&self) {
        if self.is_here() {
            let gone = CLIENTS.try_with(|clients| clients.try_borrow_mut().ok()?.remove(&self.number));
            drop(gone);
        }
    }

    /// Does it if the client is here and not in use: what cannot be done now is done when the client is released.
    pub fn quietly(&self, act: impl FnOnce(&mut Own)) {
        if self.is_here() {
            self.try_with(act);
        }
    }

    fn try_with<T>(&self, act: impl FnOnce(&mut Own) -> T) -> Option<T> {
        let found = CLIENTS.try_with(|clients| Some(act(clients.try_borrow_mut().ok()?.get_mut(&self.number)?)));
        found.ok().flatten()
    }

    fn check(&self, py: Python<'_>) -> PyResult<()> {
        let name = &self.name;
        if std::process::id() != self.pid {
            let text = "this process was forked from the one that registered it; attach and register here";
            return Err(misuse(py, format!("client {name}: {text}")));
        }
        if thread::current().id() != self.thread {
            let text = "another thread registered it; register each thread that uses GPUs, by Arbitration.client";
            return Err(misuse(py, format!("client {name}: {text}")));
        }
        Ok(())
    }

    fn gone(&self) -> String {
        format!("client {}: it is released, or waits in a call that a signal interrupted; register another", self.name)
    }
}

fn next_number() -> u64 {
    NUMBERS.fetch_add(1, Ordering::Relaxed)
}
