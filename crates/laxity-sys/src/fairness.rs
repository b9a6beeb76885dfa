//! What Linux's fair class knows of a thread: its niceness, and how long it ran and waited.

use std::fs;
use std::io;

use laxity_model::Nanos;
use rustix::process::{Pid, getpriority_process, setpriority_process};

/// How long a thread ran, and how long it waited for a CPU while it could have run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// On a CPU.
    pub ran: Nanos,
    /// Ready, and not on a CPU.
    pub waited: Nanos,
}

/// The niceness of the thread with that number, of any process: -20, the most favoured, to 19.
///
/// # Errors
/// If there is no such thread.
pub fn niceness(thread: u32) -> io::Result<i32> {
    Ok(getpriority_process(Some(number(thread)?))?)
}

/// Gives that thread that niceness.
///
/// # Errors
/// If there is no such thread, or this user may not: more favour takes `CAP_SYS_NICE` or `RLIMIT_NICE`.
pub fn set_niceness(thread: u32, niceness: i32) -> io::Result<()> {
    Ok(setpriority_process(Some(number(thread)?), niceness)?)
}

/// What the thread with that number, of any process, used.
///
/// # Errors
/// If there is no such thread, or Linux keeps no such statistics (`CONFIG_SCHED_INFO`).
pub fn usage(thread: u32) -> io::Result<Usage> {
    let text = fs::read_to_string(format!("/proc/{thread}/schedstat"))?;
    usage_of(&text).ok_or_else(|| io::Error::new(io::ErrorKind::Unsupported, "Linux keeps no times of threads"))
}

/// Nanoseconds that it ran, nanoseconds that it waited, and how often it ran.
fn usage_of(text: &str) -> Option<Usage> {
    let mut numbers = text.split_whitespace().map(|number| number.parse::<u64>().ok());
    Some(Usage { ran: Nanos(numbers.next()??), waited: Nanos(numbers.next()??) })
}

fn number(thread: u32) -> io::Result<Pid> {
    i32::try_from(thread).ok().and_then(Pid::from_raw).ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::now;
    use crate::scheduling::current_thread;

    #[test]
    fn a_thread_that_runs_uses_time_and_can_be_made_nicer() {
        std::thread::spawn(|| {
            let thread = current_thread();
            let before = usage(thread).expect("it lives");
            let until = now().saturating_add(Nanos::from_millis(20));
            while now() < until {}
            std::thread::yield_now();
            // Linux adds up when a thread stops, or at a tick.
            crate::clock::thread_cpu_time();
            let after = usage(thread).expect("it lives");
            assert!(after.ran > before.ran, "{after:?} after {before:?}");
            let old = niceness(thread).expect("it lives");
            set_niceness(thread, old + 1).expect("any thread may be nicer");
            assert_eq!(niceness(thread).expect("it lives"), old + 1);
        })
        .join()
        .expect("no panic");
        assert!(niceness(u32::MAX).is_err());
    }

    #[test]
    fn what_is_no_statistic_is_none() {
        assert_eq!(usage_of("7 8 9\n"), Some(Usage { ran: Nanos(7), waited: Nanos(8) }));
        assert_eq!(usage_of("7"), None);
        assert_eq!(usage_of("a b"), None);
    }
}
