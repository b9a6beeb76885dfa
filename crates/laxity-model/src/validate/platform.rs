//! Rules of the platform, and of the scheduler on it.

use super::{Names, device, memory, positive_span, span};
use crate::error::{ErrorKind, FieldPath, Findings};
use crate::limits::{CPUS_MAX, OVERHEAD_MAX};
use crate::{CpuId, Gpu, OverheadKind, OverheadProfile, OverheadTable, Platform, ReleaseInterrupts, Workload};

pub(super) fn platform(workload: &Workload, findings: &mut Findings) {
    let platform = &workload.platform;
    let at = FieldPath::root().key("platform");
    if !(1..=CPUS_MAX).contains(&platform.cpus) {
        let message = format!("`cpus` is {}; write a whole number from 1 to {CPUS_MAX}", platform.cpus);
        findings.report(at.key("cpus"), ErrorKind::BadValue, message);
    }
    clusters(platform, &at, findings);
    positive_span("tick", platform.tick, &at, findings);
    positive_span("quantum", platform.quantum, &at, findings);
    if !platform.tick.is_zero() && !platform.quantum.0.is_multiple_of(platform.tick.0) {
        let message = format!(
            "quantum {} is no multiple of tick {}; scheduling happens in a tick, so change one of them",
            platform.quantum, platform.tick
        );
        findings.report(at.key("quantum"), ErrorKind::Contradiction, message);
    }
    overheads(&platform.overheads, &at.key("overheads"), findings);
    memory::memory(&platform.memory, &at.key("memory"), findings);
    let mut names = Names::new("GPU");
    for (index, it) in platform.gpus.iter().enumerate() {
        let at = at.key("gpu").index(index);
        names.add(&it.name, &at, findings);
        gpu(it, platform, &at, findings);
    }
    let mut names = Names::new("device");
    for (index, it) in platform.devices.iter().enumerate() {
        let at = at.key("device").index(index);
        names.add(&it.name, &at, findings);
        device::device(it, workload, &at, findings);
    }
    if workload.scheduler.interrupts == ReleaseInterrupts::Dedicated && platform.cpus < 2 {
        let message = "dedicated interrupt handling needs at least 2 CPUs, but the platform has 1; add a CPU or let it \
                       handle interrupts as well (a realization ending in `m`, or `interrupts = \"global\"`)";
        findings.report(FieldPath::root().key("scheduler"), ErrorKind::Contradiction, message);
    }
}

fn clusters(platform: &Platform, at: &FieldPath, findings: &mut Findings) {
    let at = at.key("clusters");
    let mut cluster_of = vec![None; platform.cpus.min(CPUS_MAX)];
    for (index, cluster) in platform.clusters.iter().enumerate() {
        if cluster.is_empty() {
            let message = format!("cluster {index} has no CPU; give it one or remove it");
            findings.report(at.index(index), ErrorKind::BadValue, message);
        }
        for cpu in cluster {
            match cluster_of.get_mut(cpu.index()) {
                None => no_such_cpu(*cpu, platform, at.index(index), findings),
                Some(owner @ None) => *owner = Some(index),
                Some(Some(owner)) => {
                    let message = format!("{cpu} is in cluster {owner} and in cluster {index}; leave it in one");
                    findings.report(at.index(index), ErrorKind::Contradiction, message);
                }
            }
        }
    }
    let homeless: Vec<String> =
        (0..cluster_of.len()).filter(|&cpu| cluster_of[cpu].is_none()).map(|cpu| cpu.to_string()).collect();
    if !homeless.is_empty() {
        let message = format!(
            "the clusters hold {} of {} CPUs; add CPU {} to one",
            cluster_of.len() - homeless.len(),
            platform.cpus,
            homeless.join(", ")
        );
        findings.report(at, ErrorKind::Contradiction, message);
    }
}

fn no_such_cpu(cpu: CpuId, platform: &Platform, at: FieldPath, findings: &mut Findings) {
    let message = format!("there is no {cpu}: the platform has {} CPUs, counted from 0", platform.cpus);
    findings.report(at, ErrorKind::UnknownName, format!("{message}; write a smaller number or raise `cpus`"));
}

fn gpu(gpu: &Gpu, platform: &Platform, at: &FieldPath, findings: &mut Findings) {
    cluster(gpu.cluster, platform, at, findings);
    if !(1..=2).contains(&gpu.copy_engines) {
        let message = format!("`copy_engines` is {}; write 1 (shared by both directions) or 2", gpu.copy_engines);
        findings.report(at.key("copy_engines"), ErrorKind::BadValue, message);
    }
    if gpu.bandwidth == 0 {
        findings.report(at.key("bandwidth"), ErrorKind::BadValue, "`bandwidth` is 0 B/s; write at least 1 B/s");
    }
    span("latency", gpu.latency, at, findings);
    interrupt_cpus(&gpu.interrupt_cpus, platform, at, findings);
}

/// The cluster of a GPU or device.
pub(super) fn cluster(index: usize, platform: &Platform, at: &FieldPath, findings: &mut Findings) {
    if index >= platform.clusters.len() {
        no_such_cluster(index, platform, at.key("cluster"), findings);
    }
}

/// The CPUs that a GPU or device interrupts.
pub(super) fn interrupt_cpus(cpus: &[CpuId], platform: &Platform, at: &FieldPath, findings: &mut Findings) {
    let at = at.key("interrupt_cpus");
    if cpus.is_empty() {
        findings.report(at.clone(), ErrorKind::BadValue, "`interrupt_cpus` is empty; name at least one CPU");
    }
    for (index, cpu) in cpus.iter().enumerate() {
        if cpu.index() >= platform.cpus {
            no_such_cpu(*cpu, platform, at.clone(), findings);
        } else if cpus[..index].contains(cpu) {
            findings.report(at.clone(), ErrorKind::Duplicate, format!("{cpu} is listed twice; remove one"));
        }
    }
}

/// Reports that the platform has no cluster `index`.
pub(super) fn no_such_cluster(index: usize, platform: &Platform, at: FieldPath, findings: &mut Findings) {
    let count = platform.clusters.len();
    let message = format!(
        "there is no cluster {index}: the platform has {count}, counted from 0; write a smaller number or add a cluster"
    );
    findings.report(at, ErrorKind::UnknownName, message);
}

/// Rules of overheads, wherever they are written.
pub(crate) fn overheads(profile: &OverheadProfile, at: &FieldPath, findings: &mut Findings) {
    super::name(&profile.name, at, findings);
    for (kind, table) in OverheadKind::ALL.iter().zip(&profile.tables) {
        let at = at.key(kind.name());
        match table {
            OverheadTable::Constant(cost) if *cost > OVERHEAD_MAX => {
                let message =
                    format!("`{}` {cost} exceeds 1 h; no scheduler costs that much, so write less", kind.name());
                findings.report(at, ErrorKind::BadValue, message);
            }
            OverheadTable::Constant(_) => {}
            OverheadTable::Points(points) => overhead_points(points, &at, findings),
        }
    }
}

fn overhead_points(points: &[(u32, u64)], at: &FieldPath, findings: &mut Findings) {
    if points.is_empty() {
        let message = format!("`{}` has no point; write one or remove it", at.leaf());
        findings.report(at.clone(), ErrorKind::BadValue, message);
    }
    for (index, pair) in points.windows(2).enumerate() {
        let [(before, _), (tasks, _)] = pair else { unreachable!("a window of two has two elements") };
        if tasks <= before {
            let message = format!("{tasks} tasks come after {before}; list the points by ascending number of tasks");
            findings.report(at.index(index + 1), ErrorKind::Contradiction, message);
        }
    }
    for (index, (_, picos)) in points.iter().enumerate() {
        if *picos > OVERHEAD_MAX.0 * 1_000 {
            let message = format!("{picos} ps exceed 1 h ({} ps); write less", OVERHEAD_MAX.0 * 1_000);
            findings.report(at.index(index), ErrorKind::BadValue, message);
        }
    }
}
