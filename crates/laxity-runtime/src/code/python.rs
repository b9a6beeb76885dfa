//! Functions of Python modules, in the interpreter of this process or in one that it loads.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use laxity_sys::own_code::{Edge, Python, PythonCode, View};
use serde::Deserialize;

use super::{Code, Edges, MakeCode};

/// Which interpreter, if not the `python3` of `PATH`.
const VARIABLE: &str = "LAXITY_PYTHON";

/// Asks an interpreter for what is needed to load its library.
const QUESTION: &str = "import json, os, sys, sysconfig
get = sysconfig.get_config_var
names = [get('INSTSONAME'), get('LDLIBRARY')]
files = [os.path.join(get('LIBDIR') or '', name) for name in names if name and '.so' in name]
files = [file for file in files if os.path.exists(file)] + [name for name in names if name and '.so' in name]
print(json.dumps({'library': files[0] if files else '', 'home': sys.base_prefix, 'path': sys.path[1:],
                  'version': sys.version.split()[0]}))";

/// What it answers.
#[derive(Deserialize)]
struct Interpreter {
    library: String,
    home: String,
    path: Vec<String>,
    version: String,
}

/// A function of Python's that jobs call.
struct Called(PythonCode);

/// Finds `function` in the interpreter that runs in this process, which looks for modules as it does, or else in one that it
/// loads, which looks in `folder` first; answers why, if it cannot be called.
pub(super) fn load(function: &str, folder: &Path) -> Result<MakeCode, String> {
    match Python::of_process() {
        Some(python) => code(python?, function),
        None => code(start(folder)?, function),
    }
}

/// The function `function`, as `module:function`, of the Python program that this is. The thread must not hold the
/// interpreter's lock.
///
/// # Errors
/// Why it cannot be called.
pub fn of_python(function: &str) -> Result<MakeCode, String> {
    let python = Python::of_process().ok_or("no interpreter runs in this process")?;
    code(python?, function)
}

fn start(folder: &Path) -> Result<&'static Python, String> {
    let (program, interpreter) = ask()?;
    if interpreter.library.is_empty() {
        return Err(format!(
            "{program} (Python {}) has no shared library to load; install it (on Debian `apt-get install libpython3.11`, by \
             the version), or name another interpreter in {VARIABLE}",
            interpreter.version
        ));
    }
    // A file without a folder is in the present one.
    let own =
        std::path::absolute(Path::new(".").join(folder)).map_err(|error| format!("{}: {error}", folder.display()))?;
    let path: Vec<String> = [own.display().to_string()].into_iter().chain(interpreter.path).collect();
    let python = Python::open(&PathBuf::from(&interpreter.library), &interpreter.home, &path);
    python.map_err(|error| format!("{program}: {error}"))
}

fn code(python: &'static Python, function: &str) -> Result<MakeCode, String> {
    python.find(function)?;
    let function = function.to_owned();
    Ok(Arc::new(move |task: &str, edges: &Edges| {
        let peers = |edges: &[Edge]| edges.iter().map(|edge| edge.peer.clone()).collect::<Vec<_>>();
        let (inputs, outputs) = (peers(&edges.inputs), peers(&edges.outputs));
        let code = python.begin(&function, task, &inputs, &outputs).map_err(|error| format!("its code: {error}"))?;
        Ok(Box::new(Called(code)) as Box<dyn Code>)
    }))
}

/// The interpreter that is to be loaded, by its name and in its own words.
fn ask() -> Result<(String, Interpreter), String> {
    let program = env::var(VARIABLE).unwrap_or_else(|_| "python3".to_owned());
    let output = Command::new(&program).args(["-c", QUESTION]).output();
    let output =
        output.map_err(|error| format!("cannot start {program}: {error}; name an interpreter in {VARIABLE}"))?;
    let answer = serde_json::from_slice(&output.stdout);
    let answer = answer.map_err(|_| {
        let words = String::from_utf8_lossy(&output.stderr);
        format!("{program} does not say where its library is: {}", words.trim().lines().last().unwrap_or("no answer"))
    })?;
    Ok((program, answer))
}

impl Code for Called {
    fn call(&mut self, view: &mut View<'_>) -> Result<(), String> {
        self.0.call(view)
    }

    fn keeps_messages(&self) -> bool {
        self.0.keeps_messages()
    }

    fn end(self: Box<Self>) -> Result<(), String> {
        self.0.end()
    }
}
