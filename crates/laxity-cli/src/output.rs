//! Standard output and standard error: the one way to a terminal, on which text is painted and cleaned.

use std::borrow::Cow;
use std::fmt::{Display, Write as _};
use std::io::{self, Write};

use anstream::AutoStream;

use crate::error::CliError;
use crate::style::{self, painted};

/// Text is written in pieces of about this length.
const PIECE: usize = 8 << 10;

/// Standard output. Colours are removed where they are not wanted, and a reader that has seen enough (`| head`) ends
/// nothing but the printing.
pub struct Output {
    stream: AutoStream<io::Stdout>,
    /// Not yet written; holds whole marks of styles.
    text: String,
    closed: bool,
    width: Option<usize>,
}

impl Output {
    /// The process's standard output.
    pub fn stdout() -> Self {
        let width = terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0));
        Output { stream: AutoStream::auto(io::stdout()), text: String::new(), closed: false, width }
    }

    /// Columns of the terminal; `None` if there is none, and lines may be of any length.
    pub fn width(&self) -> Option<usize> {
        self.width
    }

    /// Whether the reader of what is printed has gone.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Prints `text` without ending the line.
    pub fn print(&mut self, text: impl Display) -> Result<(), CliError> {
        let _ = write!(self.text, "{text}");
        if self.text.len() >= PIECE { self.send() } else { Ok(()) }
    }

    /// Prints `text` and ends the line.
    pub fn line(&mut self, text: impl Display) -> Result<(), CliError> {
        self.print(format_args!("{text}\n"))
    }

    /// Everything printed so far reaches its reader, before standard error says more.
    pub fn finish(&mut self) -> Result<(), CliError> {
        self.send()?;
        let flushed = self.stream.flush();
        self.unless_closed(flushed)
    }

    fn send(&mut self) -> Result<(), CliError> {
        let text = std::mem::take(&mut self.text);
        if self.closed || text.is_empty() {
            return Ok(());
        }
        must_be_open()?;
        let written = self.stream.write_all(painted(&text).as_bytes());
        self.unless_closed(written)
    }

    /// Remembers that the reader has gone; that is no error.
    fn unless_closed(&mut self, result: io::Result<()>) -> Result<(), CliError> {
        match result {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(())
            }
            result => result.map_err(CliError::Print),
        }
    }
}

/// Fails if this process was started without a standard output (`>&-`): Rust puts `/dev/null` in its place, and results would
/// be lost without a word.
pub fn must_be_open() -> Result<(), CliError> {
    #[cfg(target_os = "linux")]
    if laxity_sys::standard_output::was_closed() {
        const EBADF: i32 = 9;
        return Err(CliError::Print(io::Error::from_raw_os_error(EBADF)));
    }
    Ok(())
}

/// Reports wrong usage as clap does, and what it prints on request. Where the arguments hold something that a terminal
/// would obey, in plain letters.
pub fn usage(error: &clap::Error) -> Result<(), CliError> {
    let plain = error.render().to_string();
    if error.use_stderr() && painted(&plain) != plain {
        to_stderr(plain.trim_end());
        return Ok(());
    }
    if !error.use_stderr() {
        must_be_open()?;
    }
    match error.print().and_then(|()| io::stdout().flush()) {
        // What is asked for is a result; its reader may have seen enough.
        Err(failed) if !error.use_stderr() && failed.kind() != io::ErrorKind::BrokenPipe => {
            Err(CliError::Print(failed))
        }
        _ => Ok(()),
    }
}

/// Reports an error on standard error: a line for each of its own.
pub fn error(error: &CliError) {
    for line in error.to_string().lines() {
        to_stderr(format_args!("{}error:{} {line}", style::ERROR, style::RESET));
    }
}

/// Says something on standard error that is neither a result nor an error.
pub fn note(text: impl Display) {
    to_stderr(format_args!("{}note:{} {text}", style::NOTE, style::RESET));
}

/// `text` as one word of a shell: in quotes if it has to be.
pub fn word(text: &str) -> Cow<'_, str> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:,+@%=".contains(letter);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => Cow::Borrowed(text),
        // Within single quotes only their end is special.
        false => Cow::Owned(format!("'{}'", text.replace('\'', r"'\''"))),
    }
}

/// Says on standard error what is probably not meant.
pub fn warning(text: impl Display) {
    to_stderr(format_args!("{}warning:{} {text}", style::WARNING, style::RESET));
}

/// A line on standard error. If that is closed, no reader is left to tell.
pub fn to_stderr(line: impl Display) {
    let _ = writeln!(anstream::stderr(), "{}", painted(&line.to_string()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_is_suggested_can_be_pasted() {
        assert_eq!(word("traces/car-1.lxt"), "traces/car-1.lxt");
        assert_eq!(word("n x\"u.lxt"), "'n x\"u.lxt'");
        assert_eq!(word("it's"), r"'it'\''s'");
        assert_eq!(["", "~a", "$HOME", "a;b"].map(|text| word(text).into_owned()), ["''", "'~a'", "'$HOME'", "'a;b'"]);
    }
}
