//! The status codes of OpenVX.

use std::fmt;

/// A status of OpenVX (`vx_status_e`), for programs that know these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum Status {
    /// `VX_ERROR_MULTIPLE_WRITERS`
    MultipleWriters = -23,
    /// `VX_ERROR_GRAPH_ABANDONED`
    GraphAbandoned = -22,
    /// `VX_ERROR_GRAPH_SCHEDULED`
    GraphScheduled = -21,
    /// `VX_ERROR_INVALID_SCOPE`
    InvalidScope = -20,
    /// `VX_ERROR_INVALID_NODE`
    InvalidNode = -19,
    /// `VX_ERROR_INVALID_GRAPH`
    InvalidGraph = -18,
    /// `VX_ERROR_INVALID_VALUE`
    InvalidValue = -16,
    /// `VX_ERROR_INVALID_DIMENSION`
    InvalidDimension = -15,
    /// `VX_ERROR_INVALID_FORMAT`
    InvalidFormat = -14,
    /// `VX_ERROR_INVALID_LINK`
    InvalidLink = -13,
    /// `VX_ERROR_INVALID_REFERENCE`
    InvalidReference = -12,
    /// `VX_ERROR_INVALID_PARAMETERS`
    InvalidParameters = -10,
    /// `VX_ERROR_NO_MEMORY`
    NoMemory = -8,
    /// `VX_ERROR_NO_RESOURCES`
    NoResources = -7,
    /// `VX_ERROR_NOT_SUFFICIENT`
    NotSufficient = -4,
    /// `VX_FAILURE`
    Failure = -1,
}

impl Status {
    /// Its name in OpenVX.
    pub fn name(self) -> &'static str {
        match self {
            Status::MultipleWriters => "VX_ERROR_MULTIPLE_WRITERS",
            Status::GraphAbandoned => "VX_ERROR_GRAPH_ABANDONED",
            Status::GraphScheduled => "VX_ERROR_GRAPH_SCHEDULED",
            Status::InvalidScope => "VX_ERROR_INVALID_SCOPE",
            Status::InvalidNode => "VX_ERROR_INVALID_NODE",
            Status::InvalidGraph => "VX_ERROR_INVALID_GRAPH",
            Status::InvalidValue => "VX_ERROR_INVALID_VALUE",
            Status::InvalidDimension => "VX_ERROR_INVALID_DIMENSION",
            Status::InvalidFormat => "VX_ERROR_INVALID_FORMAT",
            Status::InvalidLink => "VX_ERROR_INVALID_LINK",
            Status::InvalidReference => "VX_ERROR_INVALID_REFERENCE",
            Status::InvalidParameters => "VX_ERROR_INVALID_PARAMETERS",
            Status::NoMemory => "VX_ERROR_NO_MEMORY",
            Status::NoResources => "VX_ERROR_NO_RESOURCES",
            Status::NotSufficient => "VX_ERROR_NOT_SUFFICIENT",
            Status::Failure => "VX_FAILURE",
        }
    }

    /// Its number in OpenVX.
    pub fn number(self) -> i32 {
        self as i32
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
