//! Rules of GPU management.

use super::{interrupt_half, memory, span};
use crate::error::{ErrorKind, FieldPath, Findings};
use crate::{GpuArbitration, GpuManagement, GpuSync, InterruptHandling, MigrationPath, Platform, Workload};

pub(super) fn gpu_management(workload: &Workload, findings: &mut Findings) {
    let management = &workload.gpu_management;
    let at = FieldPath::root().key("gpu_management");
    if let GpuArbitration::GpuSync(gpusync) = &management.arbitration {
        self::gpusync(gpusync, &workload.platform, &at.key("arbitration"), findings);
    }
    if management.handling == (InterruptHandling::Klmirqd { threads: Some(0) }) {
        let message = "`threads` is 0; let at least 1 run bottom halves, or leave it out for one each GPU";
        findings.report(at.key("handling").key("threads"), ErrorKind::BadValue, message);
    }
    if let Some(lock) = &management.bandwidth_lock {
        memory::bandwidth_lock(lock, &at.key("bandwidth_lock"), findings);
    }
    let GpuManagement { top_half, bottom_half, callback, .. } = management;
    for (key, half) in [("top_half", top_half), ("bottom_half", bottom_half), ("callback", callback)] {
        if let Some(time) = half {
            interrupt_half(time, &at.key(key), findings);
        }
    }
}

fn gpusync(gpusync: &GpuSync, platform: &Platform, at: &FieldPath, findings: &mut Findings) {
    let mut report = |key, message: &str| findings.report(at.key(key), ErrorKind::BadValue, message);
    if gpusync.tokens == 0 {
        report("tokens", "`tokens` is 0; give each GPU at least 1, or no job ever gets it");
    }
    if gpusync.fifo_length == Some(0) {
        report("fifo_length", "`fifo_length` is 0; the holder of a token counts, so write at least 1");
    }
    if gpusync.fifo_requests == Some(0) {
        report(
            "fifo_requests",
            "`fifo_requests` is 0; holders count, so write at least 1, or no job ever gets a token",
        );
    }
    if gpusync.chunk == Some(0) {
        report("chunk", "`chunk` is 0 B; write at least 1 B, or leave it out to copy in one piece");
    }
    if let Some(cost) = gpusync.migration {
        span("migration", cost, at, findings);
    } else if gpusync.migration_path != MigrationPath::Peer {
        let message =
            "`migration_path` has nothing to copy; write how long a copy takes as `migration`, or leave it out";
        findings.report(at.key("migration_path"), ErrorKind::Contradiction, message);
    }
    queues(gpusync, platform, at, findings);
}

/// Requests for which no cluster has room in its queues would never be in one.
fn queues(gpusync: &GpuSync, platform: &Platform, at: &FieldPath, findings: &mut Findings) {
    let (Some(length @ 1..), Some(requests)) = (gpusync.fifo_length, gpusync.fifo_requests) else { return };
    let gpus_of = |cluster| platform.gpus.iter().filter(|gpu| gpu.cluster == cluster).count();
    let gpus = (0..platform.clusters.len()).map(gpus_of).max().unwrap_or(0);
    // Three factors below 2^32.
    let room = gpus as u128 * u128::from(gpusync.tokens) * u128::from(length);
    if room > 0 && u128::from(requests) > room {
        let message = format!(
            "`fifo_requests` {requests} exceeds {room}, what the queues of a cluster hold: {gpus} GPUs, {} tokens each, \
             `fifo_length` {length}; lower it or lengthen the queues",
            gpusync.tokens
        );
        findings.report(at.key("fifo_requests"), ErrorKind::Contradiction, message);
    }
}
