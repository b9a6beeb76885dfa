//! Directories of shared memory.

use std::fs::{self, File};
use std::ops::Deref;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

/// That no other test on this machine, of any program, has this too: tests whose threads are above all others on the same
/// CPUs would starve each other.
#[derive(Debug)]
pub struct Alone {
    _lock: File,
}

impl Alone {
    /// Waits for the others that own the CPUs by Laxity's scheduler.
    pub fn with_the_scheduler() -> Self {
        let file = File::create("/dev/shm/laxity-test-sched.lock").expect("/dev/shm is writable");
        flock(&file, FlockOperation::LockExclusive).expect("it can be waited for");
        Alone { _lock: file }
    }
}

/// A directory of shared memory that goes with it.
#[derive(Debug)]
pub struct Directory(PathBuf);

impl Directory {
    /// Named after the test, which is one of a kind among those of its program.
    pub fn new(test: &str) -> Self {
        let path = PathBuf::from(format!("/dev/shm/laxity-test-{}-{test}", std::process::id()));
        fs::create_dir_all(&path).expect("/dev/shm is writable");
        Directory(path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.files().is_empty()
    }

    /// Files in it, by name.
    pub fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("it exists");
        let name = |entry: std::io::Result<fs::DirEntry>| entry.expect("an entry").file_name();
        let mut names: Vec<String> = entries.map(|entry| name(entry).to_string_lossy().into_owned()).collect();
        names.sort_unstable();
        names
    }
}

impl AsRef<Path> for Directory {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A registry in a directory of its own.
#[derive(Debug)]
pub struct TestRegistry<R> {
    registry: R,
    directory: Directory,
}

impl<R: From<PathBuf>> TestRegistry<R> {
    /// Named after the test, which is one of a kind among those of its program.
    pub fn new(test: &str) -> Self {
        let directory = Directory::new(test);
        TestRegistry { registry: R::from(directory.path().to_owned()), directory }
    }
}

impl<R> TestRegistry<R> {
    /// Files in its directory, by name.
    pub fn files(&self) -> Vec<String> {
        self.directory.files()
    }
}

impl<R> Deref for TestRegistry<R> {
    type Target = R;

    fn deref(&self) -> &R {
        &self.registry
    }
}

impl<R> AsRef<Path> for TestRegistry<R> {
    fn as_ref(&self) -> &Path {
        self.directory.path()
    }
}
