//! Errors of graphs.

use laxity_graph::{Access, PipelineError, SpecError};
use thiserror::Error;

use crate::format::Format;
use crate::graph::{Graph, NodeDescription};
use crate::status::Status;

/// Why a graph cannot be executed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum VerifyError {
    /// It has no node.
    #[error("graph {graph}: it has no node; add one")]
    Empty {
        /// The graph.
        graph: String,
    },
    /// A parameter is an object of another graph.
    #[error("node {node}: parameter {parameter} is an object of another graph; make it an object of this one")]
    Scope {
        /// The node.
        node: String,
        /// Its parameter, counted from 0.
        parameter: usize,
    },
    /// An object of no size, or larger than any memory, or with sides that its format cannot have.
    #[error(
        "object {object}: there is no such thing as {format}; let no side be 0, sides be even where pixels share colours, \
         and all of it fit into memory"
    )]
    Dimension {
        /// The object.
        object: String,
        /// What it was to be.
        format: Format,
    },
    /// A delay without slots.
    #[error("delay {object}: it has 0 slots; ask for 1 more than the oldest that is read is jobs old")]
    NoSlots {
        /// The delay.
        object: String,
    },
    /// A node reads a slot that is not there.
    #[error("node {node}: reads {}", missing_slot(.object, *.ago, *.slots))]
    Slot {
        /// The node.
        node: String,
        /// The delay.
        object: String,
        /// How many jobs ago.
        ago: u32,
        /// Slots, that of the current job included.
        slots: u32,
    },
    /// A node takes other objects.
    #[error("node {node}: takes {expected}, but object {object} is {found}; convert it, or give it another")]
    Format {
        /// The node.
        node: String,
        /// The object.
        object: String,
        /// What the node takes.
        expected: Box<Format>,
        /// What it is given.
        found: Box<Format>,
    },
    /// The edges cannot be derived.
    #[error("{0}")]
    Derivation(#[source] PipelineError),
}

impl VerifyError {
    /// The status of OpenVX that fits.
    pub fn status(&self) -> Status {
        match self {
            VerifyError::Empty { .. } => Status::InvalidGraph,
            VerifyError::Scope { .. } => Status::InvalidScope,
            VerifyError::Dimension { .. } => Status::InvalidDimension,
            VerifyError::NoSlots { .. } | VerifyError::Slot { .. } => Status::InvalidValue,
            VerifyError::Format { expected, found, .. } => of_formats(expected, found),
            VerifyError::Derivation(error) => of_derivation(error),
        }
    }
}

/// Of the same kind but of other sides, or another kind.
fn of_formats(expected: &Format, found: &Format) -> Status {
    let is_same = match (expected, found) {
        (Format::Bytes { .. }, Format::Bytes { .. }) => true,
        (Format::Array { item: one, .. }, Format::Array { item: other, .. })
        | (Format::Matrix { item: one, .. }, Format::Matrix { item: other, .. }) => one == other,
        (Format::Image { pixel: one, .. }, Format::Image { pixel: other, .. }) => one == other,
        _ => false,
    };
    if is_same { Status::InvalidDimension } else { Status::InvalidFormat }
}

fn of_derivation(error: &PipelineError) -> Status {
    match error {
        PipelineError::TwoWriters { .. } => Status::MultipleWriters,
        PipelineError::NoWriter { .. } => Status::NotSufficient,
        PipelineError::Cycle { .. } => Status::InvalidGraph,
        PipelineError::DelayChanged { .. } => Status::InvalidLink,
        PipelineError::UsedTwice { .. } => Status::InvalidParameters,
        PipelineError::NoBytes { .. } | PipelineError::LongInitial { .. } => Status::InvalidDimension,
        PipelineError::Unused { .. } | PipelineError::UnknownObject { .. } => Status::InvalidReference,
        PipelineError::ObjectName { .. } | PipelineError::DuplicateObject { .. } | PipelineError::TooLongAgo { .. } => {
            Status::InvalidValue
        }
        PipelineError::UnknownNode { .. }
        | PipelineError::Spec(SpecError::NodeName { .. } | SpecError::Duplicate { .. }) => Status::InvalidNode,
        PipelineError::Spec(_) => Status::InvalidGraph,
    }
}

fn missing_slot(object: &str, ago: u32, slots: u32) -> String {
    let wanted = u64::from(ago) + 1;
    match slots {
        1 => format!("object {object} of {ago} jobs ago, but it is no delay; make it one of {wanted} slots"),
        slots => format!(
            "delay {object} of {ago} jobs ago, but its {slots} slots go back {} jobs; make it one of {wanted} slots, or \
             read what is there",
            slots.saturating_sub(1)
        ),
    }
}

/// Checks everything but the edges.
pub(crate) fn check(graph: &Graph) -> Result<(), VerifyError> {
    if graph.nodes.is_empty() {
        return Err(VerifyError::Empty { graph: graph.name.clone() });
    }
    for object in &graph.objects {
        if object.format.size().is_none() {
            return Err(VerifyError::Dimension { object: object.name.clone(), format: object.format });
        }
        if object.slots == 0 {
            return Err(VerifyError::NoSlots { object: object.name.clone() });
        }
    }
    graph.all_nodes().try_for_each(|node| check_node(graph, node))
}

fn check_node(graph: &Graph, node: &NodeDescription) -> Result<(), VerifyError> {
    for (position, parameter) in node.parameters.iter().enumerate() {
        let name = || node.name.clone();
        if parameter.key.graph != graph.id {
            return Err(VerifyError::Scope { node: name(), parameter: position });
        }
        let object = &graph.objects[parameter.key.position];
        match parameter.access {
            Access::Read { ago } if ago >= object.slots => {
                return Err(VerifyError::Slot { node: name(), object: object.name.clone(), ago, slots: object.slots });
            }
            _ => {}
        }
        match parameter.expected {
            Some(expected) if expected != object.format => {
                let (object, found) = (object.name.clone(), Box::new(object.format));
                return Err(VerifyError::Format { node: name(), object, expected: Box::new(expected), found });
            }
            _ => {}
        }
    }
    Ok(())
}
