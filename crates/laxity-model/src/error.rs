//! What is wrong with a workload: where, what, and the way out.

use std::borrow::Cow;
use std::fmt;

/// Everything that is wrong with a workload, in the order of the file. Never empty.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", lines(errors))]
pub struct WorkloadErrors {
    errors: Vec<WorkloadError>,
}

/// One thing that is wrong with a workload. Prints like a compiler's message:
///
/// ```text
/// car.toml:12:12: task 3 "lidar": wcet 12 ms exceeds relative deadline 10 ms; no policy can meet it, so ...
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{}{message}", place(file.as_deref(), *position), owner(subject))]
pub struct WorkloadError {
    /// The file's name as the caller gave it; `None` where a workload was not read from text.
    pub file: Option<String>,
    /// Where in the file; for a missing field, where the table that lacks it begins.
    pub position: Option<Position>,
    /// Which field, in the file's own terms.
    pub path: FieldPath,
    /// Whose field, for people: `task 3 "lidar"`. Empty for a top-level field.
    pub subject: String,
    /// What sort of mistake it is.
    pub kind: ErrorKind,
    /// What is wrong, with both values and the way out.
    pub message: String,
}

/// A place in a text. Ordered as one reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
}

/// The sorts of mistakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The text is not TOML or JSON.
    Syntax,
    /// The file has a field that the format does not.
    UnknownField,
    /// A field that must be there is not.
    MissingField,
    /// Text where a number belongs, and the like.
    WrongType,
    /// A value that cannot be read or is outside its range.
    BadValue,
    /// A name that is taken.
    Duplicate,
    /// A reference to something that does not exist.
    UnknownName,
    /// Two fields that contradict each other.
    Contradiction,
    /// A job that no policy can finish in time.
    Infeasible,
}

/// The way from the top of a workload file to a field. Prints as `task[3].deadline`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldPath {
    segments: Vec<PathSegment>,
}

/// One step of a [`FieldPath`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathSegment {
    /// Into the field of a table.
    Key(Cow<'static, str>),
    /// Into the element of a list, counted from 0.
    Index(usize),
}

/// A mistake before it is known where in which file it stands.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub path: FieldPath,
    /// Byte offset in the text, where the reader saw it.
    pub offset: Option<usize>,
    pub kind: ErrorKind,
    pub message: String,
}

/// Collects findings; `at` names the field in the file's terms.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub list: Vec<Finding>,
}

impl Findings {
    pub fn report(&mut self, at: FieldPath, kind: ErrorKind, message: impl Into<String>) {
        self.list.push(Finding { path: at, offset: None, kind, message: message.into() });
    }

    pub fn report_at(&mut self, offset: usize, at: FieldPath, kind: ErrorKind, message: impl Into<String>) {
        self.list.push(Finding { path: at, offset: Some(offset), kind, message: message.into() });
    }
}

impl WorkloadErrors {
    pub(crate) fn new(errors: Vec<WorkloadError>) -> Self {
        assert!(!errors.is_empty(), "a failure has at least one error");
        WorkloadErrors { errors }
    }

    /// The errors, in the order of the file.
    pub fn errors(&self) -> &[WorkloadError] {
        &self.errors
    }

    /// The errors, in the order of the file.
    pub fn into_vec(self) -> Vec<WorkloadError> {
        self.errors
    }
}

impl WorkloadError {
    /// Names the owner of the finding's field with the help of `name_of`, which knows the names of items.
    pub(crate) fn new(finding: Finding, name_of: impl Fn(&[PathSegment]) -> Option<String>) -> Self {
        WorkloadError {
            file: None,
            position: None,
            subject: finding.path.subject(name_of),
            path: finding.path,
            kind: finding.kind,
            message: finding.message,
        }
    }
}

impl FieldPath {
    /// The steps, from the top of the file.
    pub fn segments(&self) -> &[PathSegment] {
        &self.segments
    }

    pub(crate) fn root() -> Self {
        FieldPath::default()
    }

    pub(crate) fn item(list: &'static str, index: usize) -> Self {
        FieldPath::root().key(list).index(index)
    }

    pub(crate) fn key(&self, key: impl Into<Cow<'static, str>>) -> Self {
        self.then(PathSegment::Key(key.into()))
    }

    pub(crate) fn index(&self, index: usize) -> Self {
        self.then(PathSegment::Index(index))
    }

    fn then(&self, segment: PathSegment) -> Self {
        let mut segments = Vec::with_capacity(self.segments.len() + 1);
        segments.extend_from_slice(&self.segments);
        segments.push(segment);
        FieldPath { segments }
    }

    /// The last key and the indices behind it: `uniform[0]` of `task[3].actual.uniform[0]`.
    pub(crate) fn leaf(&self) -> String {
        let last_key = self.segments.iter().rposition(|segment| matches!(segment, PathSegment::Key(_)));
        print_segments(&self.segments[last_key.unwrap_or(0)..])
    }

    /// Whose field this is: items by number and name, then the containers inside; the field itself is named by the
    /// message.
    fn subject(&self, name_of: impl Fn(&[PathSegment]) -> Option<String>) -> String {
        let end = match self.segments.last() {
            Some(PathSegment::Key(_)) => self.segments.len() - 1,
            _ => self.segments.len(),
        };
        let mut words = Vec::new();
        let mut at = 0;
        while at < end {
            match &self.segments[at..end] {
                [PathSegment::Key(key), PathSegment::Index(index), ..] if is_item_list(key) => {
                    words.push(format!("{key} {index}"));
                    words.extend(name_of(&self.segments[..at + 2]).map(|name| format!("{name:?}")));
                    at += 2;
                }
                [PathSegment::Key(platform), PathSegment::Key(list), ..]
                    if platform == "platform" && is_item_list(list) =>
                {
                    at += 1;
                }
                rest => {
                    words.push(print_segments(rest));
                    break;
                }
            }
        }
        words.join(" ")
    }
}

/// Lists whose elements are things with a place of their own in messages.
fn is_item_list(key: &str) -> bool {
    matches!(
        key,
        "task"
            | "best_effort"
            | "resource"
            | "graph"
            | "node"
            | "edge"
            | "latest"
            | "object"
            | "chain"
            | "gpu"
            | "device"
    )
}

fn print_segments(segments: &[PathSegment]) -> String {
    let mut text = String::new();
    for segment in segments {
        match segment {
            PathSegment::Key(key) if text.is_empty() => text.push_str(key),
            PathSegment::Key(key) => text.extend([".", key]),
            PathSegment::Index(index) => text.push_str(&format!("[{index}]")),
        }
    }
    text
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&print_segments(&self.segments))
    }
}

fn lines(errors: &[WorkloadError]) -> String {
    errors.iter().map(WorkloadError::to_string).collect::<Vec<_>>().join("\n")
}

fn place(file: Option<&str>, position: Option<Position>) -> String {
    match (file, position) {
        (None, _) => String::new(),
        (Some(file), None) => format!("{file}: "),
        (Some(file), Some(Position { line, column })) => format!("{file}:{line}:{column}: "),
    }
}

fn owner(subject: &str) -> String {
    if subject.is_empty() { String::new() } else { format!("{subject}: ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject_of(path: FieldPath) -> String {
        path.subject(|prefix| (prefix.len() == 2).then(|| "lidar".to_owned()))
    }

    #[test]
    fn a_path_prints_as_one_would_write_it() {
        let path = FieldPath::item("task", 3).key("actual").key("uniform").index(0);
        assert_eq!(path.to_string(), "task[3].actual.uniform[0]");
        assert_eq!(path.leaf(), "uniform[0]");
        assert_eq!(FieldPath::root().leaf(), "");
    }

    #[test]
    fn a_subject_names_the_items_and_leaves_the_field_to_the_message() {
        assert_eq!(subject_of(FieldPath::item("task", 3).key("deadline")), r#"task 3 "lidar""#);
        assert_eq!(subject_of(FieldPath::item("task", 3).key("body").index(1).key("cpu")), r#"task 3 "lidar" body[1]"#);
        assert_eq!(subject_of(FieldPath::item("graph", 0).key("edge").index(2)), r#"graph 0 "lidar" edge 2"#);
        assert_eq!(subject_of(FieldPath::root().key("platform").key("gpu").index(1).key("name")), "gpu 1");
        assert_eq!(subject_of(FieldPath::root().key("platform").key("tick")), "platform");
        assert_eq!(subject_of(FieldPath::root().key("name")), "");
    }
}
