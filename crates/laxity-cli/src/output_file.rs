//! Files that are there whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
#[cfg(target_os = "linux")]
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tempfile::{NamedTempFile, TempPath};

use crate::error::CliError;
use crate::input;

/// A file being written. It grows under a temporary name in the same folder and gets its own name when it is complete,
/// so neither a kill nor a full disk leaves behind what looks whole. Dropped before that, it is removed.
///
/// A pipe or a device that exists is written in place. So is a recording, which is of use even if it is cut off: after a kill
/// it is there, and what reads it says that it is not whole.
pub struct OutputFile {
    path: PathBuf,
    sink: Sink,
    failed: Failed,
}

/// Whether a write to some file failed, for code that does not hold the file.
#[derive(Clone, Debug, Default)]
pub struct Failed(Arc<AtomicBool>);

impl Failed {
    /// Whether it did.
    pub fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

enum Sink {
    Temporary {
        file: NamedTempFile,
        target: PathBuf,
    },
    /// Removed unless it is committed, but by a kill. It is locked as long as it is open, and removed before it is closed, so
    /// that it is not the next recorder's file that is removed.
    Recording {
        target: TempPath,
        file: File,
    },
    InPlace(File),
}

impl OutputFile {
    /// Begins to write `path`, to which errors refer. An existing file is replaced at the end.
    pub fn create(path: &Path) -> Result<Self, CliError> {
        let failed = |source| CliError::Write { path: path.to_owned(), source };
        let target = target(path).map_err(failed)?;
        refuse_inputs(path, &target)?;
        #[cfg(target_os = "linux")]
        if fs::metadata(&target).is_ok_and(|metadata| metadata.is_file())
            && File::open(&target).is_ok_and(|file| laxity_sys::exclusive::is_held(&file))
        {
            return Err(recorded_elsewhere(path));
        }
        let sink = open(target).map_err(failed)?;
        Ok(OutputFile { path: path.to_owned(), sink, failed: Failed::default() })
    }

    /// Begins to write the recording `path`, under its own name from the start. A file that was there is gone at once, unless
    /// another process records it now, or this one reads it.
    #[cfg(target_os = "linux")]
    pub fn record(path: &Path) -> Result<Self, CliError> {
        let failed = |source| CliError::Write { path: path.to_owned(), source };
        let target = target(path).map_err(failed)?;
        if fs::metadata(&target).is_ok_and(|metadata| !metadata.is_file()) {
            return OutputFile::create(path);
        }
        refuse_inputs(path, &target)?;
        let file = loop {
            // It is emptied only when it is ours.
            let file = File::options().write(true).create(true).truncate(false).open(&target).map_err(failed)?;
            if !laxity_sys::exclusive::hold(&file) {
                return Err(recorded_elsewhere(path));
            }
            // A recorder that failed may have removed it since it was opened.
            let name = fs::metadata(&target);
            if name.is_ok_and(|name| {
                file.metadata().is_ok_and(|file| (file.dev(), file.ino()) == (name.dev(), name.ino()))
            }) {
                break file;
            }
        };
        file.set_len(0).map_err(failed)?;
        let target = TempPath::try_from_path(&target).map_err(failed)?;
        Ok(OutputFile { path: path.to_owned(), sink: Sink::Recording { target, file }, failed: Failed::default() })
    }

    /// Becomes true when a write fails: for writers that keep the error to themselves until they are done.
    pub fn failed(&self) -> Failed {
        self.failed.clone()
    }

    /// Puts the file in its place; everything was written.
    pub fn commit(self) -> Result<(), CliError> {
        let OutputFile { path, sink, .. } = self;
        let placed = match sink {
            // Some file systems notice only now that the disk is full.
            Sink::Temporary { file, target } => {
                file.as_file().sync_all().and_then(|()| file.persist(target).map(|_| ()).map_err(|error| error.error))
            }
            Sink::Recording { target, file } => {
                file.sync_all().and_then(|()| target.keep().map(|_| ()).map_err(|error| error.error))
            }
            Sink::InPlace(mut file) => file.flush(),
        };
        placed.map_err(|source| CliError::Write { path, source })
    }

    /// Writes all of `path` at once.
    pub fn write(path: &Path, bytes: &[u8]) -> Result<(), CliError> {
        let mut file = OutputFile::create(path)?;
        file.write_all(bytes).map_err(|source| CliError::Write { path: path.to_owned(), source })?;
        file.commit()
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = match &mut self.sink {
            Sink::Temporary { file, .. } => file.write(bytes),
            Sink::Recording { file, .. } | Sink::InPlace(file) => file.write(bytes),
        };
        if let Err(error) = &written
            && error.kind() != io::ErrorKind::Interrupted
        {
            self.failed.0.store(true, Ordering::Relaxed);
        }
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.sink {
            Sink::Temporary { file, .. } => file.flush(),
            Sink::Recording { file, .. } | Sink::InPlace(file) => file.flush(),
        }
    }
}

/// The file that `path` names. A link is followed: the file it points to is replaced, not the link.
fn target(path: &Path) -> io::Result<PathBuf> {
    match fs::canonicalize(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(path.to_owned()),
        target => target,
    }
}

/// What is made of a file must not replace it, under whichever name.
fn refuse_inputs(path: &Path, target: &Path) -> Result<(), CliError> {
    match fs::metadata(target).ok().and_then(|metadata| input::read_as(&metadata)) {
        Some(input) => Err(CliError::Overwrite { path: path.to_owned(), input }),
        None => Ok(()),
    }
}

#[cfg(target_os = "linux")]
fn recorded_elsewhere(path: &Path) -> CliError {
    let message =
        format!("{} is being recorded by another process; wait until that ends, or name another file", path.display());
    CliError::Live { message }
}

fn open(target: PathBuf) -> io::Result<Sink> {
    match fs::metadata(&target) {
        Ok(metadata) if metadata.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(metadata) if !metadata.is_file() => Ok(Sink::InPlace(File::options().write(true).open(&target)?)),
        _ => {
            let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let name = target.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
            let prefix = format!(".{}.", name.to_string_lossy());
            let mut builder = tempfile::Builder::new();
            builder.prefix(&prefix).suffix(".part");
            set_permissions(&mut builder);
            Ok(Sink::Temporary { file: builder.tempfile_in(folder)?, target })
        }
    }
}

/// As any other new file, not for the owner alone as temporary files are; the user's mask applies.
#[cfg(unix)]
fn set_permissions(builder: &mut tempfile::Builder<'_, '_>) {
    use std::os::unix::fs::PermissionsExt;
    builder.permissions(fs::Permissions::from_mode(0o666));
}

#[cfg(not(unix))]
fn set_permissions(_builder: &mut tempfile::Builder<'_, '_>) {}
