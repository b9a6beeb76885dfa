//! The colours of the terminal, by meaning.

use anstyle::{AnsiColor, Style};

/// Ends any style.
pub const RESET: anstyle::Reset = anstyle::Reset;
/// The word `error`.
pub const ERROR: Style = AnsiColor::Red.on_default().bold();
/// The word `warning`.
pub const WARNING: Style = AnsiColor::Yellow.on_default().bold();
/// The word `note`.
pub const NOTE: Style = AnsiColor::Cyan.on_default().bold();
/// Headings.
pub const STRONG: Style = Style::new().bold();
/// What is there to be found, not read: rules, labels, zeros.
pub const FAINT: Style = Style::new().dimmed();
/// What should not be: misses, violations.
pub const BAD: Style = AnsiColor::Red.on_default().bold();
/// What was hoped for.
pub const GOOD: Style = AnsiColor::Green.on_default();
