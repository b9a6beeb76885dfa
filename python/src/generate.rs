//! `laxity.generate` and `laxity.generate_many`.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use laxity_gen::{GenerateError, GeneratorSpec, Provenance, klmirqd_platform, task_set_seed};
use laxity_model::{Platform, Scheduler, Workload, WorkloadErrors};
use pyo3::prelude::*;
use rayon::prelude::*;

use crate::errors::{value_error, workload_error};
use crate::parallel::{self, Stopped};
use crate::workload::PyWorkload;

/// What surrounds the tasks of a generated workload.
struct Frame {
    platform: Platform,
    scheduler: Scheduler,
    name: Option<String>,
}

impl Frame {
    fn new(cpus: usize, platform: Option<&str>, policy: &str, name: Option<String>) -> PyResult<Self> {
        let platform = match platform {
            None => {
                check_number(cpus)?;
                Platform::identical(cpus)
            }
            Some("klmirqd") => klmirqd_platform(),
            Some(other) => {
                let message = format!("unknown platform \"{other}\"; write \"klmirqd\", or pass `cpus` alone");
                return Err(value_error(message));
            }
        };
        Ok(Frame { platform, scheduler: policy.parse().map_err(value_error)?, name })
    }

    fn generate(&self, spec: &GeneratorSpec, seed: u64) -> Result<(Workload, Provenance), GenerateError> {
        let set = laxity_gen::generate(spec, seed)?;
        let name = self.name.clone().unwrap_or_else(|| format!("{spec} seed={seed}"));
        let workload = Workload { scheduler: self.scheduler, ..Workload::new(name, self.platform.clone(), set.tasks) };
        Ok((workload, set.provenance))
    }
}

/// Whether a platform may have so many CPUs: asked before memory is taken for all of them.
///
/// Raises ValueError.
fn check_number(cpus: usize) -> PyResult<()> {
    let platform = Platform { cpus, ..Platform::identical(1) };
    let errors =
        Workload::new("", platform, Vec::new()).validate().err().map_or_else(Vec::new, WorkloadErrors::into_vec);
    let wrong = errors.into_iter().find(|error| error.path.to_string() == "platform.cpus");
    wrong.map_or(Ok(()), |error| Err(value_error(error.message)))
}

/// The workload, valid and with its provenance.
fn finished(py: Python<'_>, (workload, provenance): (Workload, Provenance)) -> PyResult<PyWorkload> {
    workload.validate().map_err(|errors| workload_error(py, errors, false))?;
    Ok(PyWorkload { workload: Arc::new(workload), provenance: Some(provenance.to_string()) })
}

/// `laxity.generate` with the parameters already in the generator's text.
#[pyfunction]
#[pyo3(signature = (generator, seed, cpus, platform, policy, name))]
pub fn _generate(
    py: Python<'_>,
    generator: &str,
    seed: u64,
    cpus: usize,
    platform: Option<&str>,
    policy: &str,
    name: Option<String>,
) -> PyResult<PyWorkload> {
    let spec: GeneratorSpec = generator.parse().map_err(value_error)?;
    let frame = Frame::new(cpus, platform, policy, name)?;
    let made = py.detach(|| frame.generate(&spec, seed)).map_err(value_error)?;
    finished(py, made)
}

/// `laxity.generate_many` with the parameters already in the generator's text.
#[pyfunction]
#[pyo3(signature = (generator, count, seed, point, cpus, platform, policy, threads))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub fn _generate_many(
    py: Python<'_>,
    generator: &str,
    count: u64,
    seed: u64,
    point: u64,
    cpus: usize,
    platform: Option<&str>,
    policy: &str,
    threads: Option<usize>,
) -> PyResult<Vec<PyWorkload>> {
    let spec: GeneratorSpec = generator.parse().map_err(value_error)?;
    let frame = Frame::new(cpus, platform, policy, None)?;
    let all = |stop: &AtomicBool| {
        let one = |replicate| {
            Stopped::check(stop)?;
            Ok(frame.generate(&spec, task_set_seed(seed, point, replicate)))
        };
        (0..count).into_par_iter().map(one).collect::<Result<Vec<_>, Stopped>>()
    };
    let made = parallel::interruptible(py, threads, all)?;
    // The first error by its place, not by time.
    let made: Vec<_> = made.into_iter().collect::<Result<_, _>>().map_err(value_error)?;
    made.into_iter().map(|made| finished(py, made)).collect()
}
