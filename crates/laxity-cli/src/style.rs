//! The colours of the terminal, by meaning, and what becomes of text before a terminal gets it.
//!
//! A style in a text is a mark, and [`painted`] turns marks into what terminals understand. It shows all else that a
//! terminal would obey by its number, so that no name from a file or another process is obeyed. A name cannot hold a mark:
//! marks differ in each process, by chance.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::{BuildHasher, Hasher};
use std::sync::LazyLock;

use anstyle::{AnsiColor, Reset};
use laxity_model::text::printable_lines;

/// The look of some text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    #[default]
    Plain,
    Strong,
    Faint,
    Red,
    Yellow,
    Cyan,
    Green,
}

/// Ends any style.
pub const RESET: Style = Style::Plain;
/// The word `error`.
pub const ERROR: Style = Style::Red;
/// The word `warning`.
pub const WARNING: Style = Style::Yellow;
/// The word `note`.
pub const NOTE: Style = Style::Cyan;
/// Headings.
pub const STRONG: Style = Style::Strong;
/// What is there to be found, not read: rules, labels, zeros.
pub const FAINT: Style = Style::Faint;
/// What should not be: misses, violations.
pub const BAD: Style = Style::Red;
/// What was hoped for.
pub const GOOD: Style = Style::Green;

const ALL: [Style; 7] =
    [Style::Plain, Style::Strong, Style::Faint, Style::Red, Style::Yellow, Style::Cyan, Style::Green];

/// What each mark of this process begins with; a letter for the style follows.
static MARK: LazyLock<String> =
    LazyLock::new(|| format!("\u{fdd0}{:016x}", RandomState::new().build_hasher().finish()));

impl Style {
    /// The letter that stands for it in a mark.
    fn letter(self) -> char {
        char::from(b'a' + self as u8)
    }

    fn escape(self) -> String {
        let style = match self {
            Style::Plain => return Reset.to_string(),
            Style::Strong => anstyle::Style::new().bold(),
            Style::Faint => anstyle::Style::new().dimmed(),
            Style::Red => AnsiColor::Red.on_default().bold(),
            Style::Yellow => AnsiColor::Yellow.on_default().bold(),
            Style::Cyan => AnsiColor::Cyan.on_default().bold(),
            Style::Green => AnsiColor::Green.on_default(),
        };
        style.to_string()
    }
}

/// The mark.
impl fmt::Display for Style {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", *MARK, self.letter())
    }
}

/// `text` as a terminal may get it: marks of this process as escape sequences, nothing else that a terminal obeys.
pub fn painted(text: &str) -> String {
    let mut parts = text.split(MARK.as_str());
    let mut painted = printable_lines(parts.next().unwrap_or_default()).into_owned();
    for part in parts {
        let style = ALL.into_iter().find(|style| part.starts_with(style.letter()));
        painted.push_str(&style.map_or_else(String::new, Style::escape));
        painted.push_str(&printable_lines(style.map_or(part, |_| &part[1..])));
    }
    painted
}

/// `text` without its styles.
pub fn plain(text: &str) -> String {
    anstream::adapter::strip_str(&painted(text)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_are_painted_and_escape_sequences_of_a_name_are_not() {
        let name = "\u{1b}[31mevil\u{1b}]0;title\u{7}";
        let shown = "\\u001b[31mevil\\u001b]0;title\\u0007";
        assert_eq!(painted(&format!("{GOOD}{name}{RESET}: 1\n")), format!("\u{1b}[32m{shown}\u{1b}[0m: 1\n"));
        assert_eq!(plain(&format!("{BAD}{name}{RESET}")), shown);
    }

    #[test]
    fn a_mark_of_another_process_colours_nothing() {
        let forged = "\u{fdd0}0123456789abcdefd";
        assert_eq!(painted(forged), forged);
    }
}
