//! Memory that is there when it is touched, and how much of it there is.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::mm::{MlockAllFlags, mlockall};
use rustix::thread::disable_transparent_huge_pages;

/// Brings all memory that this process has now, stacks of its threads included, into RAM, and keeps it there, in the
/// pages in which it is.
///
/// Where transparent huge pages are "always" (Debian's default), a thread of Linux, khugepaged, joins pages of a process into huge
/// ones. Meanwhile threads of that process that map or unmap memory sleep, until khugepaged has had the CPU time that
/// real-time threads leave it. Huge pages that the process has by now stay; it and the processes that it starts get no more.
///
/// # Errors
/// If the user may not lock so much (`RLIMIT_MEMLOCK`), or there is not as much. The pages are left as they are in any case.
pub fn lock_all() -> io::Result<()> {
    // First: the joining of pages has no limit that could be exceeded.
    disable_transparent_huge_pages(true)?;
    Ok(mlockall(MlockAllFlags::CURRENT)?)
}

/// Bytes that this process can take before Linux has to kill some process: what the machine has (`MemAvailable` of
/// proc(5): free, or a cache that can be dropped), and what each control group that the process is in has below its
/// limit. Others may take it meanwhile.
///
/// # Errors
/// If there is no `/proc`.
pub fn available() -> io::Result<u64> {
    let machine = fs::read_to_string("/proc/meminfo")?;
    let machine = field(&machine, "MemAvailable:").ok_or(io::ErrorKind::Unsupported)?.saturating_mul(1024);
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    Ok(room(Path::new("/sys/fs/cgroup"), &groups).min(machine))
}

/// What a control group of a hierarchy says of its memory, in files and fields of these names.
struct Hierarchy {
    limit: &'static str,
    used: &'static str,
    /// Of `memory.stat`: what Linux drops before it kills.
    caches: [&'static str; 2],
}

const FIRST: Hierarchy = Hierarchy {
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    caches: ["total_inactive_file", "total_active_file"],
};
const SECOND: Hierarchy =
    Hierarchy { limit: "memory.max", used: "memory.current", caches: ["inactive_file", "active_file"] };

/// The least that any of the control groups in `groups` (`/proc/PID/cgroup`), mounted below `mounts`, has left.
fn room(mounts: &Path, groups: &str) -> u64 {
    let rooms = groups.lines().filter_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        let (mount, hierarchy) = match controllers {
            "" => (mounts.to_owned(), SECOND),
            _ if controllers.split(',').any(|one| one == "memory") => (mounts.join("memory"), FIRST),
            _ => return None,
        };
        // Where a container sees only its own group, that is mounted at the top.
        above(&mount, path).iter().filter_map(|group| hierarchy.room(group)).min()
    });
    rooms.min().unwrap_or(u64::MAX)
}

/// The group at `path`, and all that it is in.
fn above(mount: &Path, path: &str) -> Vec<PathBuf> {
    let path = Path::new(path.trim_start_matches('/'));
    path.ancestors().map(|ancestor| mount.join(ancestor)).collect()
}

impl Hierarchy {
    /// Nothing if there is no limit.
    fn room(&self, group: &Path) -> Option<u64> {
        let number = |file: &str| fs::read_to_string(group.join(file)).ok()?.trim().parse::<u64>().ok();
        let (limit, used) = (number(self.limit)?, number(self.used)?);
        let statistics = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
        let caches: u64 = self.caches.iter().filter_map(|name| field(&statistics, name)).sum();
        Some(limit.saturating_sub(used).saturating_add(caches).min(limit))
    }
}

/// The number behind `name` at the beginning of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        (words.next() == Some(name)).then(|| words.next()?.parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of files, gone when it is dropped.
    struct Mounts(PathBuf);

    impl Mounts {
        fn new(test: &str, files: &[(&str, &str)]) -> Self {
            let mounts = Mounts(std::env::temp_dir().join(format!("laxity-memory-{test}-{}", std::process::id())));
            for (path, text) in files {
                let path = mounts.0.join(path);
                fs::create_dir_all(path.parent().expect("it has one")).expect("it can be made");
                fs::write(path, text).expect("it can be written");
            }
            mounts
        }
    }

    impl Drop for Mounts {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_group_has_what_is_below_its_limit_and_below_that_of_each_group_that_it_is_in() {
        let mounts = Mounts::new(
            "second",
            &[
                ("a/memory.max", "1000\n"),
                ("a/memory.current", "900\n"),
                ("a/memory.stat", "anon 800\ninactive_file 30\nactive_file 4\n"),
                ("a/b/memory.max", "max\n"),
                ("a/b/memory.current", "900\n"),
                ("a/c/memory.max", "50\n"),
                ("a/c/memory.current", "20\n"),
            ],
        );
        assert_eq!(room(&mounts.0, "0::/a/b\n"), 134);
        assert_eq!(room(&mounts.0, "0::/a/c\n"), 30);
        assert_eq!(room(&mounts.0, "0::/\n"), u64::MAX);
        assert_eq!(room(&mounts.0, ""), u64::MAX);
    }

    #[test]
    fn the_first_hierarchy_is_understood_and_one_that_a_container_sees_at_the_top() {
        let mounts = Mounts::new(
            "first",
            &[
                ("memory/memory.limit_in_bytes", "1000\n"),
                ("memory/memory.usage_in_bytes", "600\n"),
                ("memory/memory.stat", "total_inactive_file 100\n"),
            ],
        );
        assert_eq!(room(&mounts.0, "9:name=systemd:/\n4:cpu,memory:/not/to/be/seen\n0::/\n"), 500);
    }

    #[test]
    fn this_machine_says_how_much_it_has() {
        assert!(available().expect("Linux has /proc") > 0);
    }
}
