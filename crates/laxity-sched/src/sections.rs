//! Non-preemptive sections.
//!
//! ```text
//!  thread of the task               thread that decides
//!  enter: sections = 1              takes a CPU: is due = 1
//!         is it due? -> wait                     in a section? -> it keeps the CPU until it leaves
//!         has it its CPU?                        demand = waiting, is due = 0
//! ```
//!
//! Both store before they load, so that at least one sees the other.

use std::sync::atomic::Ordering;

use crate::decision::{Decision, Watch};
use crate::placement::Class;
use crate::state_lock::StateError;
use crate::step;
use crate::task::{Phase, Task, TaskError};

impl Task {
    /// No other task gets this thread's CPU until [`Task::leave_section`]. Waits for a CPU first, if another task just
    /// took it. Sections nest.
    ///
    /// # Errors
    /// [`TaskError`]; there must be a job that is not suspended.
    pub fn enter_section(&self) -> Result<(), TaskError> {
        self.charged(|| self.enter_section_now())
    }

    fn enter_section_now(&self) -> Result<(), TaskError> {
        self.expect(Phase::Pending, "a non-preemptive section", "a job that is not suspended", "wait for one first")?;
        let (shared, sections) = (self.shared(), self.shared().sections(self.id));
        if sections.load(Ordering::Relaxed) > 0 {
            sections.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        loop {
            step::point();
            sections.store(1, Ordering::SeqCst);
            step::point();
            // Either we see that the CPU is being taken, or the thread that takes it sees the section.
            let is_being_taken = shared.is_due(self.id).load(Ordering::SeqCst) != 0;
            step::point();
            let has_cpu = || shared.demanded(self.id).class == Class::Running;
            let has = if is_being_taken { self.has_cpu_at_last(has_cpu) } else { Ok(has_cpu()) };
            if let Ok(true) = has {
                return Ok(());
            }
            sections.store(0, Ordering::SeqCst);
            has?;
            step::point();
            shared.sleep_until(self.id, |class| class == Class::Running);
        }
    }

    /// Whether `has_cpu` while no thread decides.
    fn has_cpu_at_last(&self, has_cpu: impl Fn() -> bool) -> Result<bool, StateError> {
        let shared = self.shared();
        let mut placed = self.placed.borrow_mut();
        shared.rise(self.id, &mut placed);
        let has_cpu = shared.lock(self.parameters().cluster).map(|_state| has_cpu());
        shared.settle(self.id, &mut placed);
        has_cpu
    }

    /// Ends the section that was entered last. If another task is to have the CPU, it gets it now: the decision says so.
    ///
    /// # Errors
    /// [`TaskError`]; there must be a section.
    pub fn leave_section(&self) -> Result<Option<Decision>, TaskError> {
        self.leave_section_watched(&mut ())
    }

    /// As [`Task::leave_section`]; `watch` hears of the decision, if there is one, before the thread may have to wait.
    ///
    /// # Errors
    /// [`TaskError`].
    pub fn leave_section_watched(&self, watch: &mut impl Watch) -> Result<Option<Decision>, TaskError> {
        self.charged(|| self.leave_section_now(watch))
    }

    fn leave_section_now(&self, watch: &mut impl Watch) -> Result<Option<Decision>, TaskError> {
        let sections = self.shared().sections(self.id);
        match sections.load(Ordering::Relaxed) {
            0 => {
                let (action, needs) = ("the end of a section", "a section");
                Err(self.out_of_order(action, needs, "enter one first"))
            }
            1 => {
                step::point();
                sections.store(0, Ordering::SeqCst);
                step::point();
                if self.shared().is_due(self.id).swap(0, Ordering::SeqCst) == 0 {
                    return Ok(None);
                }
                self.event(watch, self.phase.get(), |_| {}).map(Some)
            }
            depth => {
                sections.store(depth - 1, Ordering::Relaxed);
                Ok(None)
            }
        }
    }

    /// Sections do not outlast what they are part of.
    pub(crate) fn end_sections(&self) {
        self.shared().sections(self.id).store(0, Ordering::SeqCst);
        self.shared().is_due(self.id).store(0, Ordering::SeqCst);
    }
}
