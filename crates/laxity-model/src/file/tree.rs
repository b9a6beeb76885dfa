//! A text as a tree whose nodes know where they stand. TOML and JSON both become one, so that one decoder reads both.

use crate::error::{FieldPath, PathSegment, Position};

/// How deep lists and tables may nest; what is deeper is refused while reading, before it can exhaust the stack.
pub(crate) const DEPTH_MAX: usize = 80;

/// A value and the byte offset where it begins.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub offset: usize,
    pub value: Value,
}

/// What a node holds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Text(String),
    Integer(i128),
    /// A number with a fraction or an exponent, as it is written.
    Fraction(String),
    Boolean(bool),
    List(Vec<Node>),
    Table(Vec<Entry>),
    /// Something no field takes: a date, `null`. Says what it is.
    Foreign(&'static str),
}

/// A field of a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub key: String,
    pub key_offset: usize,
    pub node: Node,
}

/// The text is not what it claims to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SyntaxError {
    pub offset: usize,
    pub message: String,
}

impl Node {
    /// The field `key` of a table.
    pub fn field(&self, key: &str) -> Option<&Node> {
        match &self.value {
            Value::Table(entries) => entries.iter().find(|entry| entry.key == key).map(|entry| &entry.node),
            _ => None,
        }
    }

    fn element(&self, index: usize) -> Option<&Node> {
        match &self.value {
            Value::List(elements) => elements.get(index),
            _ => None,
        }
    }

    fn child(&self, segment: &PathSegment) -> Option<&Node> {
        match segment {
            PathSegment::Key(key) => self.field(key),
            PathSegment::Index(index) => self.element(*index),
        }
    }

    /// The node at `path`, or the one that stands for it, or as far down that way as the text goes.
    pub fn locate(&self, path: &FieldPath) -> &Node {
        let mut node = self;
        for segment in path.segments() {
            match node.child(segment).or_else(|| node.stand_in(segment)) {
                Some(child) => node = child,
                None => break,
            }
        }
        node
    }

    /// The node that says what the absent field `segment` would: the one its default comes from, or the long form of
    /// a short one.
    fn stand_in(&self, segment: &PathSegment) -> Option<&Node> {
        let PathSegment::Key(key) = segment else { return None };
        match key.as_ref() {
            "deadline" => self.field("period"),
            "quantum" => self.field("tick"),
            "wcet" => self.field("body")?.element(0)?.field("cpu"),
            "actual" => self.field("body")?.element(0)?.field("actual"),
            _ => None,
        }
    }

    /// The `name` of the table at `prefix`.
    pub fn name_at(&self, prefix: &[PathSegment]) -> Option<String> {
        let table = prefix.iter().try_fold(self, |node, segment| node.child(segment))?;
        match &table.field("name")?.value {
            Value::Text(name) => Some(name.clone()),
            _ => None,
        }
    }
}

/// Turns byte offsets into lines and columns.
pub(crate) struct Lines<'t> {
    text: &'t str,
    /// Offset of the first byte of each line.
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    pub fn of(text: &'t str) -> Self {
        let after_newlines = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n').map(|(at, _)| at + 1);
        Lines { text, starts: std::iter::once(0).chain(after_newlines).collect() }
    }

    /// The position of the byte at `offset`; the end of the text for what lies behind it.
    pub fn position(&self, offset: usize) -> Position {
        let offset = offset.min(self.text.len());
        let line = self.starts.partition_point(|&start| start <= offset);
        let start = self.starts[line - 1];
        let column = 1 + self.text[start..].char_indices().take_while(|&(at, _)| start + at < offset).count();
        Position { line, column }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_lines_count_from_one() {
        let lines = Lines::of("a\n\u{b5}\u{b5}b\n");
        assert_eq!(lines.position(0), Position { line: 1, column: 1 });
        assert_eq!(lines.position(2), Position { line: 2, column: 1 });
        assert_eq!(lines.position(6), Position { line: 2, column: 3 });
        assert_eq!(lines.position(99), Position { line: 3, column: 1 });
    }
}
