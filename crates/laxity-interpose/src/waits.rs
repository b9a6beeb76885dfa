//! Threads of the program that wait: in the layer for operations that are held back, or in the driver.

use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use laxity_policy::program::{Event, OperationId};

use crate::operation::Operation;
use crate::settings::Wait;
use crate::state::{Awaited, State};
use crate::stream::LiveStream;

/// A thread of the program waits in the driver: see [`LiveStream::wait_in_driver`].
#[derive(Debug)]
#[must_use = "it is kept while the thread waits"]
pub struct InDriver<'a, O: Operation>(&'a LiveStream<O>);

impl<O: Operation> Drop for InDriver<'_, O> {
    fn drop(&mut self) {
        self.0.inner.in_driver.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<O: Operation> LiveStream<O> {
    /// Before a thread of the program waits in the driver for operations up to `until`: waits until none of them is held
    /// back, or, where threads are to be suspended, until they are over. In an out-of-order stream `only` that one
    /// counts.
    pub fn wait_until_open(&self, until: OperationId, only: bool) {
        let process = &self.inner.process;
        let mut state = self.rest();
        let awaited = match (process.settings.wait, only) {
            (Wait::Driver, true) => Awaited::Open(until),
            (Wait::Driver, false) => Awaited::OpenUntil(until),
            (Wait::Suspend, true) => Awaited::Retired(until),
            (Wait::Suspend, false) => Awaited::RetiredUntil(until),
        };
        while !state.is_so(awaited) && !process.is_exiting() {
            state.begin_wait(awaited);
            state = self.inner.news.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.end_wait(awaited);
        }
        self.open_at_exit(state);
    }

    /// Before a thread of the program waits in the driver, for operations that may be held back: for drivers that were seen to
    /// suspend a thread that waits behind a gate. It wakes once then, when what it waits for is over, and not also when that
    /// may run. To be kept until the driver answers.
    pub fn wait_in_driver(&self) -> InDriver<'_, O> {
        let state = self.rest();
        self.inner.in_driver.fetch_add(1, Ordering::Relaxed);
        self.open_at_exit(state);
        InDriver(self)
    }

    /// A thread of the program waits for nothing that is under way here: streams that are idle keep no token meanwhile.
    pub fn waits(&self) {
        drop(self.rest());
    }

    /// The program waits.
    fn rest(&self) -> MutexGuard<'_, State<O>> {
        let process = &self.inner.process;
        process.rest();
        let mut state = self.inner.lock();
        state.handle(&process.settings, Event::Waits);
        self.inner.tell(&mut state);
        state
    }

    /// A destructor waits, perhaps. No gate is opened by a grant any more, and the driver would wait for ever.
    fn open_at_exit(&self, state: MutexGuard<'_, State<O>>) {
        if self.inner.process.is_exiting() {
            let held_back = state.held_back();
            drop(state);
            held_back.iter().for_each(|operation| operation.open());
        }
    }

    /// Before a thread of the program gives its own operation to the driver: waits until that may run. It is the gate
    /// itself. While the operation waits for something that perhaps this very thread is to do, it waits for `hold_limit` at
    /// most; then the operation runs without its engine.
    pub fn wait_for_turn(&self, id: OperationId) {
        let process = &self.inner.process;
        let limit = Duration::from_nanos(process.settings.policy.hold_limit.0);
        let mut state = self.inner.lock();
        let mut since = None;
        while !state.is_so(Awaited::Open(id)) && !process.is_exiting() {
            let waits_for_program = state.machine.waits_for_program();
            let waited = match waits_for_program {
                true => since.get_or_insert_with(std::time::Instant::now).elapsed(),
                false => {
                    since = None;
                    Duration::ZERO
                }
            };
            let Some(left) = limit.checked_sub(waited).filter(|left| !left.is_zero()) else {
                state.handle(&process.settings, Event::Forced(id));
                self.inner.work.notify_one();
                return;
            };
            let awaited = Awaited::Turn { id, waits_for_program };
            state.begin_wait(awaited);
            let wait = self.inner.news.wait_timeout(state, left);
            state = wait.unwrap_or_else(PoisonError::into_inner).0;
            state.end_wait(awaited);
        }
    }
}
