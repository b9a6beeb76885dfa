//! Times as numbers of nanoseconds in JSON; the field names end in `_ns`.

use laxity_model::{CpuId, Nanos, SignedNanos, TaskId};
use serde::Serializer;

pub(super) fn nanos<S: Serializer>(span: &Nanos, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(span.0)
}

pub(super) fn is_zero(span: &Nanos) -> bool {
    *span == Nanos::ZERO
}

pub(super) fn signed<S: Serializer>(span: &SignedNanos, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_i64(span.0)
}

pub(super) fn optional_signed<S: Serializer>(span: &Option<SignedNanos>, serializer: S) -> Result<S::Ok, S::Error> {
    match span {
        Some(span) => serializer.serialize_some(&span.0),
        None => serializer.serialize_none(),
    }
}

pub(super) fn task<S: Serializer>(task: &TaskId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u32(task.0)
}

pub(super) fn cpu<S: Serializer>(cpu: &CpuId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u16(cpu.0)
}
