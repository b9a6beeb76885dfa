//! Rules of bodies, execution times and distributions.

use super::positive_span;
use crate::error::{ErrorKind, FieldPath, Findings};
use crate::limits::{CRITICAL_DEPTH_MAX, WEIGHT_MAX};
use crate::{
    CopyDirection, Distribution, ExecutionTime, Factor, Gpu, GpuOperation, GpuWork, Nanos, Scope, Step, Waiting,
    Workload,
};

/// What one job takes at least, in nanoseconds, if it is alone and always needs its worst case.
#[derive(Default)]
pub(super) struct Demand {
    /// CPU time.
    pub cpu: u128,
    /// Suspensions and synchronous GPU operations, during which it waits.
    pub waiting: u128,
    /// Asynchronous GPU operations, which it need not wait for.
    pub asynchronous: u128,
}

struct Checker<'w, 'f> {
    workload: &'w Workload,
    /// The GPUs that a job may use without naming one.
    reachable: Vec<&'w Gpu>,
    cluster: Option<usize>,
    findings: &'f mut Findings,
    demand: Demand,
    place: Place,
    sections: usize,
    operations: usize,
    /// The first GPU operation outside sections.
    loose: Option<FieldPath>,
}

/// Where the steps are that are being checked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In no GPU section.
    Outside,
    /// In one, of which an operation before named this GPU.
    Section { gpu: Option<usize> },
}

/// Checks the body of the task or node `at`, which runs in `cluster`.
pub(super) fn body(
    body: &[Step],
    cluster: Option<usize>,
    workload: &Workload,
    at: &FieldPath,
    findings: &mut Findings,
) -> Demand {
    let cluster = cluster_of(cluster, workload);
    let is_reachable = |gpu: &&Gpu| cluster.is_none_or(|cluster| gpu.cluster == cluster);
    let reachable = workload.platform.gpus.iter().filter(is_reachable).collect();
    let demand = Demand::default();
    let place = Place::Outside;
    let mut checker =
        Checker { workload, reachable, cluster, findings, demand, place, sections: 0, operations: 0, loose: None };
    let steps = at.key("body");
    match body {
        // Such a body is written as `wcet`.
        [Step::Cpu(time)] => {
            execution("wcet", time, at, checker.findings);
            checker.demand.cpu = u128::from(time.wcet.0);
        }
        _ => checker.steps(body, &steps, &mut Vec::new()),
    }
    if let Some(operation) = checker.loose.take().filter(|_| checker.sections > 0) {
        let message = "the GPU operation is outside the GPU sections of this body; move it into one, or write none and \
                       the GPU is held from the first operation to the last";
        checker.findings.report(operation, ErrorKind::Contradiction, message);
    }
    if checker.demand.cpu == 0 && !body.iter().any(has_cpu_step) {
        let message = match body {
            [] => "`body` is empty; write at least one step of CPU time",
            _ => "`body` has no CPU time; a job needs some to ask for anything else, so add `{ cpu = ... }`",
        };
        checker.findings.report(steps, ErrorKind::BadValue, message);
    }
    checker.demand
}

/// The cluster that confines a task; `None` where nothing does.
fn cluster_of(cluster: Option<usize>, workload: &Workload) -> Option<usize> {
    let index = cluster?;
    match workload.scheduler.scope {
        Scope::Global => None,
        Scope::Clustered => Some(index),
        Scope::Partitioned => {
            workload.platform.clusters.iter().position(|cpus| cpus.iter().any(|cpu| cpu.index() == index))
        }
    }
}

/// Whether a CPU step is there at all; whether its time is right is that step's own affair.
fn has_cpu_step(step: &Step) -> bool {
    match step {
        Step::Cpu(_) | Step::NonPreemptive(_) => true,
        Step::Suspend(_) | Step::Gpu(_) => false,
        // That there is nothing inside is reported there.
        Step::Critical { body, .. } | Step::GpuSection { body } => body.is_empty() || body.iter().any(has_cpu_step),
    }
}

impl<'w> Checker<'w, '_> {
    /// `held` are the resources of the critical sections around the steps.
    fn steps(&mut self, steps: &[Step], at: &FieldPath, held: &mut Vec<usize>) {
        for (index, step) in steps.iter().enumerate() {
            self.step(step, &at.index(index), held);
        }
    }

    fn step(&mut self, step: &Step, at: &FieldPath, held: &mut Vec<usize>) {
        match step {
            Step::Cpu(time) => self.cpu("cpu", time, at),
            Step::NonPreemptive(time) => self.cpu("nonpreemptive", time, at),
            Step::Suspend(time) => {
                execution("suspend", time, at, self.findings);
                self.demand.waiting += u128::from(time.wcet.0);
            }
            Step::Critical { resource, body } => self.critical(*resource, body, at, held),
            Step::GpuSection { body } => self.gpu_section(body, &at.key("gpu_section"), held),
            Step::Gpu(operation) => self.gpu(operation, at),
        }
    }

    fn cpu(&mut self, key: &'static str, time: &ExecutionTime, at: &FieldPath) {
        execution(key, time, at, self.findings);
        self.demand.cpu += u128::from(time.wcet.0);
    }

    fn critical(&mut self, resource: usize, body: &[Step], at: &FieldPath, held: &mut Vec<usize>) {
        let at_resource = at.key("critical");
        match self.workload.resources.get(resource) {
            None => {
                let count = self.workload.resources.len();
                let message = format!("there is no resource {resource}: there are {count}, counted from 0; define it");
                self.findings.report(at_resource, ErrorKind::UnknownName, message);
            }
            Some(known) if held.contains(&resource) => {
                let message = format!(
                    "resource \"{}\" is held already, so that the job would wait for itself; use it once",
                    known.name
                );
                self.findings.report(at_resource, ErrorKind::Contradiction, message);
            }
            Some(_) => {}
        }
        if body.is_empty() {
            let message = "`body` is empty; say what is done while holding the resource";
            self.findings.report(at.key("body"), ErrorKind::BadValue, message);
        }
        if held.len() == CRITICAL_DEPTH_MAX {
            let message = format!("critical sections nest deeper than {CRITICAL_DEPTH_MAX}; flatten them");
            self.findings.report(at.key("body"), ErrorKind::BadValue, message);
            return;
        }
        held.push(resource);
        self.steps(body, &at.key("body"), held);
        held.pop();
    }

    fn gpu_section(&mut self, body: &[Step], at: &FieldPath, held: &mut Vec<usize>) {
        if self.place != Place::Outside {
            let message = "the section is inside another, which holds a GPU already; put its steps in its place";
            self.findings.report(at.clone(), ErrorKind::Contradiction, message);
            return;
        }
        if body.is_empty() {
            let message = "`gpu_section` is empty; say what is done while holding the GPU";
            self.findings.report(at.clone(), ErrorKind::BadValue, message);
        }
        self.sections += 1;
        self.place = Place::Section { gpu: None };
        let operations = self.operations;
        self.steps(body, at, held);
        self.place = Place::Outside;
        // An operation has reported the same.
        if self.operations == operations && self.reachable.is_empty() {
            self.report_no_gpu(at);
        }
    }

    /// Operations are all in sections or all outside, and those of one section on one GPU.
    fn gpu_place(&mut self, operation: &GpuOperation, at: &FieldPath) {
        self.operations += 1;
        let gpu = match self.place {
            Place::Outside => {
                self.loose.get_or_insert_with(|| at.clone());
                return;
            }
            Place::Section { gpu } => gpu,
        };
        self.place = Place::Section { gpu: gpu.or(operation.gpu) };
        let (Some(held), Some(named)) = (gpu, operation.gpu) else { return };
        let gpus = &self.workload.platform.gpus;
        if let (Some(held), Some(named)) = (gpus.get(held), gpus.get(named))
            && held.name != named.name
        {
            let message = format!(
                "the operation is on GPU \"{}\", but an operation of this section before is on \"{}\"; a section holds \
                 one GPU, so name one or make it two sections",
                named.name, held.name
            );
            self.findings.report(at.key("gpu"), ErrorKind::Contradiction, message);
        }
    }

    fn gpu(&mut self, operation: &GpuOperation, at: &FieldPath) {
        self.gpu_place(operation, at);
        if operation.memory > Factor::ONE {
            let message = format!(
                "`memory` is {}; write a sensitivity from 0 to 1, and let `contention` of the platform say how much that is",
                operation.memory
            );
            self.findings.report(at.key("memory"), ErrorKind::BadValue, message);
        }
        let gpus = self.gpus_of(operation, at);
        let shortest = match &operation.work {
            GpuWork::Kernel(time) => {
                execution("kernel", time, at, self.findings);
                time.wcet
            }
            GpuWork::Copy { bytes, direction, time } => {
                let key = if *direction == CopyDirection::In { "copy_in" } else { "copy_out" };
                if *bytes == 0 {
                    let message = format!("`{key}` is 0 B; write at least 1 B or remove the step");
                    self.findings.report(at.key(key), ErrorKind::BadValue, message);
                }
                match time {
                    Some(time) => {
                        execution("time", time, at, self.findings);
                        time.wcet
                    }
                    None => self.copy_time(key, *bytes, &gpus, at),
                }
            }
        };
        match operation.waiting {
            Waiting::Synchronous => self.demand.waiting += u128::from(shortest.0),
            Waiting::Asynchronous => self.demand.asynchronous += u128::from(shortest.0),
        }
    }

    /// The shortest time of a copy among the GPUs it may run on; each must be one that can be written.
    fn copy_time(&mut self, key: &'static str, bytes: u64, gpus: &[&Gpu], at: &FieldPath) -> Nanos {
        for gpu in gpus.iter().filter(|gpu| gpu.bandwidth > 0 && gpu.copy_time(bytes) > Nanos::LONGEST) {
            let message = format!(
                "copying {bytes} B at {} B/s takes longer than the longest span, {}; copy less or raise `bandwidth`",
                gpu.bandwidth,
                Nanos::LONGEST
            );
            self.findings.report(at.key(key), ErrorKind::Contradiction, message);
        }
        // What was reported above shall not make the whole job too long as well.
        let times = gpus.iter().filter(|gpu| gpu.bandwidth > 0).map(|gpu| gpu.copy_time(bytes));
        times.filter(|&time| time <= Nanos::LONGEST).min().unwrap_or_default()
    }

    fn report_no_gpu(&mut self, at: &FieldPath) {
        let message = match (self.workload.platform.gpus.len(), self.cluster) {
            (count @ 1.., Some(cluster)) => format!(
                "cluster {cluster} has no GPU, and the {count} of other clusters are out of reach; move the task, or \
                 name a GPU of its cluster"
            ),
            _ => "the platform has no GPU; add a `[[platform.gpu]]`".to_owned(),
        };
        self.findings.report(at.clone(), ErrorKind::Contradiction, message);
    }

    /// The GPUs that the operation may run on; where there is none, that is reported.
    fn gpus_of(&mut self, operation: &GpuOperation, at: &FieldPath) -> Vec<&'w Gpu> {
        let gpus = &self.workload.platform.gpus;
        let Some(index) = operation.gpu else {
            if self.reachable.is_empty() {
                self.report_no_gpu(at);
            }
            return self.reachable.clone();
        };
        let Some(gpu) = gpus.get(index) else {
            let count = gpus.len();
            let message = format!("there is no GPU {index}: the platform has {count}, counted from 0; add it");
            self.findings.report(at.key("gpu"), ErrorKind::UnknownName, message);
            return Vec::new();
        };
        if let Some(cluster) = self.cluster.filter(|&cluster| cluster != gpu.cluster) {
            let message = format!(
                "GPU \"{}\" belongs to cluster {}, but the task runs in cluster {cluster}; move one of them",
                gpu.name, gpu.cluster
            );
            self.findings.report(at.key("gpu"), ErrorKind::Contradiction, message);
        }
        vec![gpu]
    }
}

/// A worst case above zero and a distribution below it.
pub(super) fn execution(key: &'static str, time: &ExecutionTime, at: &FieldPath, findings: &mut Findings) {
    positive_span(key, time.wcet, at, findings);
    distribution(&time.actual, time.wcet, &at.key("actual"), findings);
}

/// Spans up to `max`, ordered where they are pairs, and at least one of them.
pub(crate) fn distribution(distribution: &Distribution, max: Nanos, at: &FieldPath, findings: &mut Findings) {
    match distribution {
        Distribution::WorstCase => {}
        Distribution::Constant(value) => at_most(*value, max, at, findings),
        Distribution::Uniform { min, max: longest } => range(*min, *longest, max, &at.key("uniform"), findings),
        Distribution::Histogram(bins) => {
            let at = at.key("histogram");
            for (index, bin) in bins.iter().enumerate() {
                range(bin.min, bin.max, max, &at.index(index), findings);
            }
            let total: u128 = bins.iter().map(|bin| u128::from(bin.weight)).sum();
            if total == 0 {
                let message = "the weights add up to 0; give at least one bin a weight above 0";
                findings.report(at, ErrorKind::BadValue, message);
            } else if total > u128::from(WEIGHT_MAX) {
                let message = format!("the weights add up to {total}, above {WEIGHT_MAX}; divide them all");
                findings.report(at, ErrorKind::BadValue, message);
            }
        }
        Distribution::Recorded(values) => {
            let at = at.key("recorded");
            if values.is_empty() {
                findings.report(at.clone(), ErrorKind::BadValue, "`recorded` is empty; list at least one span");
            }
            for (index, value) in values.iter().enumerate() {
                at_most(*value, max, &at.index(index), findings);
            }
        }
    }
}

fn range(min: Nanos, max: Nanos, limit: Nanos, at: &FieldPath, findings: &mut Findings) {
    if min > max {
        let message = format!("min {min} exceeds max {max}; exchange them");
        findings.report(at.clone(), ErrorKind::Contradiction, message);
    }
    at_most(max.max(min), limit, at, findings);
}

fn at_most(value: Nanos, max: Nanos, at: &FieldPath, findings: &mut Findings) {
    if value > max {
        let bound = if max == Nanos::LONGEST { "the longest span" } else { "the wcet" };
        let message = format!("`{}` {value} exceeds {bound}, {max}; lower it or raise the bound", at.leaf());
        findings.report(at.clone(), ErrorKind::Contradiction, message);
    }
}
