//! Graphs by name.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use laxity_model::Instant;
use laxity_sys::channel::ChannelError;
use laxity_sys::directory::Watch;
use laxity_sys::membarrier;
use laxity_sys::random;
use laxity_sys::segment::{Segment, SegmentError};

use crate::channel::ChannelKind;
use crate::description::{self, DescriptionError};
use crate::graph::Graph;
use crate::guardian::Guardian;
use crate::layout::{DESCRIPTION, DESCRIPTION_LENGTH, FORMAT, Layout, LinkLayout, MEMBERS_MAX};
use crate::link::{self, Channels};
use crate::objects;
use crate::shared::Shared;
use crate::spec::{Channel, Spec, SpecError};
use crate::swap;

/// Where graphs have their names: a directory in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registry {
    directory: PathBuf,
}

/// Why a graph cannot be created or attached to, or leftovers not be removed.
#[derive(Debug)]
pub enum RegistryError {
    /// The name cannot be one.
    Name {
        /// The name.
        name: String,
    },
    /// Creating: a graph that is in use has the name.
    Exists {
        /// The name.
        name: String,
    },
    /// Attaching: there is no such graph.
    NotFound {
        /// The name.
        name: String,
    },
    /// Attaching: the graph that has the name is another one.
    Different {
        /// The name.
        name: String,
    },
    /// Attaching: what has the name does not describe a graph.
    Damaged {
        /// The name.
        name: String,
        /// Why not, if it could be read.
        reason: Option<Box<SpecError>>,
    },
    /// As many processes as can be are attached.
    Full {
        /// The name.
        name: String,
    },
    /// One of its edges cannot have its channel, as it would hold too much or what has its name is not one of ours.
    Channel {
        /// The edge's producer.
        from: String,
        /// The edge's consumer.
        to: String,
        /// What it was to be.
        kind: ChannelKind,
        /// Why not.
        error: ChannelError,
    },
    /// Its memory.
    Segment(SegmentError),
    /// Linux refuses something else.
    System {
        /// What was tried.
        action: &'static str,
        /// Why not.
        error: io::Error,
    },
}

/// The longest name of a graph, in bytes; with what we add it must fit into a file's name.
pub const GRAPH_NAME_MAX: usize = 200;

const PREFIX: &str = "laxity-graph.";

impl Default for Registry {
    fn default() -> Self {
        Registry::at("/dev/shm")
    }
}

impl Registry {
    /// Names in `directory`, which must exist. One on a disk works, more slowly.
    pub fn at(directory: impl Into<PathBuf>) -> Registry {
        Registry { directory: directory.into() }
    }

    /// Creates the graph that `spec` describes, under its name. Nobody sees it before it is whole. If nobody lives any
    /// more who used a graph of this name, it is replaced.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub fn create(&self, spec: &Spec) -> Result<Graph, RegistryError> {
        let name = &spec.graph().name;
        let shared = Arc::new(self.draft(spec)?);
        // Whoever finds the graph waits for this lock, and then for nothing else.
        let locked = shared.segment.lock().map_err(RegistryError::Segment)?;
        loop {
            match shared.segment.publish() {
                Ok(()) => break,
                Err(SegmentError::Exists { .. }) if self.remove_if_unused(name)? => {}
                Err(SegmentError::Exists { .. }) => return Err(RegistryError::Exists { name: name.clone() }),
                Err(error) => return Err(RegistryError::Segment(error)),
            }
        }
        join(&shared).inspect_err(|_| {
            link::remove(&shared);
            drop(locked.unlink());
        })
    }

    /// The graph called `name`, exactly.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub fn attach(&self, name: &str) -> Result<Graph, RegistryError> {
        loop {
            let shared = Arc::new(self.open(name)?);
            let locked = shared.segment.lock().map_err(RegistryError::Segment)?;
            // If the last one out was faster there may be a new one by now.
            if locked.is_named() {
                // Frees the places of the dead.
                shared.bury();
                return join(&shared);
            }
        }
    }

    /// The graph called `name`, which may still have to be created until `deadline`.
    ///
    /// # Errors
    /// [`RegistryError`]; [`RegistryError::NotFound`] if it was not.
    pub fn attach_until(&self, name: &str, deadline: Instant) -> Result<Graph, RegistryError> {
        let watch = Watch::new(&self.directory);
        let watch = watch.map_err(|error| RegistryError::System { action: "watch for the graph's name", error })?;
        loop {
            match self.attach(name) {
                Err(RegistryError::NotFound { .. }) if watch.wait(deadline) => {}
                result => return result,
            }
        }
    }

    /// Creates the graph that `spec` describes, or attaches to it if it is there already: for processes that all know
    /// it and start in any order.
    ///
    /// # Errors
    /// [`RegistryError`]; [`RegistryError::Different`] if a graph of this name is not the same.
    pub fn create_or_attach(&self, spec: &Spec) -> Result<Graph, RegistryError> {
        let name = &spec.graph().name;
        loop {
            match self.attach(name) {
                Ok(graph) if graph.spec() == spec => return Ok(graph),
                Ok(_) => return Err(RegistryError::Different { name: name.clone() }),
                Err(RegistryError::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
            match self.create(spec) {
                Err(RegistryError::Exists { .. }) => {}
                result => return result,
            }
        }
    }

    /// The names of all graphs, in order, used or left over.
    ///
    /// # Errors
    /// [`RegistryError::System`].
    pub fn names(&self) -> Result<Vec<String>, RegistryError> {
        let system = |error| RegistryError::System { action: "list the graphs", error };
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.directory).map_err(system)? {
            let file = entry.map_err(system)?.file_name();
            if let Some(name) = file.to_str().and_then(|file| file.strip_prefix(PREFIX)) {
                names.push(name.to_owned());
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Removes what nobody uses any more, and answers with the names: graphs all of whose processes were killed, or
    /// that a power cut left on a disk.
    ///
    /// # Errors
    /// [`RegistryError`]; graphs of other versions and files of other programs are left alone and are no error.
    pub fn gc(&self) -> Result<Vec<String>, RegistryError> {
        let mut removed = Vec::new();
        for name in self.names()? {
            match self.remove_if_unused(&name) {
                Ok(true) => removed.push(name),
                Ok(false) => {}
                Err(RegistryError::Segment(SegmentError::Foreign { .. } | SegmentError::Version { .. })) => {}
                Err(RegistryError::Damaged { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(removed)
    }

    /// Takes the name of the graph called `name` away, used or not: nobody finds it any more, who is attached goes on,
    /// and its memory goes with the last of them, however that ends. For whoever created it and cannot wait.
    ///
    /// # Errors
    /// [`RegistryError`]; that there is no such graph is none.
    pub fn unlink(&self, name: &str) -> Result<(), RegistryError> {
        self.remove_if(name, |_| true).map(|_| ())
    }

    /// Whether the name is free now, or was found free.
    fn remove_if_unused(&self, name: &str) -> Result<bool, RegistryError> {
        self.remove_if(name, |shared| !shared.is_in_use(None))
    }

    /// Whether the name is free now, or was found free: it is taken away if `may` says so, under the segment's lock.
    fn remove_if(&self, name: &str, may: impl Fn(&Shared) -> bool) -> Result<bool, RegistryError> {
        let shared = match self.open(name) {
            Ok(shared) => shared,
            Err(RegistryError::NotFound { .. }) => return Ok(true),
            Err(error) => return Err(error),
        };
        let locked = shared.segment.lock().map_err(RegistryError::Segment)?;
        if !may(&shared) {
            return Ok(false);
        }
        link::remove(&shared);
        locked.unlink().map_err(RegistryError::Segment)?;
        Ok(true)
    }

    /// Whether a process that lives is attached to the graph called `name`. Looking changes nothing, whereas whoever
    /// attaches to a graph that is left over removes it on the way out.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub fn is_in_use(&self, name: &str) -> Result<bool, RegistryError> {
        Ok(self.open(name)?.is_in_use(None))
    }

    /// The memory of the graph called `name`, without becoming a member.
    fn open(&self, name: &str) -> Result<Shared, RegistryError> {
        let segment = Segment::open(&self.path(name)?, FORMAT).map_err(|error| match error {
            SegmentError::NotFound { .. } => RegistryError::NotFound { name: name.to_owned() },
            error => RegistryError::Segment(error),
        })?;
        let (spec, layout) = describe(&segment, name)?;
        Ok(Shared::new(segment, layout, spec))
    }

    /// The memory of a graph in its initial state, without a name.
    fn draft(&self, spec: &Spec) -> Result<Shared, RegistryError> {
        let path = self.path(&spec.graph().name)?;
        let description = description::encode(spec);
        let too_large = || SegmentError::Memory { path: path.clone(), length: usize::MAX };
        let layout = Layout::of(spec, description.len()).ok_or_else(too_large).map_err(RegistryError::Segment)?;
        let segment = Segment::draft(&path, FORMAT, layout.total - laxity_sys::segment::HEADER);
        let segment = segment.map_err(RegistryError::Segment)?;
        segment.u64(DESCRIPTION_LENGTH).store(description.len() as u64, Ordering::Relaxed);
        segment.store_bytes(DESCRIPTION, &description);
        let identity = random::number().map_err(|error| RegistryError::System { action: "draw a number", error })?;
        segment.u64(layout.identity).store(identity, Ordering::Relaxed);
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

    fn path(&self, name: &str) -> Result<PathBuf, RegistryError> {
        let is_fit = !name.is_empty() && name.len() <= GRAPH_NAME_MAX && !name.contains(['/', '\0']);
        let error = || RegistryError::Name { name: name.to_owned() };
        is_fit.then(|| self.directory.join(format!("{PREFIX}{name}"))).ok_or_else(error)
    }

    /// Where the names are.
    pub fn directory(&self) -> &Path {
        &self.directory
    }
}

/// Reads what `segment` says of itself.
fn describe(segment: &Segment, name: &str) -> Result<(Spec, Layout), RegistryError> {
    let damaged = |reason| RegistryError::Damaged { name: name.to_owned(), reason };
    let length = usize::try_from(segment.u64(DESCRIPTION_LENGTH).load(Ordering::Relaxed)).ok();
    let end = length.and_then(|length| DESCRIPTION.checked_add(length)).filter(|&end| end <= segment.len());
    let end = end.ok_or_else(|| damaged(None))?;
    let spec = description::decode(&segment.load_bytes(DESCRIPTION..end)).map_err(|error| match error {
        DescriptionError::Malformed => damaged(None),
        DescriptionError::Spec(error) => damaged(Some(Box::new(error))),
    })?;
    match Layout::of(&spec, end - DESCRIPTION) {
        Some(layout) if layout.total == segment.len() => Ok((spec, layout)),
        _ => Err(damaged(None)),
    }
}

/// Makes this process a member, under the segment's lock.
fn join(shared: &Arc<Shared>) -> Result<Graph, RegistryError> {
    let system = |action| move |error| RegistryError::System { action, error };
    let channels = Channels::open(shared)?;
    shared.prepare_to_ring().map_err(system("make a socket to wake those who poll"))?;
    let full = || RegistryError::Full { name: shared.spec.graph().name.clone() };
    // Whoever cannot take part is seen to begin a job some nanoseconds late, which matters if its node is ended then.
    membarrier::register();
    let member = shared.take_place().ok_or_else(full)?;
    let guardian = Guardian::start(shared, member).map_err(system("start the thread that watches for deaths"))?;
    Ok(Graph::new(shared.clone(), channels, member, guardian))
}

impl fmt::Display for RegistryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RegistryError::Name { name } => write!(
                f,
                "graph name {name:?} has {} bytes; use 1 to {GRAPH_NAME_MAX} without slash and NUL",
                name.len()
            ),
            RegistryError::Exists { name } => write!(f, "graph {name}: exists and is in use; attach to it"),
            RegistryError::NotFound { name } => write!(f, "graph {name}: does not exist; create it first"),
            RegistryError::Different { name } => {
                write!(f, "graph {name}: exists but is another graph; use one description in all processes")
            }
            RegistryError::Damaged { name, reason: None } => {
                write!(f, "graph {name}: its memory does not describe a graph; remove it")
            }
            RegistryError::Damaged { name, reason: Some(reason) } => {
                write!(f, "graph {name}: its memory describes none that can be: {reason}")
            }
            RegistryError::Full { name } => {
                write!(f, "graph {name}: {MEMBERS_MAX} processes are attached, which is all it takes")
            }
            RegistryError::Channel { from, to, kind, error } => write!(f, "edge {from} -> {to} ({kind}): {error}"),
            RegistryError::Segment(error) => write!(f, "{error}"),
            RegistryError::System { action, error } => write!(f, "cannot {action}: {error}"),
        }
    }
}

impl From<SegmentError> for RegistryError {
    fn from(error: SegmentError) -> Self {
        RegistryError::Segment(error)
    }
}

impl std::error::Error for RegistryError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RegistryError::Channel { error, .. } => Some(error),
            RegistryError::Segment(error) => Some(error),
            RegistryError::System { error, .. } => Some(error),
            RegistryError::Damaged { reason, .. } => reason.as_deref().map(|reason| reason as _),
            _ => None,
        }
    }
}
