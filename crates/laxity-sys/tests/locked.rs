//! What locking all memory does to a process: the only test in its process, which stays so.

use std::fs;

use laxity_sys::memory::lock_all;

/// The value of a field of this process's status.
fn status(name: &str) -> Option<String> {
    let status = fs::read_to_string("/proc/self/status").expect("there is /proc");
    let value = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    value.map(|value| value.trim().to_owned())
}

#[test]
fn linux_joins_no_pages_of_a_process_with_locked_memory() {
    let allowed = lock_all();
    if let Err(error) = &allowed {
        // By its limit a user may not.
        println!("not locked: {error}");
    }
    match status("THP_enabled").as_deref() {
        Some(enabled) => assert_eq!(enabled, "0"),
        None => println!("Linux before 5.0 does not tell"),
    }
    let locked = status("VmLck").expect("Linux tells");
    assert_eq!(locked != "0 kB", allowed.is_ok(), "{locked}");
}
