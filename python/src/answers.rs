//! `laxity.check`, `laxity.why` and `laxity.tune`: what the command's JSON says, for `laxity._answers` to make classes of.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant as WallInstant};

use laxity_analysis::check::{Accounting, Criterion, JsonReport, Options, check};
use laxity_model::{JobId, Nanos};
use laxity_plan::default_duration;
use laxity_trace::why::{self, Wanted, explain, job_name, wanted, worth_explaining};
use laxity_tune::{Effort, Host, Part, Score, Setting, Space, scaled, tune};
use pyo3::prelude::*;
use rayon::prelude::*;

use crate::errors::{trace_error, value_error, workload_error};
use crate::json::to_python;
use crate::overheads::Overheads;
use crate::parallel;
use crate::trace::PyTrace;
use crate::workload::{PyWorkload, configured, manage};

/// The report of `laxity check --json`.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub fn _check<'py>(
    py: Python<'py>,
    workload: &PyWorkload,
    policy: Option<&str>,
    overheads: Option<Overheads>,
    arbitration: Option<&str>,
    handling: Option<&str>,
    accounting: &str,
    soft: bool,
    scaling: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let mut workload = configured(py, &workload.workload, policy, overheads.as_ref())?;
    manage(&mut workload, arbitration, handling)?;
    let accounting = match accounting {
        "safe" => Accounting::Safe,
        "published" => Accounting::Published,
        _ => {
            let message = format!("accounting=\"{accounting}\" is unknown; write \"safe\" or \"published\"");
            return Err(value_error(message));
        }
    };
    let criterion = if soft { Criterion::Soft } else { Criterion::Hard };
    let options = Options { accounting, criterion, scaling, ..Options::default() };
    let report = py.detach(|| check(&workload, &workload.scheduler, &options));
    to_python(py, &JsonReport::new(&workload.name, &report))
}

/// The accounts of `laxity trace FILE why --json`: of `job`, or of the `count` latest or longest.
#[pyfunction]
pub fn _why<'py>(
    py: Python<'py>,
    trace: &PyTrace,
    job: Option<&str>,
    count: usize,
    by: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let (header, records) = (&*trace.header, &*trace.records);
    let by_response = match by {
        "lateness" => false,
        "response" => true,
        _ => return Err(value_error(format!("by=\"{by}\" is unknown; write \"lateness\" or \"response\""))),
    };
    let chosen = job.map(|text| wanted(header, text)).transpose().map_err(value_error)?;
    let jobs: Vec<JobId> = match chosen {
        Some(Wanted::Job(job)) => vec![job],
        of => {
            let task = of.map(|wanted| match wanted {
                Wanted::Task(task) => task,
                Wanted::Job(job) => job.task,
            });
            // One at least is looked for, so that a trace without jobs is refused even where none are asked for.
            let mut found = py.detach(|| worth_explaining(header, records, task, by_response, count.max(1)));
            if found.is_empty() {
                return Err(trace_error(
                    py,
                    &"no such job completed, so there is nothing to explain; record for longer",
                ));
            }
            found.truncate(count);
            found
        }
    };
    let explained = py.detach(|| explain(header, records, |job| jobs.contains(&job)));
    let mut accounts = explained.map_err(|error| trace_error(py, &error))?;
    if accounts.is_empty() && !jobs.is_empty() {
        let text = format!("{} is not released in this trace, which ends before", job_name(header, jobs[0]));
        return Err(trace_error(py, &text));
    }
    accounts.sort_by_key(|account| jobs.iter().position(|&job| job == account.job));
    let rows: Vec<_> = accounts.iter().map(|account| why::row(header, account)).collect();
    to_python(py, &rows)
}

/// What `laxity tune --json` prints from `settings` on, and the workload as the best configures it.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub fn _tune<'py>(
    py: Python<'py>,
    workload: &PyWorkload,
    load_permille: u64,
    within: &str,
    duration: Option<&str>,
    seed: u64,
    overheads: Option<Overheads>,
    best: usize,
    threads: Option<usize>,
) -> PyResult<(Bound<'py, PyAny>, PyWorkload)> {
    let within: Nanos = within.parse().map_err(value_error)?;
    let duration: Option<Nanos> = duration.map(|text| text.parse().map_err(value_error)).transpose()?;
    let workload = configured(py, &workload.workload, None, overheads.as_ref())?;
    let workload = scaled(&workload, load_permille, Part::All);
    workload.validate().map_err(|errors| workload_error(py, errors, false))?;
    let duration = duration.unwrap_or_else(|| default_duration(&workload));
    let tuned = parallel::interruptible(py, threads, |stop| {
        let host = Pool { started: WallInstant::now(), within, stop };
        let effort = Effort::new(&workload, duration, seed);
        Ok(tune(&Space::of(workload.clone()), &effort, best, &host))
    })?;
    Ok((to_python(py, &tuned)?, PyWorkload::new(tuned.workload)))
}

/// The threads of the pool that it runs in, the clock since the search began, and Ctrl-C.
struct Pool<'a> {
    started: WallInstant,
    within: Nanos,
    stop: &'a AtomicBool,
}

impl Host for Pool<'_> {
    fn map(&self, settings: &[Setting], score: &(dyn Fn(&Setting) -> Option<Score> + Sync)) -> Vec<Option<Score>> {
        settings.par_iter().map(score).collect()
    }

    fn is_over(&self, tenths: u32) -> bool {
        self.stop.load(Ordering::Relaxed) || self.started.elapsed() > Duration::from_nanos(self.within.0 / 10) * tenths
    }

    fn progress(&self, _tried: usize, _best: Option<&Score>) {}
}
