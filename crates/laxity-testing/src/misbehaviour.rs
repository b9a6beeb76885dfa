//! What processes do to themselves that ends them or confuses those that judge them, and how often they did.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use laxity_sys::fault;
use rustix::process::{Resource, Rlimit, WaitOptions, getrlimit, setrlimit, waitpid};

/// The variable of the environment that names the file which counts what all processes did: a letter each.
pub const NOTES: &str = "LAXITY_TEST_NOTES";
/// How long a forked copy goes on, in milliseconds.
const COPY_LIVES: u32 = 50;

/// What a process does to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misbehaviour {
    /// Executes this very test program again, in place: with the same number.
    Exec,
    /// Makes a copy with all its memory and descriptors, which outlives it if it is killed soon.
    Fork,
    /// Has hardly any descriptors left.
    Starve,
}

impl Misbehaviour {
    /// All kinds.
    pub const ALL: [Misbehaviour; 3] = [Misbehaviour::Exec, Misbehaviour::Fork, Misbehaviour::Starve];

    /// Does it, after it was counted: the process may be killed at any time. While it lacks descriptors, with `free` of them
    /// left, it carries out `starved`.
    pub fn carry_out(self, free: u64, starved: impl FnOnce()) {
        // One at a time in this process: the note, too, takes a descriptor. Copies that have ended are forgotten.
        static ONE: Mutex<()> = Mutex::new(());
        let _one = ONE.lock();
        while let Ok(Some(_)) = waitpid(None, WaitOptions::NOHANG) {}
        let path = std::env::var_os(NOTES).expect("the test says where");
        let mut file = OpenOptions::new().append(true).create(true).open(path).expect("its directory is there");
        // One byte is appended as a whole.
        file.write_all(&[self.letter()]).expect("there is memory");
        drop(file);
        match self {
            Misbehaviour::Exec => {
                let program = std::env::current_exe().expect("this test");
                panic!("{}", Command::new(program).args(std::env::args_os().skip(1)).exec());
            }
            Misbehaviour::Fork => drop(fault::fork_idle(COPY_LIVES)),
            Misbehaviour::Starve => {
                let used = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count) as u64;
                let limit = getrlimit(Resource::Nofile);
                let set = |current| setrlimit(Resource::Nofile, Rlimit { current, ..limit });
                set(Some(used + free)).expect("less than the maximum");
                starved();
                set(limit.current).expect("as it was");
            }
        }
    }

    /// How often that was done by those that had `notes`.
    pub fn count(self, notes: &Path) -> usize {
        fs::read(notes).unwrap_or_default().iter().filter(|&&letter| letter == self.letter()).count()
    }

    fn letter(self) -> u8 {
        match self {
            Misbehaviour::Exec => b'e',
            Misbehaviour::Fork => b'f',
            Misbehaviour::Starve => b's',
        }
    }
}
