//! The user's own code: what jobs call in place of using up CPU time.
//!
//! ```text
//!   workload file  --load_code-->  library, command          \
//!   program        --bind------->  any Code of its own        }-->  each worker makes its Code, calls it, ends it
//! ```

mod command;
mod library;
mod python;
mod times;
mod watch;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use laxity_model::{CodeSource, Nanos, OwnCode};
pub use laxity_sys::own_code::{Edge, Function, Head, StepKind, View, WARM_UP};
use thiserror::Error;

pub use self::library::of_function;
pub use self::python::of_python;
pub use self::times::CallTimes;
pub(crate) use self::watch::{Part, Watch, Watches};
use crate::plan::LivePlan;

/// Code that carries out the steps of one task's jobs. It is made on the thread of the task and stays there.
pub trait Code {
    /// Carries out a step.
    ///
    /// # Errors
    /// Why the run cannot go on, in words that follow "its code".
    fn call(&mut self, view: &mut View<'_>) -> Result<(), String>;

    /// As [`Code::call`], by code that also executes elsewhere than on the thread of the task, and charges that.
    ///
    /// # Errors
    /// As [`Code::call`].
    fn call_charged(&mut self, view: &mut View<'_>, _account: &mut dyn Account) -> Result<(), String> {
        self.call(view)
    }

    /// Whether something of it may still use the memory of messages of its calls, which were to be over. The memory then stays
    /// where it is, for as long as the process lasts.
    fn keeps_messages(&self) -> bool {
        false
    }

    /// There are no more calls.
    ///
    /// # Errors
    /// Why it could not end as it should.
    fn end(self: Box<Self>) -> Result<(), String> {
        Ok(())
    }
}

/// The budget of a job whose code executes elsewhere than on the thread of its task.
pub trait Account {
    /// What is left of the budget; `None`: as much as it needs.
    fn left(&self) -> Option<Nanos>;

    /// The job has used so much CPU time elsewhere. Answers whether it must stop now, and [`Account::wait`].
    fn charge(&mut self, used: Nanos) -> bool;

    /// Waits until there is a budget again. Answers whether the job goes on then.
    fn wait(&mut self) -> bool;

    /// The program `pid`, which leads a process group and is not waited for before [`Account::end_program`], executes for the job
    /// now. Its group is killed when the run ends before.
    fn begin_program(&mut self, _pid: u32) {}

    /// It has ended, and may be waited for. Answers whether the run ended before.
    fn end_program(&mut self) -> bool {
        false
    }
}

/// Makes the code of a task, whose name and edges it gets.
pub type MakeCode = Arc<dyn Fn(&str, &Edges) -> Result<Box<dyn Code>, String> + Send + Sync>;

/// The edges of a node that carry messages; none of a task.
#[derive(Clone, Debug, Default)]
pub struct Edges {
    /// Those over which messages come.
    pub inputs: Vec<Edge>,
    /// Those over which messages go.
    pub outputs: Vec<Edge>,
}

/// The code of one task.
#[derive(Clone)]
pub(crate) struct Bound {
    pub make: MakeCode,
    /// Whether it is called once before time 0.
    pub warm: bool,
}

/// Code that a workload names cannot be called.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("task {name:?}: {message}")]
pub struct CodeError {
    /// The task or node that names it: its number among all tasks and then all nodes of the workload.
    pub task: usize,
    /// Its name.
    pub name: String,
    /// The field of its `run` that is wrong.
    pub field: &'static str,
    /// What is wrong with it, and the way out.
    pub message: String,
}

/// No task has this name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no task or node {name:?}; write one of {known}, nodes as GRAPH/NODE")]
pub struct NoTask {
    /// The name.
    pub name: String,
    /// Those that there are.
    pub known: String,
}

impl LivePlan {
    /// Finds and loads all code that the workload names, with paths from `folder`, but for tasks that are bound already.
    /// Without it, tasks use up CPU time.
    ///
    /// # Errors
    /// Each that cannot be called.
    pub fn load_code(&mut self, folder: &Path) -> Result<(), Vec<CodeError>> {
        let (mut errors, class) = (Vec::new(), self.linux());
        for (number, task) in self.tasks.iter_mut().enumerate() {
            let Some(OwnCode { source, warm }) = task.run.as_ref().filter(|_| task.code.is_none()) else { continue };
            let made = match source {
                CodeSource::Library { .. } => library::load(source, folder),
                CodeSource::Command(words) => command::load(words, folder, class),
                CodeSource::Python { function } => python::load(function, folder).map_err(|error| ("python", error)),
            };
            match made {
                Ok(make) => task.code = Some(Bound { make, warm: *warm }),
                Err((field, message)) => {
                    errors.push(CodeError { task: number, name: task.name.clone(), field, message });
                }
            }
        }
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    /// Has the jobs of the task or node called `name` (`GRAPH/NODE`) run code of this program, whatever the workload names;
    /// if `warm`, once before time 0, too.
    ///
    /// # Errors
    /// [`NoTask`].
    pub fn bind(&mut self, name: &str, make: MakeCode, warm: bool) -> Result<(), NoTask> {
        let known = || self.tasks.iter().map(|task| task.name.as_str()).collect::<Vec<_>>().join(", ");
        let Some(at) = self.tasks.iter().position(|task| task.name == name) else {
            return Err(NoTask { name: name.to_owned(), known: known() });
        };
        self.tasks[at].code = Some(Bound { make, warm });
        Ok(())
    }

    /// The tasks and nodes that name code which was not loaded: they use up CPU time instead.
    pub fn without_code(&self) -> impl Iterator<Item = &str> {
        let is_left = |task: &&crate::plan::TaskPlan| task.run.is_some() && task.code.is_none();
        self.tasks.iter().filter(is_left).map(|task| task.name.as_str())
    }
}

impl fmt::Debug for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bound").field("warm", &self.warm).finish_non_exhaustive()
    }
}
