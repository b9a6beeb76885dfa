//! Tests that this machine cannot run. Each is noted with its reason, so that `make test` can list them at its end.

use std::env;
use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::panic::Location;
use std::path::Path;
use std::thread;

/// The environment variable that names the file in which skipped tests are listed. Unset: they are printed only.
const LIST: &str = "LAXITY_SKIPPED";

/// Notes that the calling test, or a part of it, does not run, and why. The caller has to return by itself.
#[track_caller]
pub fn skip(reason: impl Display) {
    let thread = thread::current();
    let line = line(Location::caller().file(), thread.name().unwrap_or("a thread"), &reason.to_string());
    eprintln!("skipped: {line}");
    if let Some(list) = env::var_os(LIST) {
        append(Path::new(&list), &line).unwrap_or_else(|error| panic!("{}: {error}", list.display()));
    }
}

/// What the list says of one test: `file: test: reason`, as pytest's part of the list does.
fn line(file: &str, test: &str, reason: &str) -> String {
    let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{file}: {test}: {reason}")
}

/// One `write` to a file that is open for appending: lines of test processes that run at the same time stay whole.
fn append(list: &Path, line: &str) -> io::Result<()> {
    OpenOptions::new().create(true).append(true).open(list)?.write_all(format!("{line}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_of_several_lines_stays_one_line_of_the_list() {
        assert_eq!(
            line("tests/a.rs", "it_holds", "no FIFO:\n  not permitted\n"),
            "tests/a.rs: it_holds: no FIFO: not permitted"
        );
    }

    #[test]
    fn a_list_grows_by_a_line_for_each_skipped_test() {
        let list = env::temp_dir().join(format!("laxity-skipped-{}", std::process::id()));
        append(&list, "one").and_then(|()| append(&list, "two")).expect("the folder can be written");
        let listed = std::fs::read_to_string(&list);
        std::fs::remove_file(&list).expect("it is there");
        assert_eq!(listed.expect("it is text"), "one\ntwo\n");
    }
}
