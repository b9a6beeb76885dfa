//! How GPUs are shared: the section `[gpu_management]`.

use super::body::execution_time;
use super::{fields, memory};
use crate::error::Findings;
use crate::file::reader::{Fields, Item};
use crate::file::tree::Value;
use crate::file::{ARBITRATIONS, ENGINE_ORDERS, HANDLINGS, MIGRATION_PATHS, TOKEN_HOLDS, Words};
use crate::{GpuArbitration, GpuManagement, GpuSync, InterruptHandling};

/// The `gpu_management` of a file; stock Linux where there is none.
pub(super) fn gpu_management(file: &Fields<'_>, findings: &mut Findings) -> GpuManagement {
    let default = GpuManagement::default();
    let item = file.get("gpu_management");
    let fields = item.and_then(|item| item.table(fields::GPU_MANAGEMENT, "a table", findings));
    let Some(fields) = fields else { return default };
    GpuManagement {
        arbitration: fields.get("arbitration").and_then(|item| arbitration(&item, findings)).unwrap_or_default(),
        handling: fields.get("handling").and_then(|item| handling(&item, findings)).unwrap_or_default(),
        top_half: fields.get("top_half").map(|item| execution_time(&item, findings)),
        bottom_half: fields.get("bottom_half").map(|item| execution_time(&item, findings)),
        callback: fields.get("callback").map(|item| execution_time(&item, findings)),
        bandwidth_lock: fields.get("bandwidth_lock").and_then(|item| memory::bandwidth_lock(&item, findings)),
    }
}

fn arbitration(item: &Item<'_>, findings: &mut Findings) -> Option<GpuArbitration> {
    let parameters = |arbitration| match arbitration {
        GpuArbitration::Driver | GpuArbitration::DriverSpinning | GpuArbitration::Semaphore => fields::PROTOCOL_ALONE,
        GpuArbitration::KFmlp { .. } => fields::K_FMLP,
        GpuArbitration::GpuSync(_) => fields::GPUSYNC,
    };
    let (named, fields) = named(item, "protocol", ARBITRATIONS, parameters, findings)?;
    let Some(fields) = fields else { return Some(named) };
    Some(match named {
        GpuArbitration::Driver | GpuArbitration::DriverSpinning | GpuArbitration::Semaphore => named,
        GpuArbitration::KFmlp { length_aware } => GpuArbitration::KFmlp {
            length_aware: fields.get("length_aware").and_then(|item| item.boolean(findings)).unwrap_or(length_aware),
        },
        GpuArbitration::GpuSync(default) => GpuArbitration::GpuSync(gpusync(&fields, default, findings)),
    })
}

fn gpusync(fields: &Fields<'_>, default: GpuSync, findings: &mut Findings) -> GpuSync {
    let mut number = |key| fields.get(key).and_then(|item| item.integer_u32(findings));
    GpuSync {
        tokens: number("tokens").unwrap_or(default.tokens),
        fifo_length: number("fifo_length"),
        fifo_requests: number("fifo_requests"),
        engine_order: fields
            .get("engine_order")
            .and_then(|item| item.choice(ENGINE_ORDERS, findings))
            .unwrap_or(default.engine_order),
        chunk: fields.get("chunk").and_then(|item| item.size(findings)),
        hold: fields.get("hold").and_then(|item| item.choice(TOKEN_HOLDS, findings)).unwrap_or(default.hold),
        migration: fields.get("migration").and_then(|item| item.span(findings)),
        migration_path: fields
            .get("migration_path")
            .and_then(|item| item.choice(MIGRATION_PATHS, findings))
            .unwrap_or(default.migration_path),
    }
}

fn handling(item: &Item<'_>, findings: &mut Findings) -> Option<InterruptHandling> {
    let parameters = |handling| match handling {
        InterruptHandling::Klmirqd { .. } => fields::KLMIRQD,
        InterruptHandling::Linux | InterruptHandling::PreemptRt(_) | InterruptHandling::ProcessAware => {
            fields::METHOD_ALONE
        }
    };
    let (named, fields) = named(item, "method", HANDLINGS, parameters, findings)?;
    let threads = fields.and_then(|fields| fields.get("threads")?.integer_u32(findings));
    Some(match named {
        InterruptHandling::Klmirqd { .. } => InterruptHandling::Klmirqd { threads },
        other => other,
    })
}

/// A word, or a table that has the word at `key` and the parameters that it allows.
pub(super) fn named<'t, T: Copy>(
    item: &Item<'t>,
    key: &'static str,
    words: Words<T>,
    parameters: impl Fn(T) -> &'static [&'static str],
    findings: &mut Findings,
) -> Option<(T, Option<Fields<'t>>)> {
    if matches!(item.node.value, Value::Text(_)) {
        return item.choice(words, findings).map(|named| (named, None));
    }
    let (example, _) = words.last().expect("there are words");
    let expected = format!("a name, as in \"{example}\", or a table with `{key}`");
    let name = item.open(&expected, findings)?.require(key, &format!("`{key} = \"{example}\"`"), findings)?;
    let named = name.choice(words, findings)?;
    Some((named, item.table(parameters(named), &expected, findings)))
}
