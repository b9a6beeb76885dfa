//! An outline as text: TOML for people, JSON for programs.

use std::fmt::Write;

use crate::Factor;

use Outline::{Boolean, Decimal, Inline, Integer, Lines, List, Section, Sections, Text};

/// A value and how TOML should lay it out; JSON has one layout for all.
pub(super) enum Outline {
    Text(String),
    Integer(u64),
    /// A number with a fraction.
    Decimal(Factor),
    Boolean(bool),
    /// A list on one line.
    List(Vec<Outline>),
    /// A list with a line for each element.
    Lines(Vec<Outline>),
    /// A table within a line.
    Inline(Fields),
    /// A table below a header of its own.
    Section(Fields),
    /// A list of tables, each below a header.
    Sections(Vec<Fields>),
}

type Fields = Vec<(&'static str, Outline)>;

/// The outline as TOML. Every key is bare: the format has no other.
pub(super) fn toml(fields: &Fields) -> String {
    let mut text = String::new();
    toml_table(&mut text, "", fields);
    text
}

/// The fields of the table called `path`: values first, because they would belong to the last section otherwise.
fn toml_table(text: &mut String, path: &str, fields: &Fields) {
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    for (key, value) in fields {
        if !matches!(value, Section(_) | Sections(_)) {
            text.push_str(&format!("{key} = "));
            toml_value(text, value);
            text.push('\n');
        }
    }
    for (key, value) in fields {
        let path = below(key);
        match value {
            Section(fields) => {
                text.push_str(&format!("\n[{path}]\n"));
                toml_table(text, &path, fields);
            }
            Sections(tables) if tables.is_empty() => {}
            Sections(tables) => {
                for fields in tables {
                    text.push_str(&format!("\n[[{path}]]\n"));
                    toml_table(text, &path, fields);
                }
            }
            _ => {}
        }
    }
}

fn toml_value(text: &mut String, value: &Outline) {
    match value {
        Text(string) => quote(text, string),
        Integer(integer) => text.push_str(&integer.to_string()),
        Decimal(factor) => text.push_str(&factor.to_string()),
        Boolean(truth) => text.push_str(&truth.to_string()),
        List(elements) => {
            text.push('[');
            separated(text, elements, ", ", toml_value);
            text.push(']');
        }
        Lines(elements) => {
            text.push('[');
            for element in elements {
                text.push_str("\n    ");
                toml_value(text, element);
                text.push(',');
            }
            text.push_str(if elements.is_empty() { "]" } else { "\n]" });
        }
        Inline(fields) | Section(fields) => {
            text.push_str("{ ");
            separated(text, fields, ", ", |text, (key, value)| {
                text.push_str(&format!("{key} = "));
                toml_value(text, value);
            });
            text.push_str(" }");
        }
        Sections(_) => unreachable!("sections are written below a header, never as a value"),
    }
}

/// The outline as JSON, indented by two spaces.
pub(super) fn json(fields: &Fields) -> String {
    let mut text = String::new();
    json_table(&mut text, 0, fields);
    text.push('\n');
    text
}

fn json_value(text: &mut String, depth: usize, value: &Outline) {
    match value {
        Text(string) => quote(text, string),
        Integer(integer) => text.push_str(&integer.to_string()),
        Decimal(factor) => text.push_str(&factor.to_string()),
        Boolean(truth) => text.push_str(&truth.to_string()),
        List(elements) | Lines(elements) => json_list(text, depth, elements, json_value),
        Inline(fields) | Section(fields) => json_table(text, depth, fields),
        Sections(tables) => json_list(text, depth, tables, json_table),
    }
}

fn json_table(text: &mut String, depth: usize, fields: &Fields) {
    text.push('{');
    separated(text, fields, ",", |text, (key, value)| {
        new_line(text, depth + 1);
        text.push_str(&format!("\"{key}\": "));
        json_value(text, depth + 1, value);
    });
    new_line(text, depth);
    text.push('}');
}

fn json_list<T>(text: &mut String, depth: usize, elements: &[T], write: impl Fn(&mut String, usize, &T)) {
    text.push('[');
    separated(text, elements, ",", |text, element| {
        new_line(text, depth + 1);
        write(text, depth + 1, element);
    });
    if !elements.is_empty() {
        new_line(text, depth);
    }
    text.push(']');
}

fn new_line(text: &mut String, depth: usize) {
    text.push('\n');
    text.extend(std::iter::repeat_n("  ", depth));
}

fn separated<T>(text: &mut String, elements: &[T], separator: &str, mut write: impl FnMut(&mut String, &T)) {
    for (number, element) in elements.iter().enumerate() {
        if number > 0 {
            text.push_str(separator);
        }
        write(text, element);
    }
}

/// A string in double quotes with the escapes that TOML and JSON share.
fn quote(text: &mut String, string: &str) {
    text.push('"');
    for character in string.chars() {
        match character {
            '"' | '\\' => text.extend(['\\', character]),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            // TOML forbids DEL as well; neither has an escape for it but this one.
            '\0'..' ' | '\u{7f}' => write!(text, "\\u{:04X}", u32::from(character)).expect("a string takes all text"),
            _ => text.push(character),
        }
    }
    text.push('"');
}
