//! Files below a folder, and why one cannot be read.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading<T> {
    /// It is there.
    Is(T),
    /// There is none.
    Missing,
    /// It cannot be read, for this reason.
    Refused(String),
}

impl<T> Reading<T> {
    /// Why `what` is not known.
    pub fn why_not(self, what: &str) -> String {
        match self {
            Reading::Is(_) => format!("{what} is known"),
            Reading::Missing => format!("{what} cannot be read: there is no such file"),
            Reading::Refused(reason) => format!("{what} cannot be read: {reason}"),
        }
    }

    fn of(outcome: io::Result<T>, path: &Path) -> Reading<T> {
        match outcome {
            Ok(value) => Reading::Is(value),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Reading::Missing,
            Err(error) => Reading::Refused(format!("{}: {error}", path.display())),
        }
    }
}

/// The files of one machine.
pub struct Files {
    root: PathBuf,
}

impl Files {
    /// Those below `root`.
    pub fn below(root: &Path) -> Files {
        Files { root: root.to_owned() }
    }

    /// What a small file says, without the end of its last line.
    pub fn text(&self, path: &str) -> Reading<String> {
        let path = self.root.join(path);
        let text = fs::read(&path).map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned());
        Reading::of(text, &path)
    }

    /// Whether a file or folder is there.
    pub fn exists(&self, path: &str) -> Reading<()> {
        let path = self.root.join(path);
        Reading::of(fs::metadata(&path).map(drop), &path)
    }
}
