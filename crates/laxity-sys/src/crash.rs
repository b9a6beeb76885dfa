//! Code that is called and does not return: a thread that crashes while it is watched stays where it is, and the other threads
//! learn of it and can end the process properly. The same holds for one that code leaves by an exception, by `pthread_exit`
//! or by `exit`.
//!
//! ```text
//!             SIGSEGV, SIGABRT, ...: handle
//!             unwinding: Watched::drop             another thread
//!  (watched) ---------------------> (parked for ever) <-------------- Crash::end
//!             exit: at_exit                   | let_exit_go_on
//!                                             '----------------> the process ends
//! ```

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::signal_stack;

/// Signals of crashes.
const SIGNALS: [c_int; 5] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGABRT];

/// The thread was unwound through the frame that called the code.
const UNWOUND: c_int = -1;
/// The code called `exit`.
const EXITED: c_int = -2;

/// Until a thread in `exit` looks whether it may go on.
const LOOK: Duration = Duration::from_millis(1);

/// Whether watched code ended without returning, and how.
#[derive(Debug, Default)]
pub struct Crash {
    /// The number of a signal, [`UNWOUND`] or [`EXITED`]; 0 before.
    end: AtomicI32,
    address: AtomicUsize,
}

thread_local! {
    /// What learns of a crash of this thread; null while it is not watched. It has no destructor and is initialized by the
    /// loader, so that a signal handler may read it.
    static WATCH: Cell<*const Crash> = const { Cell::new(ptr::null()) };
}

/// What the process did at these signals before.
static BEFORE: OnceLock<[libc::sigaction; SIGNALS.len()]> = OnceLock::new();

/// Whether a thread that was watched is in `exit`.
static IS_EXITING: AtomicBool = AtomicBool::new(false);
/// Whether it may go on.
static MAY_EXIT: AtomicBool = AtomicBool::new(false);

impl Crash {
    /// Does `call`. If that ends in another way than by returning or by a panic, this thread is parked for ever, and other
    /// threads that have `self` know it.
    pub fn watch<R>(&self, call: impl FnOnce() -> R) -> R {
        install();
        signal_stack::provide();
        let mut watched = Watched { crash: self, before: WATCH.replace(ptr::from_ref(self)), has_returned: false };
        let result = call();
        watched.has_returned = true;
        result
    }

    /// How the code ended without returning, in words that follow "its code"; `None` if it did not.
    pub fn end(&self) -> Option<String> {
        let end = self.end.load(Ordering::Acquire);
        let address = self.address.load(Ordering::Relaxed);
        let signal = |name: &str, why: &str| format!("was ended by {name} ({why})");
        let place = |text: String| format!("{text} at address {address:#x}");
        Some(match end {
            0 => return None,
            UNWOUND => "let an exception escape, or called pthread_exit".to_owned(),
            EXITED => "called exit, which would end the process".to_owned(),
            libc::SIGSEGV => place(signal("SIGSEGV", "memory that is not its own")),
            libc::SIGBUS => place(signal("SIGBUS", "memory that is not there")),
            libc::SIGFPE => place(signal("SIGFPE", "a division by zero")),
            libc::SIGILL => place(signal("SIGILL", "no instruction")),
            libc::SIGABRT => signal("SIGABRT", "it called abort, or let an exception escape"),
            other => format!("was ended by signal {other}"),
        })
    }

    /// Calls nothing but what POSIX allows in a signal handler.
    fn store(&self, end: c_int) {
        self.end.store(end, Ordering::Release);
    }
}

/// A call that is watched.
struct Watched<'a> {
    crash: &'a Crash,
    before: *const Crash,
    has_returned: bool,
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        // An exception of another language, and `pthread_exit`, unwind the frame, too. Farther up there is no frame that could
        // catch them: Rust's would abort the process.
        if !self.has_returned && !thread::panicking() {
            self.crash.store(UNWOUND);
            park();
        }
        WATCH.set(self.before);
    }
}

/// Ends the process at once if a thread of code is in `exit`: then no other one may call that, for `exit` excludes itself
/// (since version 2.41 of glibc). Otherwise does nothing.
pub fn end_process_that_exits(status: u8) {
    if IS_EXITING.load(Ordering::Acquire) {
        // SAFETY: null stands for all streams of C.
        unsafe { libc::fflush(ptr::null_mut()) };
        // SAFETY: takes a number only, and does not return.
        unsafe { libc::_exit(status.into()) };
    }
}

/// Code that called `exit` may end the process now, if there is some.
pub fn let_exit_go_on() {
    if IS_EXITING.load(Ordering::Acquire) {
        MAY_EXIT.store(true, Ordering::Release);
    }
}

/// What `exit` calls, on the thread that called it.
extern "C" fn at_exit() {
    let watch = WATCH.get();
    if watch.is_null() {
        return;
    }
    IS_EXITING.store(true, Ordering::Release);
    // SAFETY: `watch` set it, and takes it back before the crash it points to can go.
    unsafe { &*watch }.store(EXITED);
    while !MAY_EXIT.load(Ordering::Acquire) {
        thread::sleep(LOOK);
    }
}

fn park() -> ! {
    loop {
        // SAFETY: has no arguments, and suspends the thread until a signal.
        unsafe { libc::pause() };
    }
}

/// Has the handlers in place, once in a process.
fn install() {
    BEFORE.get_or_init(|| {
        // SAFETY: the function may be called at any time. Without memory for it there is none, and `exit` is not noticed.
        unsafe { libc::atexit(at_exit) };
        SIGNALS.map(|signal| {
            let mut before = MaybeUninit::<libc::sigaction>::zeroed();
            // SAFETY: all-zero is a valid `sigaction`.
            let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
            action.sa_sigaction = handle as *const () as usize;
            // On an alternative stack: the stack itself may be what is used up.
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
    crash.store(signal);
    park()
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
        while crash.end().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let how = crash.end().expect("it crashed");
        assert_eq!(how, "was ended by SIGSEGV (memory that is not its own) at address 0x10");
        assert!(!thread.is_finished());
    }

    #[test]
    fn code_that_returns_is_not_watched_any_more() {
        let crash = Crash::default();
        assert_eq!(crash.watch(|| 5), 5);
        assert!(WATCH.get().is_null() && crash.end().is_none());
    }

    #[test]
    fn a_panic_passes_and_the_code_is_not_watched_any_more() {
        let crash = Crash::default();
        let panic = std::panic::catch_unwind(|| crash.watch(|| panic!("tested")));
        assert!(panic.is_err() && WATCH.get().is_null() && crash.end().is_none());
    }

    /// Without Rust's `main`, as in programs in C and Python, threads have no alternative stack.
    #[test]
    fn a_thread_that_uses_up_its_stack_is_parked_too_without_a_stack_of_the_runtime() {
        #[expect(unconditional_recursion, reason = "it is the end of the stack that is tested")]
        fn endless(depth: u64) -> u64 {
            let here = std::hint::black_box([depth; 64]);
            endless(depth + 1) + std::hint::black_box(&here)[0]
        }
        let crash = Arc::new(Crash::default());
        let watched = Arc::clone(&crash);
        let thread = std::thread::spawn(move || {
            signal_stack::take_away();
            watched.watch(|| endless(0))
        });
        while crash.end().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let how = crash.end().expect("it crashed");
        assert!(how.starts_with("was ended by SIGSEGV"), "{how}");
        assert!(!thread.is_finished());
    }

    /// As an exception of C++ does, `pthread_exit` unwinds.
    #[test]
    fn a_thread_that_is_unwound_is_parked_too() {
        unsafe extern "C-unwind" {
            fn pthread_exit(value: *mut c_void) -> !;
        }
        let crash = Arc::new(Crash::default());
        let watched = Arc::clone(&crash);
        let thread = std::thread::spawn(move || {
            // SAFETY: the frames that it unwinds are those of the watch, which are prepared for that.
            watched.watch(|| unsafe { pthread_exit(ptr::null_mut()) })
        });
        while crash.end().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(crash.end().as_deref(), Some("let an exception escape, or called pthread_exit"));
        assert!(!thread.is_finished());
    }
}
