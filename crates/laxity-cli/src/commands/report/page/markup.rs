//! Text for HTML and SVG.

use std::fmt::Write as _;

use laxity_model::text::printable;

/// `text` as HTML shows it, wherever it comes from. Control characters, and those that show a line in another order than it
/// is written, are shown by their numbers.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in printable(text).chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// `text` as HTML, with what stands between backticks as code.
pub fn with_code(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let part = |(index, part): (usize, &str)| match index % 2 {
        0 => escape(part),
        _ => format!("<code>{}</code>", escape(part)),
    };
    parts.map(part).collect()
}

/// HTML that stands out, as what should not be.
pub fn bad(html: &str) -> String {
    format!("<span class=\"bad\">{html}</span>")
}

/// A picture that a page holds itself, apart from its own names and styles.
pub fn data_uri(svg: &str) -> String {
    let mut uri = String::from("data:image/svg+xml,");
    for byte in svg.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' | b':' | b'=' | b' ' | b',' => {
                uri.push(char::from(byte));
            }
            byte => {
                let _ = write!(uri, "%{byte:02X}");
            }
        }
    }
    uri
}

/// A table: heads, rows of cells that are HTML already, and rows at the end. The first `words` columns are texts.
pub fn table(heads: &[&str], rows: &[Vec<String>], totals: &[Vec<String>], words: usize) -> String {
    let class = |column: usize| if column < words { " class=\"words\"" } else { "" };
    let mut out = String::from("<div class=\"wide\"><table><thead><tr>");
    for (column, head) in heads.iter().enumerate() {
        let _ = write!(out, "<th{}>{head}</th>", class(column));
    }
    out.push_str("</tr></thead><tbody>");
    for (part, rows) in [("", rows), ("</tbody><tfoot>", totals)] {
        if !rows.is_empty() {
            out.push_str(part);
        }
        for row in rows {
            out.push_str("<tr>");
            for (column, cell) in row.iter().enumerate() {
                let _ = write!(out, "<td{}>{cell}</td>", class(column));
            }
            out.push_str("</tr>");
        }
    }
    out.push_str(if totals.is_empty() { "</tbody></table></div>\n" } else { "</tfoot></table></div>\n" });
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_become_markup() {
        assert_eq!(escape("<b a='\"&\u{1b}\">"), "&lt;b a=&#39;&quot;&amp;\\u001b&quot;&gt;");
        assert_eq!(escape("a\u{202e}b"), "a\\u202eb");
        assert_eq!(data_uri("<a b=\"ü\">"), "data:image/svg+xml,%3Ca b=%22%C3%BC%22%3E");
    }
}
