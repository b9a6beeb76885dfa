//! Sees when a CPU is stolen from all threads, so that a late job is not put down to those that were there.

use std::sync::Arc;
use std::sync::mpsc;
use std::thread::{Builder, JoinHandle};

use laxity_model::Nanos;
use laxity_sys::{clock, scheduling};

use crate::linux::PRIORITY_MAX;
use crate::log::{self, JobStep, Reader, Writer};
use crate::stop::StopSignal;

/// How often the thread looks.
const LOOK: Nanos = Nanos::from_millis(1);
/// What takes longer than that to wake the most urgent thread of a CPU up is no wake-up: these take some ten microseconds.
const STOLEN_MIN: Nanos = Nanos::from_micros(200);

/// Above all jobs.
const PRIORITY: u8 = PRIORITY_MAX + 1;

/// The threads that look.
#[derive(Debug, Default)]
pub(crate) struct Watchers(Vec<JoinHandle<()>>);

impl Watchers {
    /// Starts a thread of the highest priority on each of `cpus`, until `stop`. Answers the logs of
    /// what they see, too.
    ///
    /// # Errors
    /// What Linux refuses, and the way out.
    pub fn start(cpus: &[usize], stop: &Arc<StopSignal>) -> Result<(Watchers, Vec<Reader>), String> {
        let (mut watchers, mut readers) = (Watchers::default(), Vec::new());
        for &cpu in cpus {
            let (log, reader) = log::log();
            match watch(cpu, log, Arc::clone(stop)) {
                Ok(thread) => watchers.0.push(thread),
                Err(reason) => {
                    stop.stop();
                    watchers.join();
                    return Err(reason);
                }
            }
            readers.push(reader);
        }
        Ok((watchers, readers))
    }

    /// Waits until they have ended, which they do once the run is stopped.
    pub fn join(&mut self) {
        // A thread that panicked has seen all there is.
        self.0.drain(..).for_each(|thread| _ = thread.join());
    }
}

fn watch(cpu: usize, mut log: Writer, stop: Arc<StopSignal>) -> Result<JoinHandle<()>, String> {
    let (tell, told) = mpsc::sync_channel(1);
    let thread = scheduling::spawn(Builder::new().name(format!("laxity-cpu-{cpu}")), move || {
        let ready = scheduling::pin(cpu).and_then(|()| scheduling::set_fifo(PRIORITY));
        let is_ready = ready.is_ok();
        let _ = tell.send(ready);
        let mut due = clock::now();
        while is_ready && !stop.is_stopped() {
            due = due.saturating_add(LOOK);
            clock::sleep_until(due);
            let now = clock::now();
            let late = now.saturating_since(due);
            if late >= STOLEN_MIN {
                log.note(0, JobStep::Stolen(late.0));
            }
            due = now;
        }
    });
    let refused = |error| {
        format!(
            "CPU {cpu} cannot be watched: {error}; allow SCHED_FIFO (`ulimit -r 99`, or CAP_SYS_NICE), or leave it out"
        )
    };
    let thread = thread.map_err(refused)?;
    match told.recv() {
        Ok(Ok(())) => Ok(thread),
        Ok(Err(error)) => Err(refused(error)),
        Err(_) => Err(refused(std::io::Error::other("its thread ended before it began"))),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_cpu_that_a_more_urgent_thread_does_not_let_go_is_seen_as_stolen_and_an_idle_one_is_not() {
        let cpu = scheduling::usable_cpus().expect("this process has CPUs")[0];
        let stop = Arc::new(StopSignal::default());
        let (mut watchers, mut readers) = match Watchers::start(&[cpu], &stop) {
            Ok(started) => started,
            Err(refusal) => return laxity_testing::skip(refusal),
        };
        // Equals under SCHED_FIFO are served in their order: a thread that computes there for 20 ms keeps the watcher away.
        let thread = scheduling::spawn(Builder::new(), move || {
            scheduling::pin(cpu).expect("it may be there");
            scheduling::set_fifo(PRIORITY).expect("the watcher may, too");
            let end = clock::now().saturating_add(Nanos::from_millis(20));
            while clock::now() < end {}
        });
        thread.expect("a thread").join().expect("it computes");
        std::thread::sleep(Duration::from_millis(5));
        stop.stop();
        watchers.join();
        let mut entries = VecDeque::new();
        readers[0].take(clock::now(), &mut entries);
        let stolen = |step| if let JobStep::Stolen(time) = step { time } else { 0 };
        let longest = entries.iter().map(|entry| stolen(entry.step)).max().unwrap_or(0);
        assert!(longest >= 18_000_000, "20 ms were taken, less the look before: {longest} ns");
        assert!(entries.iter().all(|entry| entry.cpu == cpu));
    }
}
