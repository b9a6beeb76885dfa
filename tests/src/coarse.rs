//! Systems in which much happens at the same instant, as times are multiples of one.

use laxity_model::{
    Distribution, ExecutionTime, GpuArbitration, GpuWork, Nanos, OverheadCosts, OverheadKind, OverheadProfile,
    OverheadTable, Step, TaskServer, Workload,
};

/// `workload` with its times rounded to multiples of `grain`: those that jobs need down, and all others to the nearest one. None
/// that was not 0 becomes 0, but for overheads.
pub fn rounded(workload: &Workload, grain: Nanos) -> Workload {
    let grain = Grain(grain.0);
    let mut coarse = workload.clone();
    let platform = &mut coarse.platform;
    platform.gpus.iter_mut().for_each(|gpu| gpu.latency = grain.below(gpu.latency));
    let costs = platform.overheads.at(workload.tasks.len());
    if costs != OverheadCosts::default() {
        let table = |kind: OverheadKind| OverheadTable::Constant(grain.cost(costs.of(kind)));
        platform.overheads = OverheadProfile { name: "coarse".to_owned(), tables: OverheadKind::ALL.map(table) };
    }
    for task in &mut coarse.tasks {
        task.period = grain.near(task.period);
        task.deadline = grain.near(task.deadline);
        task.phase = grain.near(task.phase);
        task.jitter = grain.near(task.jitter);
        task.server.iter_mut().for_each(|server| grain.serve(server));
        grain.body(&mut task.body);
    }
    for node in coarse.graphs.iter_mut().flat_map(|graph| &mut graph.nodes) {
        // Its period agrees with those of others.
        node.deadline = node.deadline.map(|deadline| grain.near(deadline));
        node.phase = grain.near(node.phase);
        node.server.iter_mut().for_each(|server| grain.serve(server));
        grain.body(&mut node.body);
    }
    for device in &mut coarse.platform.devices {
        device.period = grain.near(device.period);
        grain.time(&mut device.top_half);
        grain.time(&mut device.bottom_half);
        if let Some(server) = &mut device.server {
            (server.budget, server.period) = (grain.below(server.budget), grain.near(server.period));
        }
    }
    let management = &mut coarse.gpu_management;
    management.callback.iter_mut().for_each(|time| grain.time(time));
    if let GpuArbitration::GpuSync(sync) = &mut management.arbitration {
        sync.migration = sync.migration.map(|time| grain.below(time));
    }
    coarse
}

struct Grain(u64);

impl Grain {
    fn below(&self, Nanos(time): Nanos) -> Nanos {
        Nanos((time / self.0).max(u64::from(time > 0)) * self.0)
    }

    fn near(&self, Nanos(time): Nanos) -> Nanos {
        Nanos(((time + self.0 / 2) / self.0).max(u64::from(time > 0)) * self.0)
    }

    fn cost(&self, Nanos(time): Nanos) -> Nanos {
        Nanos((time + self.0 / 2) / self.0 * self.0)
    }

    fn time(&self, time: &mut ExecutionTime) {
        time.wcet = self.below(time.wcet);
        match &mut time.actual {
            Distribution::Constant(span) => *span = self.below(*span),
            // What is between the two is no multiple.
            Distribution::Uniform { .. } => time.actual = Distribution::Constant(self.below(Nanos(time.wcet.0 / 2))),
            _ => {}
        }
    }

    fn serve(&self, server: &mut TaskServer) {
        server.budget = self.below(server.budget);
        server.period = server.period.map(|period| self.near(period));
    }

    fn body(&self, body: &mut [Step]) {
        for step in body {
            match step {
                Step::Cpu(time) | Step::NonPreemptive(time) | Step::Suspend(time) => self.time(time),
                Step::Critical { body, .. } | Step::GpuSection { body } => self.body(body),
                Step::Gpu(operation) => match &mut operation.work {
                    GpuWork::Kernel(time) | GpuWork::Copy { time: Some(time), .. } => self.time(time),
                    GpuWork::Copy { time, .. } => *time = Some(ExecutionTime::constant(Nanos(self.0))),
                },
            }
        }
    }
}
