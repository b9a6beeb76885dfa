//! What the tests of this crate share.

use std::fs;
use std::path::PathBuf;

/// A directory of shared memory that goes with it.
pub struct Place(pub PathBuf);

impl Place {
    pub fn new(test: &str) -> Self {
        let path = PathBuf::from(format!("/dev/shm/laxity-test-gpu-{}-{test}", std::process::id()));
        fs::create_dir_all(&path).expect("/dev/shm is writable");
        Place(path)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
