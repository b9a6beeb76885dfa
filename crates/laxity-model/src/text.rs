//! Text from files and other processes, made safe to print.
//!
//! A terminal obeys control characters: names that hold them could move the cursor, set the title, or hide what follows.
//! Formatting characters of bidirectional text could show a line in another order than it is written. Printed text shows
//! both as `\u001b`: readable, and inside of a JSON or TOML string still the same text.

use std::borrow::Cow;

/// `text` for a place within a line: characters that a terminal would obey are shown by their numbers.
pub fn printable(text: &str) -> Cow<'_, str> {
    shown(text, is_obeyed)
}

/// As [`printable`], but line feeds and tabs remain.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    shown(text, |letter| is_obeyed(letter) && !matches!(letter, '\n' | '\t'))
}

fn shown(text: &str, is_obeyed: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_obeyed) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if is_obeyed(letter) {
            shown.push_str(&format!("\\u{:04x}", u32::from(letter)));
        } else {
            shown.push(letter);
        }
    }
    Cow::Owned(shown)
}

/// Control characters of C0 and C1, separators of lines and paragraphs, and the controls of the Unicode Bidirectional
/// Algorithm (UAX #9, section 2): marks, embeddings, overrides, isolates. All have four hexadecimal digits at most.
fn is_obeyed(letter: char) -> bool {
    let is_bidirectional =
        matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    letter.is_control() || is_bidirectional || matches!(letter, '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_obeys_nothing_that_is_left() {
        assert_eq!(printable("\u{1b}]0;title\u{7}"), "\\u001b]0;title\\u0007");
        assert_eq!(printable("\u{9b}31m, \u{7f}"), "\\u009b31m, \\u007f");
        assert_eq!(printable("a\u{202e}b\u{2066}c"), "a\\u202eb\\u2066c");
        assert_eq!(printable("two\nlines\rone\t"), "two\\u000alines\\u000done\\u0009");
        assert_eq!(printable_lines("two\nlines\rone\t"), "two\nlines\\u000done\t");
    }

    #[test]
    fn ordinary_text_of_any_language_stays_as_it_is() {
        for text in ["camera", "Σ µs ½", "カメラ", "שלום", "🚗"] {
            assert!(matches!(printable(text), Cow::Borrowed(same) if same == text), "{text}");
        }
    }
}
