//! Standard Linux: a queue of tasklets for each CPU.

use std::collections::VecDeque;

/// The tasklets of one CPU. After an interrupt, up to ten of them run before the interrupted job goes on; what is left
/// waits for the CPU's daemon, which has no real-time priority, or for the next interrupt (paper 000, section II).
#[derive(Clone, Debug)]
pub struct Tasklets<H> {
    pending: VecDeque<H>,
    /// How many more may run before the interrupted job goes on.
    budget: u32,
}

/// How many tasklets run after an interrupt.
const AFTER_INTERRUPT: u32 = 10;

impl<H> Tasklets<H> {
    /// No tasklet.
    pub fn new() -> Self {
        Tasklets { pending: VecDeque::new(), budget: 0 }
    }

    /// The top half of an interrupt leaves `half` to be done: before the CPU goes on, ten tasklets may run.
    pub fn raise(&mut self, half: H) {
        self.pending.push_back(half);
        self.budget = AFTER_INTERRUPT;
    }

    /// The tasklet to run before the interrupted job goes on; `None`: it goes on.
    pub fn next_on_stack(&mut self) -> Option<H> {
        let half = if self.budget == 0 { None } else { self.pending.pop_front() };
        self.budget = if half.is_some() { self.budget - 1 } else { 0 };
        half
    }

    /// The tasklet that the daemon runs next, when no real-time job wants the CPU.
    pub fn next_for_daemon(&mut self) -> Option<H> {
        self.pending.pop_front()
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.pending.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }
}

impl<H> Default for Tasklets<H> {
    fn default() -> Self {
        Tasklets::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Twelve tasklets are raised by one burst of interrupts: ten run at once, two are left to the daemon, until the
    /// next interrupt allows ten more.
    #[test]
    fn ten_tasklets_run_after_an_interrupt_and_the_rest_wait_for_the_daemon() {
        let mut tasklets = Tasklets::new();
        for half in 0..12 {
            tasklets.raise(half);
        }
        let at_once: Vec<i32> = std::iter::from_fn(|| tasklets.next_on_stack()).collect();
        assert_eq!(at_once, (0..10).collect::<Vec<_>>());
        assert_eq!(tasklets.len(), 2);
        assert_eq!(tasklets.next_for_daemon(), Some(10));
        assert_eq!(tasklets.next_on_stack(), None, "without an interrupt only the daemon goes on");
        tasklets.raise(12);
        assert_eq!(
            [tasklets.next_on_stack(), tasklets.next_on_stack(), tasklets.next_on_stack()],
            [Some(11), Some(12), None]
        );
    }

    #[test]
    fn a_pass_that_ran_dry_is_over() {
        let mut tasklets = Tasklets::new();
        tasklets.raise(0);
        assert_eq!([tasklets.next_on_stack(), tasklets.next_on_stack()], [Some(0), None]);
        tasklets.pending.push_back(1);
        assert_eq!(tasklets.next_on_stack(), None);
    }
}
