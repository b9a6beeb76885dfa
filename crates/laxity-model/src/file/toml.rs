//! TOML text to a tree.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::tree::{Entry, Node, SyntaxError, Value};

/// Most mistakes that are reported. One forgotten bracket makes every line after it look wrong.
const ERRORS_MAX: usize = 5;

/// Reads TOML; on failure the first few mistakes, at most one a line.
pub(crate) fn parse(text: &str) -> Result<Node, Vec<SyntaxError>> {
    let (document, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        return Ok(Node { offset: 0, value: table(document.into_inner()) });
    }
    let error = |error: &toml::de::Error| SyntaxError {
        offset: error.span().map_or(text.len(), |span| span.start),
        message: format!("not TOML: {}", error.message()),
    };
    let mut errors: Vec<SyntaxError> = errors.iter().map(error).collect();
    errors.sort_by_key(|error| error.offset);
    errors.dedup_by(|next, first| !text.as_bytes()[first.offset..next.offset].contains(&b'\n'));
    errors.truncate(ERRORS_MAX);
    Err(errors)
}

fn table(table: DeTable<'_>) -> Value {
    let entry = |(key, value): (Spanned<_>, Spanned<_>)| Entry {
        key_offset: key.span().start,
        key: String::from(key.into_inner()),
        node: node(value),
    };
    Value::Table(table.into_iter().map(entry).collect())
}

fn node(spanned: Spanned<DeValue<'_>>) -> Node {
    let offset = spanned.span().start;
    let value = match spanned.into_inner() {
        DeValue::String(text) => Value::Text(text.into_owned()),
        DeValue::Integer(integer) => match i128::from_str_radix(integer.as_str(), integer.radix()) {
            Ok(integer) => Value::Integer(integer),
            Err(_) => Value::Foreign("a number of more than 128 bits"),
        },
        DeValue::Float(number) => Value::Fraction(number.as_str().to_owned()),
        DeValue::Boolean(truth) => Value::Boolean(truth),
        DeValue::Datetime(_) => Value::Foreign("a date or time of day"),
        DeValue::Array(array) => Value::List(array.into_iter().map(node).collect()),
        DeValue::Table(inner) => table(inner),
    };
    Node { offset, value }
}
