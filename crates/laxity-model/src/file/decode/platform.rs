//! The platform: CPUs, clusters, GPUs, devices and overheads.

use super::{device, fields, memory};
use crate::error::{ErrorKind, Findings};
use crate::file::cpu_list;
use crate::file::reader::{Fields, Item};
use crate::file::tree::Value;
use crate::limits::CPUS_MAX;
use crate::{CpuId, Gpu, Nanos, OverheadKind, OverheadProfile, OverheadTable, Platform, Scheduler};

/// The `[platform]` of a file. `scheduler` decides which measurements a family of published overheads stands for.
pub(super) fn platform(file: &Fields<'_>, scheduler: &Scheduler, findings: &mut Findings) -> Platform {
    let item = file.require("platform", "`[platform]` with `cpus = ...`", findings);
    let fields = item.and_then(|item| item.table(fields::PLATFORM, "a table with `cpus`", findings));
    let Some(fields) = fields else { return Platform::identical(1) };
    let cpus = fields
        .require("cpus", "`cpus = 4`", findings)
        .and_then(|item| item.integer(1, CPUS_MAX as u64, findings))
        .unwrap_or(1) as usize;
    let default = Platform::identical(cpus);
    let clusters = fields.get("clusters").and_then(|item| clusters(&item, cpus, findings)).unwrap_or(default.clusters);
    let gpus = fields.tables("gpu", findings).iter().map(|item| gpu(item, &clusters, findings)).collect();
    let devices = fields.tables("device", findings);
    let devices = devices.iter().map(|item| device::device(item, &clusters, findings)).collect();
    let tick = fields.get("tick").and_then(|item| item.span(findings)).unwrap_or(default.tick);
    Platform {
        cpus,
        gpus,
        devices,
        clusters,
        tick,
        // One decision a tick unless the file says otherwise.
        quantum: fields.get("quantum").and_then(|item| item.span(findings)).unwrap_or(tick),
        overheads: fields
            .get("overheads")
            .and_then(|item| overheads(&item, scheduler, findings))
            .unwrap_or(default.overheads),
        memory: fields.get("memory").map(|item| memory::memory(&item, findings)).unwrap_or_default(),
    }
}

/// A list of clusters, or the number of equal ones.
fn clusters(item: &Item<'_>, cpus: usize, findings: &mut Findings) -> Option<Vec<Vec<CpuId>>> {
    if matches!(item.node.value, Value::Integer(_)) {
        let count = item.integer(1, CPUS_MAX as u64, findings)? as usize;
        if !cpus.is_multiple_of(count) {
            let message = format!("{count} does not divide {cpus} CPUs into equal parts; list the CPUs of each");
            item.report(ErrorKind::Contradiction, message, findings);
            return None;
        }
        let size = cpus / count;
        let cluster = |first: usize| (first..first + size).map(|cpu| CpuId(cpu as u16)).collect();
        return Some((0..cpus).step_by(size).map(cluster).collect());
    }
    let expected = "a list of clusters, as in `[\"0-3\", \"4,5\"]` or `[[0, 1], [2, 3]]`, or their number";
    let clusters = item.list(expected, findings)?;
    Some(clusters.iter().map(|cluster| cpu_numbers(cluster, findings).unwrap_or_default()).collect())
}

/// CPU numbers as `[0, 1, 2]`, or as Linux writes them: `"0-2,8"`.
fn cpu_numbers(item: &Item<'_>, findings: &mut Findings) -> Option<Vec<CpuId>> {
    if let Value::Text(text) = &item.node.value {
        let cpus = cpu_list::parse(text);
        if cpus.is_none() {
            let message = format!("\"{text}\" is no list of CPUs below {CPUS_MAX}; write it like \"0-3,8\"");
            item.report(ErrorKind::BadValue, message, findings);
        }
        return cpus;
    }
    let cpus = item.list("a list of CPUs, as in `[0, 1]` or \"0-3,8\"", findings)?;
    let number = |item: &Item<'_>, findings: &mut Findings| item.integer(0, CPUS_MAX as u64 - 1, findings);
    Some(cpus.iter().filter_map(|cpu| number(cpu, findings)).map(|cpu| CpuId(cpu as u16)).collect())
}

fn gpu(item: &Item<'_>, clusters: &[Vec<CpuId>], findings: &mut Findings) -> Gpu {
    let mut gpu = Gpu {
        name: String::new(),
        cluster: 0,
        copy_engines: 1,
        bandwidth: 1,
        latency: Nanos::ZERO,
        interrupt_cpus: Vec::new(),
    };
    let Some(fields) = item.table(fields::GPU, "a table with `name` and `bandwidth`", findings) else { return gpu };
    gpu.name = fields.name(findings);
    if let Some(cluster) = fields.get("cluster").and_then(|item| item.integer_u32(findings)) {
        gpu.cluster = cluster as usize;
    }
    if let Some(engines) = fields.get("copy_engines").and_then(|item| item.integer(1, 2, findings)) {
        gpu.copy_engines = engines as u8;
    }
    let bandwidth = fields.require("bandwidth", "`bandwidth = \"12 GB/s\"`", findings);
    if let Some(bandwidth) = bandwidth.and_then(|item| item.rate(findings)) {
        gpu.bandwidth = bandwidth;
    }
    if let Some(latency) = fields.get("latency").and_then(|item| item.span(findings)) {
        gpu.latency = latency;
    }
    gpu.interrupt_cpus = interrupt_cpus(&fields, gpu.cluster, clusters, findings);
    gpu
}

/// Those that the file lists for a GPU or device, or else those of its `cluster`.
pub(super) fn interrupt_cpus(
    fields: &Fields<'_>,
    cluster: usize,
    clusters: &[Vec<CpuId>],
    findings: &mut Findings,
) -> Vec<CpuId> {
    match fields.get("interrupt_cpus") {
        Some(item) => cpu_numbers(&item, findings).unwrap_or_default(),
        None => clusters.get(cluster).cloned().unwrap_or_default(),
    }
}

/// The name of a published profile, or a table with a constant or measured points for each source.
fn overheads(item: &Item<'_>, scheduler: &Scheduler, findings: &mut Findings) -> Option<OverheadProfile> {
    if let Value::Text(name) = &item.node.value {
        return match OverheadProfile::named(name, scheduler) {
            Ok(profile) => Some(profile),
            Err(error) => {
                item.report(ErrorKind::UnknownName, format_args!("names an {error}"), findings);
                None
            }
        };
    }
    own_overheads(item, findings)
}

/// A table with a constant or measured points for each source.
pub(in crate::file) fn own_overheads(item: &Item<'_>, findings: &mut Findings) -> Option<OverheadProfile> {
    let expected = "the name of a published profile, or a table of overheads, as in `{ release = \"10 us\" }`";
    let fields = item.table(fields::OVERHEADS, expected, findings)?;
    let name = fields.get("name").and_then(|item| item.text("text", findings)).unwrap_or("custom");
    let tables = OverheadKind::ALL.map(|kind| {
        let table = fields.get(kind.name()).and_then(|item| overhead_table(&item, findings));
        table.unwrap_or(OverheadTable::Constant(Nanos::ZERO))
    });
    Some(OverheadProfile { name: name.to_owned(), tables })
}

fn overhead_table(item: &Item<'_>, findings: &mut Findings) -> Option<OverheadTable> {
    if !matches!(item.node.value, Value::List(_)) {
        let picos = item.picos(findings)?;
        return Some(match picos % 1_000 {
            0 => OverheadTable::Constant(Nanos(picos / 1_000)),
            // One point holds for any number of tasks, and is as fine as what was measured.
            _ => OverheadTable::Points(vec![(1, picos)]),
        });
    }
    let points = item.list("a list of points", findings)?;
    Some(OverheadTable::Points(points.iter().filter_map(|point| overhead_point(point, findings)).collect()))
}

fn overhead_point(item: &Item<'_>, findings: &mut Findings) -> Option<(u32, u64)> {
    let expected = "a number of tasks and a span, as in `[50, \"9.38 us\"]`";
    let parts = item.list(expected, findings)?;
    let [tasks, span] = parts.as_slice() else {
        let message = format!("has {} elements; write {expected}", parts.len());
        item.report(ErrorKind::WrongType, message, findings);
        return None;
    };
    tasks.integer_u32(findings).zip(span.picos(findings))
}
