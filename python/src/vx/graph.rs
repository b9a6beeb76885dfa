//! Describing and verifying vision graphs.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use laxity_graph::Access;
use laxity_model::{Instant, Nanos};
use laxity_vx::{
    Budgets, Context, Delay, DependencyKind, Format, Graph, Node, Parameter, Policy, SpawnOptions, Verified,
};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use super::job::{self, Used};
use super::run::VxRun;
use super::{spawn_error, verify_error};
use crate::argument::fields;
use crate::device::PyDevice;
use crate::errors::value_error;

/// A vision graph that is being described.
#[pyclass(frozen, module = "laxity._native", name = "_VxGraph")]
pub struct VxGraph {
    described: Mutex<Option<Described>>,
}

/// A vision graph that can be spawned.
#[pyclass(frozen, module = "laxity._native", name = "_VxVerified")]
pub struct VxVerified {
    verified: Verified,
}

struct Described {
    graph: Graph,
    /// By number; an object is a delay of one slot.
    objects: Vec<Delay<Format>>,
}

/// A parameter: the object, `input`, `output` or `inout`, and how many jobs ago.
type Given = (u32, String, u32);

impl VxGraph {
    fn lock(&self) -> MutexGuard<'_, Option<Described>> {
        // Nodes are added as a whole.
        self.described.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add<T>(&self, add: impl FnOnce(&mut Described) -> PyResult<T>) -> PyResult<T> {
        add(self.lock().as_mut().ok_or_else(verified_already)?)
    }
}

fn verified_already() -> PyErr {
    PyRuntimeError::new_err(
        "the graph was verified, and its description is used up; spawn what `verify` returned, or describe a new graph",
    )
}

#[pymethods]
impl VxGraph {
    #[new]
    #[pyo3(signature = (name, directory=None))]
    fn new(name: &str, directory: Option<PathBuf>) -> Self {
        let context = directory.map_or_else(Context::new, Context::at);
        VxGraph { described: Mutex::new(Some(Described { graph: context.graph(name), objects: Vec::new() })) }
    }

    /// Adds an object of `size` bytes and `slots` slots, which are `initial` at first. Answers with its number.
    fn object(&self, name: &str, size: usize, slots: u32, initial: Option<Vec<u8>>) -> PyResult<u32> {
        self.add(|described| {
            let (format, graph) = (Format::Bytes { size }, &mut described.graph);
            described.objects.push(match initial {
                None => graph.delay(name, format, slots),
                Some(initial) if initial.len() != size => {
                    let found = initial.len();
                    let text = format!("object {name}: {size} bytes, but its initial value has {found}; give as many");
                    return Err(PyValueError::new_err(text));
                }
                Some(initial) => {
                    graph.delay_from(name, format, slots, |place: &mut [u8]| place.copy_from_slice(&initial))
                }
            });
            u32::try_from(described.objects.len() - 1).map_err(value_error)
        })
    }

    fn node(&self, name: &str, parameters: Vec<Given>, kernel: Py<PyAny>, budget: Option<&str>) -> PyResult<()> {
        self.add(|described| {
            let used = described.used(name, &parameters)?;
            let kernel = move |job: &mut laxity_vx::Job<'_>| job::call(&kernel, job, &used).map(|_| ());
            with_budget(
                described.graph.node(name, described_parameters(&parameters, &described.objects), kernel),
                budget,
            )
        })
    }

    fn input(&self, parameters: Vec<Given>, callback: Py<PyAny>, budget: Option<&str>) -> PyResult<()> {
        self.add(|described| {
            let used = described.used(laxity_vx::INPUT_CALLBACK, &parameters)?;
            let kernel = move |job: &mut laxity_vx::Job<'_>| job::call(&callback, job, &used);
            with_budget(described.graph.input(described_parameters(&parameters, &described.objects), kernel), budget)
        })
    }

    fn output(&self, parameters: Vec<Given>, callback: Py<PyAny>, budget: Option<&str>) -> PyResult<()> {
        self.add(|described| {
            let used = described.used(laxity_vx::OUTPUT_CALLBACK, &parameters)?;
            let kernel = move |job: &mut laxity_vx::Job<'_>| job::call(&callback, job, &used).map(|_| ());
            with_budget(described.graph.output(described_parameters(&parameters, &described.objects), kernel), budget)
        })
    }

    fn verify(&self, py: Python<'_>) -> PyResult<VxVerified> {
        let described = self.lock().take().ok_or_else(verified_already)?;
        Ok(VxVerified { verified: described.graph.verify().map_err(|error| verify_error(py, &error))? })
    }
}

impl Described {
    /// What the node called `node` uses, checked.
    fn used(&self, node: &str, parameters: &[Given]) -> PyResult<Vec<Used>> {
        let used = |(number, direction, ago): &Given| {
            let missing = || {
                let objects = self.objects.len();
                let text = format!("node {node}: the graph has {objects} objects, numbered from 0, and no {number}");
                PyValueError::new_err(text)
            };
            let object = *self.objects.get(*number as usize).ok_or_else(missing)?;
            let access = match direction.as_str() {
                "input" => Access::Read { ago: *ago },
                "output" => Access::Write,
                "inout" => Access::Change,
                other => {
                    let text = format!("node {node}: {other:?} is no direction; use input, output or inout");
                    return Err(PyValueError::new_err(text));
                }
            };
            Ok((*number, object, access))
        };
        parameters.iter().map(used).collect()
    }
}

/// Of what was checked.
fn described_parameters(used: &[Given], objects: &[Delay<Format>]) -> Vec<Parameter> {
    let parameter = |(number, direction, ago): &Given| {
        let object = objects[*number as usize];
        match direction.as_str() {
            "output" => Parameter::output(object),
            "inout" => Parameter::inout(object),
            _ => Parameter::input(object.ago(*ago)),
        }
    };
    used.iter().map(parameter).collect()
}

fn with_budget(node: Node<'_>, budget: Option<&str>) -> PyResult<()> {
    if let Some(budget) = budget {
        node.budget(budget.parse().map_err(value_error)?);
    }
    Ok(())
}

/// How a graph is executed, as `laxity.vx` says it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Options {
    period: String,
    policy: (String, u8, Option<String>, u32, u32),
    replicas: Option<u32>,
    start_ns: Option<u64>,
    phase: String,
    frames: Option<u64>,
    duration: Option<String>,
    cpus: Vec<usize>,
    lock_memory: bool,
    recorder: u32,
    gpu: Option<Py<PyDevice>>,
}

impl Options {
    fn read(&self) -> PyResult<SpawnOptions> {
        let span = |text: &str| text.parse::<Nanos>().map_err(value_error);
        let (kind, base, default, frames, margin_percent) = &self.policy;
        let default = default.as_deref().map(span).transpose()?;
        let policy = match kind.as_str() {
            "other" => Policy::Other,
            "fifo" => Policy::Fifo { base: *base },
            "deadline" => Policy::Deadline { budgets: Budgets::Given { default } },
            "measured" => {
                Policy::Deadline { budgets: Budgets::Measured { frames: *frames, margin_percent: *margin_percent } }
            }
            kind => return Err(PyValueError::new_err(format!("{kind:?} is no policy; use one of laxity.vx"))),
        };
        Ok(SpawnOptions {
            policy,
            replicas: self.replicas,
            start: self.start_ns.map(Instant),
            phase: span(&self.phase)?,
            frames: self.frames,
            duration: self.duration.as_deref().map(span).transpose()?,
            cpus: self.cpus.clone(),
            lock_memory: self.lock_memory,
            recorder: self.recorder,
            gpu: self.gpu.as_ref().map(|device| device.get().get().clone()),
            ..SpawnOptions::every(span(&self.period)?)
        })
    }
}

#[pymethods]
impl VxVerified {
    #[getter]
    fn depth(&self) -> u32 {
        self.verified.depth()
    }

    /// Which node waits for which: names, `edge`, `back-edge` or `feedback`, and tokens at the start.
    fn dependencies(&self, py: Python<'_>, replicas: u32) -> PyResult<Vec<(String, String, &'static str, u32)>> {
        let found = self.verified.dependencies(replicas).map_err(|error| verify_error(py, &error))?;
        let kind = |kind| match kind {
            DependencyKind::Edge => "edge",
            DependencyKind::BackEdge => "back-edge",
            DependencyKind::Feedback => "feedback",
        };
        Ok(found.into_iter().map(|found| (found.from, found.to, kind(found.kind), found.initial)).collect())
    }

    fn dot(&self) -> String {
        self.verified.dot()
    }

    fn spawn(&self, py: Python<'_>, options: &Bound<'_, PyAny>) -> PyResult<VxRun> {
        let options = fields::<Options>(options)?.read()?;
        let run = py.detach(|| self.verified.spawn(&options));
        Ok(VxRun::new(run.map_err(|error| spawn_error(py, &error))?))
    }
}
