//! Crashes of code that is called: a thread that gets SIGSEGV or a signal like it while it is watched stays where it is, and
//! the other threads learn of it and can end the process properly.
//!
//! ```text
//!             the code crashes                     another thread
//!  (watched) ------------------> (parked for ever) <-------------- Crash::signal
//! ```

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

/// Signals of crashes.
const SIGNALS: [c_int; 5] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGABRT];

/// Whether watched code crashed, and how.
#[derive(Debug, Default)]
pub struct Crash {
    signal: AtomicI32,
    address: AtomicUsize,
}

thread_local! {
    /// What learns of a crash of this thread; null while it is not watched. It has no destructor and is initialized by the
    /// loader, so that a signal handler may read it.
    static WATCH: Cell<*const Crash> = const { Cell::new(ptr::null()) };
}

/// What the process did at these signals before.
static BEFORE: OnceLock<[libc::sigaction; SIGNALS.len()]> = OnceLock::new();

impl Crash {
    /// Does `call`; a crash in it parks this thread for ever, and is known to other threads that have `self`.
    pub fn watch<R>(&self, call: impl FnOnce() -> R) -> R {
        /// Also at the end of a panic.
        struct Unwatch(*const Crash);
        impl Drop for Unwatch {
            fn drop(&mut self) {
                WATCH.set(self.0);
            }
        }
        install();
        let _unwatch = Unwatch(WATCH.replace(ptr::from_ref(self)));
        call()
    }

    /// The signal that the code got, in words, if it crashed.
    pub fn signal(&self) -> Option<String> {
        let signal = self.signal.load(Ordering::Acquire);
        let address = self.address.load(Ordering::Relaxed);
        let place = || format!("at address {address:#x}");
        match signal {
            0 => None,
            libc::SIGSEGV => Some(format!("SIGSEGV (memory that is not its own) {}", place())),
            libc::SIGBUS => Some(format!("SIGBUS (memory that is not there) {}", place())),
            libc::SIGFPE => Some(format!("SIGFPE (a division by zero) {}", place())),
            libc::SIGILL => Some(format!("SIGILL (no instruction) {}", place())),
            libc::SIGABRT => Some("SIGABRT (it called abort, or let an exception escape)".to_owned()),
            other => Some(format!("signal {other}")),
        }
    }
}

/// Has the handler in place, once in a process.
fn install() {
    BEFORE.get_or_init(|| {
        SIGNALS.map(|signal| {
            let mut before = MaybeUninit::<libc::sigaction>::zeroed();
            // SAFETY: all-zero is a valid `sigaction`.
            let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
            action.sa_sigaction = handle as *const () as usize;
            // On the alternative stack that Rust gives to its threads: the stack itself may be what is used up.
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            // SAFETY: both point to structs of ours, and the handler does only what a handler may.
            unsafe {
                libc::sigaction(signal, &raw const action, before.as_mut_ptr());
                before.assume_init()
            }
        })
    });
}

/// The handler. Calls nothing but what POSIX allows in one.
extern "C" fn handle(signal: c_int, info: *mut libc::siginfo_t, _context: *mut c_void) {
    let watch = WATCH.get();
    if watch.is_null() {
        return hand_back(signal);
    }
    // SAFETY: `watch` set it, and takes it back before the crash it points to can go.
    let crash = unsafe { &*watch };
    // SAFETY: Linux gives a handler with `SA_SIGINFO` a valid one.
    let address = unsafe { (*info).si_addr() } as usize;
    crash.address.store(address, Ordering::Relaxed);
    crash.signal.store(signal, Ordering::Release);
    loop {
        // SAFETY: has no arguments, and suspends the thread until a signal.
        unsafe { libc::pause() };
    }
}

/// Not for us: what the process did at this signal before is in place again, and the instruction does it once more.
fn hand_back(signal: c_int) {
    let place = SIGNALS.iter().position(|known| *known == signal);
    match (BEFORE.get(), place) {
        (Some(before), Some(place)) => {
            // SAFETY: the action is one that the process had.
            unsafe { libc::sigaction(signal, &raw const before[place], ptr::null_mut()) };
        }
        _ => {
            // SAFETY: takes numbers only.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
    }
    if signal == libc::SIGABRT {
        // It comes from a call and not from an instruction that would be repeated.
        // SAFETY: takes a number only.
        unsafe { libc::raise(signal) };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_thread_that_crashes_is_parked_and_the_others_learn_how() {
        let crash = Arc::new(Crash::default());
        let watched = Arc::clone(&crash);
        let thread = std::thread::spawn(move || {
            watched.watch(|| {
                let nowhere = std::hint::black_box(16 as *const u8);
                // SAFETY: none: it is the crash that is tested.
                unsafe { nowhere.read_volatile() }
            })
        });
        while crash.signal().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(crash.signal().expect("it crashed"), "SIGSEGV (memory that is not its own) at address 0x10");
        assert!(!thread.is_finished());
    }

    #[test]
    fn code_that_returns_is_not_watched_any_more() {
        let crash = Crash::default();
        assert_eq!(crash.watch(|| 5), 5);
        assert!(WATCH.get().is_null() && crash.signal().is_none());
    }
}
