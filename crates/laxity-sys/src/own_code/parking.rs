//! Threads that Python ends in the midst of a call.

/// Does `call`, which calls Python. If Python ends the thread meanwhile, as it does until version 3.13 when a thread asks for
/// the interpreter's lock after the program has ended, the thread stays where it is, until the process ends.
///
/// Python ends it by `pthread_exit`, which unwinds the stack: it would run what Rust has to run at the end of each function,
/// and then be caught by the first function of the thread, upon which glibc aborts the process. Python 3.14 has such threads
/// hang itself (<https://github.com/python/cpython/issues/87135>).
pub(super) fn parked_if_unwound<R>(call: impl FnOnce() -> R) -> R {
    struct Park;
    impl Drop for Park {
        fn drop(&mut self) {
            // A panic is an error of Laxity's, and goes on.
            while !std::thread::panicking() {
                // SAFETY: has no arguments, and suspends the thread until a signal.
                unsafe { libc::pause() };
            }
        }
    }
    let park = Park;
    let result = call();
    std::mem::forget(park);
    result
}

#[cfg(test)]
mod tests {
    use std::ffi::c_void;
    use std::ptr;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use super::*;

    unsafe extern "C-unwind" {
        fn pthread_exit(value: *mut c_void) -> !;
    }

    #[test]
    fn a_thread_that_is_ended_in_a_call_stays_there() {
        static IS_INSIDE: AtomicBool = AtomicBool::new(false);
        let thread = std::thread::spawn(|| {
            parked_if_unwound(|| {
                IS_INSIDE.store(true, Ordering::SeqCst);
                // SAFETY: takes a value that is not looked at; frames up to `parked_if_unwound` have nothing to run.
                unsafe { pthread_exit(ptr::null_mut()) }
            })
        });
        while !IS_INSIDE.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(100));
        assert!(!thread.is_finished());
    }

    #[test]
    fn a_call_that_returns_is_answered_and_a_panic_goes_on() {
        assert_eq!(parked_if_unwound(|| 5), 5);
        assert!(std::thread::spawn(|| parked_if_unwound(|| panic!("as it should"))).join().is_err());
    }
}
