//! Functions of shared libraries.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::Arc;

use super::{ABI, View};

/// The name of the number in a library that says for which version of the interface it was built.
const ABI_SYMBOL: &str = "laxity_code_abi";

/// A shared library in this process. It stays until the process ends: its threads may outlast all handles.
#[derive(Debug)]
pub struct Library {
    handle: *mut c_void,
    path: PathBuf,
}

// SAFETY: the handle is used by `dlsym` alone, which any thread may call.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

/// Why code cannot be called.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LibraryError {
    /// The file cannot be loaded.
    #[error("{0}")]
    Open(String),
    /// The library does not say for which interface it was built.
    #[error(
        "{} does not define {ABI_SYMBOL}; include <laxity/code.h> and write LAXITY_CODE_LIBRARY in one of its files",
        .0.display()
    )]
    NoAbi(PathBuf),
    /// It was built for another one.
    #[error("{} was built for version {found} of laxity/code.h, and this is version {ABI}; build it anew", .path.display())]
    Abi {
        /// The library.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
    /// It has no such function.
    #[error("{} has no symbol {symbol}; in C++ declare it extern \"C\", and `nm -D` lists what there is", .path.display())]
    NoSymbol {
        /// The library.
        path: PathBuf,
        /// The function.
        symbol: String,
    },
}

/// The function of a library in C++ that calls another one and catches its exceptions.
const GUARD_SYMBOL: &str = "laxity_code_guard";

/// Bytes of an exception's text.
const WHAT: usize = 512;

/// How code ended that did not succeed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// With another number than 0.
    #[error("answered {0}")]
    Answered(i32),
    /// With an exception, of which this is the text.
    #[error("threw an exception: {0}")]
    Threw(String),
}

/// The signature of code: 0 is success. It should not unwind; if it does, the watch of the thread ends that.
type RawFunction = unsafe extern "C-unwind" fn(*mut super::RawCall) -> c_int;
type RawInit = unsafe extern "C-unwind" fn(task: *const c_char, state: *mut *mut c_void) -> c_int;
type RawExit = unsafe extern "C-unwind" fn(state: *mut c_void);
type RawGuard = unsafe extern "C-unwind" fn(
    call: extern "C-unwind" fn(argument: *mut c_void),
    argument: *mut c_void,
    what: *mut c_char,
    size: usize,
) -> c_int;

/// A function that is called for steps of jobs, with those that precede and follow all calls, if there are any.
#[derive(Clone, Debug)]
pub struct Function {
    function: RawFunction,
    init: Option<RawInit>,
    exit: Option<RawExit>,
    guard: Option<RawGuard>,
    /// The state where there is no `init`.
    user: *mut c_void,
    _library: Option<Arc<Library>>,
}

// SAFETY: the giver of functions promises that the threads of a run may call them, and what `user` points to is theirs.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

/// What `init` made for one task.
#[derive(Debug)]
pub struct State(*mut c_void);

impl Library {
    /// Loads the library in `path`, with all that it needs.
    ///
    /// # Errors
    /// What the loader says, or that the library is none of ours.
    pub fn open(path: &Path) -> Result<Library, LibraryError> {
        let named = CString::new(path.as_os_str().as_bytes());
        let named = named.map_err(|_| LibraryError::Open("the path contains a NUL".to_owned()))?;
        // SAFETY: the path ends with NUL. Initializers of the library run: the user named it to be run.
        let handle = unsafe { libc::dlopen(named.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return Err(LibraryError::Open(loader_error()));
        }
        let library = Library { handle, path: path.to_owned() };
        let abi = library.symbol(ABI_SYMBOL).ok_or_else(|| LibraryError::NoAbi(path.to_owned()))?;
        // SAFETY: `laxity/code.h` defines the symbol of this name as a constant of 32 bits.
        match unsafe { *abi.cast_const().cast::<u32>() } {
            ABI => Ok(library),
            found => Err(LibraryError::Abi { path: path.to_owned(), found }),
        }
    }

    fn symbol(&self, name: &str) -> Option<*mut c_void> {
        let name = CString::new(name).ok()?;
        // SAFETY: the handle is from `dlopen` and never closed; the name ends with NUL.
        let address = unsafe { libc::dlsym(self.handle, name.as_ptr()) };
        (!address.is_null()).then_some(address)
    }

    /// Whether it has `symbol`.
    ///
    /// # Errors
    /// [`LibraryError::NoSymbol`].
    pub fn require(&self, symbol: &str) -> Result<(), LibraryError> {
        self.address(symbol).map(drop)
    }

    fn address(&self, symbol: &str) -> Result<*mut c_void, LibraryError> {
        let missing = || LibraryError::NoSymbol { path: self.path.clone(), symbol: symbol.to_owned() };
        self.symbol(symbol).ok_or_else(missing)
    }

    /// The function `symbol`, with `init` and `exit`.
    ///
    /// # Errors
    /// [`LibraryError::NoSymbol`].
    pub fn function(
        self: &Arc<Self>,
        symbol: &str,
        init: Option<&str>,
        exit: Option<&str>,
    ) -> Result<Function, LibraryError> {
        let function = self.address(symbol)?;
        let init = init.map(|init| self.address(init)).transpose()?;
        let exit = exit.map(|exit| self.address(exit)).transpose()?;
        let guard = self.symbol(GUARD_SYMBOL);
        // SAFETY: `laxity/code.h` gives these signatures to functions that a workload file may name, and the library says
        // that it was built with that header. A symbol of data would be called, as in any program that declares it wrongly.
        let (function, init, exit, guard) = unsafe {
            (
                std::mem::transmute::<*mut c_void, RawFunction>(function),
                init.map(|init| std::mem::transmute::<*mut c_void, RawInit>(init)),
                exit.map(|exit| std::mem::transmute::<*mut c_void, RawExit>(exit)),
                guard.map(|guard| std::mem::transmute::<*mut c_void, RawGuard>(guard)),
            )
        };
        Ok(Function { function, init, exit, guard, user: ptr::null_mut(), _library: Some(Arc::clone(self)) })
    }
}

impl Function {
    /// A function of this process, with `user` as state.
    ///
    /// # Safety
    /// `function` is a `laxity_code_function` that the threads of a run may call, at any time until the process ends, with
    /// `user` as state.
    pub unsafe fn of_process(function: *const c_void, user: *mut c_void) -> Function {
        // SAFETY: the caller promises that it is one.
        let function = unsafe { std::mem::transmute::<*const c_void, RawFunction>(function) };
        Function { function, init: None, exit: None, guard: None, user, _library: None }
    }

    /// Makes the state of the task called `task`. To be called on the thread of the task.
    ///
    /// # Errors
    /// How `init` failed.
    pub fn begin(&self, task: &str) -> Result<State, Failure> {
        let Some(init) = self.init else { return Ok(State(self.user)) };
        let task = super::text(task);
        let mut state = self.user;
        // SAFETY: `laxity/code.h` promises the function a name that ends with NUL and a place for its state.
        self.guarded(|| unsafe { init(task.as_ptr(), &raw mut state) })?;
        Ok(State(state))
    }

    /// Calls it.
    ///
    /// # Errors
    /// How it failed.
    pub fn call(&self, view: &mut View<'_>, state: &State) -> Result<(), Failure> {
        view.raw.state = state.0;
        // SAFETY: all that the call points to is there while `view` is: the frame filled it in and lent the messages.
        self.guarded(|| unsafe { (self.function)(&raw mut view.raw) })
    }

    /// Does `call` inside the library's guard, if it has one.
    fn guarded(&self, call: impl FnMut() -> c_int) -> Result<(), Failure> {
        let mut of_call = (call, 0);
        let Some(guard) = self.guard else { return answer((of_call.0)()) };
        let mut what = [0; WHAT];
        let inside = inside_of(&of_call);
        // SAFETY: `laxity/code.h` defines the symbol of this name: it calls `inside` once with the argument, which is of the
        // type that it expects, and writes no more than fits.
        match unsafe { guard(inside, (&raw mut of_call).cast(), what.as_mut_ptr(), WHAT) } {
            0 => answer(of_call.1),
            _ => {
                what[WHAT - 1] = 0;
                // SAFETY: ends with NUL (written above).
                let what = unsafe { CStr::from_ptr(what.as_ptr()) };
                Err(Failure::Threw(what.to_string_lossy().into_owned()))
            }
        }
    }

    /// Ends with `state`.
    pub fn end(&self, state: State) {
        if let Some(exit) = self.exit {
            // SAFETY: `laxity/code.h` promises the function the state that `init` made, once.
            unsafe { exit(state.0) };
        }
    }
}

fn answer(code: c_int) -> Result<(), Failure> {
    if code == 0 { Ok(()) } else { Err(Failure::Answered(code)) }
}

/// The function that a guard calls with a `(F, c_int)`, like `_of`: it does the call and keeps the answer.
fn inside_of<F: FnMut() -> c_int>(_of: &(F, c_int)) -> extern "C-unwind" fn(*mut c_void) {
    extern "C-unwind" fn inside<F: FnMut() -> c_int>(argument: *mut c_void) {
        // SAFETY: it is what `guarded` passed, which waits for the guard.
        let (call, code) = unsafe { &mut *argument.cast::<(F, c_int)>() };
        *code = call();
    }
    inside::<F>
}

/// The file that this code was loaded from: the program, or a shared library that it is a part of.
pub fn own_file() -> Option<PathBuf> {
    let mut found = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: the address is that of a function, which is only looked up, and the struct can be written.
    let is_found = unsafe { libc::dladdr(own_file as *const c_void, found.as_mut_ptr()) } != 0;
    // SAFETY: all-zero is a valid `Dl_info`, and a name that is not null ends with NUL.
    let name = unsafe {
        let name = found.assume_init().dli_fname;
        (is_found && !name.is_null()).then(|| CStr::from_ptr(name))
    }?;
    std::fs::canonicalize(Path::new(std::ffi::OsStr::from_bytes(name.to_bytes()))).ok()
}

/// What the loader of shared libraries says of its last failure on this thread.
pub(super) fn loader_error() -> String {
    // SAFETY: answers null or a text that is valid until the next call of the loader on this thread.
    let error = unsafe { libc::dlerror() };
    if error.is_null() {
        return "the loader does not say why".to_owned();
    }
    // SAFETY: not null (checked above), and it ends with NUL.
    unsafe { CStr::from_ptr(error) }.to_string_lossy().into_owned()
}
