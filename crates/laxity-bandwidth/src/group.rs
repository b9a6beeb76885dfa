//! A control group (v2) for the regulated programs of one CPU: which threads they have, and a freezer that stops all of
//! them.
//!
//! What a killed regulator froze must not stay frozen: a watchdog, a shell that waits for the end of a pipe that only the
//! regulator's process holds, thaws the group then. Linux closes the pipe when the last thread of that process has
//! ended, so that no thread freezes after it.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use crate::error::BandwidthError;
use crate::regulator::lock;

/// The beginning of the names of all groups.
const PREFIX: &str = "laxity-bandwidth.";

/// Waits for the end of its input, thaws, and removes the group when its programs have ended. `$0` is the group.
///
/// Signals that a terminal sends to all of its programs do not end it before the regulator.
const WATCHDOG: &str = "trap '' HUP INT QUIT TERM; read -r _; echo 0 > \"$0/cgroup.freeze\"; \
                        while [ -d \"$0\" ] && ! rmdir \"$0\" 2> /dev/null; do sleep 1; done";

/// A control group, thawed and removed when this is dropped or its process ends, however that ends.
#[derive(Debug)]
pub(crate) struct Group {
    path: PathBuf,
    freezer: File,
    /// Its input is the pipe.
    watchdog: Mutex<Child>,
}

impl Group {
    /// A new group. Those that an ended regulator left are thawed and removed first.
    pub fn create(name: &str) -> Result<Group, BandwidthError> {
        let root = root()?;
        collect(&root);
        let path = root.join(format!("{PREFIX}{}.{name}", std::process::id()));
        let failed = |action, path: &Path| {
            let path = path.to_owned();
            move |error| BandwidthError::Group { action, path, error }
        };
        fs::create_dir(&path).map_err(failed("create", &path))?;
        let file = path.join("cgroup.freeze");
        let opened = OpenOptions::new().write(true).open(&file).map_err(failed("open", &file));
        let watched = opened.and_then(|freezer| {
            let start = |error| BandwidthError::Start { what: "the watchdog of a freezer (sh)".to_owned(), error };
            // In a process group of its own: what is sent to the regulator's group does not end it.
            let mut command = Command::new("sh");
            command.args(["-c", WATCHDOG]).arg(&path).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
            Ok((freezer, command.process_group(0).spawn().map_err(start)?))
        });
        match watched {
            Ok((freezer, watchdog)) => Ok(Group { path, freezer, watchdog: Mutex::new(watchdog) }),
            Err(error) => {
                let _ = fs::remove_dir(&path);
                Err(error)
            }
        }
    }

    /// Stops or continues all of its threads.
    ///
    /// # Errors
    /// If Linux refuses; stopping also if the watchdog was killed, as a killed regulator would leave them stopped.
    pub fn set_frozen(&self, is_frozen: bool) -> io::Result<()> {
        if is_frozen && !matches!(lock(&self.watchdog).try_wait(), Ok(None)) {
            return Err(io::Error::other("the watchdog that would thaw the group was killed"));
        }
        let text: &[u8] = if is_frozen { b"1" } else { b"0" };
        self.freezer.write_at(text, 0).map(|_| ())
    }

    /// The file to which a process writes itself to become a member.
    pub fn members(&self) -> Result<OwnedFd, BandwidthError> {
        let path = self.path.join("cgroup.procs");
        let opened = OpenOptions::new().write(true).open(&path);
        opened.map(OwnedFd::from).map_err(|error| BandwidthError::Group { action: "open", path, error })
    }

    /// The threads of its processes.
    pub fn threads(&self) -> io::Result<Vec<u32>> {
        let text = fs::read_to_string(self.path.join("cgroup.threads"))?;
        Ok(text.lines().filter_map(|line| line.parse().ok()).collect())
    }

    /// Where it is.
    #[cfg(test)]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = self.set_frozen(false);
        // What is still in it goes on elsewhere; a group goes when it is empty.
        if let Some(parent) = self.path.parent() {
            for process in self.threads().unwrap_or_default() {
                let _ = fs::write(parent.join("cgroup.procs"), process.to_string());
            }
        }
        for _ in 0..50 {
            match fs::remove_dir(&self.path) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => thread::sleep(Duration::from_millis(2)),
                _ => break,
            }
        }
        // It has nothing left to do.
        let mut watchdog = lock(&self.watchdog);
        let _ = watchdog.kill();
        let _ = watchdog.wait();
    }
}

/// Whether control groups of version 2 can be made, and where; or why not.
///
/// # Errors
/// [`BandwidthError::NoGroups`], [`BandwidthError::Group`].
pub(crate) fn root() -> Result<PathBuf, BandwidthError> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mount = mount_in(&mounts).ok_or(BandwidthError::NoGroups)?;
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = own.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    // Where a container sees only its own group, that is mounted at the top.
    let inside = mount.join(own);
    Ok(if inside.join("cgroup.procs").exists() { inside } else { mount })
}

/// Where cgroup v2 is mounted, by `/proc/self/mountinfo`: the fifth field, in the line whose type is `cgroup2`.
fn mount_in(mounts: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        let place = mount.split(' ').nth(4)?;
        kind.starts_with("cgroup2 ").then(|| PathBuf::from(place))
    })
}

/// Thaws the groups whose regulators have ended, and removes the empty ones.
pub(crate) fn collect(root: &Path) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let pid = name.strip_prefix(PREFIX).and_then(|rest| rest.split('.').next()).and_then(|pid| pid.parse().ok());
        let Some(pid) = pid else { continue };
        if !laxity_sys::scheduling::is_thread_of(pid, pid) {
            let _ = fs::write(entry.path().join("cgroup.freeze"), "0");
            let _ = fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use laxity_sys::fairness;

    #[test]
    fn a_mount_of_control_groups_is_found_among_others() {
        let mounts = "24 1 0:22 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n\
                      31 1 0:28 / /sys/fs/cgroup/unified rw,relatime shared:4 - cgroup2 cgroup2 rw\n";
        assert_eq!(mount_in(mounts), Some(PathBuf::from("/sys/fs/cgroup/unified")));
        assert_eq!(mount_in("24 1 0:22 / /a rw - tmpfs tmpfs rw\n"), None);
    }

    #[test]
    fn a_frozen_program_stops_and_a_thawed_one_goes_on() {
        let group = match Group::create("test-frozen") {
            Ok(group) => group,
            Err(error) => return laxity_testing::skip(error),
        };
        let mut command = Command::new("sh");
        command.args(["-c", "while :; do :; done"]);
        laxity_sys::start::in_place(&mut command, &[0], Some(group.members().expect("it exists")));
        let mut child = command.spawn().expect("a shell");
        let ran = || fairness::usage(child.id()).expect("it lives").ran;
        laxity_testing::until("it runs", || ran().0 > 0);
        group.set_frozen(true).expect("it may be frozen");
        let events = group.path().join("cgroup.events");
        let is_frozen = || fs::read_to_string(&events).is_ok_and(|text| text.contains("frozen 1"));
        laxity_testing::until("it is frozen", is_frozen);
        let stopped = ran();
        thread::sleep(Duration::from_millis(20));
        assert_eq!(ran(), stopped, "it stands still");
        group.set_frozen(false).expect("it may be thawed");
        laxity_testing::until("it goes on", || ran() > stopped);
        let path = group.path().to_owned();
        drop(group);
        let _ = child.kill();
        let _ = child.wait();
        assert!(!path.exists(), "the group is gone, though the program was not");
    }
}
