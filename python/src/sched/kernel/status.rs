//! What the scheduler in the kernel does, with tables.

use std::collections::HashMap;

use arrow_array::{StringArray, UInt8Array, UInt16Array, UInt32Array, UInt64Array};
use laxity_model::Nanos;
use laxity_scx::Membership;
use laxity_scx::protocol::{InterruptStatus, OthersStatus, Status, TaskStatus};
use pyo3::prelude::*;

use crate::arrow::{self, Columns};
use crate::sched::errors::kernel_error;

/// What the scheduler in the kernel did until now. Its tables are `pyarrow.Table`s, whose metadata has `policy`; times are in ns.
#[pyclass(frozen, module = "laxity.sched.kernel", name = "KernelStatus")]
pub struct PyKernelStatus(pub Status);

/// CPUs are numbered below 64.
fn cpu(cpu: Option<usize>) -> Option<u16> {
    cpu.and_then(|cpu| u16::try_from(cpu).ok())
}

fn spans<T>(rows: &[T], of: impl Fn(&T) -> Nanos) -> UInt64Array {
    UInt64Array::from_iter_values(rows.iter().map(|row| of(row).0))
}

fn numbers<T>(rows: &[T], of: impl Fn(&T) -> u32) -> UInt32Array {
    UInt32Array::from_iter_values(rows.iter().map(of))
}

impl PyKernelStatus {
    fn table<'py>(&self, py: Python<'py>, columns: Columns) -> PyResult<Bound<'py, PyAny>> {
        let metadata = HashMap::from([("policy".to_owned(), self.0.policy.clone())]);
        arrow::table(py, columns.batch(metadata)?)
    }
}

#[pymethods]
impl PyKernelStatus {
    /// The policy and its realization, such as "P-RM/CEm".
    #[getter]
    fn policy(&self) -> &str {
        &self.0.policy
    }

    /// The process that loaded it.
    #[getter]
    fn pid(&self) -> u32 {
        self.0.pid
    }

    /// Since it began, in ns.
    #[getter]
    fn running_ns(&self) -> u64 {
        self.0.running.0
    }

    /// For each cluster its CPUs, numbered as Linux does.
    #[getter]
    fn clusters(&self) -> Vec<Vec<usize>> {
        self.0.clusters.clone()
    }

    /// The CPU that releases all jobs and runs none; None: there is none.
    #[getter]
    fn dedicated(&self) -> Option<usize> {
        self.0.dedicated
    }

    /// Records of its trace that were lost; None: it writes none.
    #[getter]
    fn lost(&self) -> Option<u64> {
        self.0.lost
    }

    /// A row for each task, in the order in which they began. Columns: `name`, `pid`, `thread`, `cluster`, `cpu` (that its job is linked
    /// to; null: to none), `period_ns`, `relative_deadline_ns`, `released` and `completed` (jobs), `late` (those of them that were),
    /// `throttled` (budgets that were used up), `response_max_ns`, `tardiness_max_ns`.
    #[getter]
    fn tasks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let tasks: &[TaskStatus] = &self.0.tasks;
        let mut columns = Columns::default();
        columns.push("name", StringArray::from_iter_values(tasks.iter().map(|task| &task.name)), false);
        columns.push("pid", numbers(tasks, |task| task.process), false);
        columns.push("thread", numbers(tasks, |task| task.thread), false);
        columns.push("cluster", numbers(tasks, |task| task.cluster as u32), false);
        columns.push("cpu", UInt16Array::from_iter(tasks.iter().map(|task| cpu(task.linked))), true);
        columns.push("period_ns", spans(tasks, |task| task.period), false);
        columns.push("relative_deadline_ns", spans(tasks, |task| task.deadline), false);
        columns.push("released", numbers(tasks, |task| task.released), false);
        columns.push("completed", numbers(tasks, |task| task.completed), false);
        columns.push("late", numbers(tasks, |task| task.late), false);
        columns.push("throttled", numbers(tasks, |task| task.throttled), false);
        columns.push("response_max_ns", spans(tasks, |task| task.response_max), false);
        columns.push("tardiness_max_ns", spans(tasks, |task| task.tardiness_max), false);
        self.table(py, columns)
    }

    /// A row for each thread that handles interrupts for tasks. Columns: `name`, `thread`, `cluster`, `cpu` (null: linked to none),
    /// `own_priority` (of SCHED_FIFO, without the scheduler; null: an ordinary thread), `budget_ns` and `server_period_ns` (while it works for
    /// no task), `owner` (the task that it works for, or did last; null: none), `handled` (times from a wake-up to a sleep), `owned` (those of
    /// them for a task), `throttled` (budgets that were used up), `response_max_ns`.
    #[getter]
    fn interrupts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let threads: &[InterruptStatus] = &self.0.interrupts;
        let mut columns = Columns::default();
        columns.push("name", StringArray::from_iter_values(threads.iter().map(|it| &it.name)), false);
        columns.push("thread", numbers(threads, |it| it.thread), false);
        columns.push("cluster", numbers(threads, |it| it.cluster as u32), false);
        columns.push("cpu", UInt16Array::from_iter(threads.iter().map(|it| cpu(it.linked))), true);
        columns.push("own_priority", UInt8Array::from_iter(threads.iter().map(|it| it.own_priority)), true);
        columns.push("budget_ns", spans(threads, |it| it.server.budget), false);
        columns.push("server_period_ns", spans(threads, |it| it.server.period), false);
        columns.push("owner", StringArray::from_iter(threads.iter().map(|it| it.owner.as_ref())), true);
        columns.push("handled", numbers(threads, |it| it.handled), false);
        columns.push("owned", numbers(threads, |it| it.owned), false);
        columns.push("throttled", numbers(threads, |it| it.throttled), false);
        columns.push("response_max_ns", spans(threads, |it| it.response_max), false);
        self.table(py, columns)
    }

    /// A row for each CPU where threads that are no tasks had anything. Columns: `cpu`, `executed_ns`, `throttles` (how often regulators
    /// throttled it), `throttled_ns` (for how long in all), `punished_ns` (what threads were charged for that, in virtual time).
    #[getter]
    fn others<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let others: &[OthersStatus] = &self.0.others;
        let mut columns = Columns::default();
        columns.push("cpu", numbers(others, |it| it.cpu as u32), false);
        columns.push("executed_ns", spans(others, |it| it.executed), false);
        columns.push("throttles", UInt64Array::from_iter_values(others.iter().map(|it| it.throttles)), false);
        columns.push("throttled_ns", spans(others, |it| it.throttled), false);
        columns.push("punished_ns", spans(others, |it| it.punished), false);
        self.table(py, columns)
    }

    fn __repr__(&self) -> String {
        let Status { policy, pid, clusters, tasks, .. } = &self.0;
        format!("<laxity.sched.kernel.Status {policy} pid={pid} clusters={clusters:?} tasks={}>", tasks.len())
    }
}

/// What the scheduler in the kernel does, now, without taking part.
///
/// Raises NotRunningError if there is none, EndedError if it ends meanwhile, else SchedError.
#[pyfunction]
pub fn kernel_look(py: Python<'_>) -> PyResult<PyKernelStatus> {
    let status = py.detach(|| Membership::join()?.status());
    status.map(PyKernelStatus).map_err(|error| kernel_error(py, &error))
}
