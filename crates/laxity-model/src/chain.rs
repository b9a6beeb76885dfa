//! Chains: paths through graphs, and how old data and how late reactions may be at their ends.

use crate::Nanos;

/// A path of nodes of one graph from a source, each joined to the next by an edge (a cause-effect chain).
///
/// *Data age* is the time from the arrival of the job that sampled a datum to the completion of a job of the last node that
/// uses it; the longest is that of the last such job (last-to-last). *Reaction time* is the time from an event just after a
/// job sampled to the completion of the first job of the last node that uses a later sample (first-to-first). Sources of the
/// terms: Feiertag, Richter, Nordlander and Jonsson, CRTS 2008; Becker et al., J. Systems Architecture 80, 2017.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// Unique name.
    pub name: String,
    /// Index of the graph.
    pub graph: usize,
    /// Indices of its nodes, from the one that samples to the one that acts.
    pub path: Vec<usize>,
    /// How old the data may be that an output uses.
    pub data_age_max: Option<Nanos>,
    /// How long an event may take to show in an output.
    pub reaction_time_max: Option<Nanos>,
}
