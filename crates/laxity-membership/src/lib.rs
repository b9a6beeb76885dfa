//! Membership in named shared memory: what live graphs and arbitrations of GPUs have in common.
//!
//! ```text
//!             publish                              the last member leaves
//! (draft) --------------> [named, with members] ---------------------------> (gone)
//!    |                       |  ^        |                                     ^
//!    | its maker dies        +--+        | all members die                     | gc, or the name is wanted again
//!    v                 attach, leave,    v                                     |
//! (gone)                 one dies     [left over] -----------------------------+
//!                                        |
//!                                        +--- attach ---> [named, with members]
//! ```
//!
//! [`NameTable`] finds, publishes and removes such memory in a directory. Each process that attaches takes a slot in it, one
//! of [`Members`], and keeps it as long as its [`Membership`]. One of its threads holds the slot's liveness word, which
//! Linux marks if the process dies, and waits on the words of all others. The survivors reap what the dead left, each
//! [`Kind`] of memory in its own way. Decisions 13 and 34 have the reasons.
//!
//! The memory begins with the members. The contents of a kind begin at [`CONTENTS`].
#![forbid(unsafe_code)]

mod details;
mod error;
mod guardian;
mod home;
mod kind;
mod members;
mod membership;
mod name_table;

pub use error::{Cause, RegistryError};
pub use home::Home;
pub use kind::{Kind, Reaped};
pub use members::{CONTENTS, Dead, MEMBERS_MAX, MemberId, Members, Standing};
pub use membership::{Joined, Membership};
pub use name_table::{NAME_MAX, NameTable};
