//! Which tasks use a resource, and in which order resources are nested.

use laxity_model::{ResourceProtocol, Step, Task, Workload};

use crate::unsupported::UnsupportedFeatures;

/// The tasks whose body locks `resource`.
pub(crate) fn users_of(resource: usize, tasks: &[Task]) -> Vec<usize> {
    (0..tasks.len()).filter(|&task| tasks[task].body.iter().any(|step| locks(step, resource))).collect()
}

fn locks(step: &Step, wanted: usize) -> bool {
    match step {
        Step::Critical { resource, body } => *resource == wanted || body.iter().any(|step| locks(step, wanted)),
        Step::GpuSection { body } => body.iter().any(|step| locks(step, wanted)),
        Step::Cpu(_) | Step::NonPreemptive(_) | Step::Suspend(_) | Step::Gpu(_) => false,
    }
}

/// Refuses resources that are nested in a circle, so that jobs may wait for one another for ever. Ceilings prevent that
/// only on a single CPU.
pub(crate) fn refuse_circles(workload: &Workload, tasks: &[Task], unsupported: &mut UnsupportedFeatures) {
    let count = workload.resources.len();
    let mut inner = vec![Vec::new(); count];
    for task in tasks {
        nest(&task.body, &mut Vec::new(), &mut inner);
    }
    let one_cpu = workload.platform.cpus == 1;
    let ceiling = |at: usize| one_cpu && workload.resources[at].protocol == ResourceProtocol::PriorityCeiling;
    let mut state = vec![Visit::Never; count];
    for start in 0..count {
        let mut path = Vec::new();
        if let Some(circle) = walk(start, &inner, &mut state, &mut path)
            && !circle.iter().all(|&at| ceiling(at))
        {
            let names: Vec<String> = circle.iter().map(|&at| format!("\"{}\"", workload.resources[at].name)).collect();
            unsupported.add(format!(
                "resources {} are locked within one another in a circle, so that jobs may wait for ever; lock them in \
                 the same order everywhere",
                names.join(", ")
            ));
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Visit {
    Never,
    OnPath,
    Done,
}

fn nest(steps: &[Step], held: &mut Vec<usize>, inner: &mut [Vec<usize>]) {
    for step in steps {
        match step {
            Step::Critical { resource, body } => {
                for &outer in held.iter() {
                    if !inner[outer].contains(resource) {
                        inner[outer].push(*resource);
                    }
                }
                held.push(*resource);
                nest(body, held, inner);
                held.pop();
            }
            Step::GpuSection { body } => nest(body, held, inner),
            Step::Cpu(_) | Step::NonPreemptive(_) | Step::Suspend(_) | Step::Gpu(_) => {}
        }
    }
}

/// Depth-first; the circle that closes at `at`, if one does.
fn walk(at: usize, inner: &[Vec<usize>], state: &mut [Visit], path: &mut Vec<usize>) -> Option<Vec<usize>> {
    match state[at] {
        Visit::Done => return None,
        Visit::OnPath => {
            let start = path.iter().position(|&known| known == at).unwrap_or(0);
            return Some(path[start..].to_vec());
        }
        Visit::Never => {}
    }
    state[at] = Visit::OnPath;
    path.push(at);
    let circle = inner[at].iter().find_map(|&next| walk(next, inner, state, path));
    path.pop();
    state[at] = Visit::Done;
    circle
}
