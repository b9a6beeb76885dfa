//! The logs of programs, read.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::log::{Arbitration, Line};

/// The logs of all programs of an arbitration.
#[derive(Clone, Debug)]
pub struct Logs {
    pub(super) arbitration: Arbitration,
    /// By program and number.
    pub(super) streams: Vec<StreamLog>,
    cut_off: Vec<PathBuf>,
}

/// What one stream noted.
#[derive(Clone, Debug)]
pub(super) struct StreamLog {
    pub name: String,
    pub pid: u32,
    pub front: String,
    pub gpu: u16,
    pub period: Option<u64>,
    /// Each with its time, in the order of time.
    pub lines: Vec<(u64, Line)>,
}

/// Why there is no trace.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// A file.
    #[error("{}: {error}", .path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A line is none of a log.
    #[error("{}:{line}: {reason}; a log has a JSON object a line", .path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// Nothing was logged.
    #[error("{}: no log of a program; start programs with `laxity gpu exec --log`", .0.display())]
    Empty(PathBuf),
    /// The programs were under different arbitrations.
    #[error("{}: logs of two arbitrations, {one} and {other}; make a trace of each", .folder.display())]
    Mixed {
        /// The folder.
        folder: PathBuf,
        /// One arbitration.
        one: String,
        /// Another.
        other: String,
    },
}

impl Logs {
    /// All logs in `folder`.
    ///
    /// # Errors
    /// [`LogError`]. The last line of a program that was killed, or whose disk was full, may be half a line, and is left out: see
    /// [`Logs::cut_off`].
    pub fn read(folder: &Path) -> Result<Logs, LogError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |error| LogError::Read { path, error }
        };
        let mut paths = Vec::new();
        for entry in fs::read_dir(folder).map_err(failed(folder))? {
            let path = entry.map_err(failed(folder))?.path();
            if path.extension().is_some_and(|extension| extension == "jsonl") {
                paths.push(path);
            }
        }
        paths.sort();
        let mut arbitration: Option<Arbitration> = None;
        let (mut streams, mut cut_off) = (Vec::new(), Vec::new());
        for path in paths {
            let text = fs::read_to_string(&path).map_err(failed(&path))?;
            if !text.is_empty() && !text.ends_with('\n') {
                cut_off.push(path.clone());
            }
            let Some((of_program, found)) = read_one(&path, &text)? else { continue };
            streams.extend(found);
            match &arbitration {
                Some(known) if *known != of_program => {
                    let (one, other) = (known.name.clone(), of_program.name);
                    return Err(LogError::Mixed { folder: folder.to_owned(), one, other });
                }
                _ => arbitration = Some(of_program),
            }
        }
        let arbitration = arbitration.ok_or_else(|| LogError::Empty(folder.to_owned()))?;
        Ok(Logs { arbitration, streams, cut_off })
    }

    /// The files that end within a line: what their programs did afterwards is not known.
    pub fn cut_off(&self) -> &[PathBuf] {
        &self.cut_off
    }

    /// How many streams noted something.
    pub fn streams(&self) -> usize {
        self.streams.len()
    }
}

fn read_one(path: &Path, text: &str) -> Result<Option<(Arbitration, Vec<StreamLog>)>, LogError> {
    let mut program = None;
    let mut streams: BTreeMap<u32, StreamLog> = BTreeMap::new();
    for (number, line) in text.split_inclusive('\n').enumerate().filter(|(_, line)| line.ends_with('\n')) {
        let wrong = |reason: String| LogError::Line { path: path.to_owned(), line: number + 1, reason };
        match serde_json::from_str(line).map_err(|error| wrong(error.to_string()))? {
            Line::Program { pid, front, arbitration, .. } => program = Some((pid, front, arbitration)),
            Line::Stream { stream, name, gpu, period } => {
                let Some((pid, front, _)) = &program else {
                    return Err(wrong("a stream without a program".to_owned()));
                };
                let (pid, front) = (*pid, front.clone());
                streams.insert(stream, StreamLog { name, pid, front, gpu, period, lines: Vec::new() });
            }
            other => {
                let (at, stream) = place(&other).expect("only programs and streams have none");
                let known = streams.get_mut(&stream).ok_or_else(|| wrong(format!("no stream {stream}")))?;
                known.lines.push((at, other));
            }
        }
    }
    let mut streams: Vec<StreamLog> = streams.into_values().filter(|stream| !stream.lines.is_empty()).collect();
    // Stable: what was noted of one instant stays in its order.
    streams.iter_mut().for_each(|stream| stream.lines.sort_by_key(|(at, _)| *at));
    Ok(program.map(|(_, _, arbitration)| (arbitration, streams)))
}

/// When and where something happened.
fn place(line: &Line) -> Option<(u64, u32)> {
    match *line {
        Line::Program { .. } | Line::Stream { .. } => None,
        Line::Begins { at, stream, .. }
        | Line::Ends { at, stream, .. }
        | Line::Requests { at, stream, .. }
        | Line::Granted { at, stream, .. }
        | Line::Opens { at, stream, .. }
        | Line::Complete { at, stream, .. }
        | Line::Unlocks { at, stream }
        | Line::Releases { at, stream }
        | Line::Late { at, stream, .. } => Some((at, stream)),
    }
}
