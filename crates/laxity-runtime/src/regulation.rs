//! The regulators of a run, and the log of what they do.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use laxity_bandwidth::{Observer, Regulated, Regulator, Report};
use laxity_gpu::Arbitration;
use laxity_model::{Nanos, TaskId};

use crate::log::{JobStep, Writer};
use crate::plan::Protection;

/// Starts the regulators of `protection`, for best-effort tasks whose `threads` they throttle and share the
/// CPUs out among where the file names the Throttle Fair Scheduler; `logs` are those of the
/// regulated CPUs.
///
/// # Errors
/// What keeps a CPU from being regulated.
pub(crate) fn start(
    protection: &Protection,
    arbitration: &Arbitration,
    threads: Vec<(Regulated, TaskId)>,
    logs: Vec<Writer>,
) -> Result<Regulator, String> {
    let log = Log {
        cpus: protection.cpus.iter().copied().zip(logs.into_iter().map(Mutex::new)).collect(),
        tasks: threads.iter().map(|(regulated, task)| (regulated.thread, *task)).collect(),
    };
    let regulated = threads.into_iter().map(|(regulated, _)| regulated).collect();
    Regulator::start_for_threads(arbitration, protection.regulator.clone(), regulated, Arc::new(log))
        .map_err(|error| format!("`bandwidth_lock`: {error}"))
}

/// What `reports` say that the trace does not: periods in which a CPU had more than its budget and was let run.
pub(crate) fn remarks(reports: &[Report]) -> Vec<String> {
    let let_run = reports.iter().filter(|report| report.let_run > 0).map(|report| {
        format!(
            "CPU {}: in {} of {} regulated periods it was not throttled, as real-time threads may not have a CPU all the \
             time; raise the budget, or hold the bandwidth lock for less",
            report.cpu, report.let_run, report.regulation.periods
        )
    });
    let failed = reports.iter().filter_map(|report| report.failed.clone());
    let_run.chain(failed).collect()
}

/// Notes what regulators do, each in a log of its CPU.
struct Log {
    cpus: BTreeMap<usize, Mutex<Writer>>,
    tasks: BTreeMap<u32, TaskId>,
}

impl Log {
    fn note(&self, cpu: usize, step: JobStep) {
        if let Some(log) = self.cpus.get(&cpu) {
            log.lock().unwrap_or_else(PoisonError::into_inner).note(0, step);
        }
    }
}

impl Observer for Log {
    fn regulate(&self, cpu: usize, budget: Option<u64>) {
        self.note(cpu, JobStep::Regulate(budget));
    }

    fn throttle(&self, cpu: usize, thread: u32) {
        self.note(cpu, JobStep::Throttle(self.tasks.get(&thread).copied()));
    }

    fn unthrottle(&self, cpu: usize, thread: u32, lost: Nanos) {
        self.note(cpu, JobStep::Unthrottle(self.tasks.get(&thread).copied(), lost.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_in_which_a_cpu_was_let_run_are_told_and_others_are_not() {
        let mut report = Report { cpu: 3, ..Report::default() };
        report.regulation.periods = 40;
        assert!(remarks(std::slice::from_ref(&report)).is_empty());
        report.let_run = 2;
        assert!(remarks(&[report])[0].starts_with("CPU 3: in 2 of 40 regulated periods"));
    }
}
