//! Files that one process at a time writes.

use std::fs::File;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// Holds `file` for this process until it is closed, however that is. Answers whether it is held now: no if another open file
/// holds it. A file system without such locks cannot say, and refuses no process.
pub fn hold(file: &File) -> bool {
    flock(file, FlockOperation::NonBlockingLockExclusive) != Err(Errno::WOULDBLOCK)
}

/// Whether another open file [holds](hold) the file.
pub fn is_held(file: &File) -> bool {
    let is_held = flock(file, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK);
    if !is_held {
        let _ = flock(file, FlockOperation::Unlock);
    }
    is_held
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_held_by_one_until_that_closes_it() {
        let folder = laxity_testing::Directory::new("exclusive");
        let path = folder.path().join("file");
        let [first, second] = [(), ()].map(|()| File::create(&path).expect("a file"));
        assert!(!is_held(&second) && hold(&first));
        assert!(is_held(&second) && !hold(&second));
        drop(first);
        assert!(!is_held(&second) && hold(&second));
    }
}
