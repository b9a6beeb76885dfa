//! Graphs.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;

use super::{entries, put, stream_entries};
use crate::graph::{EXECUTABLES, GRAPHS, Graph};
use crate::handles::lock;
use crate::stream;
use crate::types::*;

entries! { call:
    cuGraphCreate(graph: *mut CUgraph, flags: c_uint) => {
        if graph.is_null() || flags != 0 {
            return Err(INVALID_VALUE);
        }
        put(graph, GRAPHS.add(Arc::<Graph>::default()))
    };
    cuGraphDestroy(graph: CUgraph) => GRAPHS.remove(graph).map(drop);
    cuGraphAddEmptyNode(node: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode, count: usize) => {
        let graph = GRAPHS.get(graph)?;
        if node.is_null() || (count > 0 && dependencies.is_null()) {
            return Err(INVALID_VALUE);
        }
        // Nodes are numbered from 1 on.
        let numbers = (0..count).map(|at| (*dependencies.add(at) as usize).checked_sub(1).ok_or(INVALID_VALUE));
        put(node, (graph.add(None, numbers.collect::<Outcome<_>>()?)? + 1) as CUgraphNode)
    };
    cuGraphGetNodes(graph: CUgraph, nodes: *mut CUgraphNode, count: *mut usize) => {
        let graph = GRAPHS.get(graph)?;
        let number = lock(&graph.nodes).len();
        if count.is_null() {
            return Err(INVALID_VALUE);
        }
        if !nodes.is_null() {
            let room = *count;
            for at in 0..room {
                nodes.add(at).write(if at < number { (at + 1) as CUgraphNode } else { std::ptr::null_mut() });
            }
            return put(count, number.min(room));
        }
        put(count, number)
    };
    cuGraphInstantiate(exec: *mut CUgraphExec, graph: CUgraph, error: *mut CUgraphNode, log: *mut i8, size: usize) => {
        let _ = (error, log, size);
        instantiate(exec, graph)
    };
    cuGraphInstantiate_v2(exec: *mut CUgraphExec, graph: CUgraph, error: *mut CUgraphNode, log: *mut i8, size: usize) => {
        let _ = (error, log, size);
        instantiate(exec, graph)
    };
    cuGraphInstantiateWithFlags(exec: *mut CUgraphExec, graph: CUgraph, flags: u64)
        => if flags & !0xf == 0 { instantiate(exec, graph) } else { Err(INVALID_VALUE) };
    cuGraphExecDestroy(exec: CUgraphExec) => EXECUTABLES.remove(exec).map(drop);
    cuGraphExecGetFlags(exec: CUgraphExec, flags: *mut u64) => {
        EXECUTABLES.get(exec)?;
        put(flags, 0)
    };
}

stream_entries! { default:
    cuGraphInstantiateWithParams / cuGraphInstantiateWithParams_ptsz
        (exec: *mut CUgraphExec, graph: CUgraph, parameters: *mut InstantiateParameters) => {
        let _ = default;
        if parameters.is_null() {
            return Err(INVALID_VALUE);
        }
        (*parameters).error_node = std::ptr::null_mut();
        (*parameters).result = 0;
        instantiate(exec, graph)
    };
    cuGraphUpload / cuGraphUpload_ptsz(exec: CUgraphExec, stream: CUstream) => {
        EXECUTABLES.get(exec)?;
        stream::find(stream, default).map(drop)
    };
    cuGraphLaunch / cuGraphLaunch_ptsz(exec: CUgraphExec, stream: CUstream) => {
        let (exec, stream) = (EXECUTABLES.get(exec)?, stream::find(stream, default)?);
        stream.issue(exec.steps.iter().cloned())
    };
}

/// `CUDA_GRAPH_INSTANTIATE_PARAMS`.
#[repr(C)]
struct InstantiateParameters {
    flags: u64,
    upload: *mut c_void,
    error_node: CUgraphNode,
    result: c_int,
}

unsafe fn instantiate(exec: *mut CUgraphExec, graph: CUgraph) -> Outcome {
    if exec.is_null() {
        return Err(INVALID_VALUE);
    }
    let executable = GRAPHS.get(graph)?.instantiate();
    // SAFETY: the program's place.
    unsafe { put(exec, EXECUTABLES.add(Arc::new(executable))) }
}
