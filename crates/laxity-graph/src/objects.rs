//! Data objects in shared memory, read and written in place.
//!
//! ```text
//! object     job j uses the replica       j mod N
//! delay      job j writes the slot        j mod (M + N),  and reads the slots (j - k) mod (M + N), k <= M
//! ```
//!
//! The edges that follow from the uses of an object keep its users apart ([`Pipeline`](crate::Pipeline)).
#![allow(unsafe_code, reason = "objects are slices of shared memory; each block argues its case")]

use std::fmt;

use bytemuck::Pod;
use laxity_sys::segment::Segment;

use crate::data_object::Access;
use crate::layout::{Layout, ObjectLayout};
use crate::node::Job;
use crate::shared::Shared;
use crate::spec::Spec;

/// Which object: by name, or, quicker, by its position in [`Spec::objects`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectKey<'a> {
    /// By name.
    Name(&'a str),
    /// By position.
    Position(usize),
}

/// Why a job may not use an object so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ObjectError {
    /// The graph has no such object.
    #[error("node {node}: the graph has no object {object}; names match exactly")]
    NoSuchObject {
        /// The node.
        node: String,
        /// The object: its name or position.
        object: String,
    },
    /// Its node does not say that it does this.
    #[error("node {node} {}", not_declared(object, *access))]
    NotDeclared {
        /// The node.
        node: String,
        /// The object.
        object: String,
        /// What it does not say.
        access: Access,
    },
    /// An object that the node changes, and that is to be got as what it writes.
    #[error("node {node} changes object {object}; get it as what it writes, and read that")]
    Changed {
        /// The node.
        node: String,
        /// The object.
        object: String,
    },
    /// Asked for twice at the same time.
    #[error("node {node}: object {object} is asked for twice; ask for it once")]
    Twice {
        /// The node.
        node: String,
        /// The object.
        object: String,
    },
    /// It is no whole number of values of the type, or less aligned than these.
    #[error(
        "object {object}: its {bytes} bytes are no values of {name}, {size} bytes each; make them a multiple, of a type \
         that a cache line is aligned for"
    )]
    Type {
        /// The object.
        object: String,
        /// Its size.
        bytes: usize,
        /// The type.
        name: &'static str,
        /// The size of one value.
        size: usize,
    },
}

/// The objects that a node uses.
#[derive(Debug)]
pub(crate) struct ObjectPorts {
    node: usize,
    ports: Vec<Port>,
}

/// One use of an object.
#[derive(Clone, Copy, Debug)]
struct Port {
    object: usize,
    access: Access,
    layout: ObjectLayout,
    bytes: usize,
}

/// The objects that a job only reads.
#[derive(Clone, Copy, Debug)]
pub struct ObjectInputs<'a> {
    view: View<'a>,
}

/// The objects that a job writes or changes.
#[derive(Debug)]
pub struct ObjectOutputs<'a> {
    view: View<'a>,
}

/// What one job of a node uses.
#[derive(Clone, Copy, Debug)]
struct View<'a> {
    shared: &'a Shared,
    ports: &'a ObjectPorts,
    job: u64,
}

/// Writes what delays contain for the jobs before the first.
pub(crate) fn initialize(segment: &Segment, layout: &Layout, spec: &Spec) {
    for (position, object) in spec.objects().iter().enumerate() {
        if !object.initial.is_empty() {
            // The places of the jobs -1 to -M are those that job 0 finds as many jobs ago.
            (1..=object.depth).for_each(|ago| {
                segment.store_bytes(layout.object(position).place(0, ago), &object.initial);
            });
        }
    }
}

impl ObjectPorts {
    pub fn new(shared: &Shared, node: usize) -> ObjectPorts {
        let mut ports = Vec::new();
        for (position, object) in shared.spec.objects().iter().enumerate() {
            for used in object.uses.iter().filter(|used| used.node == node) {
                let layout = shared.layout.object(position);
                ports.push(Port { object: position, access: used.access, layout, bytes: object.bytes });
            }
        }
        ObjectPorts { node, ports }
    }

    /// What the node's job `job` uses, which is begun and not complete.
    pub fn of_job<'a>(&'a mut self, shared: &'a Shared, job: u64) -> (ObjectInputs<'a>, ObjectOutputs<'a>) {
        let view = View { shared, ports: self, job };
        (ObjectInputs { view }, ObjectOutputs { view })
    }

    /// What it only reads.
    pub fn inputs_of<'a>(&'a self, shared: &'a Shared, job: u64) -> ObjectInputs<'a> {
        ObjectInputs { view: View { shared, ports: self, job } }
    }
}

impl Port {
    fn place(&self, job: u64) -> usize {
        let ago = if let Access::Read { ago } = self.access { ago } else { 0 };
        self.layout.place(job, ago)
    }
}

impl<'a> View<'a> {
    /// The use of an object that `is_wanted`; `wanted` is what the caller wants, for messages.
    fn find(
        &self,
        key: ObjectKey<'_>,
        wanted: Access,
        is_wanted: impl Fn(Access) -> bool,
    ) -> Result<&'a Port, ObjectError> {
        let objects = self.shared.spec.objects();
        let is_it = |object: usize| match key {
            ObjectKey::Name(name) => objects[object].name == name,
            ObjectKey::Position(position) => object == position,
        };
        let found = self.ports.ports.iter().find(|port| is_it(port.object) && is_wanted(port.access));
        found.ok_or_else(|| {
            let node = self.node();
            match (0..objects.len()).find(|&object| is_it(object)) {
                Some(object) => ObjectError::NotDeclared { node, object: objects[object].name.clone(), access: wanted },
                None => ObjectError::NoSuchObject { node, object: key.to_string() },
            }
        })
    }

    fn writable(&self, key: ObjectKey<'_>) -> Result<&'a Port, ObjectError> {
        self.find(key, Access::Write, |access| matches!(access, Access::Write | Access::Change))
    }

    /// The bytes behind `port`, which is only read.
    fn bytes(&self, port: &Port) -> &'a [u8] {
        assert!(matches!(port.access, Access::Read { .. }), "what is written is lent exclusively");
        // SAFETY: no thread writes the place while the job lasts, which `'a` does not outlive.
        // One node writes the object, and the edges were checked to be those that follow from its uses, also if another
        // process described them. Let this be job j.
        // - In jobs of index j, each node that writes or changes the object goes before this node, or after it.
        // - All other users of the object come after its writer, whose job j began when all jobs j - N of the others
        //   were complete, and whose job j + N begins when all their jobs j are: by feedback tokens. So no job of
        //   another index that uses the same replica, j mod N, is there together with this one.
        // - A value of k jobs ago was complete when this job began, by the tokens of the delayed edge, and its slot is
        //   written again by job j - k + M + N of the writer, which waits for this one, or for a later one: k <= M.
        // Tokens are seen with acquire order. Only one thread in all processes has claimed a node, as for messages, and
        // processes write to a graph through this library only. Within this process no place that a job reads is one
        // that it writes: a node uses an object in one way in a job, and slots of a delay differ.
        unsafe { self.shared.segment.bytes(port.place(self.job), port.bytes) }
    }

    /// The bytes behind `port`, which is written or changed.
    ///
    /// # Safety
    /// No other reference within this process leads to them while the result lives.
    unsafe fn bytes_mut(&self, port: &Port) -> &'a mut [u8] {
        assert!(!matches!(port.access, Access::Read { .. }), "what is read is not written");
        // SAFETY: no other thread reads or writes the place while the job lasts: as in `bytes`, whose reasons hold for
        // readers as for writers; a node that reads the object in a job of this index goes before this node or after it.
        // The slot that job i of a delay's writer writes is read by jobs i to i + M of others, after it, and was read
        // by jobs up to i - N, which are complete. The caller vouches for this process.
        unsafe { self.shared.segment.bytes_mut(port.place(self.job), port.bytes) }
    }

    fn node(&self) -> String {
        self.shared.name(self.ports.node)
    }

    fn name(&self, port: &Port) -> String {
        self.shared.spec.objects()[port.object].name.clone()
    }

    fn mistyped<T>(&self, port: &Port) -> ObjectError {
        let (bytes, name, size) = (port.bytes, std::any::type_name::<T>(), size_of::<T>());
        ObjectError::Type { object: self.name(port), bytes, name, size }
    }
}

impl<'a> ObjectInputs<'a> {
    /// An object that the node reads.
    ///
    /// # Errors
    /// [`ObjectError`].
    pub fn get<'k>(&self, object: impl Into<ObjectKey<'k>>) -> Result<&'a [u8], ObjectError> {
        self.past(object, 0)
    }

    /// What was in a delay `ago` jobs ago, as the node declares that it reads it.
    ///
    /// # Errors
    /// [`ObjectError`].
    pub fn past<'k>(&self, object: impl Into<ObjectKey<'k>>, ago: u32) -> Result<&'a [u8], ObjectError> {
        Ok(self.view.bytes(self.find(object.into(), ago)?))
    }

    /// As [`ObjectInputs::past`], as values of a type: as many as make up the object.
    ///
    /// # Errors
    /// [`ObjectError`].
    pub fn past_as<'k, T: Pod>(&self, object: impl Into<ObjectKey<'k>>, ago: u32) -> Result<&'a [T], ObjectError> {
        let port = self.find(object.into(), ago)?;
        bytemuck::try_cast_slice(self.view.bytes(port)).map_err(|_| self.view.mistyped::<T>(port))
    }

    fn find(&self, object: ObjectKey<'_>, ago: u32) -> Result<&'a Port, ObjectError> {
        let wanted = Access::Read { ago };
        let port =
            self.view.find(object, wanted, |access| access == wanted || (ago == 0 && access == Access::Change))?;
        if port.access == Access::Change {
            return Err(ObjectError::Changed { node: self.view.node(), object: self.view.name(port) });
        }
        Ok(port)
    }
}

impl<'a> ObjectOutputs<'a> {
    /// An object that the node writes, in which anything may be, or changes.
    ///
    /// # Errors
    /// [`ObjectError`].
    pub fn get<'k>(&mut self, object: impl Into<ObjectKey<'k>>) -> Result<&mut [u8], ObjectError> {
        self.get_disjoint([object.into()]).map(|[bytes]| bytes)
    }

    /// As [`ObjectOutputs::get`], as values of a type: as many as make up the object.
    ///
    /// # Errors
    /// [`ObjectError`].
    pub fn get_as<'k, T: Pod>(&mut self, object: impl Into<ObjectKey<'k>>) -> Result<&mut [T], ObjectError> {
        ObjectOutputs { view: self.view }.into_values(object)
    }

    /// Several objects at the same time.
    ///
    /// # Errors
    /// [`ObjectError`].
    pub fn get_disjoint<'k, K: Into<ObjectKey<'k>>, const COUNT: usize>(
        &mut self,
        objects: [K; COUNT],
    ) -> Result<[&mut [u8]; COUNT], ObjectError> {
        ObjectOutputs { view: self.view }.into_disjoint(objects)
    }

    /// All objects that the node writes or changes, each once, until the job ends: by position in [`Spec::objects`].
    pub fn into_all(self) -> impl Iterator<Item = (usize, &'a mut [u8])> {
        let ports = self.view.ports.ports.iter().filter(|port| !matches!(port.access, Access::Read { .. }));
        // SAFETY: a node writes or changes an object at most once (`PipelineError::UsedTwice`), so that these differ, and
        // within this process these outputs are the one way to them: they come of an exclusive borrow of the job, are not
        // `Clone`, and are consumed here.
        ports.map(move |port| (port.object, unsafe { self.view.bytes_mut(port) }))
    }

    /// As [`ObjectOutputs::get`], for the only object that is written.
    fn into_object<'k>(self, object: impl Into<ObjectKey<'k>>) -> Result<&'a mut [u8], ObjectError> {
        self.into_disjoint([object.into()]).map(|[bytes]| bytes)
    }

    fn into_values<'k, T: Pod>(self, object: impl Into<ObjectKey<'k>>) -> Result<&'a mut [T], ObjectError> {
        let (view, key) = (self.view, object.into());
        let port = view.writable(key)?;
        bytemuck::try_cast_slice_mut(self.into_object(key)?).map_err(|_| view.mistyped::<T>(port))
    }

    fn into_disjoint<'k, K: Into<ObjectKey<'k>>, const COUNT: usize>(
        self,
        objects: [K; COUNT],
    ) -> Result<[&'a mut [u8]; COUNT], ObjectError> {
        let mut ports: [Option<&Port>; COUNT] = [None; COUNT];
        for (index, object) in objects.into_iter().enumerate() {
            let port = self.view.writable(object.into())?;
            if ports[..index].iter().flatten().any(|other| other.object == port.object) {
                return Err(ObjectError::Twice { node: self.view.node(), object: self.view.name(port) });
            }
            ports[index] = Some(port);
        }
        // SAFETY: the objects differ (checked above), and within this process these outputs are the one way to them: they
        // come of an exclusive borrow of the job, are not `Clone`, and are consumed here, or borrowed exclusively.
        Ok(ports.map(|port| unsafe { self.view.bytes_mut(port.expect("each was found")) }))
    }
}

impl Job<'_> {
    /// An object that its node reads. It is out of reach once the job is complete:
    ///
    /// ```compile_fail,E0505
    /// fn kept(job: laxity_graph::Job<'_>) -> u8 {
    ///     let image = job.read("image").unwrap();
    ///     job.complete();
    ///     image[0]
    /// }
    /// ```
    ///
    /// # Errors
    /// [`ObjectError`].
    pub fn read<'k>(&self, object: impl Into<ObjectKey<'k>>) -> Result<&[u8], ObjectError> {
        self.read_past(object, 0)
    }

    /// What was in a delay `ago` jobs ago, as its node declares that it reads it.
    ///
    /// # Errors
    /// [`ObjectError`].
    pub fn read_past<'k>(&self, object: impl Into<ObjectKey<'k>>, ago: u32) -> Result<&[u8], ObjectError> {
        self.object_inputs().past(object, ago)
    }

    /// As [`Job::read`], as values of a type: as many as make up the object.
    ///
    /// # Errors
    /// [`ObjectError`].
    pub fn read_as<'k, T: Pod>(&self, object: impl Into<ObjectKey<'k>>) -> Result<&[T], ObjectError> {
        self.object_inputs().past_as(object, 0)
    }

    /// An object that its node writes, in which anything may be, or changes: that is how to read it, too.
    ///
    /// # Errors
    /// [`ObjectError`].
    pub fn write<'k>(&mut self, object: impl Into<ObjectKey<'k>>) -> Result<&mut [u8], ObjectError> {
        self.objects().1.into_object(object)
    }

    /// As [`Job::write`], as values of a type: as many as make up the object.
    ///
    /// # Errors
    /// [`ObjectError`].
    pub fn write_as<'k, T: Pod>(&mut self, object: impl Into<ObjectKey<'k>>) -> Result<&mut [T], ObjectError> {
        self.objects().1.into_values(object)
    }
}

impl<'a> From<&'a str> for ObjectKey<'a> {
    fn from(name: &'a str) -> Self {
        ObjectKey::Name(name)
    }
}

impl<'a> From<&'a String> for ObjectKey<'a> {
    fn from(name: &'a String) -> Self {
        ObjectKey::Name(name)
    }
}

impl From<usize> for ObjectKey<'_> {
    fn from(position: usize) -> Self {
        ObjectKey::Position(position)
    }
}

impl fmt::Display for ObjectKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ObjectKey::Name(name) => f.write_str(name),
            ObjectKey::Position(position) => write!(f, "{position}"),
        }
    }
}

/// What a node would have to declare.
fn not_declared(object: &str, access: Access) -> String {
    match access {
        Access::Read { ago: 0 } => format!("does not read object {object}; declare it as an input of the node"),
        Access::Read { ago } => format!("does not read object {object} of {ago} jobs ago; declare that it does"),
        Access::Write | Access::Change => {
            format!("does not write object {object}; declare it as an output or inout of the node")
        }
    }
}
