//! `laxity check --jsonl`: task sets in, verdicts out, a line each, in order and in parallel.
//!
//! A thread reads ahead by a bounded number of lines. Whatever has arrived is answered together, by all CPUs, and
//! written at once, so that a program that sends a line and waits gets an answer, and memory stays bounded.

use std::io::{self, BufRead};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use laxity_analysis::check::SetVerdicts;
use laxity_analysis::{AnalysisTask, Limits, TaskSet};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::error::CliError;
use crate::output::Output;

/// Lines read ahead.
const AHEAD: usize = 256;

/// The longest line, in bytes.
const LINE_MAX: u64 = 4 << 20;

/// A task set as it is sent. Other fields are ignored, so that sets may carry names.
#[derive(Deserialize)]
struct Question {
    m: u32,
    tasks: Vec<[u64; 3]>,
}

/// The verdicts on one set; `null`: the test does not apply, or it gave up.
#[derive(Serialize)]
struct Answer {
    gfb: Option<bool>,
    bak: Option<bool>,
    bcl: Option<bool>,
    bcl_iterative: Option<bool>,
    bar: Option<bool>,
    bar_le: Option<bool>,
    rta: Option<bool>,
    rta_slack: Option<bool>,
    ffdbf: Option<bool>,
    srt: Option<bool>,
    tardiness: Option<Vec<u64>>,
    /// Only where a test reached its limit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    gave_up: Vec<&'static str>,
}

#[derive(Serialize)]
struct Malformed {
    error: String,
    line: u64,
}

/// A line and its number, counted from 1.
struct Line {
    number: u64,
    content: Result<Vec<u8>, LineError>,
}

enum LineError {
    TooLong,
    Read(io::Error),
}

/// What is written for a line.
struct Reply {
    text: String,
    is_malformed: bool,
}

/// Answers standard input until it ends, or the reader of the answers has gone.
pub fn answer(output: &mut Output) -> Result<(), CliError> {
    let (sender, receiver) = sync_channel(AHEAD);
    // It ends with its input, or with the process.
    thread::spawn(move || read(io::stdin().lock(), &sender));
    let (mut answered, mut malformed) = (0u64, 0u64);
    while let Some(batch) = next_batch(&receiver)? {
        let replies: Vec<Reply> = batch.par_iter().map(reply).collect();
        for reply in replies {
            answered += 1;
            malformed += u64::from(reply.is_malformed);
            output.line(reply.text)?;
        }
        output.finish()?;
        if output.is_closed() {
            return Ok(());
        }
    }
    if malformed > 0 {
        return Err(CliError::MalformedLines { malformed, of: answered });
    }
    Ok(())
}

/// At least one line, and what else has arrived by now; `None` at the end of the input.
fn next_batch(lines: &Receiver<Line>) -> Result<Option<Vec<Line>>, CliError> {
    let Ok(first) = lines.recv() else { return Ok(None) };
    let mut batch = vec![first];
    batch.extend(lines.try_iter().take(AHEAD - 1));
    let broken = batch.iter().position(|line| matches!(line.content, Err(LineError::Read(_))));
    match broken.map(|index| batch.swap_remove(index).content) {
        Some(Err(LineError::Read(source))) => Err(CliError::Read { file: "<stdin>".to_owned(), source }),
        _ => Ok(Some(batch)),
    }
}

/// Sends each line that is not blank.
fn read(mut input: impl BufRead, lines: &SyncSender<Line>) {
    for number in 1.. {
        let content = match next_line(&mut input) {
            Ok(None) => return,
            Ok(Some(line)) if line.iter().all(u8::is_ascii_whitespace) => continue,
            Ok(Some(line)) => Ok(line),
            Err(error) => Err(error),
        };
        let ends = matches!(content, Err(LineError::Read(_)));
        if lines.send(Line { number, content }).is_err() || ends {
            return;
        }
    }
}

fn next_line(input: &mut impl BufRead) -> Result<Option<Vec<u8>>, LineError> {
    let mut line = Vec::new();
    let length = io::Read::take(&mut *input, LINE_MAX + 1).read_until(b'\n', &mut line).map_err(LineError::Read)?;
    if length == 0 {
        return Ok(None);
    }
    if length as u64 > LINE_MAX && line.last() != Some(&b'\n') {
        skip_line(input).map_err(LineError::Read)?;
        return Err(LineError::TooLong);
    }
    Ok(Some(line))
}

/// Reads on to the end of the line, keeping nothing.
fn skip_line(input: &mut impl BufRead) -> io::Result<()> {
    loop {
        let buffer = input.fill_buf()?;
        if buffer.is_empty() {
            return Ok(());
        }
        let end = buffer.iter().position(|&byte| byte == b'\n');
        let used = end.map_or(buffer.len(), |end| end + 1);
        input.consume(used);
        if end.is_some() {
            return Ok(());
        }
    }
}

fn reply(line: &Line) -> Reply {
    match verdicts(line) {
        Ok(answer) => Reply { text: json(&answer), is_malformed: false },
        Err(error) => Reply { text: json(&Malformed { error, line: line.number }), is_malformed: true },
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("numbers and texts are JSON")
}

fn verdicts(line: &Line) -> Result<Answer, String> {
    let content =
        line.content.as_ref().map_err(|_| format!("the line exceeds {LINE_MAX} bytes; send a smaller set"))?;
    let question: Question = serde_json::from_slice(content).map_err(|error| explain(&error))?;
    let tasks = question.tasks.iter().map(|&[wcet, period, deadline]| AnalysisTask::new(wcet, period, deadline));
    let set = TaskSet::new(question.m, tasks.collect()).map_err(|error| error.to_string())?;
    let SetVerdicts { verdicts, gave_up, tardiness } = SetVerdicts::of(&set, &Limits::default());
    let [gfb, bak, bcl, bcl_iterative, bar, bar_le, rta, rta_slack, ffdbf, srt] = verdicts;
    let gave_up = gave_up.into_iter().map(laxity_analysis::Test::name).collect();
    Ok(Answer { gfb, bak, bcl, bcl_iterative, bar, bar_le, rta, rta_slack, ffdbf, srt, tardiness, gave_up })
}

/// The parser's message with the column alone: the line is the object's own field.
fn explain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let what = text.split(" at line ").next().unwrap_or(&text);
    format!(
        "{what} at column {}; a line is {{\"m\": CPUS, \"tasks\": [[WCET, PERIOD, DEADLINE], ...]}} in whole ticks",
        error.column()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(input: &[u8]) -> Vec<(u64, Option<Vec<u8>>)> {
        let (sender, receiver) = sync_channel(16);
        read(input, &sender);
        drop(sender);
        receiver.iter().map(|line| (line.number, line.content.ok())).collect()
    }

    #[test]
    fn blank_lines_are_counted_and_not_answered() {
        let expected = vec![(1, Some(b"a\n".to_vec())), (4, Some(b"b".to_vec()))];
        assert_eq!(lines(b"a\n\n  \r\nb"), expected);
        assert_eq!(lines(b""), vec![]);
    }

    #[test]
    fn a_line_beyond_the_limit_is_skipped_to_its_end_and_the_next_is_read() {
        let long = LINE_MAX as usize + 10;
        let mut input = vec![b'x'; long];
        input.extend_from_slice(b"\nb\n");
        assert_eq!(lines(&input), vec![(1, None), (2, Some(b"b\n".to_vec()))]);
        let fits = [vec![b'x'; LINE_MAX as usize], b"\n".to_vec()].concat();
        assert_eq!(lines(&fits), vec![(1, Some(fits.clone()))]);
    }
}
