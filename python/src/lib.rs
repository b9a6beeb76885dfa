//! The extension module of the `laxity` Python package: conversions between Python and the crates that decide.
//!
//! ```text
//! Python   check, why, tune   ->   answers   ->   laxity-analysis, laxity-trace, laxity-tune
//! Python   run                ->   run       ->   laxity-runtime
//!
//! Python   Workload   simulate, simulate_many   generate_many   Trace               live, vx                 gpu                 sched
//! here     workload   simulate, study, pace     generate        trace, violation    live/, vx/               gpu/, device/       sched/
//!            |  errors, json, arrow + tables (pyarrow), parallel (GIL released, Ctrl-C) for all of them
//! crates   laxity-model    laxity-sim           laxity-gen      laxity-trace        laxity-graph, laxity-vx  laxity-gpu          laxity-sched
//! ```
#![deny(unsafe_code)]

mod answers;
mod argument;
mod arrow;
mod completions;
mod device;
mod errors;
mod generate;
mod gpu;
mod json;
mod live;
mod overheads;
mod parallel;
mod result;
mod run;
mod runtime_study;
mod sched;
mod simulate;
mod span;
mod study;
mod study_chunks;
mod tables;
mod trace;
mod violation;
mod vx;
mod workload;

/// The native part of `laxity`; import from `laxity` instead.
#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use crate::answers::{_check, _tune, _why};
    #[pymodule_export]
    use crate::device::{_serve_soft_gpu, PyBuffer, PyDevice};
    #[pymodule_export]
    use crate::generate::{_generate, _generate_many};
    #[pymodule_export]
    use crate::gpu::{
        PyArbitration, PyBandwidthLock, PyBudget, PyClient, PyCopyChunks, PyEngine, PyToken, gc, look, names,
    };
    #[pymodule_export]
    use crate::live::{PyGraph, PyJob, PyNode, PyPipeline, PyRecording, PyRegistry, PySpec, PyUserData};
    #[pymodule_export]
    use crate::result::SimulationResult;
    #[pymodule_export]
    use crate::run::_run;
    #[pymodule_export]
    use crate::runtime_study::PyRuntimeStudy;
    #[pymodule_export]
    use crate::sched::{
        PyHold, PyLock, PySection, PySuspension, PySystem, PyTask, PyTaskJob, sched_gc, sched_look, sched_names,
    };
    #[pymodule_export]
    use crate::sched::{
        PyKernelEvent, PyKernelExpectation, PyKernelHold, PyKernelInterrupts, PyKernelJob, PyKernelLock,
        PyKernelScheduler, PyKernelSection, PyKernelStatus, PyKernelTask, kernel_look,
    };
    #[pymodule_export]
    use crate::simulate::simulate;
    #[pymodule_export]
    use crate::span::nanos;
    #[pymodule_export]
    use crate::study::simulate_many;
    #[pymodule_export]
    use crate::study_chunks::{_overhead_points, PyStudy, StudyStop};
    #[pymodule_export]
    use crate::trace::{_restore_trace, PyTrace, read_trace};
    #[pymodule_export]
    use crate::violation::PyViolation;
    #[pymodule_export]
    use crate::vx::{VxGpu, VxGraph, VxJob, VxRun, VxVerified};
    #[pymodule_export]
    use crate::workload::{_restore_workload, PyWorkload, load, measured_realizations, overhead_profiles};

    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "its name in Python")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
