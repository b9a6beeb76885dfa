//! Bytes that a user keeps with a node or an edge: what the graph itself knows nothing of, such as the parameters of a
//! camera, for every process that is attached.
//!
//! ```text
//! version v      the value is in copy v mod 2; a writer fills the other one, and then makes the version v + 1
//! ```
//!
//! Readers take no lock. A writer that is killed has not touched the value, and the next one begins with the same copy;
//! writers keep each other out by the segment's lock, which Linux releases when its holder dies.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use laxity_sys::segment::SegmentError;

use crate::graph::Graph;
use crate::layout::UserDataLayout;
use crate::shared::Shared;

/// The bytes that a user keeps with a node or an edge: as many as [`Spec::with_node_data`](crate::Spec::with_node_data)
/// or [`Spec::with_edge_data`](crate::Spec::with_edge_data) said, at first zeros.
///
/// Any process that is attached may read and write at any time, with or without the node. A reader gets one value as it
/// was written, never parts of two, and does not wait: if it is overtaken by a writer it reads again. Writers wait for
/// each other, and for processes that attach or leave. It is not for data of jobs: these have messages and objects.
#[derive(Clone, Copy, Debug)]
pub struct UserData<'a> {
    graph: &'a Graph,
    place: Place,
    layout: UserDataLayout,
}

/// What user data belongs to.
#[derive(Clone, Copy, Debug)]
enum Place {
    Node(usize),
    Edge(usize),
}

/// Why user data is not read or written.
#[derive(Debug, thiserror::Error)]
pub enum UserDataError {
    /// Another number of bytes than there are.
    #[error("{of}: {given} bytes for its {bytes} bytes of user data; give as many, or describe the graph with more")]
    Length {
        /// The node or edge.
        of: String,
        /// How many there are.
        bytes: usize,
        /// How many were given.
        given: usize,
    },
    /// Writing: this process was forked from the one that attached, which has the same lock.
    #[error("this process was forked from the one that attached to the graph; attach here")]
    Forked,
    /// The lock that writers take.
    #[error(transparent)]
    Lock(SegmentError),
}

impl Graph {
    /// What users keep with the node at `node`. Panics if there is no such node.
    pub fn node_data(&self, node: usize) -> UserData<'_> {
        UserData { graph: self, place: Place::Node(node), layout: self.shared().layout.node_data(node) }
    }

    /// What users keep with the edge at `edge` of [`Spec::graph`](crate::Spec::graph). Panics if there is no such edge.
    pub fn edge_data(&self, edge: usize) -> UserData<'_> {
        UserData { graph: self, place: Place::Edge(edge), layout: self.shared().layout.edge_data(edge) }
    }
}

impl UserData<'_> {
    /// How many bytes there are.
    pub fn len(&self) -> usize {
        self.layout.bytes
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.layout.bytes == 0
    }

    /// How often it was written.
    pub fn version(&self) -> u64 {
        if self.is_empty() { 0 } else { self.version_word().load(Ordering::Acquire) }
    }

    /// The value.
    pub fn read(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len()];
        self.read_any(&mut bytes);
        bytes
    }

    /// Copies the value to `bytes`, which is as long. Answers with its version.
    ///
    /// # Errors
    /// [`UserDataError::Length`].
    pub fn read_into(&self, bytes: &mut [u8]) -> Result<u64, UserDataError> {
        self.check_length(bytes.len())?;
        Ok(self.read_any(bytes))
    }

    /// Replaces the value by `bytes`, which is as long.
    ///
    /// # Errors
    /// [`UserDataError`]; the value is then as it was.
    pub fn write(&self, bytes: &[u8]) -> Result<(), UserDataError> {
        self.write_where(bytes, |_| true).map(|_| ())
    }

    /// Replaces the value by `bytes`, which is as long, unless it was replaced since `version`: for new values that
    /// are computed from the old one. Answers whether it was replaced.
    ///
    /// # Errors
    /// [`UserDataError`]; the value is then as it was.
    pub fn write_if(&self, version: u64, bytes: &[u8]) -> Result<bool, UserDataError> {
        self.write_where(bytes, |current| current == version)
    }

    fn read_any(&self, bytes: &mut [u8]) -> u64 {
        if self.is_empty() {
            return 0;
        }
        let version = self.version_word();
        loop {
            let before = version.load(Ordering::Acquire);
            for (word, bytes) in self.copy_of(before).iter().zip(bytes.chunks_mut(8)) {
                bytes.copy_from_slice(&word.load(Ordering::Relaxed).to_ne_bytes()[..bytes.len()]);
            }
            // If one of these words is of the writer after next, the fence pairs with that writer's, and the version is
            // seen that it had seen, which is not `before` any more.
            fence(Ordering::Acquire);
            if version.load(Ordering::Relaxed) == before {
                return before;
            }
        }
    }

    fn write_where(&self, bytes: &[u8], may: impl FnOnce(u64) -> bool) -> Result<bool, UserDataError> {
        self.check_length(bytes.len())?;
        if self.is_empty() {
            return Ok(may(0));
        }
        if !self.graph.is_ours() {
            return Err(UserDataError::Forked);
        }
        let _locked = self.shared().segment.lock().map_err(UserDataError::Lock)?;
        let version = self.version_word();
        let current = version.load(Ordering::Acquire);
        if !may(current) {
            return Ok(false);
        }
        // Before the first of the following: see `read_any`.
        fence(Ordering::Release);
        for (word, bytes) in self.copy_of(current.wrapping_add(1)).iter().zip(bytes.chunks(8)) {
            let mut value = [0; 8];
            value[..bytes.len()].copy_from_slice(bytes);
            word.store(u64::from_ne_bytes(value), Ordering::Relaxed);
        }
        version.store(current.wrapping_add(1), Ordering::Release);
        Ok(true)
    }

    /// Whether the value is so long, as [`UserData::read_into`] demands.
    ///
    /// # Errors
    /// [`UserDataError::Length`].
    pub fn check_length(&self, given: usize) -> Result<(), UserDataError> {
        let bytes = self.len();
        if given == bytes { Ok(()) } else { Err(UserDataError::Length { of: self.owner(), bytes, given }) }
    }

    /// What it belongs to, as messages call it.
    fn owner(&self) -> String {
        match self.place {
            Place::Node(node) => format!("node {}", self.shared().name(node)),
            Place::Edge(edge) => {
                let (from, to) = self.shared().ends(edge);
                format!("edge {from} -> {to}")
            }
        }
    }

    fn shared(&self) -> &Shared {
        self.graph.shared()
    }

    fn version_word(&self) -> &AtomicU64 {
        self.shared().segment.u64(self.layout.version)
    }

    /// The words of the value of a version.
    fn copy_of(&self, version: u64) -> &[AtomicU64] {
        self.shared().segment.u64s(self.layout.copy_of(version), self.layout.words())
    }
}
