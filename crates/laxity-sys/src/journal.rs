//! A log in memory without a name. Its writers may be killed at any instruction: what they wrote is there.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use rustix::fs::{FallocateFlags, MemfdFlags, OFlags, fallocate, fcntl_getfl, fcntl_setfl, memfd_create};

/// The end of a journal that is written to. Threads and processes may share it: entries are not mixed.
#[derive(Debug)]
pub struct Journal {
    file: Arc<File>,
}

/// The end of a journal that is read.
#[derive(Debug)]
pub struct Reader {
    file: Arc<File>,
    /// Bytes that were read.
    read: u64,
    /// Bytes whose memory was given back.
    freed: u64,
}

/// How much memory is kept after it was read: many pages.
const CHUNK: u64 = 1 << 20;

impl Journal {
    /// An empty journal, seen as `name` in `/proc`. It goes when all its ends are dropped, in all processes.
    ///
    /// # Errors
    /// If the limit of open files is reached.
    pub fn new(name: &str) -> io::Result<Journal> {
        let file = memfd_create(name, MemfdFlags::CLOEXEC)?;
        // The position of writes is the end, for all processes that share the file.
        fcntl_setfl(&file, fcntl_getfl(&file)? | OFlags::APPEND)?;
        Ok(Journal { file: Arc::new(file.into()) })
    }

    /// The journal that the parent of this process made its standard output.
    ///
    /// # Errors
    /// If standard output is closed.
    pub fn on_standard_output() -> io::Result<Journal> {
        Ok(Journal { file: Arc::new(io::stdout().as_fd().try_clone_to_owned()?.into()) })
    }

    /// Appends `entry`, whole or not at all provided that its length divides that of a page, as any power of two does
    /// up to 4096, and that all entries have the same.
    ///
    /// # Errors
    /// If memory is used up.
    pub fn append(&self, entry: &[u8]) -> io::Result<()> {
        (&*self.file).write_all(entry)
    }

    /// Another handle of this end, for a child's standard output.
    ///
    /// # Errors
    /// If the limit of open files is reached.
    pub fn share(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// The other end. There should be one: it gives back memory that it has read.
    pub fn reader(&self) -> Reader {
        Reader { file: Arc::clone(&self.file), read: 0, freed: 0 }
    }
}

impl Reader {
    /// Appends to `bytes` what was written since the last time.
    ///
    /// # Errors
    /// None are known.
    pub fn read(&mut self, bytes: &mut Vec<u8>) -> io::Result<()> {
        // Mostly there is nothing, or little.
        let end = self.file.metadata()?.len();
        let before = bytes.len();
        bytes.resize(before + (end - self.read) as usize, 0);
        // Not at the file's position, which is the writers'.
        self.file.read_exact_at(&mut bytes[before..], self.read)?;
        self.read = end;
        if self.read - self.freed >= CHUNK { self.free() } else { Ok(()) }
    }

    /// Gives back the memory of whole chunks that were read.
    fn free(&mut self) -> io::Result<()> {
        let length = (self.read - self.freed) / CHUNK * CHUNK;
        fallocate(&*self.file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, self.freed, length)?;
        self.freed += length;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn what_was_written_is_read_once_and_in_order() {
        let journal = Journal::new("test").expect("memory");
        let mut reader = journal.reader();
        let mut bytes = Vec::new();
        journal.append(b"0123456789abcdef").expect("memory");
        reader.read(&mut bytes).expect("readable");
        journal.append(b"ghijklmnopqrstuv").expect("memory");
        reader.read(&mut bytes).expect("readable");
        reader.read(&mut bytes).expect("readable");
        assert_eq!(bytes, b"0123456789abcdefghijklmnopqrstuv");
    }

    #[test]
    fn what_a_killed_process_wrote_is_there() {
        let journal = Journal::new("test").expect("memory");
        let mut reader = journal.reader();
        let script = "printf 0123456789abcdef; kill -9 $$";
        let output = Stdio::from(journal.share().expect("a handle"));
        let status = Command::new("sh").args(["-c", script]).stdout(output).status().expect("a shell");
        assert!(!status.success());
        journal.append(b"ghijklmnopqrstuv").expect("memory");
        let mut bytes = Vec::new();
        reader.read(&mut bytes).expect("readable");
        assert_eq!(bytes, b"0123456789abcdefghijklmnopqrstuv");
    }

    #[test]
    fn memory_that_was_read_is_given_back() {
        let journal = Journal::new("test").expect("memory");
        let mut reader = journal.reader();
        let entry = [7; 4096];
        for _ in 0..3 * CHUNK / 4096 + 1 {
            journal.append(&entry).expect("memory");
        }
        let mut bytes = Vec::new();
        reader.read(&mut bytes).expect("readable");
        assert!(bytes.len() as u64 == 3 * CHUNK + 4096 && bytes.iter().all(|&byte| byte == 7));
        let metadata = journal.file.metadata().expect("a file");
        assert_eq!(metadata.len(), 3 * CHUNK + 4096);
        assert!(metadata.blocks() * 512 <= CHUNK, "{} blocks are left", metadata.blocks());
    }
}
