//! Linux's fair class: what it promises, against random systems and against a schedule computed anew.

#[path = "../common/mod.rs"]
mod common;
mod promises;
mod reference;
mod systems;
