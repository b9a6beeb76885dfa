//! Interrupt sources besides GPUs: `[[platform.device]]`.

use super::{Fields, arrival, execution_time, interrupt_cpus, span, unless, word};
use crate::file::SERVERS;
use crate::file::write::Outline::{self, Inline, Integer, Text};
use crate::{Device, Platform, Server};

pub(super) fn device(device: &Device, platform: &Platform) -> Fields {
    let mut fields = vec![("name", Text(device.name.clone()))];
    unless(&mut fields, "cluster", device.cluster, 0, |cluster| Integer(cluster as u64));
    arrival(&device.arrival, device.period, &mut fields);
    fields.push(("top_half", execution_time(&device.top_half)));
    fields.push(("bottom_half", execution_time(&device.bottom_half)));
    interrupt_cpus(&device.interrupt_cpus, device.cluster, platform, &mut fields);
    fields.extend(device.server.map(|it| ("server", server(&it))));
    fields
}

fn server(server: &Server) -> Outline {
    let Server { kind, budget, period, priority } = *server;
    let mut fields = vec![("kind", word(SERVERS, &kind)), ("budget", span(budget)), ("period", span(period))];
    fields.extend(priority.map(|priority| ("priority", Integer(u64::from(priority)))));
    Inline(fields)
}
