//! What guides quote is what the commands print.

use std::fs;
use std::path::Path;

use crate::readme::{printed, root};
use crate::support::{folder, laxity, stdout};

/// The verbs that print the same everywhere.
const VERBS: [&str; 4] = ["check", "simulate", "trace", "validate"];

/// Guides that leave out columns of a table: there the words of each line that is quoted are compared, in their order.
const WITHOUT_COLUMNS: [&str; 1] = ["laxity simulate examples/workloads/interrupts.toml --handling all --for 10s"];

/// The commands of a page, in its order, with what it quotes of their output.
fn commands(page: &str) -> Vec<(String, String)> {
    let blocks = page.split("```console\n").skip(1).map(|rest| rest.split("```").next().expect("a first part"));
    let commands = blocks.flat_map(|block| block.strip_prefix("$ ").unwrap_or(block).split("\n$ "));
    let parts = commands.map(|command| command.split_once('\n').unwrap_or((command, "")));
    let without_comment = |command: &str| command.split("  #").next().expect("a first part").trim_end().to_owned();
    parts.map(|(command, quoted)| (without_comment(command), quoted.trim_end().to_owned())).collect()
}

/// Runs a command that prints the same everywhere, of an example or of a trace that is in `directory`.
fn output(directory: &Path, command: &str) -> Option<String> {
    if let Some((text, "laxity check --jsonl")) = command.split_once(" | ") {
        let text = text.strip_prefix("echo '")?.strip_suffix('\'')?;
        let answer = laxity().args(["check", "--jsonl"]).write_stdin(text).output().expect("the binary starts");
        return Some(stdout(&answer));
    }
    let words: Vec<&str> = command.split(' ').collect();
    let file = words.get(2)?;
    let has_file =
        if file.starts_with("examples/") { root().join(file).exists() } else { directory.join(file).exists() };
    let is_known = words[0] == "laxity" && VERBS.contains(&words[1]) && has_file;
    is_known.then(|| printed(directory, command))
}

/// Whether all lines of `quoted` are in `output` in their order, without gaps but where `...` says so.
fn is_quoted(output: &str, quoted: &str) -> bool {
    let mut rest = output;
    quoted.split("...\n").filter(|part| !part.is_empty()).all(|part| match rest.find(part.trim_end()) {
        Some(at) => {
            rest = &rest[at + part.trim_end().len()..];
            true
        }
        None => false,
    })
}

/// The same, where `quoted` may leave out columns.
fn has_words_of(output: &str, quoted: &str) -> bool {
    let mut lines = output.lines();
    let has_line = |quoted: &str| {
        let is_it = |line: &str| {
            let mut words = line.split_whitespace();
            quoted.split_whitespace().all(|word| words.any(|other| other == word))
        };
        lines.any(is_it)
    };
    let is_rule = |line: &&str| line.chars().all(|letter| letter == '─') || *line == "...";
    quoted.lines().filter(|line| !is_rule(line)).all(has_line)
}

#[test]
fn what_guides_quote_is_what_the_commands_print() {
    let mut pages: Vec<_> =
        fs::read_dir(root().join("docs/guides")).expect("guides").collect::<Result<_, _>>().expect("");
    pages.sort_by_key(fs::DirEntry::path);
    let mut compared = 0;
    for page in pages {
        let folder = folder();
        for (command, quoted) in commands(&fs::read_to_string(page.path()).expect("a guide")) {
            let leaves_a_trace = command.contains(" --trace ");
            if quoted.is_empty() && !leaves_a_trace {
                continue;
            }
            let Some(output) = output(folder.path(), &command) else { continue };
            let is_same = match WITHOUT_COLUMNS.contains(&command.as_str()) {
                true => has_words_of(&output, &quoted),
                false => is_quoted(&output, &quoted),
            };
            assert!(is_same, "{:?}: {command}\n{output}", page.path());
            compared += usize::from(!quoted.is_empty());
        }
    }
    assert!(compared >= 8, "{compared} quotes were found");
}

#[test]
fn a_quote_may_leave_out_lines_only_where_it_says_so() {
    let output = "a 1\nb 2\nc 3\nd 4\n";
    assert!(is_quoted(output, "a 1\nb 2\n...\nd 4") && is_quoted(output, "...\nb 2\nc 3"));
    assert!(!is_quoted(output, "a 1\nc 3") && !is_quoted(output, "...\nd 4\n...\nb 2") && !is_quoted(output, "a 2"));
    let table = "x  y  z\n───────\n1  2  3\n4  5  6\n";
    assert!(has_words_of(table, "x  z\n────\n1  3\n4  6"));
    assert!(!has_words_of(table, "x  z\n────\n4  6\n1  3") && !has_words_of(table, "x  z\n1  4"));
}
