//! Rules of interrupt sources besides GPUs, and of the servers of their threads.

use super::{body, interrupt_half, platform, positive_span};
use crate::error::{ErrorKind, FieldPath, Findings};
use crate::{Arrival, Device, Nanos, PriorityRule, Server, Workload};

pub(super) fn device(device: &Device, workload: &Workload, at: &FieldPath, findings: &mut Findings) {
    let Device { name: _, cluster, arrival, period, top_half, bottom_half, interrupt_cpus, server } = device;
    platform::cluster(*cluster, &workload.platform, at, findings);
    positive_span("period", *period, at, findings);
    if let Arrival::Sporadic { gap } = arrival {
        body::distribution(gap, Nanos::LONGEST, &at.key("gap"), findings);
    }
    interrupt_half(top_half, &at.key("top_half"), findings);
    interrupt_half(bottom_half, &at.key("bottom_half"), findings);
    platform::interrupt_cpus(interrupt_cpus, &workload.platform, at, findings);
    if let Some(it) = server {
        self::server(it, workload, &at.key("server"), findings);
    }
}

fn server(server: &Server, workload: &Workload, at: &FieldPath, findings: &mut Findings) {
    let Server { kind: _, budget, period, priority } = *server;
    positive_span("budget", budget, at, findings);
    positive_span("period", period, at, findings);
    if budget > period && !period.is_zero() {
        let message = format!("`budget` {budget} exceeds the server's period {period}; lower it or extend the period");
        findings.report(at.key("budget"), ErrorKind::Contradiction, message);
    }
    if workload.scheduler.rule == PriorityRule::Given && priority.is_none() {
        let message = format!(
            "`priority` is missing, which {} ranks jobs and servers by; write `priority = 1` (the smaller number first)",
            workload.scheduler.algorithm()
        );
        findings.report(at.key("priority"), ErrorKind::Contradiction, message);
    }
}
