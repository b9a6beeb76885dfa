//! The user's own code.

use super::Fields;
use crate::file::write::Outline::{self, Boolean, Inline, List, Text};
use crate::{CodeSource, OwnCode};

pub(super) fn own_code(code: &OwnCode) -> Outline {
    let text = |text: &String| Text(text.clone());
    let mut fields: Fields = Vec::new();
    match &code.source {
        CodeSource::Library { library, symbol, init, exit } => {
            fields.extend([("library", text(library)), ("symbol", text(symbol))]);
            fields.extend(init.as_ref().map(|init| ("init", text(init))));
            fields.extend(exit.as_ref().map(|exit| ("exit", text(exit))));
        }
        CodeSource::Python { function } => fields.push(("python", text(function))),
        CodeSource::Command(words) => fields.push(("command", List(words.iter().map(text).collect()))),
    }
    super::unless(&mut fields, "warm", code.warm, false, Boolean);
    Inline(fields)
}
