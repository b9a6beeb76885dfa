//! Graphs by name.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use laxity_membership::{Cause, NameTable};
use laxity_model::{ErrorCode, Instant};
use laxity_sys::channel::ChannelError;
use laxity_sys::random;
use laxity_sys::segment::{HEADER, Segment, SegmentError};

use crate::channel::ChannelKind;
use crate::description::{self, DescriptionError};
use crate::graph::Graph;
use crate::layout::{DESCRIPTION, DESCRIPTION_LENGTH, FORMAT, Layout, LinkLayout};
use crate::objects;
use crate::shared::Shared;
use crate::spec::{Channel, Spec};
use crate::swap;

/// Where graphs have their names: a directory in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registry {
    names: NameTable,
}

/// Why a graph cannot be created or attached to, or leftovers not be removed.
pub type RegistryError = laxity_membership::RegistryError<NoChannel>;

/// An edge of a graph cannot have its channel, as it would hold too much or what has its name is not one of ours.
#[derive(Debug, thiserror::Error)]
#[error("edge {from} -> {to} ({kind}): {error}")]
pub struct NoChannel {
    /// The edge's producer.
    pub from: String,
    /// The edge's consumer.
    pub to: String,
    /// What it was to be.
    pub kind: ChannelKind,
    /// Why not.
    #[source]
    pub error: ChannelError,
}

impl Registry {
    /// NameTable in `directory`, which must exist. One on a disk works, more slowly.
    pub fn at(directory: impl Into<PathBuf>) -> Registry {
        Registry { names: NameTable::at(directory) }
    }

    /// Creates the graph that `spec` describes, under its name. No process sees it before it is whole. A graph of
    /// this name whose processes are all gone is replaced.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub fn create(&self, spec: &Spec) -> Result<Graph, RegistryError> {
        self.names.publish(&spec.graph().name, self.draft(spec)?).map(Graph::new)
    }

    /// The graph called `name`, exactly.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub fn attach(&self, name: &str) -> Result<Graph, RegistryError> {
        self.names.attach(name).map(Graph::new)
    }

    /// The graph called `name`, which may still have to be created until `deadline`.
    ///
    /// # Errors
    /// [`RegistryError`]; [`RegistryError::NotFound`] if it was not.
    pub fn attach_until(&self, name: &str, deadline: Instant) -> Result<Graph, RegistryError> {
        self.names.attach_until(name, deadline).map(Graph::new)
    }

    /// Creates the graph that `spec` describes, or attaches to it if it is there already: for processes that all know
    /// it and start in any order.
    ///
    /// # Errors
    /// [`RegistryError`]; [`RegistryError::Different`] if a graph of this name is not the same.
    pub fn create_or_attach(&self, spec: &Spec) -> Result<Graph, RegistryError> {
        let is_it = |shared: &Shared| shared.spec == *spec;
        self.names.publish_or_attach(&spec.graph().name, is_it, || self.draft(spec)).map(Graph::new)
    }

    /// The names of all graphs, in order, used or left over.
    ///
    /// # Errors
    /// [`RegistryError::List`].
    pub fn names(&self) -> Result<Vec<String>, RegistryError> {
        self.names.list::<Shared>()
    }

    /// Removes what is not in use any more, and answers with the names: graphs all of whose processes were killed, or
    /// that a power cut left on a disk.
    ///
    /// # Errors
    /// [`RegistryError`]; graphs of other versions and of other users and files of other programs are left alone and are
    /// no error.
    pub fn gc(&self) -> Result<Vec<String>, RegistryError> {
        self.names.gc::<Shared>()
    }

    /// Takes the name of the graph called `name` away, used or not: it is not found any more, attached
    /// processes go on, and its memory goes with the last of them, however that ends. For a creator that cannot wait.
    ///
    /// # Errors
    /// [`RegistryError`]; that there is no such graph is none.
    pub fn unlink(&self, name: &str) -> Result<(), RegistryError> {
        self.names.unlink::<Shared>(name)
    }

    /// Whether a process that lives is attached to the graph called `name`. Looking changes nothing, whereas a
    /// process that attaches to a graph that is left over removes it when it leaves.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub fn is_in_use(&self, name: &str) -> Result<bool, RegistryError> {
        self.names.is_in_use::<Shared>(name)
    }

    /// Where the names are.
    pub fn directory(&self) -> &Path {
        self.names.directory()
    }

    /// The memory of a graph in its initial state, without a name.
    pub(crate) fn draft(&self, spec: &Spec) -> Result<Shared, RegistryError> {
        let path = self.names.path::<Shared>(&spec.graph().name)?;
        let description = description::encode(spec);
        let too_large = || SegmentError::Memory { path: path.clone(), length: usize::MAX };
        let layout = Layout::of(spec, description.len()).ok_or_else(too_large)?;
        let segment = Segment::draft(&path, FORMAT, layout.total - HEADER)?;
        segment.u64(DESCRIPTION_LENGTH).store(description.len() as u64, Ordering::Relaxed);
        segment.store_bytes(DESCRIPTION, &description);
        for offset in [layout.identity, layout.secret] {
            let number = random::number().map_err(|error| RegistryError::System { action: "draw a number", error })?;
            segment.u64(offset).store(number, Ordering::Relaxed);
        }
        // All else starts as 0: no member, no owner, no job, and messages of zeros; those of initial tokens have
        // their full length.
        for (edge, (rule, channel)) in spec.plan().edges().iter().zip(spec.channels()).enumerate() {
            if let (Channel::Ring { message, .. }, Some(ring)) = (channel, layout.ring(edge)) {
                for token in 0..rule.initial as usize {
                    segment.u32(ring.lengths + 4 * token).store(*message, Ordering::Relaxed);
                }
            }
            if let (Channel::Ring { message, capacity }, Some(swap)) = (channel, layout.swap(edge)) {
                swap::initialize(&segment, swap, *capacity, rule.initial, *message);
            }
            if let (Some(message), Some(link)) = (channel.message(), layout.link(edge)) {
                for token in 0..rule.initial as usize {
                    segment.u32(link.slots + LinkLayout::SLOT * token).store(message, Ordering::Relaxed);
                }
            }
        }
        objects::initialize(&segment, &layout, spec);
        Ok(Shared::new(segment, layout, spec.clone()))
    }
}

impl From<PathBuf> for Registry {
    fn from(directory: PathBuf) -> Self {
        Registry::at(directory)
    }
}

/// Reads what `segment` says of itself.
pub(crate) fn describe(segment: &Segment, name: &str) -> Result<(Spec, Layout), RegistryError> {
    let damaged = |reason| RegistryError::Damaged { name: name.to_owned(), reason };
    if segment.len() < DESCRIPTION {
        return Err(damaged(None));
    }
    let length = usize::try_from(segment.u64(DESCRIPTION_LENGTH).load(Ordering::Relaxed)).ok();
    let end = length.and_then(|length| DESCRIPTION.checked_add(length)).filter(|&end| end <= segment.len());
    let end = end.ok_or_else(|| damaged(None))?;
    let spec = description::decode(&segment.load_bytes(DESCRIPTION..end)).map_err(|error| match error {
        DescriptionError::Malformed => damaged(None),
        DescriptionError::Spec(error) => damaged(Some(Box::new(error))),
    })?;
    match Layout::of(&spec, end - DESCRIPTION) {
        // Names of further files are made of the graph's, which was checked as part of the segment's path.
        Some(layout) if layout.total == segment.len() && spec.graph().name == name => Ok((spec, layout)),
        _ => Err(damaged(None)),
    }
}

impl Cause for NoChannel {
    const NOUN: &'static str = "graph";
    const DESCRIPTION: &'static str = "description";
    const NOT_FOUND: ErrorCode = ErrorCode::NoGraph;
}
