//! Interrupt sources besides GPUs: `[[platform.device]]`.

use super::body::execution_time;
use super::platform::interrupt_cpus;
use super::{fields, task};
use crate::error::Findings;
use crate::file::SERVERS;
use crate::file::reader::Item;
use crate::{Arrival, CpuId, Device, ExecutionTime, Nanos, Server};

/// An element of `[[platform.device]]`.
pub(super) fn device(item: &Item<'_>, clusters: &[Vec<CpuId>], findings: &mut Findings) -> Device {
    let mut device = Device {
        name: String::new(),
        cluster: 0,
        arrival: Arrival::Periodic,
        period: Nanos::ZERO,
        top_half: ExecutionTime::constant(Nanos::ZERO),
        bottom_half: ExecutionTime::constant(Nanos::ZERO),
        interrupt_cpus: Vec::new(),
        server: None,
    };
    let expected = "a table with `name`, `period`, `top_half` and `bottom_half`";
    let Some(fields) = item.table(fields::DEVICE, expected, findings) else { return device };
    device.name = fields.name(findings);
    if let Some(cluster) = fields.get("cluster").and_then(|item| item.integer_u32(findings)) {
        device.cluster = cluster as usize;
    }
    device.arrival = task::arrival(&fields, "devices", findings);
    let period = fields.require("period", "`period = \"1 ms\"`", findings);
    device.period = period.and_then(|item| item.span(findings)).unwrap_or(Nanos::ZERO);
    if let Some(item) = fields.require("top_half", "`top_half = \"5 us\"`", findings) {
        device.top_half = execution_time(&item, findings);
    }
    if let Some(item) = fields.require("bottom_half", "`bottom_half = \"20 us\"`", findings) {
        device.bottom_half = execution_time(&item, findings);
    }
    device.interrupt_cpus = interrupt_cpus(&fields, device.cluster, clusters, findings);
    device.server = fields.get("server").and_then(|item| server(&item, findings));
    device
}

fn server(item: &Item<'_>, findings: &mut Findings) -> Option<Server> {
    let expected = "a table, as in `{ kind = \"cbs_hard\", budget = \"1 ms\", period = \"10 ms\" }`";
    let fields = item.table(fields::SERVER, expected, findings)?;
    let kind = fields.require("kind", "`kind = \"cbs_hard\"`", findings).and_then(|it| it.choice(SERVERS, findings));
    let budget = fields.require("budget", "`budget = \"1 ms\"`", findings).and_then(|item| item.span(findings));
    let period = fields.require("period", "`period = \"10 ms\"`", findings).and_then(|item| item.span(findings));
    let priority = fields.get("priority").and_then(|item| item.integer_u32(findings));
    Some(Server { kind: kind?, budget: budget?, period: period?, priority })
}
