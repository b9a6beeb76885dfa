//! Names of files whose format is given: a name that promises another one is a mistake.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser};

/// Endings that promise a format. Those of inputs are not among them: that an input would be lost is the better reason.
const FORMATS: &[&str] = &["csv", "eps", "gif", "htm", "html", "jpeg", "jpg", "pdf", "png", "ps", "svg", "txt", "webp"];

/// Where an SVG drawing goes, as an argument.
pub fn svg() -> impl TypedValueParser<Value = PathBuf> {
    of_format("SVG", &["svg"])
}

/// Where a page goes, as an argument.
pub fn html() -> impl TypedValueParser<Value = PathBuf> {
    of_format("HTML", &["html", "htm"])
}

fn of_format(format: &'static str, endings: &'static [&'static str]) -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().try_map(move |path: OsString| {
        let path = PathBuf::from(path);
        let ending = path.extension().and_then(OsStr::to_str).map(str::to_ascii_lowercase);
        match ending.filter(|ending| FORMATS.contains(&ending.as_str()) && !endings.contains(&ending.as_str())) {
            Some(ending) => {
                Err(format!("it is written as {format}, not as .{ending}; end the name in .{}", endings[0]))
            }
            None => Ok(path),
        }
    })
}
