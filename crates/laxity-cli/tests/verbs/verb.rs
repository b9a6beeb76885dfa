//! The verbs of the command, and what each answers to a workload.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::thread;

use laxity_testing::Alone;

/// What became of a workload under a verb.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Done,
    /// It was done but for something, or not at all; in the tool's words, each reason by itself.
    Part(Vec<String>),
    Refused(Vec<String>),
    /// There is nothing for it to do.
    NotApplicable,
}

/// Runs `laxity` with these words.
pub fn laxity(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_laxity"));
    command.env_remove("CLICOLOR_FORCE").env("NO_COLOR", "1").args(words);
    command.output().expect("the binary starts")
}

/// What a command printed to standard error.
pub fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Why live runs here say nothing of other machines: the page is about those on two CPUs with real-time priorities. The
/// test has the CPUs for its runs as long as it keeps what comes first.
pub fn obstacle() -> (Alone, Option<String>) {
    let alone = Alone::with_the_scheduler();
    if thread::available_parallelism().is_ok_and(|cpus| cpus.get() < 2) {
        return (alone, Some("there is one CPU".to_owned()));
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/two.toml");
    let file = file.to_string_lossy();
    let output = laxity(&["run", "--policy", "G-EDF", "--scheduler", "laxity", "--for", "1ms", &file]);
    (alone, (!output.status.success()).then(|| reasons(&output, &file).join("; ")))
}

/// The reasons in what a failed command says: its lines without the word `error` and the name of the file.
fn reasons(output: &Output, file: &str) -> Vec<String> {
    let text = errors(output);
    let line =
        |line: &str| line.trim().trim_start_matches("error: ").trim_start_matches(&format!("{file}: ")).to_owned();
    let lines: Vec<String> = text.lines().map(line).filter(|line| !line.starts_with("note:")).collect();
    lines.into_iter().filter(|line| !line.is_empty()).collect()
}

fn done_or_refused(output: &Output, file: &str) -> Answer {
    if output.status.success() { Answer::Done } else { Answer::Refused(reasons(output, file)) }
}

/// Whether everything is proven; else what is refused, or that it is not proven.
pub fn check(file: &str) -> Answer {
    let output = laxity(&["check", "--no-scaling", file]);
    if output.status.success() {
        return Answer::Done;
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let refused = text.split_once("refused: the analysis cannot treat\n").map(|(_, rest)| rest);
    let list =
        refused.map(|rest| rest.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect());
    Answer::Refused(list.unwrap_or_else(|| reasons(&output, file)))
}

/// Simulates into `trace`.
pub fn simulate(file: &str, trace: &str) -> Answer {
    done_or_refused(&laxity(&["simulate", "--quiet", "--for", "60ms", "--trace", trace, file]), file)
}

/// Runs live into `trace`.
pub fn run(file: &str, trace: &str) -> Answer {
    done_or_refused(&laxity(&["run", "--quiet", "--cpus", "2", "--for", "25ms", "--trace", trace, file]), file)
}

/// Whether the trace in `trace` is legal; deadlines are not judged.
pub fn trace_check(trace: &str) -> Answer {
    if !Path::new(trace).exists() {
        return Answer::NotApplicable;
    }
    let output = laxity(&["trace", trace, "check", "--ignore-deadlines"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &errors(&output);
    if output.status.success() { Answer::Done } else { Answer::Refused(vec![said]) }
}

/// Writes a page on the workload; parts may be left out.
pub fn report(file: &str, page: &str) -> Answer {
    let output = laxity(&["report", "--cpus", "2", "--for", "25ms", "-o", page, file]);
    if !output.status.success() {
        return Answer::Refused(reasons(&output, file));
    }
    assert!(fs::metadata(page).is_ok_and(|page| page.len() > 1_000), "{file}: no page");
    let text = errors(&output);
    let left_out = text.lines().filter_map(|line| line.strip_prefix("warning: left out: "));
    let left_out: Vec<String> = left_out.map(|line| format!("without {line}")).collect();
    if left_out.is_empty() { Answer::Done } else { Answer::Part(left_out) }
}

/// Searches for a moment.
pub fn tune(file: &str) -> Answer {
    done_or_refused(&laxity(&["tune", "--quiet", "--within", "50ms", "--for", "20ms", file]), file)
}

/// Measures the code that the file names, if it does.
pub fn measure(file: &str, text: &str) -> Answer {
    if !text.contains("run = ") {
        return Answer::NotApplicable;
    }
    done_or_refused(&laxity(&["measure", "--quiet", "--for", "50ms", "--nodes", file]), file)
}
