//! A table on standard error that is drawn again and again in its place; where that is no terminal, a line now and then.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant as WallInstant};

use anstream::{AutoStream, ColorChoice};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::{output, style};

/// How often a terminal is drawn, and how often anything else gets a line.
const DRAWN_EVERY: Duration = Duration::from_millis(250);
const TOLD_EVERY: Duration = Duration::from_secs(5);

/// Lines of a terminal that are not the table's: what stands above it, its headings, and where the prompt was.
const LINES_AROUND: usize = 7;

/// A table on standard error, or lines.
pub struct Display {
    /// On a terminal.
    bar: Option<ProgressBar>,
    is_quiet: bool,
    every: Duration,
    shown: WallInstant,
}

impl Display {
    /// Shows something every now and then, or `every` so often; if `is_quiet`, nothing.
    pub fn new(every: Option<Duration>, is_quiet: bool) -> Self {
        let is_drawn = io::stderr().is_terminal() && !is_quiet;
        let bar = is_drawn.then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            bar.set_style(ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_spinner()));
            bar
        });
        let every = every.unwrap_or(if is_drawn { DRAWN_EVERY } else { TOLD_EVERY });
        Display { bar, is_quiet, every, shown: WallInstant::now() }
    }

    /// Whether it is time to show something.
    pub fn is_due(&self) -> bool {
        !self.is_quiet && self.shown.elapsed() >= self.every
    }

    /// Something else was shown.
    pub fn wait_again(&mut self) {
        self.shown = WallInstant::now();
    }

    /// How many rows of a table it can show.
    pub fn rows(&self) -> usize {
        let size = terminal_size::terminal_size_of(io::stderr());
        size.map_or(usize::MAX, |(_, height)| usize::from(height.0).saturating_sub(LINES_AROUND).max(1))
    }

    /// Shows `line` and, on a terminal, below it what `table` makes of its width.
    pub fn show(&mut self, line: &str, table: impl FnOnce(Option<usize>) -> String) {
        self.wait_again();
        let Some(bar) = &self.bar else {
            return output::to_stderr(line);
        };
        let width = terminal_size::terminal_size_of(io::stderr()).map(|(width, _)| usize::from(width.0));
        let text = format!("{line}\n\n{}", table(width));
        let text = match AutoStream::choice(&io::stderr()) {
            ColorChoice::Never => style::plain(&text),
            _ => style::painted(&text),
        };
        bar.set_message(text.trim_end().to_owned());
        bar.tick();
    }

    /// Warns, above what is shown.
    pub fn warn(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| output::warning(text)),
            None => output::warning(text),
        }
    }

    /// Takes away what is shown.
    pub fn clear(&self) {
        self.bar.iter().for_each(ProgressBar::finish_and_clear);
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        self.clear();
    }
}
