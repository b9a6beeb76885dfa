//! The user's own code: what a live run calls for each job in place of using up CPU time.

/// What runs the jobs of a task or node live. Analysis and simulation go by the body all the same.
///
/// It is called once for each step of the body that has a time and is not the GPU's: `cpu`, `nonpreemptive` and `suspend`.
/// Everything else of the body (critical sections, GPUs) is carried out around these calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnCode {
    /// Where the code is.
    pub source: CodeSource,
    /// Whether it is called once before time 0, so that no job is the first to touch its memory.
    pub warm: bool,
}

/// Where the user's code is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CodeSource {
    /// A function of a shared library, by the interface of `laxity/code.h`.
    Library {
        /// The library's file; without a slash too, it is one of the folder of the workload file.
        library: String,
        /// The function that jobs call.
        symbol: String,
        /// The function that is called once before the first job.
        init: Option<String>,
        /// The function that is called once after the last job.
        exit: Option<String>,
    },
    /// A function of a Python module, as `module:function`. Modules are looked for in the folder of the workload file first.
    Python {
        /// Module and function, with a colon between them.
        function: String,
    },
    /// A program and its arguments, started anew for each job. A program with a slash is relative to the folder of the
    /// workload file; one without is looked for in `PATH`.
    Command(Vec<String>),
}

impl OwnCode {
    /// Called once, from a source that is not warmed up.
    pub fn new(source: CodeSource) -> OwnCode {
        OwnCode { source, warm: false }
    }
}

impl CodeSource {
    /// The field of a workload file that names it.
    pub fn key(&self) -> &'static str {
        match self {
            CodeSource::Library { .. } => "library",
            CodeSource::Python { .. } => "python",
            CodeSource::Command(_) => "command",
        }
    }
}
