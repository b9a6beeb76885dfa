//! Standard output and standard error.

use std::fmt::Display;
use std::io::{self, BufWriter, Write};

use anstream::AutoStream;

use crate::error::CliError;
use crate::style;

/// Standard output. Colours are removed where they are not wanted, and a reader that has seen enough (`| head`) ends
/// nothing but the printing.
pub struct Output {
    stream: BufWriter<AutoStream<io::Stdout>>,
    closed: bool,
    width: Option<usize>,
}

impl Output {
    /// The process's standard output.
    pub fn stdout() -> Self {
        let width = terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0));
        Output { stream: BufWriter::new(AutoStream::auto(io::stdout())), closed: false, width }
    }

    /// Columns of the terminal; `None` if there is none, and lines may be of any length.
    pub fn width(&self) -> Option<usize> {
        self.width
    }

    /// Whether nobody reads what is printed any more.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Prints `text` as it is.
    pub fn print(&mut self, text: impl Display) -> Result<(), CliError> {
        write!(self, "{text}").map_err(CliError::Print)
    }

    /// Prints `text` and ends the line.
    pub fn line(&mut self, text: impl Display) -> Result<(), CliError> {
        writeln!(self, "{text}").map_err(CliError::Print)
    }

    /// Everything printed so far reaches its reader, before standard error says more.
    pub fn finish(&mut self) -> Result<(), CliError> {
        self.flush().map_err(CliError::Print)
    }

    /// Remembers that nobody reads on; that is no error.
    fn unless_closed<T>(&mut self, result: io::Result<T>, otherwise: T) -> io::Result<T> {
        match result {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(otherwise)
            }
            result => result,
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.closed {
            return Ok(bytes.len());
        }
        let written = self.stream.write(bytes);
        self.unless_closed(written, bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.closed {
            return Ok(());
        }
        let flushed = self.stream.flush();
        self.unless_closed(flushed, ())
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

/// Says on standard error what is probably not meant.
pub fn warning(text: impl Display) {
    to_stderr(format_args!("{}warning:{} {text}", style::WARNING, style::RESET));
}

/// If standard error is closed there is no one left to tell.
fn to_stderr(line: impl Display) {
    let _ = writeln!(anstream::stderr(), "{line}");
}
