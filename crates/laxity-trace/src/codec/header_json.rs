//! The header as JSON: readable without Laxity, and open to further fields within a format version.

use laxity_model::GpuId;

use super::HEADER_MAX;
use crate::{LockKind, TaskKind, TraceHeader};

/// CPUs are numbered with 16 bits.
const CPUS_MAX: usize = 1 << 16;

/// The header as JSON, or why it cannot be written.
pub(super) fn write(header: &TraceHeader) -> Result<Vec<u8>, String> {
    validate(header)?;
    let bytes = serde_json::to_vec(header).map_err(|error| error.to_string())?;
    if bytes.len() > HEADER_MAX as usize {
        return Err(format!("the header takes {} bytes where at most {HEADER_MAX} are possible", bytes.len()));
    }
    Ok(bytes)
}

/// The header that `bytes` describe, or why they describe none.
pub(super) fn read(bytes: &[u8]) -> Result<TraceHeader, String> {
    let header = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    validate(&header)?;
    Ok(header)
}

/// Checks the numbers by which readers size and index arrays: of CPUs, clusters and tasks.
fn validate(header: &TraceHeader) -> Result<(), String> {
    if header.cpus == 0 || header.cpus > CPUS_MAX {
        return Err(format!("{} CPUs where 1 to {CPUS_MAX} are possible", header.cpus));
    }
    for (index, cluster) in header.clusters.iter().enumerate() {
        if let Some(cpu) = cluster.iter().find(|cpu| cpu.index() >= header.cpus) {
            return Err(format!("cluster {index} has {cpu} where there are {} CPUs", header.cpus));
        }
    }
    for task in &header.tasks {
        if task.cluster >= header.clusters.len() {
            let clusters = header.clusters.len();
            return Err(format!("task `{}` is in cluster {} where there are {clusters}", task.name, task.cluster));
        }
        let graphs = header.graphs.len();
        if let TaskKind::Node { graph, .. } = task.kind
            && graph >= graphs
        {
            return Err(format!("task `{}` is a node of graph {graph} where there are {graphs}", task.name));
        }
    }
    let known_gpu = |gpu: GpuId| match header.gpus.get(gpu.index()) {
        Some(_) => Ok(()),
        None => Err(format!("a lock names {gpu} where there are {} GPUs", header.gpus.len())),
    };
    for lock in &header.locks {
        match &lock.kind {
            LockKind::Resource { .. } | LockKind::Bandwidth => {}
            LockKind::Semaphore { gpus } | LockKind::KFmlp { gpus } | LockKind::Tokens { gpus } => {
                gpus.iter().try_for_each(|&gpu| known_gpu(gpu))?;
            }
            LockKind::Engine { gpu, .. } => known_gpu(*gpu)?,
        }
    }
    let tasks = header.tasks.len();
    let named = header.graphs.iter().flat_map(|graph| graph.nodes.iter().copied());
    let named = named.chain(header.edges.iter().flat_map(|edge| [edge.producer, edge.consumer]));
    let named = named.chain(header.latest.iter().flat_map(|edge| [edge.producer, edge.consumer]));
    let named = named.chain(header.chains.iter().flat_map(|chain| chain.path.iter().copied()));
    if let Some(task) = named.into_iter().find(|task| task.index() >= tasks) {
        return Err(format!("a graph names task {} where there are {tasks}", task.0));
    }
    Ok(())
}
