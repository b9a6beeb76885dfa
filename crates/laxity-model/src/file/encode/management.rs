//! How GPUs are shared: the section `[gpu_management]`.

use super::{Fields, execution_time, memory, span, unless, word};
use crate::file::quantity::write_size;
use crate::file::write::Outline::{self, Boolean, Inline, Integer, Text};
use crate::file::{ENGINE_ORDERS, MIGRATION_PATHS, TOKEN_HOLDS};
use crate::{GpuArbitration, GpuManagement, GpuSync, InterruptHandling};

/// The fields that differ from stock Linux.
pub(super) fn gpu_management(management: &GpuManagement) -> Fields {
    let GpuManagement { arbitration, handling, top_half, bottom_half, callback, bandwidth_lock } = management;
    let mut fields = Vec::new();
    unless(&mut fields, "arbitration", *arbitration, GpuArbitration::Driver, self::arbitration);
    unless(&mut fields, "handling", *handling, InterruptHandling::Linux, self::handling);
    fields.extend(top_half.as_ref().map(|time| ("top_half", execution_time(time))));
    fields.extend(bottom_half.as_ref().map(|time| ("bottom_half", execution_time(time))));
    fields.extend(callback.as_ref().map(|time| ("callback", execution_time(time))));
    fields.extend(bandwidth_lock.as_ref().map(|lock| ("bandwidth_lock", memory::bandwidth_lock(lock))));
    fields
}

fn arbitration(arbitration: GpuArbitration) -> Outline {
    let parameters = match arbitration {
        GpuArbitration::Driver | GpuArbitration::DriverSpinning | GpuArbitration::Semaphore => Vec::new(),
        GpuArbitration::KFmlp { length_aware } => {
            let mut fields = Vec::new();
            unless(&mut fields, "length_aware", length_aware, false, Boolean);
            fields
        }
        GpuArbitration::GpuSync(gpusync) => self::gpusync(&gpusync),
    };
    named("protocol", arbitration.name(), parameters)
}

fn gpusync(gpusync: &GpuSync) -> Fields {
    let GpuSync { tokens, fifo_length, fifo_requests, engine_order, chunk, hold, migration, migration_path } = *gpusync;
    let number = |number: u32| Integer(u64::from(number));
    let mut fields = Vec::new();
    unless(&mut fields, "tokens", tokens, GpuSync::DEFAULT.tokens, number);
    fields.extend(fifo_length.map(|length| ("fifo_length", number(length))));
    fields.extend(fifo_requests.map(|requests| ("fifo_requests", number(requests))));
    unless(&mut fields, "engine_order", engine_order, GpuSync::DEFAULT.engine_order, |it| word(ENGINE_ORDERS, &it));
    fields.extend(chunk.map(|bytes| ("chunk", Text(write_size(bytes)))));
    unless(&mut fields, "hold", hold, GpuSync::DEFAULT.hold, |it| word(TOKEN_HOLDS, &it));
    fields.extend(migration.map(|cost| ("migration", span(cost))));
    let default = GpuSync::DEFAULT.migration_path;
    unless(&mut fields, "migration_path", migration_path, default, |it| word(MIGRATION_PATHS, &it));
    fields
}

fn handling(handling: InterruptHandling) -> Outline {
    let parameters = match handling {
        InterruptHandling::Klmirqd { threads: Some(threads) } => vec![("threads", Integer(u64::from(threads)))],
        _ => Vec::new(),
    };
    named("method", handling.name(), parameters)
}

/// The name alone where it has no parameters, else a table that begins with it.
fn named(key: &'static str, name: &str, parameters: Fields) -> Outline {
    if parameters.is_empty() {
        return Text(name.to_owned());
    }
    let mut fields = vec![(key, Text(name.to_owned()))];
    fields.extend(parameters);
    Inline(fields)
}
