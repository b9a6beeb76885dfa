//! Names of data objects in a program: what a graph answers with when it is given one.

use std::fmt;

use crate::exemplar::Exemplar;

/// A data object of a graph: memory of which each job of the graph sees its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object<E> {
    pub(crate) key: Key,
    pub(crate) exemplar: E,
}

/// A delay of a graph: an object of which a number of slots is kept. Slot 0 is that of the current job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay<E> {
    current: Object<E>,
}

/// A slot of a delay (`vxGetReferenceFromDelay`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot<E> {
    object: Object<E>,
    ago: u32,
}

/// Which object of which graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    /// Tells graphs of this process apart.
    pub graph: u64,
    /// Its position among the objects of the graph.
    pub position: usize,
}

/// What a job can read: an object, or a slot of a delay.
pub trait Readable {
    /// What it is made after.
    type Exemplar: Exemplar;

    /// The slot, 0 for an object.
    fn slot(&self) -> Slot<Self::Exemplar>;
}

/// What a job can write: an object, or the current slot of a delay.
pub trait Writable {
    /// What it is made after.
    type Exemplar: Exemplar;

    /// As an object.
    fn current(&self) -> Object<Self::Exemplar>;
}

impl<E: Exemplar> Object<E> {
    /// What it is made after.
    pub fn exemplar(&self) -> E {
        self.exemplar
    }
}

impl<E: Exemplar> Delay<E> {
    pub(crate) fn of(current: Object<E>) -> Self {
        Delay { current }
    }

    /// What was written so many jobs ago; 0 is what is written in this one.
    pub fn ago(&self, jobs: u32) -> Slot<E> {
        Slot { object: self.current, ago: jobs }
    }

    /// What it is made after.
    pub fn exemplar(&self) -> E {
        self.current.exemplar
    }
}

impl<E: Exemplar> Slot<E> {
    pub(crate) fn key(&self) -> Key {
        self.object.key
    }

    pub(crate) fn exemplar(&self) -> E {
        self.object.exemplar
    }

    pub(crate) fn jobs_ago(&self) -> u32 {
        self.ago
    }
}

impl<E: Exemplar> Readable for Object<E> {
    type Exemplar = E;

    fn slot(&self) -> Slot<E> {
        Slot { object: *self, ago: 0 }
    }
}

impl<E: Exemplar> Readable for Delay<E> {
    type Exemplar = E;

    fn slot(&self) -> Slot<E> {
        self.ago(0)
    }
}

impl<E: Exemplar> Readable for Slot<E> {
    type Exemplar = E;

    fn slot(&self) -> Slot<E> {
        *self
    }
}

impl<E: Exemplar> Writable for Object<E> {
    type Exemplar = E;

    fn current(&self) -> Object<E> {
        *self
    }
}

impl<E: Exemplar> Writable for Delay<E> {
    type Exemplar = E;

    fn current(&self) -> Object<E> {
        self.current
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.position)
    }
}
