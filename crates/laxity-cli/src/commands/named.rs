//! What the verbs about graphs and about arbitrations share: both have names in shared memory, and processes that may be
//! killed.

use std::fmt::Display;

use laxity_membership::{Cause, RegistryError};
use laxity_model::{ErrorCode, ErrorDetails, Nanos};
use serde::Serialize;

use crate::error::CliError;
use crate::output::{self, Output};
use crate::suggest::nearest_of;

/// What has a name, in a list.
#[derive(Serialize)]
pub struct Row<S> {
    pub name: String,
    pub in_use: bool,
    /// What is known of it, if it is in use.
    #[serde(flatten)]
    pub summary: Option<S>,
}

/// A row for each name; none for what is gone in the meantime, and a warning for what cannot be read. It does not look
/// into leftovers: the next process that attaches removes them.
pub fn rows<S, C: Cause>(
    names: Vec<String>,
    is_in_use: impl Fn(&str) -> Result<bool, RegistryError<C>>,
    summary: impl Fn(&str) -> Result<S, RegistryError<C>>,
) -> Vec<Row<S>> {
    readable(names, |name| {
        let summary = is_in_use(&name).and_then(|is_in_use| is_in_use.then(|| summary(&name)).transpose());
        match summary {
            Ok(summary) => Ok(Some(Row { name, in_use: summary.is_some(), summary })),
            Err(RegistryError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    })
}

/// What `read` says of each name; nothing of what is gone in the meantime, and a warning for what cannot be read.
pub fn readable<T, E: Display>(names: Vec<String>, read: impl Fn(String) -> Result<Option<T>, E>) -> Vec<T> {
    let read = |name| {
        read(name).unwrap_or_else(|error| {
            output::warning(error);
            None
        })
    };
    names.into_iter().filter_map(read).collect()
}

/// Prints the names of what was removed, a line each or as JSON.
pub fn print_removed(removed: Vec<String>, json: bool, output: &mut Output) -> Result<(), CliError> {
    #[derive(Serialize)]
    struct JsonRemoved {
        laxity: &'static str,
        removed: Vec<String>,
    }
    if json {
        return output.print(pretty(&JsonRemoved { laxity: env!("CARGO_PKG_VERSION"), removed }));
    }
    removed.iter().try_for_each(|name| output.line(name))
}

/// `did you mean ...`, or what there is instead.
pub fn way_out(name: &str, names: &[String], noun: &str) -> String {
    const SHOWN: usize = 16;
    if names.is_empty() {
        return format!("there is no {noun}");
    }
    match nearest_of(name, names.iter().cloned()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => {
            let shown: Vec<&str> = names.iter().take(SHOWN).map(String::as_str).collect();
            let more = if names.len() > SHOWN { ", ..." } else { "" };
            format!("write one of {}{more}", shown.join(", "))
        }
    }
}

/// `error`, with the name that was meant if it is about one that does not exist; `names` are those that there are. An
/// impossible name or configuration on the command line is bad usage, too.
pub fn refused<C: Cause>(error: RegistryError<C>, names: Result<Vec<String>, RegistryError<C>>) -> CliError {
    match (error, names) {
        (RegistryError::NotFound { name }, Ok(names)) => {
            let way_out = way_out(&name, &names, C::NOUN);
            CliError::Argument { message: format!("{} {name}: does not exist; {way_out}", C::NOUN) }
        }
        (RegistryError::NotFound { .. }, Err(error)) => live(error),
        (error, _) if matches!(error.code(), ErrorCode::Name | ErrorCode::Config) => {
            CliError::Argument { message: error.to_string() }
        }
        (error, _) => live(error),
    }
}

/// How often something is shown: more than nothing.
pub fn parse_interval(text: &str) -> Result<Nanos, String> {
    match text.parse::<Nanos>() {
        Ok(Nanos::ZERO) => {
            Err("nothing can be shown without end; leave some time between, as in \"250 ms\"".to_owned())
        }
        Ok(span) => Ok(span),
        Err(error) => Err(error.to_string()),
    }
}

/// Why the library refuses.
pub fn live(error: impl Display) -> CliError {
    CliError::Live { message: error.to_string() }
}

/// `value` as JSON that people can read, too.
pub fn pretty(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).expect("numbers, texts and lists are JSON") + "\n"
}
