//! A stack for signal handlers, which the end of a thread's own stack calls for.
//!
//! Rust gives one to each of its threads, but only if its `main` started the process, so not in programs in C and Python.

use std::cell::RefCell;
use std::ptr;

/// The least that a handler gets, in bytes, beyond what Linux needs to call it.
const ROOM: usize = 32 << 10;
/// `AT_MINSIGSTKSZ` of Linux: the number of an entry in the auxiliary vector.
const LEAST_STACK: libc::c_ulong = 51;

thread_local! {
    static OWN: RefCell<Option<SignalStack>> = const { RefCell::new(None) };
}

/// The memory of the calling thread's, from [`provide`] to its end.
struct SignalStack {
    /// Linux uses it until the thread has another one, or none.
    _memory: Box<[u8]>,
}

/// The calling thread has an alternative stack from now on, if it had none, until it ends.
pub(crate) fn provide() {
    // A thread that ends calls no more code. Without memory, or where Linux refuses, the end of the stack ends the process.
    let _ = OWN.try_with(|own| {
        if own.borrow().is_none() && !is_there() {
            *own.borrow_mut() = SignalStack::new();
        }
    });
}

/// Whether the calling thread has one, of whatever origin.
fn is_there() -> bool {
    // SAFETY: all-zero is valid, and the present stack is written only.
    let (result, present) = unsafe {
        let mut present: libc::stack_t = std::mem::zeroed();
        (libc::sigaltstack(ptr::null(), &raw mut present), present)
    };
    result == 0 && present.ss_flags & libc::SS_DISABLE == 0
}

impl SignalStack {
    fn new() -> Option<SignalStack> {
        // Registers of vectors make it more than a constant of the C library says. SAFETY: takes a number.
        let least = unsafe { libc::getauxval(LEAST_STACK) } as usize;
        let mut memory = vec![0; ROOM + least].into_boxed_slice();
        let stack = libc::stack_t { ss_sp: memory.as_mut_ptr().cast(), ss_flags: 0, ss_size: memory.len() };
        // SAFETY: the memory is the stack's alone until this is dropped, which takes it from Linux first.
        let result = unsafe { libc::sigaltstack(&raw const stack, ptr::null_mut()) };
        (result == 0).then_some(SignalStack { _memory: memory })
    }
}

impl Drop for SignalStack {
    fn drop(&mut self) {
        disable();
    }
}

/// The calling thread has none any more.
fn disable() {
    let none = libc::stack_t { ss_sp: ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
    // SAFETY: no handler runs on it: this thread is here.
    unsafe { libc::sigaltstack(&raw const none, ptr::null_mut()) };
}

/// As in a program without Rust's `main`.
#[cfg(test)]
pub(crate) fn take_away() {
    disable();
    assert!(!is_there());
}
