//! What a process asks of each of its streams.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use laxity_policy::program::Event;

use crate::operation::Operation;
use crate::process::{Announced, Leave};
use crate::state::Home;
use crate::stream::Inner;

impl<O: Operation> Leave for Inner<O> {
    fn number(&self) -> u32 {
        self.number
    }

    fn exit(&self) {
        let mut state = self.lock();
        state.handle(&self.process.settings, Event::Exits);
        if self.in_driver.load(Ordering::Relaxed) > 0 {
            // What these threads wait for is opened by no grant any more, and a destructor may wait for them.
            let held_back = state.held_back();
            state.to_open.extend(held_back);
        }
        self.work.notify_one();
        self.news.notify_all();
    }

    fn is_quiet(&self) -> bool {
        !self.lock().machine.holds_or_requests()
    }

    fn write(&self) {
        self.process.log(|| self.lock().lines.as_mut().map(std::mem::take).unwrap_or_default());
    }

    fn rest(&self) {
        let mut state = self.lock();
        state.handle(&self.process.settings, Event::Waits);
        self.tell(&mut state);
    }

    fn has_company(&self) {
        drop(self.lock());
        self.work.notify_one();
    }

    fn announce(&self, job: Announced) {
        let event = match job {
            Announced::Begins(deadline) => Event::JobBegins(deadline),
            Announced::Ends => Event::JobEnds,
        };
        let mut state = self.lock();
        state.handle(&self.process.settings, event);
        self.tell(&mut state);
    }

    fn stop(&self) {
        let mut state = self.lock();
        if matches!(state.home, Home::Awake | Home::Parked) {
            state.home = Home::Ending;
        }
        self.work.notify_one();
        while state.home == Home::Ending {
            state = self.news.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
