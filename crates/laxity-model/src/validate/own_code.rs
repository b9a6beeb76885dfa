//! Rules of the user's own code. Whether it can be found and called is only known where it runs.

use crate::error::{ErrorKind, FieldPath, Findings};
use crate::{CodeSource, OwnCode, Step};

pub(super) fn own_code(run: Option<&OwnCode>, body: &[Step], at: &FieldPath, findings: &mut Findings) {
    let Some(run) = run else { return };
    let at = at.key("run");
    match &run.source {
        CodeSource::Library { library, symbol, init, exit } => {
            named("library", library, "the file of a shared library", &at, findings);
            named("symbol", symbol, "the name of a function", &at, findings);
            for (key, symbol) in [("init", init), ("exit", exit)] {
                if let Some(symbol) = symbol {
                    named(key, symbol, "the name of a function, or leave it out", &at, findings);
                }
            }
        }
        CodeSource::Python { function } => python(function, &at, findings),
        CodeSource::Command(words) => command(words, body, &at, findings),
    }
}

fn named(key: &'static str, text: &str, what: &str, at: &FieldPath, findings: &mut Findings) {
    if text.is_empty() || text.contains('\0') {
        findings.report(at.key(key), ErrorKind::BadValue, format!("`{key}` {text:?} is no name; write {what}"));
    }
}

fn python(function: &str, at: &FieldPath, findings: &mut Findings) {
    let is_name = |text: &str| {
        let mut letters = text.chars();
        letters.next().is_some_and(|first| first.is_alphabetic() || first == '_')
            && letters.all(|letter| letter.is_alphanumeric() || letter == '_')
    };
    let is_dotted = |text: &str| text.split('.').all(is_name);
    if !function.split_once(':').is_some_and(|(module, name)| is_dotted(module) && is_dotted(name)) {
        let message = format!("`python` {function:?} names no function; write \"module:function\"");
        findings.report(at.key("python"), ErrorKind::BadValue, message);
    }
}

fn command(words: &[String], body: &[Step], at: &FieldPath, findings: &mut Findings) {
    let is_one = matches!(body, [Step::Cpu(_)]);
    if words.first().is_none_or(String::is_empty) {
        let message = "`command` names no program; write it first, as in [\"./detector\", \"--once\"]";
        findings.report(at.key("command"), ErrorKind::BadValue, message);
    } else if words.iter().any(|word| word.contains('\0')) {
        findings.report(at.key("command"), ErrorKind::BadValue, "`command` contains a NUL; remove it");
    } else if !is_one {
        let message = "`command` is one program from the job's begin to its end, and the body has other steps than CPU \
                       time; write `wcet` instead of `body`, or take a library";
        findings.report(at.key("command"), ErrorKind::Contradiction, message);
    }
}
