//! Whether this process began with an open standard output.
//!
//! Rust opens `/dev/null` in place of a standard output that is closed before `main` begins, so that what is printed is lost
//! without an error. Functions of `.init_array` run sooner, and this one remembers what it saw.

use std::sync::atomic::{AtomicBool, Ordering};

static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

extern "C" fn look() {
    // SAFETY: asks about a number that may be no descriptor; that is an error, and the answer.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    WAS_CLOSED.store(flags == -1, Ordering::Relaxed);
}

// SAFETY: `.init_array` holds pointers to functions that the loader calls before `main`; a C function without arguments may
// ignore those that it passes. `look` makes one system call and needs nothing that Rust sets up.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = look;

/// Whether standard output was closed when this process, or the library that this is part of, was loaded.
pub fn was_closed() -> bool {
    WAS_CLOSED.load(Ordering::Relaxed)
}
