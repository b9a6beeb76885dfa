//! A program that a real-time thread starts while others run, and that ends with it.
//!
//! `fork` would copy the page tables of the process, hold up its page faults meanwhile, and have each of its threads fault
//! at its next write: all of them would be late. The child therefore borrows the memory of its parent, and the calling thread waits,
//! until it executes its program, as in `posix_spawn`; that cannot tie a child to its parent, however.

use std::ffi::{CString, OsStr, OsString, c_char, c_int, c_void};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::{env, fs, io, ptr};

use laxity_model::Instant;

use crate::process;

/// Bytes of the stack that the child has until it executes its program.
const STACK: usize = 32 << 10;
/// Descriptors below are standard input, output and error.
const FIRST_FREE: c_int = 3;

/// How to start a program: what is the same each time.
#[derive(Clone, Debug)]
pub struct Image {
    path: CString,
    arguments: Vec<CString>,
    folder: CString,
}

/// A program that was started. It leads a process group, so that the terminal's Ctrl-C is not for it, and is killed when the
/// thread that started it ends, however that is.
#[derive(Debug)]
pub struct Program {
    pid: u32,
    was_waited_for: bool,
}

impl Image {
    /// The file `path`, executed with `arguments` in `folder`.
    ///
    /// # Errors
    /// If one of them has a NUL.
    pub fn new(path: &Path, arguments: &[String], folder: &Path) -> io::Result<Image> {
        let text = |text: &OsStr| Ok::<_, io::Error>(CString::new(text.as_bytes())?);
        let path = text(path.as_os_str())?;
        let rest = arguments.iter().map(|argument| text(OsStr::new(argument)));
        let arguments = std::iter::once(Ok(path.clone())).chain(rest).collect::<io::Result<_>>()?;
        Ok(Image { path, arguments, folder: text(folder.as_os_str())? })
    }

    /// Where its file is.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(OsString::from_vec(self.path.as_bytes().to_vec()))
    }

    /// Starts it with the environment of this process, in which `name` is `value`, and the CPUs and scheduling class of this
    /// thread, at its priority or at `priority`, where the class has those. Its standard input is empty, and its standard output
    /// is dropped.
    ///
    /// # Errors
    /// If it may not be executed, its folder is not there, or there can be no more processes.
    pub fn start(&self, name: &str, value: &str, priority: Option<u8>) -> io::Result<Program> {
        let nothing = fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
        // SAFETY: takes numbers. The copy is apart from the descriptors that the child replaces.
        let nothing = match unsafe { libc::fcntl(nothing.as_raw_fd(), libc::F_DUPFD_CLOEXEC, FIRST_FREE) } {
            -1 => return Err(io::Error::last_os_error()),
            // SAFETY: it is new, and ours alone.
            number => unsafe { <std::os::fd::OwnedFd as std::os::fd::FromRawFd>::from_raw_fd(number) },
        };
        let others = env::vars_os().filter(|(other, _)| other != name);
        let variables = others.chain([(name.into(), value.into())]).map(|(name, value)| {
            let mut text = name.into_vec();
            text.push(b'=');
            text.extend(value.into_vec());
            CString::new(text)
        });
        let variables: Vec<CString> = variables.collect::<Result<_, _>>()?;
        let pointers = |texts: &[CString]| -> Vec<*const c_char> {
            texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect()
        };
        let (arguments, variables) = (pointers(&self.arguments), pointers(&variables));
        let mut entry = Entry {
            path: self.path.as_ptr(),
            arguments: arguments.as_ptr(),
            variables: variables.as_ptr(),
            folder: self.folder.as_ptr(),
            nothing: nothing.as_raw_fd(),
            parent: std::process::id(),
            priority: priority.map_or(0, c_int::from),
            error: 0,
        };
        let pid = start_at(&mut entry)?;
        let mut program = Program { pid, was_waited_for: false };
        match entry.error {
            0 => Ok(program),
            error => {
                program.wait()?;
                Err(io::Error::from_raw_os_error(error))
            }
        }
    }
}

/// What the child needs. All of it is the parent's memory.
struct Entry {
    path: *const c_char,
    arguments: *const *const c_char,
    variables: *const *const c_char,
    folder: *const c_char,
    nothing: c_int,
    parent: u32,
    /// What it has instead of the calling thread's priority; 0: that.
    priority: c_int,
    /// Why it could not execute its program; 0: it could.
    error: c_int,
}

/// Starts a child at [`enter`], and waits until it executes its program or has ended.
fn start_at(entry: &mut Entry) -> io::Result<u32> {
    let mut stack = vec![0u128; STACK / size_of::<u128>()];
    // SAFETY: all-zero sets are valid, and both are written before they are read.
    let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
    // No handler of this process may run in the child, which has its memory. SAFETY: the sets are ours.
    unsafe {
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
    }
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    let top = stack.as_mut_ptr_range().end.cast::<c_void>();
    // SAFETY: the stack grows down from its aligned end, and stack and entry last until the child no longer uses them:
    // with `CLONE_VFORK` this thread waits for that.
    let pid = unsafe { libc::clone(enter, top, flags, ptr::from_mut(entry).cast()) };
    let error = io::Error::last_os_error();
    // SAFETY: the set is read only.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut()) };
    u32::try_from(pid).map_err(|_| error)
}

/// The child, until it executes its program: makes system calls and allocates nothing.
extern "C" fn enter(entry: *mut c_void) -> c_int {
    // SAFETY: `start_at` passes one, which its thread does not touch meanwhile.
    let entry = unsafe { &mut *entry.cast::<Entry>() };
    // SAFETY: the calls take numbers, or texts and sets that outlast them.
    unsafe {
        reset_handlers();
        let is_ready = libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong, 0, 0, 0) == 0
            && libc::setpgid(0, 0) == 0
            && libc::chdir(entry.folder) == 0
            && libc::dup2(entry.nothing, libc::STDIN_FILENO) != -1
            && libc::dup2(entry.nothing, libc::STDOUT_FILENO) != -1;
        // The parent may have died before the child was tied to it.
        if libc::getppid().unsigned_abs() != entry.parent {
            libc::_exit(1);
        }
        if entry.priority > 0 {
            let mut parameters: libc::sched_param = std::mem::zeroed();
            parameters.sched_priority = entry.priority;
            // A thread may always be less urgent.
            libc::sched_setscheduler(0, libc::sched_getscheduler(0), &raw const parameters);
        }
        if is_ready {
            let mut none: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut none);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
            libc::execve(entry.path, entry.arguments, entry.variables);
        }
        entry.error = io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL);
        libc::_exit(127)
    }
}

/// Signals do what they do in a new program: handlers of the parent are none of the child's, and Rust ignores SIGPIPE.
///
/// # Safety
/// All signals are blocked, and the table of handlers is the caller's own.
unsafe fn reset_handlers() {
    for signal in 1..=libc::SIGRTMAX() {
        // SAFETY: all-zero is valid, and the table is read into a struct of ours, or written from one.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            // Linux or the C library keeps some to itself.
            let is_known = libc::sigaction(signal, ptr::null(), &raw mut action) == 0;
            let is_ignored = action.sa_sigaction == libc::SIG_IGN && signal != libc::SIGPIPE;
            if is_known && action.sa_sigaction != libc::SIG_DFL && !is_ignored {
                action.sa_sigaction = libc::SIG_DFL;
                libc::sigaction(signal, &raw const action, ptr::null_mut());
            }
        }
    }
}

impl Program {
    /// Its number, which stands for no other process, and no other process group, until it is waited for.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// As [`process::has_ended_by`].
    ///
    /// # Errors
    /// As that.
    pub fn has_ended_by(&self, until: Instant) -> io::Result<bool> {
        process::has_ended_by(self.pid, until)
    }

    /// Kills all processes of its group.
    pub fn kill(&self) {
        if !self.was_waited_for {
            process::kill_group(self.pid);
        }
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// If this process waited for it elsewhere.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        let mut status = 0;
        loop {
            // SAFETY: the status is written only.
            let waited = unsafe { libc::waitpid(self.pid.cast_signed(), &raw mut status, 0) };
            let error = io::Error::last_os_error();
            if waited == -1 && error.kind() == io::ErrorKind::Interrupted {
                continue;
            }
            self.was_waited_for = true;
            return if waited == -1 { Err(error) } else { Ok(ExitStatus::from_raw(status)) };
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if !self.was_waited_for {
            self.kill();
            let _ = self.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn shell(script: &str) -> Program {
        let words = ["-c".to_owned(), script.to_owned()];
        let image = Image::new(Path::new("/bin/sh"), &words, Path::new("/")).expect("no NUL");
        image.start("LAXITY_TEST", "5", None).expect("there is a shell")
    }

    #[test]
    fn a_program_has_its_folder_its_variable_its_own_group_and_no_signal_blocked() {
        let script = "[ $PWD = / ] && [ $LAXITY_TEST = 5 ] && [ -n \"$PATH\" ] && read -r pid _ _ _ group _ </proc/self/stat
            ! read -r line && while read -r name set; do case $name in SigBlk:) [ $set = 0000000000000000 ] || exit 4;; esac
            done </proc/self/status; [ $group = $$ ] && exit 7";
        assert_eq!(shell(script).wait().expect("ours").code(), Some(7));
    }

    #[test]
    fn a_file_that_cannot_be_executed_is_an_error() {
        let image = Image::new(Path::new("/proc/version"), &[], Path::new("/")).expect("no NUL");
        let error = image.start("A", "b", None).expect_err("it is no program");
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        let image = Image::new(Path::new("/bin/sh"), &[], Path::new("/nowhere")).expect("no NUL");
        assert_eq!(image.start("A", "b", None).expect_err("no folder").kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_program_that_is_dropped_is_killed_with_what_it_started() {
        let started = shell("sleep 600 & sleep 600");
        let group = started.pid().cast_signed();
        // SAFETY: signal 0 is none: Linux looks whether the group has a process.
        let has_some = move || unsafe { libc::kill(-group, 0) } == 0;
        assert!(has_some());
        drop(started);
        // What it started is reaped by another process.
        laxity_testing::until("the group is empty", || !has_some());
    }

    #[test]
    fn a_program_ends_with_the_thread_that_started_it() {
        let mut program = thread::spawn(|| shell("while :; do sleep 1; done")).join().expect("no panic");
        assert_eq!(program.wait().expect("ours").signal(), Some(libc::SIGKILL));
    }
}
