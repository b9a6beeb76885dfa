//! Typed access to the tree: every getter either yields a value or reports why not, and the decoder goes on.

use std::fmt;

use super::quantity::{self, QuantityError};
use super::tree::{Entry, Node, Value};
use crate::error::{ErrorKind, FieldPath, Findings, PathSegment};
use crate::suggest;
use crate::{Factor, Nanos};

/// A node together with the way to it.
#[derive(Clone)]
pub(crate) struct Item<'t> {
    pub node: &'t Node,
    pub path: FieldPath,
}

/// The fields of a table.
pub(crate) struct Fields<'t> {
    entries: &'t [Entry],
    offset: usize,
    path: FieldPath,
}

impl<'t> Item<'t> {
    /// Reports that this is not right. `message` goes on after its name; an element of a list is named in front of
    /// the message already.
    pub fn report(&self, kind: ErrorKind, message: impl fmt::Display, findings: &mut Findings) {
        let message = match self.path.segments().last() {
            Some(PathSegment::Key(key)) => format!("`{key}` {message}"),
            Some(PathSegment::Index(_)) => message.to_string(),
            None => format!("the file {message}"),
        };
        findings.report_at(self.node.offset, self.path.clone(), kind, message);
    }

    fn wrong_type<T>(&self, expected: &str, findings: &mut Findings) -> Option<T> {
        self.report(ErrorKind::WrongType, format_args!("is {}; write {expected}", self.node.value), findings);
        None
    }

    /// Text; `expected` says what kind, for the message.
    pub fn text(&self, expected: &str, findings: &mut Findings) -> Option<&'t str> {
        match &self.node.value {
            Value::Text(text) => Some(text),
            _ => self.wrong_type(expected, findings),
        }
    }

    /// A whole number from `min` to `max`.
    pub fn integer(&self, min: u64, max: u64, findings: &mut Findings) -> Option<u64> {
        let expected = format!("a whole number from {min} to {max}");
        let Value::Integer(integer) = self.node.value else { return self.wrong_type(&expected, findings) };
        let in_range = u64::try_from(integer).ok().filter(|value| (min..=max).contains(value));
        if in_range.is_none() {
            self.report(ErrorKind::BadValue, format_args!("is {integer}; write {expected}"), findings);
        }
        in_range
    }

    /// A whole number of 32 bits.
    pub fn integer_u32(&self, findings: &mut Findings) -> Option<u32> {
        self.integer(0, u64::from(u32::MAX), findings).map(|value| value as u32)
    }

    /// A number from 0, with up to six decimals.
    pub fn factor(&self, findings: &mut Findings) -> Option<Factor> {
        let text = match &self.node.value {
            Value::Integer(integer) => integer.to_string(),
            Value::Fraction(text) => text.replace('_', ""),
            _ => return self.wrong_type("a number, as in `1.5`", findings),
        };
        let factor = Factor::parse(&text);
        if factor.is_none() {
            let message = format!("is {text}; write a number from 0 with at most six decimals, as in `1.5`");
            self.report(ErrorKind::BadValue, message, findings);
        }
        factor
    }

    /// `true` or `false`.
    pub fn boolean(&self, findings: &mut Findings) -> Option<bool> {
        match self.node.value {
            Value::Boolean(truth) => Some(truth),
            _ => self.wrong_type("`true` or `false`", findings),
        }
    }

    /// The elements of a list; `expected` says of what, for the message.
    pub fn list(&self, expected: &str, findings: &mut Findings) -> Option<Vec<Item<'t>>> {
        let Value::List(elements) = &self.node.value else { return self.wrong_type(expected, findings) };
        let item = |(index, node)| Item { node, path: self.path.index(index) };
        Some(elements.iter().enumerate().map(item).collect())
    }

    /// A table whose fields are not checked yet: which are known depends on one of them.
    pub fn open(&self, expected: &str, findings: &mut Findings) -> Option<Fields<'t>> {
        let Value::Table(entries) = &self.node.value else { return self.wrong_type(expected, findings) };
        Some(Fields { entries, offset: self.node.offset, path: self.path.clone() })
    }

    /// A table with no other fields than `known`.
    pub fn table(&self, known: &[&'static str], expected: &str, findings: &mut Findings) -> Option<Fields<'t>> {
        let fields = self.open(expected, findings)?;
        for entry in fields.entries.iter().filter(|entry| !known.contains(&entry.key.as_str())) {
            let path = self.path.key(entry.key.clone());
            let message =
                format!("unknown field `{}`; {}", entry.key, suggest::way_out(&entry.key, known.iter().copied()));
            findings.report_at(entry.key_offset, path, ErrorKind::UnknownField, message);
        }
        Some(fields)
    }

    /// One of a few words.
    pub fn choice<T: Copy>(&self, words: &[(&'static str, T)], findings: &mut Findings) -> Option<T> {
        let names = words.iter().map(|(word, _)| *word);
        let text = self.text(&format!("one of {}", suggest::list(names.clone())), findings)?;
        let choice = words.iter().find(|(word, _)| *word == text).map(|&(_, value)| value);
        if choice.is_none() {
            let way_out = suggest::way_out(text, names);
            self.report(ErrorKind::BadValue, format_args!("is the unknown word \"{text}\"; {way_out}"), findings);
        }
        choice
    }

    fn quantity<T>(
        &self,
        parse: impl Fn(&str) -> Result<T, QuantityError>,
        expected: &str,
        findings: &mut Findings,
    ) -> Option<T> {
        let text = self.text(expected, findings)?;
        match parse(text) {
            Ok(value) => Some(value),
            Err(error) => {
                self.report(ErrorKind::BadValue, format_args!("\"{text}\" {error}"), findings);
                None
            }
        }
    }

    /// A span of time.
    pub fn span(&self, findings: &mut Findings) -> Option<Nanos> {
        self.quantity(quantity::parse_span, "a span of time with its unit, as in \"5 ms\"", findings)
    }

    /// A span of time in picoseconds.
    pub fn picos(&self, findings: &mut Findings) -> Option<u64> {
        self.quantity(quantity::parse_picos, "a span of time with its unit, as in \"9.38 us\"", findings)
    }

    /// A number of bytes.
    pub fn size(&self, findings: &mut Findings) -> Option<u64> {
        self.quantity(quantity::parse_size, "a size with its unit, as in \"2 MB\"", findings)
    }

    /// A number of bytes a second.
    pub fn rate(&self, findings: &mut Findings) -> Option<u64> {
        self.quantity(quantity::parse_rate, "a bandwidth with its unit, as in \"12 GB/s\"", findings)
    }
}

impl<'t> Fields<'t> {
    /// The field `key`, if it is there.
    pub fn get(&self, key: &'static str) -> Option<Item<'t>> {
        let entry = self.entries.iter().find(|entry| entry.key == key)?;
        Some(Item { node: &entry.node, path: self.path.key(key) })
    }

    /// The field `key`, which must be there; `example` shows how to write it.
    pub fn require(&self, key: &'static str, example: &str, findings: &mut Findings) -> Option<Item<'t>> {
        let item = self.get(key);
        if item.is_none() {
            self.report_missing(key, format!("`{key}` is missing; write {example}"), findings);
        }
        item
    }

    /// Reports that `key` is not there.
    pub fn report_missing(&self, key: &'static str, message: impl Into<String>, findings: &mut Findings) {
        findings.report_at(self.offset, self.path.key(key), ErrorKind::MissingField, message);
    }

    /// The table's name, which must be there.
    pub fn name(&self, findings: &mut Findings) -> String {
        let item = self.require("name", "`name = \"...\"`", findings);
        item.and_then(|item| item.text("text", findings)).unwrap_or_default().to_owned()
    }

    /// The tables of the list `key`; none if it is absent.
    pub fn tables(&self, key: &'static str, findings: &mut Findings) -> Vec<Item<'t>> {
        let expected = format!("a list of tables, `[[{}]]` in TOML", self.path.key(key));
        self.get(key).and_then(|item| item.list(&expected, findings)).unwrap_or_default()
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Text(text) if text.len() <= 40 => write!(f, "the text \"{text}\""),
            Value::Text(_) => f.write_str("text"),
            Value::Integer(integer) => write!(f, "the number {integer}"),
            Value::Fraction(_) => f.write_str("a number with a fraction"),
            Value::Boolean(truth) => write!(f, "`{truth}`"),
            Value::List(_) => f.write_str("a list"),
            Value::Table(_) => f.write_str("a table"),
            Value::Foreign(what) => f.write_str(what),
        }
    }
}
