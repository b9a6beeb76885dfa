//! JSON text to a tree (RFC 8259, strictly; a key may occur once). Written here because the common JSON crates drop the
//! positions that error messages need.

use super::tree::{DEPTH_MAX, Entry, Node, SyntaxError, Value};

/// Reads one JSON value that fills the text; on failure the first mistake.
pub(crate) fn parse(text: &str) -> Result<Node, SyntaxError> {
    let mut parser = Parser { text, at: 0, depth: 0 };
    parser.skip_space();
    let node = parser.node()?;
    parser.skip_space();
    match parser.peek() {
        None => Ok(node),
        Some(_) => Err(parser.error("more text after the end of the value; remove it")),
    }
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
}

impl<'t> Parser<'t> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Takes `byte` if it comes next.
    fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn error(&self, message: &str) -> SyntaxError {
        self.error_at(self.at, message)
    }

    fn error_at(&self, offset: usize, message: &str) -> SyntaxError {
        SyntaxError { offset, message: format!("not JSON: {message}") }
    }

    fn node(&mut self) -> Result<Node, SyntaxError> {
        let offset = self.at;
        let value = match self.peek() {
            Some(b'{') => self.nested(Self::table)?,
            Some(b'[') => self.nested(Self::list)?,
            Some(b'"') => Value::Text(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            _ => self.word()?,
        };
        Ok(Node { offset, value })
    }

    fn nested(&mut self, read: impl Fn(&mut Self) -> Result<Value, SyntaxError>) -> Result<Value, SyntaxError> {
        if self.depth == DEPTH_MAX {
            return Err(self.error(&format!("lists and tables nest deeper than {DEPTH_MAX}")));
        }
        self.at += 1;
        self.depth += 1;
        self.skip_space();
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn list(&mut self) -> Result<Value, SyntaxError> {
        let mut elements = Vec::new();
        if self.take(b']') {
            return Ok(Value::List(elements));
        }
        loop {
            elements.push(self.node()?);
            self.skip_space();
            if self.take(b']') {
                return Ok(Value::List(elements));
            }
            self.comma("]")?;
        }
    }

    fn table(&mut self) -> Result<Value, SyntaxError> {
        let mut entries = Vec::new();
        let mut keys = std::collections::BTreeSet::new();
        if self.take(b'}') {
            return Ok(Value::Table(entries));
        }
        loop {
            let key_offset = self.at;
            if self.peek() != Some(b'"') {
                return Err(self.error("expected a key in double quotes"));
            }
            let key = self.string()?;
            if !keys.insert(key.clone()) {
                return Err(self.error_at(key_offset, &format!("duplicate key `{key}`; remove one of them")));
            }
            self.skip_space();
            if !self.take(b':') {
                return Err(self.error("expected `:` after the key"));
            }
            self.skip_space();
            entries.push(Entry { key, key_offset, node: self.node()? });
            self.skip_space();
            if self.take(b'}') {
                return Ok(Value::Table(entries));
            }
            self.comma("}")?;
        }
    }

    fn comma(&mut self, end: &str) -> Result<(), SyntaxError> {
        if !self.take(b',') {
            return Err(self.error(&format!("expected `,` or `{end}`")));
        }
        self.skip_space();
        Ok(())
    }

    fn word(&mut self) -> Result<Value, SyntaxError> {
        let words =
            [("true", Value::Boolean(true)), ("false", Value::Boolean(false)), ("null", Value::Foreign("null"))];
        for (word, value) in words {
            if self.text[self.at..].starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.error("expected a value: text in double quotes, a number, `true`, `false`, a list or a table"))
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        self.at - start
    }

    fn number(&mut self) -> Result<Value, SyntaxError> {
        let start = self.at;
        self.take(b'-');
        let leading_zero = self.peek() == Some(b'0');
        let whole = self.digits();
        if whole == 0 || (leading_zero && whole > 1) {
            return Err(self.error_at(start, "a number has digits, and no zero before them"));
        }
        let mut is_whole = true;
        if self.take(b'.') {
            is_whole = false;
            if self.digits() == 0 {
                return Err(self.error("expected digits after the decimal point"));
            }
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            is_whole = false;
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if self.digits() == 0 {
                return Err(self.error("expected digits in the exponent"));
            }
        }
        if !is_whole {
            return Ok(Value::Fraction(self.text[start..self.at].to_owned()));
        }
        Ok(match self.text[start..self.at].parse() {
            Ok(integer) => Value::Integer(integer),
            Err(_) => Value::Foreign("a number of more than 128 bits"),
        })
    }

    /// The string whose opening quote comes next.
    fn string(&mut self) -> Result<String, SyntaxError> {
        self.at += 1;
        let mut string = String::new();
        loop {
            let plain = self.text[self.at..].bytes().take_while(|&byte| byte >= b' ' && byte != b'"' && byte != b'\\');
            let end = self.at + plain.count();
            string.push_str(&self.text[self.at..end]);
            self.at = end;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(string);
                }
                Some(b'\\') => string.push(self.escape()?),
                Some(_) => return Err(self.error("a control character in text; escape it")),
                None => return Err(self.error("text without its closing quote")),
            }
        }
    }

    /// The character written by the escape sequence that comes next.
    fn escape(&mut self) -> Result<char, SyntaxError> {
        let start = self.at;
        self.at += 1;
        let kind = self.peek();
        self.at += usize::from(kind.is_some_and(|byte| byte.is_ascii()));
        Ok(match kind {
            Some(character @ (b'"' | b'\\' | b'/')) => char::from(character),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => self.unicode(start)?,
            _ => return Err(self.error_at(start, "an unknown escape sequence in text")),
        })
    }

    /// The character of `\uXXXX`, or of two of them that form a surrogate pair.
    fn unicode(&mut self, start: usize) -> Result<char, SyntaxError> {
        let error = self.error_at(start, "an escape sequence that names no character");
        let high = self.four_hex_digits().ok_or_else(|| error.clone())?;
        if !(0xd800..0xdc00).contains(&high) {
            return char::from_u32(high).ok_or(error);
        }
        if !(self.take(b'\\') && self.take(b'u')) {
            return Err(error);
        }
        let low = self.four_hex_digits().filter(|low| (0xdc00..0xe000).contains(low)).ok_or_else(|| error.clone())?;
        char::from_u32(0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00)).ok_or(error)
    }

    fn four_hex_digits(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        self.at += 4;
        u32::from_str_radix(digits, 16).ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The same value as `serde_json` reads it, an independent parser.
    fn agrees(node: &Node, other: &serde_json::Value) -> bool {
        match (&node.value, other) {
            (Value::Text(a), serde_json::Value::String(b)) => a == b,
            (Value::Integer(a), serde_json::Value::Number(b)) => b.as_i128() == Some(*a) || b.is_f64(),
            (Value::Foreign(_), serde_json::Value::Number(b)) => b.is_f64(),
            (Value::Boolean(a), serde_json::Value::Bool(b)) => a == b,
            (Value::Foreign("null"), serde_json::Value::Null) => true,
            (Value::List(a), serde_json::Value::Array(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| agrees(a, b))
            }
            (Value::Table(a), serde_json::Value::Object(b)) => {
                a.len() == b.len()
                    && a.iter().all(|entry| b.get(&entry.key).is_some_and(|other| agrees(&entry.node, other)))
            }
            _ => false,
        }
    }

    #[test]
    fn the_first_mistake_is_named_where_it_stands() {
        let cases = [
            ("", 0, "expected a value"),
            ("{\"a\" 1}", 5, "expected `:`"),
            ("[1 2]", 3, "expected `,` or `]`"),
            ("{\"a\": 1,}", 8, "expected a key"),
            ("{\"a\": 1, \"a\": 2}", 9, "duplicate key `a`"),
            ("[1] 2", 4, "more text after"),
            ("\"a", 2, "closing quote"),
            ("\"\\ud800\"", 1, "names no character"),
            ("01", 0, "no zero before"),
            ("[1.]", 3, "decimal point"),
        ];
        for (text, offset, message) in cases {
            let error = parse(text).expect_err(text);
            assert_eq!(error.offset, offset, "{text}: {}", error.message);
            assert!(error.message.contains(message), "{text}: {}", error.message);
        }
    }

    #[test]
    fn deep_nesting_is_refused_rather_than_exhausting_the_stack() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(parse(&nested(DEPTH_MAX)).is_ok());
        assert!(parse(&nested(DEPTH_MAX + 1)).is_err());
        assert!(parse(&nested(1_000_000)).is_err());
    }

    proptest! {
        #[test]
        fn an_independent_parser_reads_the_same(text in "[\\[\\]{}:,\"\\\\a-fu0-9eE.+\\- \\n]{0,40}|\\PC{0,40}") {
            if let Ok(node) = parse(&text) {
                let other = serde_json::from_str(&text);
                // Out of the range of f64 is that parser's affair.
                if let Ok(other) = other {
                    prop_assert!(agrees(&node, &other), "{node:?} against {other}");
                } else {
                    prop_assert!(text.contains(['e', 'E']), "accepted what is no JSON: {text}");
                }
            } else {
                // A duplicate key is the one thing refused here and accepted there.
                let other = serde_json::from_str::<serde_json::Value>(&text);
                prop_assert!(other.is_err() || text.contains('{'), "refused what is JSON: {text}");
            }
        }

        #[test]
        fn every_string_survives_the_trip(text in any::<String>()) {
            let json = serde_json::to_string(&text).expect("text is JSON");
            let node = parse(&json).map_err(|error| TestCaseError::fail(error.message))?;
            prop_assert_eq!(node.value, Value::Text(text));
        }
    }
}
