//! How nodes use data objects.

use laxity_graph::Access;

use crate::exemplar::Exemplar;
use crate::format::Format;
use crate::object::{Key, Readable, Slot, Writable};

/// A parameter of a node: an object, and what the node does with it (OpenVX's direction).
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    pub(crate) key: Key,
    pub(crate) access: Access,
    /// What the kernel asks of the object, if it says so.
    pub(crate) expected: Option<Format>,
}

impl Parameter {
    /// The node reads an object, or a slot of a delay (`VX_INPUT`).
    pub fn input(source: impl Readable) -> Parameter {
        let slot: Slot<_> = source.slot();
        Parameter { key: slot.key(), access: Access::Read { ago: slot.jobs_ago() }, expected: None }
    }

    /// The node writes all of an object, or of the current slot of a delay (`VX_OUTPUT`).
    pub fn output(target: impl Writable) -> Parameter {
        Parameter { key: target.current().key, access: Access::Write, expected: None }
    }

    /// The node changes an object in place (`VX_BIDIRECTIONAL`).
    pub fn inout(target: impl Writable) -> Parameter {
        Parameter { key: target.current().key, access: Access::Change, expected: None }
    }

    /// The same, of a kernel that takes nothing but such objects: verification refuses others.
    #[must_use]
    pub fn expecting(self, exemplar: impl Exemplar) -> Parameter {
        Parameter { expected: Some(exemplar.format()), ..self }
    }
}
