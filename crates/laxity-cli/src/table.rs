//! Tables for a terminal: aligned, with headings over groups of columns.
//!
//! ```text
//!        period            jobs             response time, ms
//! task       ms  released  completed   mean      p99      max
//! ──────────────────────────────────────────────────────────
//! camera 33.333       300        300  9.000   12.000   13.000
//! ──────────────────────────────────────────────────────────
//! total               300        300  9.000   12.000   13.000
//! ```
//!
//! A table wider than the terminal is continued below itself, cut between groups, the first column repeated. (The table
//! crates at hand either know no groups or cannot be cut there.)

use std::fmt::Write;

use laxity_model::text::printable;
use unicode_width::UnicodeWidthStr;

use crate::style::{self, Style};

/// Between columns of a group, and between groups.
const GAP: usize = 2;

/// A table being filled.
#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
    totals: Vec<Vec<Cell>>,
}

#[derive(Clone, Debug)]
struct Column {
    /// Which group it belongs to: an index that neighbours of one group share.
    group: usize,
    group_title: String,
    title: String,
    left: bool,
}

/// A cell: text in a style.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// Text that should not be overlooked.
    pub fn bad(text: impl Into<String>) -> Self {
        Cell { text: text.into(), style: style::BAD }
    }

    /// Text that says that all is well.
    pub fn good(text: impl Into<String>) -> Self {
        Cell { text: text.into(), style: style::GOOD }
    }

    /// Text that may be.
    pub fn faint(text: impl Into<String>) -> Self {
        Cell { text: text.into(), style: style::FAINT }
    }

    /// A number of things that should not be: red, but faint if there are none.
    pub fn mishaps(count: u64) -> Self {
        if count == 0 { Cell::faint("0") } else { Cell::bad(count.to_string()) }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Cell { text: text.into(), style: Style::Plain }
    }
}

impl Table {
    /// A table whose first column, called `title`, holds names and is aligned left.
    pub fn of(title: &str) -> Self {
        let first = Column { group: 0, group_title: String::new(), title: title.to_owned(), left: true };
        Table { columns: vec![first], rows: Vec::new(), totals: Vec::new() }
    }

    /// Adds columns of numbers below a common heading.
    pub fn group(mut self, heading: &str, titles: &[&str]) -> Self {
        self.extend(heading, titles, false);
        self
    }

    /// Adds a column of text.
    pub fn text(mut self, title: &str) -> Self {
        self.extend("", &[title], true);
        self
    }

    fn extend(&mut self, heading: &str, titles: &[&str], left: bool) {
        let group = self.columns.last().map_or(0, |column| column.group + 1);
        // A heading over nothing stands where the titles stand.
        let (heading, titles) = if titles == [""] { ("", [heading].to_vec()) } else { (heading, titles.to_vec()) };
        self.columns.extend(titles.into_iter().map(|title| Column {
            group,
            group_title: heading.to_owned(),
            title: title.to_owned(),
            left,
        }));
    }

    /// Adds a row: a cell for each column, absent ones empty.
    pub fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(self.complete(cells));
    }

    /// Rows that were added, those at the end not counted.
    pub fn height(&self) -> usize {
        self.rows.len()
    }

    /// Adds a row below the line at the end.
    pub fn total(&mut self, cells: Vec<Cell>) {
        self.totals.push(self.complete(cells));
    }

    fn complete(&self, mut cells: Vec<Cell>) -> Vec<Cell> {
        cells.resize(self.columns.len(), Cell::default());
        for cell in &mut cells {
            cell.text = printable(&cell.text).into_owned();
        }
        cells
    }

    /// The table, at most `width` columns wide if that is possible.
    pub fn render(&self, width: Option<usize>) -> String {
        let widths = self.widths();
        let mut out = String::new();
        for (number, page) in self.pages(&widths, width).iter().enumerate() {
            if number > 0 {
                out.push('\n');
            }
            self.render_page(&mut out, page, &widths);
        }
        out
    }

    /// How wide each column is: its widest cell, the last of a group also what the group's heading needs.
    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = self.columns.iter().map(|column| column.title.width()).collect();
        for row in self.rows.iter().chain(&self.totals) {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.text.width());
            }
        }
        for group in self.groups() {
            let heading = self.columns[group.start].group_title.width();
            // Over several columns it stands between dashes.
            let needed = if group.len() > 1 && heading > 0 { heading + 4 } else { heading };
            let have = span(&widths[group.clone()]);
            widths[group.end - 1] += needed.saturating_sub(have);
        }
        widths
    }

    /// The columns of each group.
    fn groups(&self) -> Vec<std::ops::Range<usize>> {
        let mut groups: Vec<std::ops::Range<usize>> = Vec::new();
        for (index, column) in self.columns.iter().enumerate() {
            match groups.last_mut() {
                Some(last) if self.columns[last.start].group == column.group => last.end = index + 1,
                _ => groups.push(index..index + 1),
            }
        }
        groups
    }

    /// The groups that stand beside each other. The first column is on every page and not listed.
    fn pages(&self, widths: &[usize], limit: Option<usize>) -> Vec<Vec<std::ops::Range<usize>>> {
        let first = widths.first().copied().unwrap_or(0);
        let mut pages = vec![Vec::new()];
        let mut used = first;
        for group in self.groups().into_iter().skip(1) {
            let needed = GAP + span(&widths[group.clone()]);
            let page_is_empty = pages.last().is_none_or(Vec::is_empty);
            if limit.is_some_and(|limit| used + needed > limit) && !page_is_empty {
                pages.push(Vec::new());
                used = first;
            }
            used += needed;
            if let Some(page) = pages.last_mut() {
                page.push(group);
            }
        }
        pages
    }

    fn render_page(&self, out: &mut String, page: &[std::ops::Range<usize>], widths: &[usize]) {
        let columns: Vec<usize> = std::iter::once(0).chain(page.iter().flat_map(Clone::clone)).collect();
        let total = columns.iter().map(|&column| widths[column] + GAP).sum::<usize>() - GAP;
        if self.columns.iter().any(|column| !column.group_title.is_empty()) {
            self.render_headings(out, page, widths);
        }
        let titles: Vec<Cell> =
            self.columns.iter().map(|column| Cell { text: column.title.clone(), style: style::STRONG }).collect();
        self.render_row(out, &columns, &titles, widths);
        let rule = format!("{}{}{}\n", style::FAINT, "─".repeat(total), style::RESET);
        out.push_str(&rule);
        for row in &self.rows {
            self.render_row(out, &columns, row, widths);
        }
        if !self.totals.is_empty() {
            out.push_str(&rule);
            for row in &self.totals {
                self.render_row(out, &columns, row, widths);
            }
        }
    }

    /// A heading over several columns is centred between dashes; over one column it is aligned as that is.
    fn render_headings(&self, out: &mut String, page: &[std::ops::Range<usize>], widths: &[usize]) {
        let mut line = " ".repeat(widths.first().copied().unwrap_or(0));
        for group in page {
            let heading = &self.columns[group.start].group_title;
            let width = span(&widths[group.clone()]);
            let free = width - heading.width();
            line.push_str(&" ".repeat(GAP));
            if group.len() == 1 {
                line.push_str(&" ".repeat(free));
                line.push_str(heading);
            } else if heading.is_empty() {
                line.push_str(&" ".repeat(width));
            } else {
                let dashes = free - 2;
                let (left, right) = (dashes / 2, dashes - dashes / 2);
                line.push_str(&format!("{} {heading} {}", "─".repeat(left), "─".repeat(right)));
            }
        }
        let _ = writeln!(out, "{}{}{}", style::FAINT, line.trim_end(), style::RESET);
    }

    fn render_row(&self, out: &mut String, columns: &[usize], row: &[Cell], widths: &[usize]) {
        let last = columns.last().copied();
        for &column in columns {
            let cell = &row[column];
            if column != 0 {
                out.push_str(&" ".repeat(GAP));
            }
            let padding = " ".repeat(widths[column] - cell.text.width());
            let styled = if cell.style == Style::Plain || cell.text.is_empty() {
                cell.text.clone()
            } else {
                format!("{}{}{}", cell.style, cell.text, style::RESET)
            };
            match self.columns[column].left {
                // No blanks at the end of a line.
                true if Some(column) == last => out.push_str(&styled),
                true => out.push_str(&(styled + &padding)),
                false => out.push_str(&(padding + &styled)),
            }
        }
        out.truncate(out.trim_end_matches(' ').len());
        out.push('\n');
    }
}

/// The width of neighbouring columns.
fn span(widths: &[usize]) -> usize {
    widths.iter().map(|width| width + GAP).sum::<usize>().saturating_sub(GAP)
}

/// `text`, its end replaced by an ellipsis if it is wider than `most`.
pub fn cut(text: &str, most: usize) -> String {
    let text = printable(text);
    if text.width() <= most {
        return text.into_owned();
    }
    let mut short = String::new();
    for letter in text.chars() {
        if format!("{short}{letter}").width() >= most {
            break;
        }
        short.push(letter);
    }
    short + "…"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> String {
        style::plain(text)
    }

    fn example() -> Table {
        let mut table = Table::of("task").group("period", &["ms"]).group("response time, ms", &["mean", "p99", "max"]);
        table.row(vec!["camera".into(), "33.333".into(), "9.000".into(), "12.000".into(), "13.000".into()]);
        table.row(vec!["lidar".into(), "100.000".into(), "40.000".into(), Cell::mishaps(0)]);
        table.total(vec!["total".into(), "".into(), "20.000".into()]);
        table
    }

    #[test]
    fn a_table_is_aligned_below_its_headings() {
        let expected = "
         period  ─ response time, ms ──
task         ms    mean     p99     max
───────────────────────────────────────
camera   33.333   9.000  12.000  13.000
lidar   100.000  40.000       0
───────────────────────────────────────
total            20.000
";
        let printed = |width| format!("\n{}", plain(&example().render(width)));
        assert_eq!(printed(None), expected);
        assert_eq!(printed(Some(39)), expected, "it fits exactly");
    }

    #[test]
    fn a_table_that_is_too_wide_is_continued_below() {
        let expected = "
         period
task         ms
───────────────
camera   33.333
lidar   100.000
───────────────
total

        ─ response time, ms ──
task      mean     p99     max
──────────────────────────────
camera   9.000  12.000  13.000
lidar   40.000       0
──────────────────────────────
total   20.000
";
        let printed = |width| format!("\n{}", plain(&example().render(width)));
        assert_eq!(printed(Some(38)), expected);
        assert_eq!(printed(Some(1)), expected, "a group is never cut");
    }

    #[test]
    fn long_names_are_cut_and_control_characters_shown() {
        assert_eq!(cut("motor", 5), "motor");
        assert_eq!(cut("motors", 5), "moto…");
        assert_eq!(cut("カメラ", 5), "カメ…");
        assert_eq!(cut("a\u{1b}[31m", 24), "a\\u001b[31m");
    }
}
