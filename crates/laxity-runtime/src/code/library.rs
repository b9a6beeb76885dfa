//! Functions of shared libraries.

use std::path::Path;
use std::sync::Arc;

use laxity_model::CodeSource;
use laxity_sys::own_code::{Function, Library, State, View};

use super::{Code, Edges, MakeCode};

/// A function with its state.
struct Loaded {
    function: Function,
    state: State,
    symbol: String,
}

/// Loads the library that `source` names; answers with the field that is wrong, and why, if it cannot.
pub(super) fn load(source: &CodeSource, folder: &Path) -> Result<MakeCode, (&'static str, String)> {
    let CodeSource::Library { library, symbol, init, exit } = source else {
        unreachable!("it is called for libraries")
    };
    let path = folder.join(library);
    // The loader would look for a name without a slash elsewhere.
    let path = if path.is_absolute() { path } else { Path::new(".").join(path) };
    if !path.exists() {
        let message = format!("there is no file {}; build the library, or correct the name", path.display());
        return Err(("library", message));
    }
    let loaded = Arc::new(Library::open(&path).map_err(|error| ("library", error.to_string()))?);
    let named = [("symbol", Some(symbol)), ("init", init.as_ref()), ("exit", exit.as_ref())];
    for (field, name) in named {
        name.map_or(Ok(()), |name| loaded.require(name)).map_err(|error| (field, error.to_string()))?;
    }
    let function = loaded.function(symbol, init.as_deref(), exit.as_deref());
    let function = function.map_err(|error| ("symbol", error.to_string()))?;
    let (symbol, init) = (symbol.clone(), init.clone().unwrap_or_default());
    Ok(Arc::new(move |task: &str, _: &Edges| {
        let failed = |failure| format!("its code cannot begin: {init} {failure}");
        let state = function.begin(task).map_err(failed)?;
        let (function, symbol) = (function.clone(), symbol.clone());
        Ok(Box::new(Loaded { function, state, symbol }) as Box<dyn Code>)
    }))
}

/// A function of this program, called `name` in messages.
pub fn of_function(function: Function, name: &str) -> MakeCode {
    let name = name.to_owned();
    Arc::new(move |task: &str, _: &Edges| {
        let state = function.begin(task).map_err(|failure| format!("its code cannot begin: it {failure}"))?;
        Ok(Box::new(Loaded { function: function.clone(), state, symbol: name.clone() }) as Box<dyn Code>)
    })
}

impl Code for Loaded {
    fn call(&mut self, view: &mut View<'_>) -> Result<(), String> {
        self.function.call(view, &self.state).map_err(|failure| format!("{} {failure}", self.symbol))
    }

    fn end(self: Box<Self>) -> Result<(), String> {
        let Loaded { function, state, .. } = *self;
        function.end(state);
        Ok(())
    }
}
