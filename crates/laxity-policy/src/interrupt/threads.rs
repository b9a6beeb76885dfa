//! Threads that handle interrupts: klmirqd's daemons, those of PREEMPT_RT, and callback threads of GPU run-time
//! libraries.

use std::collections::VecDeque;

/// Which thread serves which device (the thread assignment registry of paper 000, section IV), and the bottom halves
/// each thread has to do, in order of arrival.
#[derive(Clone, Debug)]
pub struct Threads<H> {
    /// The thread of each device.
    of_device: Vec<usize>,
    threads: Vec<Thread<H>>,
}

#[derive(Clone, Debug)]
struct Thread<H> {
    /// What it is doing.
    serving: Option<H>,
    waiting: VecDeque<H>,
}

impl<H> Threads<H> {
    /// `of_device` is the thread of each device, and `others` serve none; threads are numbered from 0 and all idle.
    pub fn new(of_device: Vec<usize>, others: usize) -> Self {
        let threads = of_device.iter().max().map_or(0, |last| last + 1) + others;
        let idle = || Thread { serving: None, waiting: VecDeque::new() };
        Threads { of_device, threads: (0..threads).map(|_| idle()).collect() }
    }

    /// The thread that serves `device`.
    pub fn of(&self, device: usize) -> usize {
        self.of_device[device]
    }

    /// How many threads there are.
    pub fn len(&self) -> usize {
        self.threads.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }

    /// A bottom half of `device`. Returns its thread if that was idle and must be woken: it serves `half` now.
    pub fn submit(&mut self, device: usize, half: H) -> Option<usize> {
        let thread = self.of(device);
        self.submit_to(thread, half).then_some(thread)
    }

    /// `half` is for `thread`. Answers whether that was idle and must be woken: it serves `half` now.
    pub fn submit_to(&mut self, thread: usize, half: H) -> bool {
        let thread = &mut self.threads[thread];
        if thread.serving.is_some() {
            thread.waiting.push_back(half);
            return false;
        }
        thread.serving = Some(half);
        true
    }

    /// What `thread` is doing.
    pub fn serving(&self, thread: usize) -> Option<&H> {
        self.threads[thread].serving.as_ref()
    }

    /// `thread` is done with what it was doing, which is returned; it serves the next in its queue now, if any.
    pub fn finish(&mut self, thread: usize) -> H {
        let state = &mut self.threads[thread];
        let next = state.waiting.pop_front();
        std::mem::replace(&mut state.serving, next).expect("only a thread that serves can finish")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_woken_once_and_serves_its_devices_in_order() {
        let mut threads = Threads::new(vec![0, 1, 0], 1);
        assert_eq!(threads.submit(0, 'a'), Some(0));
        assert_eq!(threads.submit(2, 'b'), None, "it is awake");
        assert_eq!(threads.submit(1, 'c'), Some(1), "another thread");
        assert_eq!((threads.finish(0), threads.serving(0)), ('a', Some(&'b')));
        assert_eq!((threads.finish(0), threads.serving(0)), ('b', None));
        assert_eq!(threads.submit(0, 'd'), Some(0));
        assert_eq!((threads.len(), threads.submit_to(2, 'e'), threads.submit_to(2, 'f')), (3, true, false));
    }
}
