//! Functions of the Python interpreter in this process: the one that runs already, or one whose shared library is loaded at
//! run time, so that the command needs none itself. All functions are of Python's stable interface (3.10 or newer).
//!
//! Threads call Python one at a time: the interpreter has a lock, which a thread holds while it is in `call`.

use std::ffi::{CStr, CString, c_char, c_int, c_long, c_ulonglong, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::sync::{Mutex, OnceLock, PoisonError};

use super::library::loader_error;
use super::parking::parked_if_unwound;
use super::{RawEdge, View};

/// An object of Python's, or null.
type Object = *mut c_void;

/// The helper in Python that makes jobs of what it is given.
const HELPER: &str = include_str!("helper.py");
/// Its name among Python's modules.
const MODULE: &CStr = c"_laxity_code";

/// `PyBUF_READ` and `PyBUF_WRITE`.
const READ: c_int = 0x100;
const WRITE: c_int = 0x200;
/// `Py_file_input`.
const FILE_INPUT: c_int = 257;

macro_rules! functions {
    ($($name:ident: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions of the library that are called.
        #[allow(non_snake_case, reason = "names of C")]
        struct Functions { $($name: unsafe extern "C-unwind" fn($($argument),*) $(-> $result)?,)* }

        impl Functions {
            /// Those of the library `handle`; or the name of one that is missing.
            fn of(handle: *mut c_void) -> Result<Functions, &'static str> {
                Ok(Functions {
                    $($name: {
                        let name = concat!(stringify!($name), "\0");
                        // SAFETY: the handle is from `dlopen`, and the name ends with NUL.
                        let address = unsafe { libc::dlsym(handle, name.as_ptr().cast()) };
                        if address.is_null() {
                            return Err(stringify!($name));
                        }
                        // SAFETY: Python's documentation of the stable interface gives this signature.
                        unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C-unwind" fn($($argument),*) $(-> $result)?>(address) }
                    },)*
                })
            }
        }
    };
}

functions! {
    Py_InitializeEx: fn(c_int);
    Py_IsInitialized: fn() -> c_int;
    Py_IncRef: fn(Object);
    Py_DecRef: fn(Object);
    Py_CompileString: fn(*const c_char, *const c_char, c_int) -> Object;
    PyEval_EvalCode: fn(Object, Object, Object) -> Object;
    PyEval_GetBuiltins: fn() -> Object;
    PyEval_SaveThread: fn() -> *mut c_void;
    PyEval_RestoreThread: fn(*mut c_void);
    PyGILState_Ensure: fn() -> c_int;
    PyGILState_Release: fn(c_int);
    PyImport_AddModule: fn(*const c_char) -> Object;
    PyModule_GetDict: fn(Object) -> Object;
    PyDict_GetItemString: fn(Object, *const c_char) -> Object;
    PyDict_SetItemString: fn(Object, *const c_char, Object) -> c_int;
    PyObject_CallObject: fn(Object, Object) -> Object;
    PyTuple_New: fn(isize) -> Object;
    PyTuple_SetItem: fn(Object, isize, Object) -> c_int;
    PyList_New: fn(isize) -> Object;
    PyList_SetItem: fn(Object, isize, Object) -> c_int;
    PyList_GetItem: fn(Object, isize) -> Object;
    PyLong_FromUnsignedLongLong: fn(c_ulonglong) -> Object;
    PyLong_AsLong: fn(Object) -> c_long;
    PyErr_Occurred: fn() -> Object;
    PyUnicode_FromStringAndSize: fn(*const c_char, isize) -> Object;
    PyUnicode_AsUTF8AndSize: fn(Object, *mut isize) -> *const c_char;
    PyMemoryView_FromMemory: fn(*mut c_char, isize, c_int) -> Object;
    PyErr_Print: fn();
    PyErr_Clear: fn();
}

/// The interpreter of this process.
pub struct Python {
    functions: Functions,
    /// Functions of the helper.
    prepare: Object,
    call: Object,
    end: Object,
}

// SAFETY: functions are called by threads that hold the interpreter's lock, and the objects are used by these alone.
unsafe impl Send for Python {}
// SAFETY: as above.
unsafe impl Sync for Python {}

/// The code of one task, on one thread.
pub struct PythonCode {
    python: &'static Python,
    /// The state of the thread; it is not current while the thread does not call Python.
    thread: *mut c_void,
    /// From the first call to the last.
    ensured: c_int,
    /// What the helper made of the function.
    state: Object,
    /// Whether something showed a message when the last call was over.
    keeps_messages: bool,
}

static PYTHON: OnceLock<Python> = OnceLock::new();
/// Held by the thread that makes it.
static OPENING: Mutex<()> = Mutex::new(());

impl Python {
    /// The interpreter whose shared library is `library`, whose standard modules are below `home`, and which looks for
    /// modules in the folders of `path`, which are texts. There is one interpreter in a process: another library than that of
    /// the first call changes nothing.
    ///
    /// # Errors
    /// Why there is none.
    pub fn open(library: &Path, home: &str, path: &[String]) -> Result<&'static Python, String> {
        let _only = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(python) = PYTHON.get() {
            return Ok(python);
        }
        let python = Python::start(library, home, path)?;
        Ok(PYTHON.get_or_init(|| python))
    }

    /// The interpreter that runs in this process already, if one does. The thread must not hold the interpreter's lock.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub fn of_process() -> Option<Result<&'static Python, String>> {
        // SAFETY: without a name it is the handle of the process, in which all that is global is looked up.
        let handle = unsafe { libc::dlopen(ptr::null(), libc::RTLD_NOW) };
        // SAFETY: the handle is from `dlopen`, and the name ends with NUL.
        let is_there = unsafe { libc::dlsym(handle, c"Py_IsInitialized".as_ptr()) };
        if is_there.is_null() {
            return None;
        }
        let missing = |name| format!("this process's interpreter has no {name}; take Python 3.10 or newer");
        let functions = match Functions::of(handle).map_err(missing) {
            Ok(functions) => functions,
            Err(error) => return Some(Err(error)),
        };
        // SAFETY: it may be called at any time.
        if unsafe { (functions.Py_IsInitialized)() } == 0 {
            return None;
        }
        let _only = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(python) = PYTHON.get() {
            return Some(Ok(python));
        }
        let mut python = Python { functions, prepare: ptr::null_mut(), call: ptr::null_mut(), end: ptr::null_mut() };
        // SAFETY: the lock is held from the first of these calls to the last.
        let loaded = unsafe {
            let ensured = (python.functions.PyGILState_Ensure)();
            let loaded = python.load_helper(None);
            (python.functions.PyGILState_Release)(ensured);
            loaded
        };
        Some(loaded.map(|()| PYTHON.get_or_init(|| python)))
    }

    fn start(library: &Path, home: &str, path: &[String]) -> Result<Python, String> {
        let named = CString::new(library.as_os_str().as_bytes()).map_err(|_| "a path contains a NUL".to_owned())?;
        // SAFETY: the path ends with NUL. Extension modules find Python's functions as the library is global.
        let handle = unsafe { libc::dlopen(named.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        if handle.is_null() {
            return Err(loader_error());
        }
        let missing = |name| format!("{} has no {name}; take Python 3.10 or newer", library.display());
        let functions = Functions::of(handle).map_err(missing)?;
        let mut python = Python { functions, prepare: ptr::null_mut(), call: ptr::null_mut(), end: ptr::null_mut() };
        let home = CString::new(home).map_err(|_| "a path contains a NUL".to_owned())?;
        // SAFETY: as Python's documentation says: one thread initializes it, by documented calls in this order, and gives its
        // lock up at the end. The environment is changed before any thread of Python is there.
        unsafe {
            if (python.functions.Py_IsInitialized)() == 0 {
                libc::setenv(c"PYTHONHOME".as_ptr(), home.as_ptr(), 1);
                // Without handlers of signals: Ctrl-C is the command's.
                (python.functions.Py_InitializeEx)(0);
                libc::unsetenv(c"PYTHONHOME".as_ptr());
            }
            let outcome = python.load_helper(Some(path));
            (python.functions.PyEval_SaveThread)();
            outcome?;
        }
        Ok(python)
    }

    /// Runs the helper, and has it look for modules in `path`, if there is one.
    ///
    /// # Safety
    /// The thread holds the interpreter's lock.
    unsafe fn load_helper(&mut self, path: Option<&[String]>) -> Result<(), String> {
        let f = &self.functions;
        let source = CString::new(HELPER).expect("the helper has no NUL");
        // SAFETY: the caller holds the lock; texts end with NUL. Objects of the module are borrowed, and stay with
        // it; so does the module itself.
        unsafe {
            let dict = (f.PyModule_GetDict)((f.PyImport_AddModule)(MODULE.as_ptr()));
            (f.PyDict_SetItemString)(dict, c"__builtins__".as_ptr(), (f.PyEval_GetBuiltins)());
            let code = (f.Py_CompileString)(source.as_ptr(), MODULE.as_ptr(), FILE_INPUT);
            if code.is_null() || (f.PyEval_EvalCode)(code, dict, dict).is_null() {
                (f.PyErr_Print)();
                return Err("the interpreter cannot run Laxity's helper; take Python 3.10 or newer".to_owned());
            }
            let named = |name: &CStr| (f.PyDict_GetItemString)(dict, name.as_ptr());
            (self.prepare, self.call, self.end) = (named(c"prepare"), named(c"call"), named(c"end"));
            let Some(path) = path else { return Ok(()) };
            let texts: Vec<Object> = path.iter().map(|folder| self.text(folder)).collect();
            let answer = self.call_with(named(c"set_path"), &[self.list(&texts)]);
            self.drop_answer(answer);
        }
        Ok(())
    }

    /// Checks that `function`, as `module:function`, can be called.
    ///
    /// # Errors
    /// Why not, in Python's words.
    pub fn find(&'static self, function: &str) -> Result<(), String> {
        // SAFETY: the lock is held from the first of these calls to the last.
        unsafe {
            let ensured = (self.functions.PyGILState_Ensure)();
            let arguments = [self.text(function), self.text(""), self.list(&[]), self.list(&[])];
            let answer = self.call_with(self.prepare, &arguments);
            let failed = self.failure_of(answer);
            self.drop_answer(answer);
            (self.functions.PyGILState_Release)(ensured);
            failed.map_or(Ok(()), Err)
        }
    }

    /// The code `function`, as `module:function`, of the task called `task`, whose edges have these peers, for this thread.
    ///
    /// # Errors
    /// What Python raises.
    pub fn begin(
        &'static self,
        function: &str,
        task: &str,
        inputs: &[String],
        outputs: &[String],
    ) -> Result<PythonCode, String> {
        // SAFETY: the lock is held from the first of these calls to the last, which leaves the state of the thread for the
        // next.
        parked_if_unwound(|| unsafe {
            let ensured = (self.functions.PyGILState_Ensure)();
            let texts = |names: &[String]| self.list(&names.iter().map(|name| self.text(name)).collect::<Vec<_>>());
            let arguments = [self.text(function), self.text(task), texts(inputs), texts(outputs)];
            let state = self.call_with(self.prepare, &arguments);
            let failed = self.failure_of(state);
            let thread = (self.functions.PyEval_SaveThread)();
            failed.map_or(Ok(PythonCode { python: self, thread, ensured, state, keeps_messages: false }), Err)
        })
    }

    /// # Safety
    /// The thread holds the interpreter's lock.
    unsafe fn text(&self, text: &str) -> Object {
        // SAFETY: as the caller says; the text is copied.
        unsafe { (self.functions.PyUnicode_FromStringAndSize)(text.as_ptr().cast(), text.len() as isize) }
    }

    /// A list that takes the references of `items`.
    ///
    /// # Safety
    /// The thread holds the interpreter's lock.
    unsafe fn list(&self, items: &[Object]) -> Object {
        // SAFETY: as the caller says; each place of the new list is set once.
        unsafe {
            let list = (self.functions.PyList_New)(items.len() as isize);
            for (place, item) in (0..).zip(items) {
                (self.functions.PyList_SetItem)(list, place, *item);
            }
            list
        }
    }

    /// Calls `function`, taking the references of `arguments`; null if it raised, which is then told on standard error.
    ///
    /// # Safety
    /// The thread holds the interpreter's lock.
    unsafe fn call_with(&self, function: Object, arguments: &[Object]) -> Object {
        // SAFETY: as the caller says; each place of the new tuple is set once.
        unsafe {
            let tuple = (self.functions.PyTuple_New)(arguments.len() as isize);
            for (place, argument) in (0..).zip(arguments) {
                (self.functions.PyTuple_SetItem)(tuple, place, *argument);
            }
            let answer = (self.functions.PyObject_CallObject)(function, tuple);
            (self.functions.Py_DecRef)(tuple);
            if answer.is_null() {
                (self.functions.PyErr_Print)();
            }
            answer
        }
    }

    /// What the helper says went wrong: it answers a text then.
    ///
    /// # Safety
    /// The thread holds the interpreter's lock.
    unsafe fn failure_of(&self, answer: Object) -> Option<String> {
        if answer.is_null() {
            return Some("Python failed, as standard error says".to_owned());
        }
        let mut length = 0;
        // SAFETY: as the caller says; the text belongs to the object, and is copied.
        unsafe {
            let text = (self.functions.PyUnicode_AsUTF8AndSize)(answer, &raw mut length);
            if text.is_null() {
                // It is no text.
                (self.functions.PyErr_Clear)();
                return None;
            }
            let bytes = std::slice::from_raw_parts(text.cast::<u8>(), length as usize);
            Some(String::from_utf8_lossy(bytes).into_owned())
        }
    }

    /// # Safety
    /// The thread holds the interpreter's lock, and gives its reference up.
    unsafe fn drop_answer(&self, answer: Object) {
        if !answer.is_null() {
            // SAFETY: as the caller says.
            unsafe { (self.functions.Py_DecRef)(answer) };
        }
    }

    /// A list, for each edge, of lists of views of its messages, which stay where they are.
    ///
    /// # Safety
    /// The thread holds the interpreter's lock; the edges and their messages are there.
    unsafe fn messages(&self, edges: *const RawEdge, count: u32, access: c_int) -> Object {
        // SAFETY: as the caller says.
        unsafe {
            let edges = if count == 0 { &[] } else { std::slice::from_raw_parts(edges, count as usize) };
            let of_edge = |edge: &RawEdge| {
                let views: Vec<Object> = (0..edge.count as usize)
                    .map(|number| {
                        let message = &*edge.messages.add(number);
                        let length = if access == WRITE { message.capacity } else { message.length };
                        (self.functions.PyMemoryView_FromMemory)(message.data.cast(), length as isize, access)
                    })
                    .collect();
                self.list(&views)
            };
            self.list(&edges.iter().map(of_edge).collect::<Vec<_>>())
        }
    }
}

impl PythonCode {
    /// Calls it; messages that it made shorter are so.
    ///
    /// # Errors
    /// What it raised.
    pub fn call(&mut self, view: &mut View<'_>) -> Result<(), String> {
        let python = self.python;
        let raw = &mut view.raw;
        // SAFETY: the state is that of this thread, and the lock is held until it is saved again. The edges and messages are
        // there while the view is; the helper releases the views of them before it returns, or says that it could not.
        parked_if_unwound(|| unsafe {
            (python.functions.PyEval_RestoreThread)(self.thread);
            let number = |value: u64| (python.functions.PyLong_FromUnsignedLongLong)(value);
            let numbers = [raw.job, raw.release_ns, raw.deadline_ns, raw.step.into(), raw.kind.into()].map(number);
            let inputs = python.messages(raw.inputs, raw.input_count, READ);
            let outputs = python.messages(raw.outputs, raw.output_count, WRITE);
            (python.functions.Py_IncRef)(self.state);
            let answer = python.call_with(python.call, &[self.state, python.list(&numbers), inputs, outputs]);
            let (is_kept, outcome) = python.take_answer(answer, raw);
            python.drop_answer(answer);
            self.thread = (python.functions.PyEval_SaveThread)();
            self.keeps_messages |= is_kept;
            outcome
        })
    }

    /// Whether something still showed a message when a call was over. The memory of messages must then stay where it is,
    /// for as long as the program lasts.
    pub fn keeps_messages(&self) -> bool {
        self.keeps_messages
    }

    /// There are no more calls.
    ///
    /// # Errors
    /// What it raised when it was closed.
    pub fn end(self) -> Result<(), String> {
        let python = self.python;
        // SAFETY: as in `call`; the last call of this thread.
        parked_if_unwound(|| unsafe {
            (python.functions.PyEval_RestoreThread)(self.thread);
            let answer = python.call_with(python.end, &[self.state]);
            let failure = python.failure_of(answer);
            python.drop_answer(answer);
            (python.functions.PyGILState_Release)(self.ensured);
            failure.map_or(Ok(()), Err)
        })
    }
}

impl Python {
    /// Sets the lengths of the messages that go out to those of `answer`, which the helper gave of a call: a list of why it
    /// failed, whether messages are kept, and these lengths. Answers whether messages are kept, and why it failed.
    ///
    /// # Safety
    /// The thread holds the interpreter's lock, and the messages are there.
    unsafe fn take_answer(&self, answer: Object, raw: &mut super::RawCall) -> (bool, Result<(), String>) {
        if answer.is_null() {
            // Not known, and so for sure.
            return (true, Err("Python failed, as standard error says".to_owned()));
        }
        // SAFETY: as the caller says; the items are borrowed from the list, which stays.
        let (failed, is_kept) = unsafe {
            (self.failure_of((self.functions.PyList_GetItem)(answer, 0)), self.number_at(answer, 1) != Some(0))
        };
        if let Some(failed) = failed {
            return (is_kept, Err(failed));
        }
        let mut place = 2;
        for edge in 0..raw.output_count as usize {
            // SAFETY: as the caller says; the call has so many edges, each of them so many messages.
            unsafe {
                let edge = &*raw.outputs.add(edge);
                for number in 0..edge.count as usize {
                    let message = &mut *edge.messages.add(number);
                    match self.number_at(answer, place).and_then(|length| usize::try_from(length).ok()) {
                        Some(length) if length <= message.capacity => message.length = length,
                        _ => {
                            return (
                                is_kept,
                                Err("it changed the lengths of its messages otherwise than by `resize`".to_owned()),
                            );
                        }
                    }
                    place += 1;
                }
            }
        }
        (is_kept, Ok(()))
    }

    /// The number at `place` of `list`, if there is one. No exception is left.
    ///
    /// # Safety
    /// The thread holds the interpreter's lock.
    unsafe fn number_at(&self, list: Object, place: isize) -> Option<c_long> {
        let f = &self.functions;
        // SAFETY: as the caller says; the item is borrowed.
        unsafe {
            let item = (f.PyList_GetItem)(list, place);
            let number = if item.is_null() { -1 } else { (f.PyLong_AsLong)(item) };
            if (f.PyErr_Occurred)().is_null() {
                return Some(number);
            }
            (f.PyErr_Clear)();
            None
        }
    }
}
