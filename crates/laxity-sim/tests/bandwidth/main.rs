//! BWLOCK++ and the Throttle Fair Scheduler (paper 004) in the simulator.

#[path = "../common/mod.rs"]
mod common;

mod contention;
mod figures;
mod locking;
mod random;

use laxity_model::{CpuId, Instant, TaskId, Workload};
use laxity_plan::Plan;
use laxity_sim::Simulator;
use laxity_trace::metrics::{self, Summary};
use laxity_trace::{Record, TraceHeader, check};

/// A simulation of a workload, up to some time.
struct Run {
    header: TraceHeader,
    records: Vec<Record>,
    end: Instant,
    /// The virtual time of each task; `None`: of one that is no best-effort task.
    virtual_times: Vec<Option<i64>>,
}

/// Simulates `workload` up to `end`, and judges the trace by every rule.
fn simulate(workload: &Workload, end: Instant) -> Run {
    let plan = Plan::new(workload, &workload.scheduler, 0).expect("the simulator can run it");
    let mut simulator = Simulator::new(&plan, Vec::new());
    simulator.run_until(end);
    let virtual_times = (0..plan.tasks.len() as u32).map(|task| simulator.virtual_time(TaskId(task))).collect();
    let run = Run { header: plan.header.clone(), records: simulator.finish(), end, virtual_times };
    let report = check::legality(&run.header, &run.records, |_| None);
    assert!(report.is_clean(), "{report} in {}", workload.name);
    let report = check::policy(&run.header, &run.records);
    assert!(report.is_clean(), "{report} in {}", workload.name);
    run
}

fn read(toml: &str) -> Workload {
    Workload::from_toml(toml, "test.toml").unwrap_or_else(|errors| panic!("{errors}\n{toml}"))
}

impl Run {
    fn summary(&self) -> Summary {
        metrics::measure(&self.header, &self.records, self.end)
    }

    /// What executes on `cpu` from when to when, in microseconds: `name from..to`.
    fn schedule(&self, cpu: u16) -> Vec<String> {
        let runs = common::executions(&self.records);
        let name = |task: TaskId| self.header.tasks[task.index()].name.as_str();
        let text =
            |run: &common::Run| format!("{} {}..{}", name(run.job.task), run.start.as_nanos(), run.end.as_nanos());
        runs.iter().filter(|run| run.cpu == CpuId(cpu)).map(text).collect()
    }

    fn task(&self, name: &str) -> TaskId {
        let at = self.header.tasks.iter().position(|task| task.name == name);
        TaskId(at.unwrap_or_else(|| panic!("no task {name}")) as u32)
    }
}
